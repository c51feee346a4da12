#include "quantize/job.h"

#include <utility>

#include "model/check_codes.h"
#include "quantize/layer_parts.h"
#include "quantize/quantizer.h"
#include "quantize/work_folder.h"

namespace quire {
namespace {

std::string work_path(const QuantizeJob& job) { return job.out + ".work"; }

Status write_decoded(const QuantizeJob& job, const TensorRef& tensor, CheckpointWriter& writer) {
  const Status codes = check_codes(tensor, job.device, job.checkpoint.path());
  QUIRE_RETURN_IF_ERROR(job.checkpoint.unchanged());
  QUIRE_RETURN_IF_ERROR(codes);
  const int64_t k = tensor.columns();
  std::vector<float> values(static_cast<size_t>(tensor.rows() * k));
  if (tensor.rank == 1) {
    tensor.decode_f32(0, 1, values.data());
  } else {
    job.device.parallel(tensor.rows(), [&](int64_t begin, int64_t end) {
      tensor.decode_f32(begin, end - begin, values.data() + begin * k);
    });
  }
  QUIRE_RETURN_IF_ERROR(job.checkpoint.unchanged());
  return writer.write_values(tensor.name, values);
}

// A tensor that is not quantized. Blocks stay the blocks they are where their type does.
Status write_kept(const QuantizeJob& job, const TensorRef& tensor, CheckpointWriter& writer) {
  const bool same_blocks = job.target.file.format == CheckpointTarget::Format::kGguf && tensor.quantized == nullptr &&
                           tensor.rank == 2 && job.target.file.dtype(tensor) == tensor.dtype;
  if (!same_blocks) return write_decoded(job, tensor, writer);
  const int64_t stride = row_bytes(tensor.dtype, tensor.columns());
  std::vector<std::byte> rows(static_cast<size_t>(tensor.rows() * stride));
  for (int64_t row = 0; row < tensor.rows(); ++row) std::copy_n(tensor.row(row), stride, rows.data() + row * stride);
  QUIRE_RETURN_IF_ERROR(job.checkpoint.unchanged());
  return writer.write_blocks(tensor.name, rows);
}

// Whether what a file of the work folder holds is a layer of this model. Matrices are checked as they are written.
Status check_vectors(const QuantizeJob& job, size_t layer, const QuantizedLayer& result) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  const std::string where = work_path(job) + ": layer " + std::to_string(layer);
  size_t expected = 0;
  for (const TensorRef& tensor : job.checkpoint.tensors()) {
    if (tensor.rank != 1 || !tensor.name.starts_with(prefix)) continue;
    ++expected;
    const auto found = result.vectors.find(std::string_view(tensor.name).substr(prefix.size()));
    if (found == result.vectors.end()) return corrupt(where + " lacks " + tensor.name);
    if (static_cast<int64_t>(found->second.size()) != tensor.columns()) {
      return corrupt(where + " has " + std::to_string(found->second.size()) + " values of " + tensor.name +
                     ", not the " + std::to_string(tensor.columns()) + " of the model");
    }
  }
  if (expected == result.vectors.size()) return {};
  return corrupt(where + " holds " + std::to_string(result.vectors.size()) + " vectors, not the " +
                 std::to_string(expected) + " of the model");
}

Status write_layer(const QuantizeJob& job, size_t layer, const QuantizedLayer& result, CheckpointWriter& writer) {
  QUIRE_RETURN_IF_ERROR(check_vectors(job, layer, result));
  for (const LayerLinear linear : kLayerLinears) {
    const QuantizedRows& rows = result.linears[static_cast<size_t>(linear)];
    const std::string name = tensor_name(layer, linear);
    QUIRE_RETURN_IF_ERROR(job.target.file.format == CheckpointTarget::Format::kGguf
                              ? writer.write_blocks(name, rows.blocks)
                              : writer.write_codes(name, rows.codes));
  }
  for (const auto& [name, values] : result.vectors)
    QUIRE_RETURN_IF_ERROR(writer.write_values("blk." + std::to_string(layer) + "." + name, values));
  return {};
}

bool was_cancelled(const QuantizeProgress& progress) { return progress.cancelled && progress.cancelled(); }

Status cancelled_status(const QuantizeJob& job) {
  return cancelled("stopped; the same command goes on from " + work_path(job));
}

// All layers into the work folder; returns how many were there.
Result<size_t> quantize_layers(const QuantizeJob& job, const QuantizeProgress& progress, WorkFolder& work) {
  const size_t layers = job.config.layers.size();
  const size_t done_before = work.layers();
  if (done_before >= layers) return layers;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Quantizer> quantizer,
                         Quantizer::create(job.checkpoint, job.config, job.device, job.sequences, job.target.options));
  if (done_before > 0 && !quantizer->residual().empty())
    QUIRE_RETURN_IF_ERROR(work.load_residual(quantizer->residual()));
  for (size_t layer = done_before; layer < layers; ++layer) {
    if (was_cancelled(progress)) return cancelled_status(job);
    if (progress.show) {
      progress.show("layer " + std::to_string(layer + 1) + " of " + std::to_string(layers),
                    static_cast<double>(layer - done_before) / static_cast<double>(layers - done_before));
    }
    const Result<QuantizedLayer> result = quantizer->quantize(layer);
    QUIRE_RETURN_IF_ERROR(job.checkpoint.unchanged());  // first: it may be why
    QUIRE_RETURN_IF_ERROR(result.status());
    QUIRE_RETURN_IF_ERROR(work.store(layer, *result, quantizer->residual()));
  }
  return done_before;
}

}  // namespace

Result<QuantizeOutcome> run_quantize_job(const QuantizeJob& job, const QuantizeProgress& progress) {
  QuantizeOutcome outcome;
  // First of all, so that what the format cannot hold, and a disk that is too small, are known before the work.
  QUIRE_ASSIGN_OR_RETURN(outcome.writer, CheckpointWriter::create(job.checkpoint, job.target.file, job.out));
  if (job.target.plain) {
    size_t done = 0;
    for (const TensorRef& tensor : job.checkpoint.tensors()) {
      if (was_cancelled(progress)) return cancelled("stopped; nothing was written");
      QUIRE_RETURN_IF_ERROR(write_kept(job, tensor, *outcome.writer));
      if (progress.show)
        progress.show("writing", static_cast<double>(++done) / static_cast<double>(job.checkpoint.tensors().size()));
    }
    return outcome;
  }
  QUIRE_ASSIGN_OR_RETURN(WorkFolder work, WorkFolder::open(work_path(job), job.settings));
  QUIRE_ASSIGN_OR_RETURN(outcome.resumed_layers, quantize_layers(job, progress, work));
  for (size_t layer = 0; layer < job.config.layers.size(); ++layer) {
    QUIRE_ASSIGN_OR_RETURN(const QuantizedLayer result, work.load(layer));
    const Status written = write_layer(job, layer, result, *outcome.writer);
    const bool unfit = written.code() == StatusCode::kCorrupt || written.code() == StatusCode::kOutOfRange;
    if (!written.ok()) return unfit ? work.damaged(written) : written;
  }
  for (const TensorRef& tensor : job.checkpoint.tensors()) {
    if (!tensor.name.starts_with("blk.")) QUIRE_RETURN_IF_ERROR(write_kept(job, tensor, *outcome.writer));
  }
  QUIRE_RETURN_IF_ERROR(job.checkpoint.unchanged());
  return outcome;
}

Status remove_work(const QuantizeJob& job) {
  QUIRE_ASSIGN_OR_RETURN(WorkFolder work, WorkFolder::open(work_path(job), job.settings));
  return work.remove();
}

}  // namespace quire
