// A model loaded for a test, with its own pages: what engine/ does, without tokenizer and sampling.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "model/model.h"
#include "model/registry.h"

namespace quire {

inline constexpr CpuDeviceOptions::Isa kEveryIsa[] = {CpuDeviceOptions::Isa::kScalar, CpuDeviceOptions::Isa::kAvx2,
                                                      CpuDeviceOptions::Isa::kAvx512};
const char* isa_name(CpuDeviceOptions::Isa isa);
inline constexpr KvType kEveryKvType[] = {KvType::kBF16, KvType::kF16, KvType::kI8, KvType::kF32};
const char* kv_type_name(KvType type);
// Whether a model was refused because this CPU lacks the instruction set asked for.
bool lacks_isa(const Status& status);

struct TestModelOptions {
  CpuDeviceOptions device;
  WeightOptions weights;
  int64_t context = 512;
  int64_t sequences = 1;
  int64_t max_rows = 512;
  uint64_t page_seed = 0;  // not 0: pages are dealt in random order, and filled with NaN first
};

class TestModel {
 public:
  static Result<std::unique_ptr<TestModel>> load(const std::string& path, const TestModelOptions& options);

  Model& model() { return *model_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  int64_t vocab() const { return model_->config().vocab_size; }
  // Page tables of one sequence, one per KV group.
  std::vector<const int32_t*> page_tables(int64_t sequence) const;
  // Fills every KV page with NaN.
  void poison();

  // Logits of every row of `ids` at positions first..., in steps of at most `chunk` rows.
  std::vector<float> logits(std::span<const int32_t> ids, int64_t first_position, int64_t chunk, int64_t sequence = 0);
  // log p(ids[i + 1] | ids[0..i]).
  std::vector<float> next_logprobs(std::span<const int32_t> ids);

 private:
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
  int64_t pages_per_sequence_ = 0;
  int64_t max_rows_ = 0;
  std::vector<int32_t> pages_;  // [sequence][page]; the same for every group
};

}  // namespace quire
