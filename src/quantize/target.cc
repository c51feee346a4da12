#include "quantize/target.h"

#include <algorithm>
#include <array>

namespace quire {
namespace {

using Format = CheckpointTarget::Format;

bool is_layer_linear(const TensorRef& tensor) {
  return tensor.rank == 2 && tensor.name.starts_with("blk.") && tensor.name.ends_with(".weight");
}

bool is_table(const TensorRef& tensor) { return tensor.rank == 2 && !is_layer_linear(tensor); }

Format format_of(const QuantizeRequest& request, const std::string& out) {
  if (request.format.has_value()) return *request.format;
  if (out.ends_with(".gguf")) return Format::kGguf;
  if (request.bits == 16) return Format::kSafetensors;
  switch (request.scheme) {
    case QuantizeScheme::kGptq:
      return Format::kGptq;
    case QuantizeScheme::kAwq:
      return Format::kAwq;
    case QuantizeScheme::kRtn:
      break;
  }
  return Format::kCompressedTensors;
}

const char* format_name(Format format) {
  switch (format) {
    case Format::kGguf:
      return "GGUF";
    case Format::kSafetensors:
      return "plain safetensors";
    case Format::kGptq:
      return "GPTQ safetensors";
    case Format::kAwq:
      return "AWQ safetensors";
    case Format::kCompressedTensors:
      return "compressed-tensors safetensors";
  }
  return "";
}

Result<int64_t> group_of(const Checkpoint& checkpoint, const QuantizeRequest& request) {
  if (request.group == 0) return 0;
  for (const int64_t tried :
       request.group.has_value() ? std::array<int64_t, 3>{*request.group, 0, 0} : std::array<int64_t, 3>{128, 64, 32}) {
    const auto misfit = std::ranges::find_if(checkpoint.tensors(), [&](const TensorRef& tensor) {
      return tried == 0 || (is_layer_linear(tensor) && tensor.columns() % tried != 0);
    });
    if (misfit == checkpoint.tensors().end()) return tried;
    if (request.group.has_value()) {
      return invalid_argument("--group " + std::to_string(tried) + " does not divide the " +
                              std::to_string(misfit->columns()) + " columns of " + misfit->name + " in " +
                              checkpoint.path() +
                              "; leave it out, and the largest of 128, 64 and 32 that does is used");
    }
  }
  return unsupported(checkpoint.path() +
                     ": no group of 128, 64 or 32 columns divides all its matrices; use --group -1, "
                     "one scale a row");
}

Status check_codes(const QuantizeRequest& request, Format format) {
  if (request.type.has_value())
    return invalid_argument("--type names a type of GGUF files, but the output is " + std::string(format_name(format)) +
                            "; give --format gguf, or --bits and --group");
  if (request.importance == true) return invalid_argument("--importance on is for --scheme rtn in GGUF files");
  const bool ordered = request.gptq.act_order && !request.gptq.static_groups;
  // With one scale a row the order leaves no trace in the file.
  if (format == Format::kCompressedTensors && ordered && request.group != 0)
    return unsupported(
        "readers of compressed-tensors files no longer take groups in another order than the columns'; add "
        "--static-groups, or use --format gptq");
  if (format != Format::kAwq) return {};
  if (request.bits != 4) return unsupported("AWQ files hold 4 bits only; use --format compressed-tensors for 8");
  if (request.group == 0) return unsupported("AWQ files need groups; --group -1 (one scale a row) does not fit them");
  if (ordered)
    return unsupported("AWQ files cannot hold groups in another order than the columns'; add --static-groups");
  return {};
}

Result<DType> gguf_type(const QuantizeRequest& request) {
  if (request.group.has_value())
    return invalid_argument(
        "--group: GGUF types have groups of their own (32 columns in Q4_0); leave it out, or choose "
        "another --format");
  if (request.gptq.act_order && !request.gptq.static_groups)
    return unsupported("GGUF files cannot hold groups in another order than the columns'; add --static-groups");
  if (request.importance == true && request.scheme != QuantizeScheme::kRtn)
    return invalid_argument("--importance on is for --scheme rtn; " + std::string(scheme_name(request.scheme)) +
                            " weighs errors by the inputs itself");
  DType type = request.symmetric ? DType::kQ4_0 : DType::kQ4_1;
  if (request.bits == 8) type = DType::kQ8_0;
  if (request.type.has_value()) type = *request.type;
  const std::string name(dtype_info(type).name);
  if (block_grid(type) == nullptr)
    return unsupported("--type " + name + ": quire writes Q4_0, Q4_1, Q8_0, Q4_K and Q6_K");
  if (request.bits == 8 && type != DType::kQ8_0)
    return invalid_argument("--bits 8 and --type " + name + " contradict each other; leave one of them out");
  if (!request.symmetric && type != DType::kQ4_1 && type != DType::kQ4_K)
    return invalid_argument("--asym: " + name +
                            " blocks have no zero points; leave it out, or use --type q4_1 or q4_k");
  return type;
}

// Blocks of 256 do not fit every matrix: those take the nearest type with blocks of 32.
DType fitting(DType type, const TensorRef& tensor) {
  if (tensor.columns() % dtype_info(type).block_elements == 0) return type;
  return type == DType::kQ6_K ? DType::kQ8_0 : DType::kQ4_1;
}

// Embedding and head are not quantized again: what they are stored as stays, and plain values become a type that loses next
// to nothing.
DType table_type(const TensorRef& tensor, DType linears) {
  if (tensor.quantized == nullptr && dtype_info(tensor.dtype).block_elements > 1) return tensor.dtype;
  return fitting(linears == DType::kQ8_0 ? DType::kQ8_0 : DType::kQ6_K, tensor);
}

bool is_float(const TensorRef& tensor) {
  return tensor.quantized == nullptr && dtype_info(tensor.dtype).block_elements == 1;
}

std::string describe(const QuantizeRequest& request, const QuantizeTarget& target) {
  std::string text = request.scheme == QuantizeScheme::kGptq  ? "GPTQ"
                     : request.scheme == QuantizeScheme::kAwq ? "AWQ"
                                                              : "round to nearest";
  if (target.options.importance) text += " with importance";
  if (request.gptq.act_order) text += ", act-order";
  if (request.gptq.static_groups) text += ", static groups";
  if (target.file.format == Format::kGguf) return text + ", " + std::string(dtype_info(*request.type).name) + " GGUF";
  text += ", " + std::to_string(target.file.bits) + "-bit, ";
  text += target.file.group == 0 ? "one scale a row" : "groups of " + std::to_string(target.file.group);
  text += target.file.symmetric ? ", symmetric" : ", asymmetric";
  return text + ", " + format_name(target.file.format);
}

Result<QuantizeTarget> gguf_target(QuantizeRequest request) {
  QuantizeTarget target;
  target.file.format = Format::kGguf;
  QUIRE_ASSIGN_OR_RETURN(const DType type, gguf_type(request));
  request.type = type;
  target.file.bits = dtype_info(type).block_bytes * 8 / dtype_info(type).block_elements;
  target.file.dtype = [type](const TensorRef& tensor) {
    if (is_layer_linear(tensor)) return fitting(type, tensor);
    return is_table(tensor) ? table_type(tensor, type) : DType::kF32;
  };
  target.options.grid = [type](const TensorRef& tensor) {
    return GridSpec{.blocks = block_grid(fitting(type, tensor))};
  };
  target.options.importance = request.scheme == QuantizeScheme::kRtn && request.importance.value_or(true);
  target.description = describe(request, target);
  return target;
}

Result<QuantizeTarget> codes_target(const Checkpoint& checkpoint, const QuantizeRequest& request, Format format) {
  QUIRE_RETURN_IF_ERROR(check_codes(request, format));
  QuantizeTarget target;
  target.file.format = format;
  QUIRE_ASSIGN_OR_RETURN(target.file.group, group_of(checkpoint, request));
  target.file.bits = request.bits;
  target.file.symmetric = request.symmetric;
  target.file.act_order = request.gptq.act_order && !request.gptq.static_groups;
  target.file.dtype = [](const TensorRef& tensor) { return is_float(tensor) ? tensor.dtype : DType::kBF16; };
  target.options.grid = [file = target.file](const TensorRef&) {
    return GridSpec{.bits = file.bits, .group = file.group, .symmetric = file.symmetric};
  };
  return target;
}

// bf16, or f16 where it was that.
QuantizeTarget plain_target(Format format) {
  QuantizeTarget target;
  target.plain = true;
  target.file.format = format;
  target.file.bits = 16;
  target.file.dtype = [format](const TensorRef& tensor) {
    if (tensor.rank == 1) return format == Format::kGguf ? DType::kF32 : is_float(tensor) ? tensor.dtype : DType::kBF16;
    return is_float(tensor) && tensor.dtype == DType::kF16 ? DType::kF16 : DType::kBF16;
  };
  target.description = std::string("16-bit, ") + format_name(format);
  return target;
}

}  // namespace

const char* scheme_name(QuantizeScheme scheme) {
  switch (scheme) {
    case QuantizeScheme::kRtn:
      return "rtn";
    case QuantizeScheme::kGptq:
      return "gptq";
    case QuantizeScheme::kAwq:
      return "awq";
  }
  return "";
}

Result<QuantizeTarget> quantize_target(const Checkpoint& checkpoint, const QuantizeRequest& request,
                                       const std::string& out) {
  if (request.bits != 4 && request.bits != 8 && request.bits != 16)
    return invalid_argument("--bits " + std::to_string(request.bits) + ": quire writes 4, 8 and 16 bits");
  const Format format = format_of(request, out);
  if ((format == Format::kGguf) != out.ends_with(".gguf")) {
    return invalid_argument(out + (format == Format::kGguf ? ": the name of a GGUF file must end in .gguf"
                                                           : ": only GGUF files are called .gguf; name a directory"));
  }
  if (request.scheme != QuantizeScheme::kGptq && (request.gptq.act_order || request.gptq.static_groups))
    return invalid_argument("--act-order and --static-groups belong to --scheme gptq");
  if (request.bits == 16 || format == Format::kSafetensors) {
    if (request.bits != 16) return invalid_argument("--format safetensors holds plain values: add --bits 16");
    if (format != Format::kGguf && format != Format::kSafetensors)
      return invalid_argument("--bits 16 quantizes nothing: leave --format out, or use safetensors or gguf");
    if (request.group.has_value() || request.type.has_value() || request.importance == true || !request.symmetric ||
        request.gptq.act_order || request.gptq.static_groups) {
      return invalid_argument(
          "--bits 16 quantizes nothing: leave --group, --type, --asym, --act-order, --static-groups and --importance "
          "out");
    }
    return plain_target(format);
  }
  Result<QuantizeTarget> target =
      format == Format::kGguf ? gguf_target(request) : codes_target(checkpoint, request, format);
  if (!target.ok()) return target.status();
  target->options.scheme = request.scheme;
  target->options.gptq = request.gptq;
  target->file.scheme = scheme_name(request.scheme);
  target->file.damp = request.scheme == QuantizeScheme::kGptq ? request.gptq.damp : 0;
  if (format != Format::kGguf) target->description = describe(request, *target);
  return target;
}

}  // namespace quire
