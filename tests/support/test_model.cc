#include "support/test_model.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace quire {

const char* isa_name(CpuDeviceOptions::Isa isa) {
  switch (isa) {
    case CpuDeviceOptions::Isa::kAuto:
      return "auto";
    case CpuDeviceOptions::Isa::kScalar:
      return "scalar";
    case CpuDeviceOptions::Isa::kAvx2:
      return "avx2";
    case CpuDeviceOptions::Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

const char* kv_type_name(KvType type) {
  switch (type) {
    case KvType::kBF16:
      return "bf16";
    case KvType::kF16:
      return "f16";
    case KvType::kI8:
      return "int8";
    case KvType::kF32:
      return "f32";
  }
  return "?";
}

bool lacks_isa(const Status& status) {
  return status.code() == StatusCode::kUnsupported && status.message().find("--isa") != std::string::npos;
}

Result<std::unique_ptr<TestModel>> TestModel::load(const std::string& path, const TestModelOptions& options) {
  auto test = std::make_unique<TestModel>();
  QUIRE_ASSIGN_OR_RETURN(test->checkpoint_, Checkpoint::open(path));
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig config, configure_model(test->checkpoint_->hparams()));
  QUIRE_ASSIGN_OR_RETURN(auto device, make_cpu_device(options.device));
  test->pages_per_sequence_ = (options.context + kPageTokens - 1) / kPageTokens;
  test->max_rows_ = options.max_rows;
  test->pages_.resize(static_cast<size_t>(options.sequences * test->pages_per_sequence_));
  std::iota(test->pages_.begin(), test->pages_.end(), 0);
  ModelLimits limits;
  limits.weights = options.weights;
  limits.workspace = {.max_rows = options.max_rows, .max_context = options.context};
  limits.kv_pages.assign(config.kv_groups.size(), static_cast<int64_t>(test->pages_.size()));
  QUIRE_ASSIGN_OR_RETURN(test->model_, Model::load(*test->checkpoint_, config, std::move(device), limits, nullptr));
  if (options.page_seed != 0) {
    std::shuffle(test->pages_.begin(), test->pages_.end(), std::mt19937_64(options.page_seed));
    test->poison();
  }
  return test;
}

std::vector<const int32_t*> TestModel::page_tables(int64_t sequence) const {
  return std::vector<const int32_t*>(model_->config().kv_groups.size(), pages_.data() + sequence * pages_per_sequence_);
}

void TestModel::poison() {
  for (size_t g = 0; g < model_->config().kv_groups.size(); ++g) {
    std::memset(model_->kv().data(static_cast<int>(g)), 0xff,
                static_cast<size_t>(model_->kv().bytes(static_cast<int>(g))));
  }
}

std::vector<float> TestModel::logits(std::span<const int32_t> ids, int64_t first_position, int64_t chunk,
                                     int64_t sequence) {
  std::vector<float> out(ids.size() * static_cast<size_t>(vocab()));
  for (size_t first = 0; first < ids.size(); first += static_cast<size_t>(chunk)) {
    const size_t rows = std::min(static_cast<size_t>(chunk), ids.size() - first);
    StepInput step;
    step.sequences.push_back({.rows = static_cast<int64_t>(rows),
                              .first_position = first_position + static_cast<int64_t>(first),
                              .page_tables = page_tables(sequence)});
    step.tokens.assign(ids.begin() + static_cast<int64_t>(first), ids.begin() + static_cast<int64_t>(first + rows));
    QUIRE_CHECK(model_->forward(step).ok());
    std::vector<int32_t> wanted(rows);
    std::iota(wanted.begin(), wanted.end(), 0);
    model_->logits(wanted, out.data() + first * static_cast<size_t>(vocab()));
  }
  return out;
}

std::vector<float> TestModel::next_logprobs(std::span<const int32_t> ids) {
  constexpr size_t kBlock = 24;  // rows of logits at a time: all of a long text would take too much memory
  std::vector<float> out(ids.size() - 1);
  std::vector<float> logits(kBlock * static_cast<size_t>(vocab()));
  for (size_t first = 0; first < out.size(); first += static_cast<size_t>(max_rows_)) {
    const size_t rows = std::min(static_cast<size_t>(max_rows_), out.size() - first);
    StepInput step;
    step.sequences.push_back({.rows = static_cast<int64_t>(rows),
                              .first_position = static_cast<int64_t>(first),
                              .page_tables = page_tables(0)});
    step.tokens.assign(ids.begin() + static_cast<int64_t>(first), ids.begin() + static_cast<int64_t>(first + rows));
    QUIRE_CHECK(model_->forward(step).ok());
    for (size_t at = 0; at < rows; at += kBlock) {
      std::vector<int32_t> wanted(std::min(kBlock, rows - at));
      std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(at));
      model_->logits(wanted, logits.data());
      for (size_t i = 0; i < wanted.size(); ++i) {
        const auto row =
            std::span<const float>(logits).subspan(i * static_cast<size_t>(vocab()), static_cast<size_t>(vocab()));
        const auto target = static_cast<size_t>(ids[first + at + i + 1]);
        out[first + at + i] = row[target] - model_->log_sum_exp(row);
      }
    }
  }
  return out;
}

}  // namespace quire
