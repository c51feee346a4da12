// A tiny checkpoint with a text for it, for the tests of quantize/ that take a model through its layers.
#pragma once

#include "formats/checkpoint.h"
#include "model/registry.h"
#include "quantize/layer_parts.h"
#include "quantize/layer_walk.h"
#include "quantize/test_inputs.h"

namespace quire::testing_inputs {

struct TinyModel {
  explicit TinyModel(const std::string& name) {
    auto opened = Checkpoint::open(kGolden + name);
    QUIRE_CHECK(opened.ok());
    checkpoint = std::move(*opened);
    auto configured = configure_model(checkpoint->hparams());
    QUIRE_CHECK(configured.ok());
    config = std::move(*configured);
  }

  std::vector<std::vector<int32_t>> text(int64_t sequences, int64_t length) const {
    std::mt19937 random(99);  // NOLINT: the same text every time
    std::vector<std::vector<int32_t>> ids(static_cast<size_t>(sequences));
    for (std::vector<int32_t>& sequence : ids) {
      for (int64_t i = 0; i < length; ++i)
        sequence.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(config.vocab_size)));
    }
    return ids;
  }

  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
};

inline constexpr LayerInput kEveryInput[] = {LayerInput::kAttention, LayerInput::kAttentionOutput, LayerInput::kFfn,
                                             LayerInput::kFfnMiddle};

}  // namespace quire::testing_inputs
