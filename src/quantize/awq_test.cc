// AWQ's scaling changes nothing but how weights round, and rounding hurts less after it.

#include "quantize/awq.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "device/memory.h"
#include "quantize/test_model.h"

namespace quire {
namespace {

using namespace testing_inputs;

const GridChoice kGrid = [](const TensorRef&) { return GridSpec{.bits = 4, .group = 32}; };

LinearReaders f32_readers() {
  LinearReaders readers;
  for (std::vector<WeightType>* types : {&readers.qkv, &readers.o, &readers.gate_up, &readers.down, &readers.head})
    types->push_back(DType::kF32);
  return readers;
}

// A layer's values, packed as they are.
class ExactLayer {
 public:
  ExactLayer(Device& device, LayerParts& parts) : weights_(parts.weights()) {
    LinearWeight* const packed[] = {&weights_.q,    &weights_.k,  &weights_.v,   &weights_.o,
                                    &weights_.gate, &weights_.up, &weights_.down};
    for (const LayerLinear linear : kLayerLinears) {
      const std::vector<float>& values = parts.values(linear);
      const int64_t k = parts.tensor(linear).columns();
      LinearSource source;
      source.n = parts.tensor(linear).rows();
      source.k = k;
      source.row = [&](int64_t row) { return reinterpret_cast<const std::byte*>(values.data() + row * k); };
      auto memory = Buffer::allocate(device.sizes().packed_bytes(source.type, source.n, k), "a test");
      EXPECT_TRUE(memory.ok());
      memory_.push_back(std::move(*memory));
      *packed[static_cast<size_t>(linear)] = device.pack(source, memory_.back().data());
    }
  }
  const LayerWeights& weights() const { return weights_; }

 private:
  std::deque<Buffer> memory_;
  LayerWeights weights_;
};

// Takes the text through the first layer; returns the moments on the way.
LayerMoments run_layer(const TinyModel& model, LayerWalk& walk, const LayerWeights& weights) {
  LayerMoments moments;
  for (const LayerInput input : kEveryInput)
    moments[static_cast<size_t>(input)] = walk.observe(input, model.config.layers[0], weights);
  walk.finish_layer(model.config.layers[0], weights);
  return moments;
}

// Random weights leave little to gain; channels that stand out make every search find scales.
void enlarge_some_channels(LayerParts& parts) {
  for (const char* norm : {"attn_norm.weight", "ffn_norm.weight"}) {
    std::vector<float>& weight = *parts.vector(norm);
    for (size_t i = 0; i < weight.size(); i += 32) weight[i] = 40 * (1 + std::fabs(weight[i]));
  }
  for (const LayerLinear linear : {LayerLinear::kV, LayerLinear::kUp}) {
    std::vector<float>& values = parts.values(linear);
    const int64_t k = parts.tensor(linear).columns();
    for (int64_t row = 0; row < parts.tensor(linear).rows(); row += 32) {
      for (int64_t i = 0; i < k; ++i) values[static_cast<size_t>(row * k + i)] *= 40;
    }
  }
}

class AwqScaling : public testing::TestWithParam<const char*> {};

TEST_P(AwqScaling, LeavesTheLayersFunction) {
  const TinyModel model(GetParam());
  const auto text = model.text(2, 64);
  const auto device = make_device(2);
  LayerParts parts(*model.checkpoint, 0, *device);
  enlarge_some_channels(parts);
  const auto walk = [&] {
    auto made = LayerWalk::create(*model.checkpoint, model.config, *device, text, f32_readers());
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  };
  const auto before = walk();
  LayerMoments moments = run_layer(model, *before, ExactLayer(*device, parts).weights());
  std::array<std::vector<float>, kLayerLinears.size()> unscaled;
  for (const LayerLinear linear : kLayerLinears) unscaled[static_cast<size_t>(linear)] = parts.values(linear);

  scale_for_awq(*device, model.config, kGrid, parts, moments);
  size_t changed = 0;
  for (const LayerLinear linear : kLayerLinears) {
    if (parts.values(linear) != unscaled[static_cast<size_t>(linear)]) ++changed;
  }
  EXPECT_GE(changed, 5u) << "no scales were found, so nothing is tested";

  const auto after = walk();
  const LayerMoments observed = run_layer(model, *after, ExactLayer(*device, parts).weights());
  float largest = 0;
  for (const float value : before->residual()) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < before->residual().size(); ++i)
    ASSERT_NEAR(after->residual()[i], before->residual()[i], 5e-5f * largest) << i;
  // The moments that the search goes on with are those that the scaled layer has.
  for (size_t input = 0; input < moments.size(); ++input) {
    const Moments& m = moments[input];
    for (int64_t i = 0; i < m.k; ++i) {
      ASSERT_NEAR(m.diagonal(i), observed[input].diagonal(i), 1e-3f * observed[input].diagonal(i) + 1e-9f);
      const auto at = static_cast<size_t>(i);
      ASSERT_NEAR(m.magnitudes[at], observed[input].magnitudes[at], 1e-3f * observed[input].magnitudes[at] + 1e-9f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, AwqScaling,
                         testing::Values("tiny/llama-gqa-llama3rope", "tiny/llama-linear-rope-bias", "tiny/qwen2",
                                         "tiny/gemma3"));

double rounding_error(Device& device, const Moments& moments, const std::vector<float>& values,
                      const std::vector<float>& wanted) {
  const GridSpec spec = {.bits = 4, .group = 32};
  const int64_t n = static_cast<int64_t>(values.size()) / moments.k;
  return product_error(moments, decoded(spec, round_to_nearest(device, spec, n, values, {}), n, moments.k), wanted);
}

TEST(AwqScaling, LowersTheErrorOfProductsWhereAFewChannelsAreLarge) {
  const TinyModel model("tiny/llama-gqa-llama3rope");
  const auto device = make_device(2);
  LayerParts parts(*model.checkpoint, 0, *device);
  LayerMoments moments;
  const int64_t widths[] = {model.config.hidden, model.config.heads.heads * model.config.heads.head_dim,
                            model.config.hidden, model.config.ffn_hidden};
  for (size_t i = 0; i < moments.size(); ++i)
    moments[i] = moments_of(correlated_inputs(256, widths[i], 70 + static_cast<uint32_t>(10 * i), 12), widths[i]);
  const auto error_of = [&](LayerLinear linear) {
    return rounding_error(*device, moments[static_cast<size_t>(input_of(linear))], parts.values(linear),
                          parts.values(linear));
  };
  std::array<double, kLayerInputs> before{};
  for (const LayerLinear linear : kLayerLinears) before[static_cast<size_t>(input_of(linear))] += error_of(linear);
  scale_for_awq(*device, model.config, kGrid, parts, moments);
  std::array<double, kLayerInputs> after{};
  for (const LayerLinear linear : kLayerLinears) after[static_cast<size_t>(input_of(linear))] += error_of(linear);
  // The paper's family of scales alone leaves 0.88 of the third.
  const double at_most[] = {0.75, 0.55, 0.86, 0.65};
  for (size_t i = 0; i < before.size(); ++i) EXPECT_LT(after[i], at_most[i] * before[i]) << "input " << i;
}

TEST(AwqClipping, LowersTheErrorOfProductsOfWeightsWithOutliers) {
  const auto device = make_device(2);
  constexpr int64_t kN = 24, kK = 96;
  // Independent channels, so that groups do not make up for each other and each can only gain.
  Moments moments = moments_of(random_values(64 * kK, 31), kK);
  for (int64_t i = 0; i < kK; ++i) {
    for (int64_t j = 0; j < kK; ++j) {
      if (i != j) moments.products[static_cast<size_t>(i * kK + j)] = 0;
    }
  }
  std::vector<float> weights = random_values(kN * kK, 32, 0.05f);
  for (size_t i = 3; i < weights.size(); i += 32) weights[i] *= 3;
  std::vector<float> clipped = weights;
  clip_for_awq(*device, {.bits = 4, .group = 32}, moments, clipped);
  EXPECT_NE(clipped, weights);
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_LE(std::fabs(clipped[i]), std::fabs(weights[i]));
  EXPECT_LT(rounding_error(*device, moments, clipped, weights),
            0.99 * rounding_error(*device, moments, weights, weights));

  std::vector<float> threaded = weights;
  clip_for_awq(*make_device(3), {.bits = 4, .group = 32}, moments, threaded);
  EXPECT_EQ(threaded, clipped);
}

TEST(AwqClipping, CountsInWhatOtherGroupsOfTheRowMakeUpFor) {
  const auto device = make_device(2);
  constexpr int64_t kN = 24, kK = 192;
  for (const GridSpec& spec : {GridSpec{.bits = 4, .group = 32}, GridSpec{.bits = 4, .group = 64, .symmetric = false},
                               GridSpec{.blocks = block_grid(DType::kQ4_0)}}) {
    for (const uint32_t seed : {41u, 42u, 43u}) {
      // A few factors move all channels, so that the errors of groups add up or cancel.
      const Moments moments = moments_of(correlated_inputs(256, kK, seed), kK);
      const std::vector<float> weights = random_values(kN * kK, seed + 100, 0.05f);
      std::vector<float> clipped = weights;
      clip_for_awq(*device, spec, moments, clipped);
      const auto error = [&](const std::vector<float>& values) {
        return product_error(moments, decoded(spec, round_to_nearest(*device, spec, kN, values, {}), kN, kK), weights);
      };
      EXPECT_LT(error(clipped), 0.8 * error(weights)) << "group " << spec.group << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace quire
