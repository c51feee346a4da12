// A decoder-only transformer on a device: weights, KV pages and the one forward pass.
//
// Owns its device and KV store; reads embeddings from the checkpoint, which must outlive it. Thread: forward() from
// one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/k_factors.h"
#include "model/kv_store.h"
#include "model/rope.h"
#include "model/step_input.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace quire {

struct ModelLimits {
  WeightOptions weights;
  WorkspaceLimits workspace;
  std::vector<int64_t> kv_pages;  // per KV group
  bool touch_kv = true;           // take the pages' memory now rather than as they are first used
};

class Model {
 public:
  static Result<std::unique_ptr<Model>> load(const Checkpoint& checkpoint, const ModelConfig& config,
                                             std::unique_ptr<Device> device, const ModelLimits& limits,
                                             const std::function<void(double)>& progress);

  // The same weights with KV pages of another type: `owner`, which must outlive this, keeps them. The device must pack as
  // the owner's does.
  static Result<std::unique_ptr<Model>> share(const Model& owner, std::unique_ptr<Device> device,
                                              const ModelLimits& limits);

  // Runs a step; its rows are at most limits.workspace.max_rows. Fails only where the checkpoint's files, from which it reads
  // embeddings, are no longer what was loaded (Checkpoint::unchanged): nothing of the step counts then.
  Status forward(const StepInput& input);

  // Logits of rows of the last step, which must have run to the last layer: out [rows.size()][vocab]. At most
  // limits.workspace.max_rows at a time.
  void logits(std::span<const int32_t> rows, float* out);
  // A logit minus this is a log-probability.
  float log_sum_exp(std::span<const float> logits);

  // What repacking the head (ModelLimits::weights) costs: the mean Kullback-Leibler divergence of its distributions from
  // those of the head as stored, in nats, over the rows of `tokens`. Uses the KV pages: call it before they are in use.
  Result<double> head_divergence(std::span<const int32_t> tokens);

  // Factors for K in int8 pages (model/k_factors.h), chosen on passages that are computed each by itself; of any KV type,
  // and without regard to factors that are set. Cuts passages to what the KV pages hold, and uses these: call it before
  // they are in use. The same bits for any number of threads and rows of a step.
  Result<std::vector<float>> measure_k_factors(std::span<const std::vector<int32_t>> passages);
  // From here on K is stored by these factors, [layers][kv_heads][head_dim], which check_k_factors accepted; empty: by
  // none. Pages that were written before mean nothing any more.
  void set_k_factors(std::vector<float> factors);
  std::span<const float> k_factors() const { return k_factors_; }

  bool weights_from_packed_file() const { return weights_.from_packed_file; }
  const std::vector<std::string>& weight_notes() const { return weights_.notes; }

  // The device's threads, for host work between steps.
  void parallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) { device_->parallel(count, body); }

  const ModelConfig& config() const { return config_; }
  const Device& device() const { return *device_; }
  KvStore& kv() { return kv_; }

 private:
  Model(const Checkpoint& checkpoint, const ModelConfig& config, std::unique_ptr<Device> device);
  Status allocate(const ModelLimits& limits);

  Status embed(const StepInput& input, int64_t rows);
  void fill_rope(const StepInput& input, int64_t rows);
  void head(const LinearWeight& weight, std::span<const int32_t> rows, float* out);
  void run_layer(size_t index, bool last, int64_t rows);
  int64_t kv_tokens() const;  // of one sequence, for which there are pages in every group

  const ModelConfig config_;
  const Checkpoint& checkpoint_;
  std::unique_ptr<Device> device_;
  ModelWeights weights_;
  KvStore kv_;
  Workspace work_;
  std::vector<RopeTable> ropes_;
  std::vector<float> k_factors_;
  KvObservations* observed_ = nullptr;            // takes the statistics of steps while K factors are measured
  std::vector<std::vector<SequenceSpan>> spans_;  // per KV group, of the current step
};

}  // namespace quire
