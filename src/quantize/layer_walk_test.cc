// A walk over a text, layer by layer, against the model's forward pass and against moments in plain loops.

#include "quantize/layer_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/model.h"
#include "quantize/test_model.h"

namespace quire {
namespace {

using namespace testing_inputs;

constexpr int64_t kLength = 70;  // beyond the windows of 32, and no whole number of pages
constexpr int64_t kSequences = 3;

std::unique_ptr<LayerWalk> walk_over(const TinyModel& model, Device& device,
                                     const std::vector<std::vector<int32_t>>& text) {
  auto walk = LayerWalk::create(*model.checkpoint, model.config, device, text,
                                linear_readers(model.config, *model.checkpoint, {}));
  EXPECT_TRUE(walk.ok()) << walk.status().message();
  return std::move(*walk);
}

void use_stored(LayerParts& parts) {
  for (const LayerLinear linear : kLayerLinears) {
    const Status used = parts.use_stored(linear);
    ASSERT_TRUE(used.ok()) << used.message();
  }
}

// The residual stream after the last layer.
std::vector<float> forward(const TinyModel& model, bool f32, const std::vector<int32_t>& ids) {
  const int64_t pages = (kLength + kPageTokens - 1) / kPageTokens;
  ModelLimits limits;
  limits.workspace = {.max_rows = kLength, .max_context = kLength};
  limits.kv_pages.assign(model.config.kv_groups.size(), pages);
  auto loaded = Model::load(*model.checkpoint, model.config, make_device(1, f32), limits, nullptr);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  std::vector<int32_t> table;
  for (int32_t page = 0; page < pages; ++page) table.push_back(page);
  std::vector<float> out(static_cast<size_t>(kLength * model.config.hidden));
  StepInput step;
  step.sequences.push_back({.rows = kLength,
                            .first_position = 0,
                            .page_tables = std::vector<const int32_t*>(model.config.kv_groups.size(), table.data())});
  step.tokens = ids;
  step.hidden_out = out.data();
  EXPECT_TRUE((*loaded)->forward(step).ok());
  return out;
}

class LayerWalkOf : public testing::TestWithParam<const char*> {};

TEST_P(LayerWalkOf, EndsWhereTheForwardPassEndsToTheBit) {
  const TinyModel model(GetParam());
  const auto text = model.text(kSequences, kLength);
  for (const bool f32 : {true, false}) {
    const auto device = make_device(2, f32);
    const auto walk = walk_over(model, *device, text);
    for (size_t layer = 0; layer < model.config.layers.size(); ++layer) {
      LayerParts parts(*model.checkpoint, layer, *device);
      use_stored(parts);
      for (const LayerInput input : kEveryInput)
        (void)walk->observe(input, model.config.layers[layer], parts.weights());
      walk->finish_layer(model.config.layers[layer], parts.weights());
    }
    const size_t floats = static_cast<size_t>(kLength * model.config.hidden);
    for (size_t s = 0; s < text.size(); ++s) {
      const std::vector<float> wanted = forward(model, f32, text[s]);
      const std::span<const float> got = walk->residual().subspan(s * floats, floats);
      EXPECT_TRUE(std::ranges::equal(got, wanted)) << "sequence " << s << (f32 ? ", f32" : ", default activations");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, LayerWalkOf,
                         testing::Values("tiny/llama-gqa-llama3rope", "tiny/llama-linear-rope-bias", "tiny/llama-yarn",
                                         "tiny/mistral-window32", "tiny/qwen2", "tiny/gemma3",
                                         "tiny-gguf/llama-mha-spm.gguf"));

std::vector<float> normed(std::span<const float> x, const std::vector<float>& weight, float eps) {
  const size_t k = weight.size();
  std::vector<float> out(x.size());
  for (size_t row = 0; row * k < x.size(); ++row) {
    double squares = 0;
    for (size_t i = 0; i < k; ++i) squares += static_cast<double>(x[row * k + i]) * x[row * k + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(k) + eps);
    for (size_t i = 0; i < k; ++i) out[row * k + i] = static_cast<float>(x[row * k + i] * scale * weight[i]);
  }
  return out;
}

// x [rows][k] times the rows of w [n][k].
std::vector<float> times(const std::vector<float>& x, const std::vector<float>& w, size_t k) {
  std::vector<float> out;
  for (size_t row = 0; row * k < x.size(); ++row) {
    for (size_t n = 0; n * k < w.size(); ++n) {
      double sum = 0;
      for (size_t i = 0; i < k; ++i) sum += static_cast<double>(x[row * k + i]) * w[n * k + i];
      out.push_back(static_cast<float>(sum));
    }
  }
  return out;
}

void expect_near(const Moments& got, const Moments& wanted, const char* what) {
  ASSERT_EQ(got.products.size(), wanted.products.size());
  ASSERT_EQ(got.magnitudes.size(), wanted.magnitudes.size());
  float largest = 0;
  for (const float value : wanted.products) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < got.products.size(); ++i)
    ASSERT_NEAR(got.products[i], wanted.products[i], 1e-4f * largest) << what << " " << i;
  for (size_t i = 0; i < got.magnitudes.size(); ++i)
    ASSERT_NEAR(got.magnitudes[i], wanted.magnitudes[i], 1e-4f * std::sqrt(largest)) << what << " " << i;
}

TEST(LayerWalk, MomentsAreThoseOfTheInputs) {
  const TinyModel model("tiny/llama-gqa-llama3rope");
  const auto text = model.text(kSequences, kLength);
  const auto device = make_device(2);
  const auto walk = walk_over(model, *device, text);
  const LayerConfig& layer = model.config.layers[0];
  LayerParts parts(*model.checkpoint, 0, *device);
  use_stored(parts);
  const auto hidden = static_cast<size_t>(model.config.hidden);
  const float eps = model.config.norm_eps;

  const std::vector<float> before(walk->residual().begin(), walk->residual().end());
  const Moments attention = walk->observe(LayerInput::kAttention, layer, parts.weights());
  expect_near(attention, moments_of(normed(before, *parts.vector("attn_norm.weight"), eps), model.config.hidden),
              "attention");
  const Moments output = walk->observe(LayerInput::kAttentionOutput, layer, parts.weights());
  const Moments ffn = walk->observe(LayerInput::kFfn, layer, parts.weights());
  const std::vector<float> after(walk->residual().begin(), walk->residual().end());
  const std::vector<float> ffn_in = normed(after, *parts.vector("ffn_norm.weight"), eps);
  expect_near(ffn, moments_of(ffn_in, model.config.hidden), "ffn");

  // What attention added to the stream is its output times o: mean squares of that are w m w^T.
  const std::vector<float>& o = parts.values(LayerLinear::kO);
  for (size_t row = 0; row < hidden; ++row) {
    const std::vector<float> w(o.begin() + static_cast<int64_t>(row) * output.k,
                               o.begin() + static_cast<int64_t>(row + 1) * output.k);
    double squares = 0;
    for (size_t at = row; at < after.size(); at += hidden) squares += std::pow(after[at] - before[at], 2);
    squares /= static_cast<double>(kSequences * kLength);
    EXPECT_NEAR(product_error(output, w, std::vector<float>(w.size())), squares, 1e-3 * squares) << row;
  }

  const Moments middle = walk->observe(LayerInput::kFfnMiddle, layer, parts.weights());
  const std::vector<float> gate = times(ffn_in, parts.values(LayerLinear::kGate), hidden);
  std::vector<float> product = times(ffn_in, parts.values(LayerLinear::kUp), hidden);
  for (size_t i = 0; i < product.size(); ++i) product[i] *= gate[i] / (1 + std::exp(-gate[i]));
  expect_near(middle, moments_of(product, model.config.ffn_hidden), "down");
}

TEST(LayerWalk, DoesNotDependOnThreads) {
  const TinyModel model("tiny/gemma3");
  const auto text = model.text(kSequences, kLength);
  std::array<Moments, 2> moments[4];
  for (const int threads : {1, 3}) {
    const auto device = make_device(threads, false);
    const auto walk = walk_over(model, *device, text);
    LayerParts parts(*model.checkpoint, 0, *device);
    use_stored(parts);
    for (size_t i = 0; i < 4; ++i)
      moments[i][threads / 3] = walk->observe(kEveryInput[i], model.config.layers[0], parts.weights());
  }
  for (const auto& [one, three] : moments) {
    EXPECT_EQ(one.products, three.products);
    EXPECT_EQ(one.magnitudes, three.magnitudes);
  }
}

}  // namespace
}  // namespace quire
