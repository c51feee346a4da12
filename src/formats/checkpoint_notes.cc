#include "formats/checkpoint_notes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/messages.h"
#include "json/json_check.h"

namespace quire {

using Json = nlohmann::ordered_json;

Result<std::string> read_proof(std::string_view text, const std::string& where) {
  const size_t end = text.find_last_not_of(' ');
  if (end == std::string_view::npos) return std::string();
  text = text.substr(0, end + 1);
  if (text.size() > kMaxProofBytes) {
    return out_of_range(where + ": the proof has " + std::to_string(text.size()) + " bytes; at most " +
                        std::to_string(kMaxProofBytes) + " are read");
  }
  QUIRE_RETURN_IF_ERROR(check_json_object(text, where + ": the proof"));
  return std::string(text);
}

Result<std::vector<float>> read_k_factors(std::span<const double> values, const Hparams& h, const std::string& where) {
  if (std::ranges::all_of(values, [](double value) { return value == 0.0; })) return std::vector<float>();
  const int64_t wanted = h.layers * h.kv_heads * h.head_dim;
  if (static_cast<int64_t>(values.size()) != wanted) {
    return corrupt(where + ": holds " + std::to_string(values.size()) + " factors of K, not the " +
                   std::to_string(wanted) + " of " + std::to_string(h.layers) + " layers, " +
                   std::to_string(h.kv_heads) + " heads and " + std::to_string(h.head_dim) + " elements");
  }
  std::vector<float> factors;
  factors.reserve(values.size());
  for (const double value : values) {
    const auto factor = static_cast<float>(value);
    if (!std::isnormal(factor) || factor < 0.0f) {
      return corrupt(where + ": holds the factor of K " + std::to_string(value) + ", which is not a positive number");
    }
    factors.push_back(factor);
  }
  return factors;
}

Status check_notes(const CheckpointNotes& notes, const Hparams& hparams, const std::string& where) {
  QUIRE_RETURN_IF_ERROR(read_proof(notes.proof, where).status());
  const std::vector<double> factors(notes.k_factors.begin(), notes.k_factors.end());
  return read_k_factors(factors, hparams, where).status();
}

Result<CheckpointNotes> parse_notes_file(const std::string& text, const Hparams& hparams, const std::string& where) {
  QUIRE_RETURN_IF_ERROR(check_json_object(text, where));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return corrupt(where + ": is not a JSON object");
  CheckpointNotes notes;
  if (const auto proof = json.find("proof"); proof != json.end()) {
    if (!proof->is_object()) return corrupt(where + ": \"proof\" is not an object");
    QUIRE_ASSIGN_OR_RETURN(notes.proof, read_proof(proof->dump(), where));
  }
  if (const auto factors = json.find("k_factors"); factors != json.end()) {
    if (!factors->is_array()) return corrupt(where + ": \"k_factors\" is not an array");
    std::vector<double> values;
    for (const Json& value : *factors) {
      if (!value.is_number()) return corrupt(where + ": \"k_factors\" holds something that is not a number");
      values.push_back(value.get<double>());
    }
    QUIRE_ASSIGN_OR_RETURN(notes.k_factors, read_k_factors(values, hparams, where));
  }
  return notes;
}

std::string notes_file_text(const CheckpointNotes& notes, const std::string& scheme) {
  Json json = Json::object();
  if (!scheme.empty()) json["scheme"] = scheme;
  if (!notes.proof.empty()) json["proof"] = Json::parse(notes.proof, nullptr, /*allow_exceptions=*/false);
  std::string text = json.dump(2);
  if (notes.k_factors.empty()) return text + "\n";
  // Thousands of numbers, each a line of its own, would bury the rest.
  const std::string_view before_end = std::string_view(text).substr(0, text.size() - (json.empty() ? 1 : 2));
  return std::string(before_end) + (json.empty() ? "" : ",") + "\n  \"k_factors\": " + Json(notes.k_factors).dump() +
         "\n}\n";
}

Result<std::string> changed_notes_text(const std::string& text, const CheckpointNotes& notes,
                                       const std::string& where) {
  QUIRE_RETURN_IF_ERROR(check_json_object(text, where));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  CheckpointNotes merged = notes;
  if (const auto proof = json.find("proof"); merged.proof.empty() && proof != json.end()) merged.proof = proof->dump();
  if (const auto factors = json.find("k_factors"); merged.k_factors.empty() && factors != json.end()) {
    for (const Json& value : *factors) {
      if (!value.is_number()) return corrupt(where + ": \"k_factors\" holds something that is not a number");
      merged.k_factors.push_back(value.get<float>());
    }
  }
  const auto scheme = json.find("scheme");
  return notes_file_text(merged, scheme != json.end() && scheme->is_string() ? scheme->get<std::string>() : "");
}

}  // namespace quire
