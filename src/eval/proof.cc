#include "eval/proof.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace quire {

using Json = nlohmann::ordered_json;

Proof proof_of(const Evaluation& evaluation, const EvalText& text, std::string text_name, std::string text_sha256) {
  QUIRE_CHECK(!evaluation.reference.empty() && !evaluation.candidates.empty());
  const std::vector<WindowScore>& model = evaluation.candidates.front();
  const double kl = mean_kl(model).value;
  return {.text = std::move(text_name),
          .text_sha256 = std::move(text_sha256),
          .window = text.window(),
          .tokens = evaluation.windows * text.scored_per_window(),
          .kl = kl,
          .kl_upper = mean_kl_upper(model).value_or(kl),
          .perplexity = perplexity(model).value,
          .perplexity_of_original = perplexity(evaluation.reference).value};
}

std::string proof_text(const Proof& proof) {
  const Json json = {{"text", proof.text},
                     {"text_sha256", proof.text_sha256},
                     {"window", proof.window},
                     {"tokens", proof.tokens},
                     {"kl", proof.kl},
                     {"kl_upper", proof.kl_upper},
                     {"perplexity", proof.perplexity},
                     {"perplexity_of_original", proof.perplexity_of_original}};
  return json.dump();
}

Result<Proof> parse_proof(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return corrupt(where + ": the proof is not a JSON object");
  Proof proof;
  const auto number = [&](const char* key, double& out) -> Status {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0)
      return corrupt(where + ": the proof has no \"" + key + "\" that is a number");
    out = found->get<double>();
    return {};
  };
  double window = 0;
  double tokens = 0;
  QUIRE_RETURN_IF_ERROR(number("window", window));
  QUIRE_RETURN_IF_ERROR(number("tokens", tokens));
  QUIRE_RETURN_IF_ERROR(number("kl", proof.kl));
  QUIRE_RETURN_IF_ERROR(number("kl_upper", proof.kl_upper));
  QUIRE_RETURN_IF_ERROR(number("perplexity", proof.perplexity));
  QUIRE_RETURN_IF_ERROR(number("perplexity_of_original", proof.perplexity_of_original));
  proof.window = static_cast<int64_t>(std::min(window, 1e15));
  proof.tokens = static_cast<int64_t>(std::min(tokens, 1e15));
  if (const auto found = json.find("text"); found != json.end() && found->is_string()) proof.text = *found;
  if (const auto found = json.find("text_sha256"); found != json.end() && found->is_string())
    proof.text_sha256 = *found;
  return proof;
}

}  // namespace quire
