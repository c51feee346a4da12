#include "formats/hf_quantization_config.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace quire {
namespace {

using Json = nlohmann::ordered_json;

// A pattern that matches this module's name and nothing else.
std::string exact_pattern(const std::string& module) {
  std::string pattern = "^";
  for (const char c : module) {
    if (c == '.') pattern += '\\';
    pattern += c;
  }
  return pattern + "$";
}

Json gptq_config(const CheckpointTarget& target, std::span<const std::string> skipped) {
  Json config = {{"quant_method", "gptq"},       {"checkpoint_format", "gptq_v2"},
                 {"bits", target.bits},          {"group_size", target.group == 0 ? -1 : target.group},
                 {"desc_act", target.act_order}, {"static_groups", false},
                 {"sym", target.symmetric},      {"lm_head", false},
                 {"pack_dtype", "int32"},        {"meta", {{"quantizer", Json::array({"quire"})}}}};
  if (target.scheme == "gptq") config["damp_percent"] = target.damp;
  if (!target.scheme.empty()) config["meta"]["scheme"] = target.scheme;
  for (const std::string& module : skipped) config["dynamic"]["-:" + exact_pattern(module)] = Json::object();
  return config;
}

Json awq_config(const CheckpointTarget& target, std::span<const std::string> skipped) {
  // Zero points are in the file even where all are 8: readers of the layout always subtract them.
  Json config = {{"quant_method", "awq"},      {"version", "gemm"},  {"bits", target.bits},
                 {"group_size", target.group}, {"zero_point", true}, {"modules_to_not_convert", nullptr}};
  if (!skipped.empty()) config["modules_to_not_convert"] = std::vector<std::string>(skipped.begin(), skipped.end());
  return config;
}

Json compressed_tensors_config(const CheckpointTarget& target, std::span<const std::string> skipped) {
  const bool groups = target.group > 0;
  Json weights = {{"num_bits", target.bits},
                  {"type", "int"},
                  {"symmetric", target.symmetric},
                  {"strategy", groups ? "group" : "channel"},
                  {"group_size", nullptr},
                  {"block_structure", nullptr},
                  {"dynamic", false},
                  {"actorder", nullptr},
                  {"observer", "minmax"},
                  {"observer_kwargs", Json::object()}};
  if (groups) weights["group_size"] = target.group;
  // With one scale a row the order leaves no trace in the file.
  if (target.act_order) weights["actorder"] = groups ? "group" : "weight";
  std::vector<std::string> ignored = {"lm_head"};
  ignored.insert(ignored.end(), skipped.begin(), skipped.end());
  const Json group = {{"targets", Json::array({"Linear"})},
                      {"weights", weights},
                      {"input_activations", nullptr},
                      {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},  {"format", "pack-quantized"}, {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", group}}}, {"ignore", ignored},          {"kv_cache_scheme", nullptr},
          {"global_compression_ratio", nullptr}};
}

}  // namespace

std::string quantization_config_text(const CheckpointTarget& target, std::span<const std::string> skipped) {
  switch (target.format) {
    case CheckpointTarget::Format::kGptq:
      return gptq_config(target, skipped).dump();
    case CheckpointTarget::Format::kAwq:
      return awq_config(target, skipped).dump();
    default:
      return compressed_tensors_config(target, skipped).dump();
  }
}

}  // namespace quire
