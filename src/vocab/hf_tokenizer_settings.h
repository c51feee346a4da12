// What the files beside a Hugging Face tokenizer say of it: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json, with the model_type and tokenizer_class of config.json. Merged as transformers 5.24 does
// (PreTrainedTokenizerBase._from_pretrained): the two older files count only where tokenizer_config.json has no
// added_tokens_decoder.
//
// Pure functions of the checkpoint, any thread. Errors name the file and the field.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "text/tokenizer_spec.h"

namespace quire {

// A token that a template or a program asks for by name: "bos_token", "image_token".
struct HfNamedToken {
  std::string name;
  AddedToken token;    // id unset
  bool plain = false;  // the file gives its text alone, so that flags known elsewhere apply
};

struct HfTokenizerSettings {
  std::string model_type;                  // config.json; empty: not stated
  std::string tokenizer_class;             // empty: not stated
  std::vector<HfNamedToken> named;         // the usual names first, in transformers' order
  std::vector<std::string> unset;          // usual names whose value is null: no default either
  std::vector<HfNamedToken> extra;         // extra_special_tokens without names (their `name` is empty)
  bool has_extra = false;                  // extra_special_tokens is a list, even if empty: a model file has no say
  std::vector<AddedToken> listed;          // added_tokens_decoder or added_tokens.json, by id
  bool has_decoder = false;                // tokenizer_config.json has added_tokens_decoder
  std::optional<bool> adds_bos, adds_eos;  // add_bos_token, add_eos_token
  std::optional<bool> legacy, add_prefix_space;

  bool states(std::string_view name) const;  // a token of this name, or that there is none
};

// "bos_token", "eos_token", ... in the order in which transformers treats them.
std::span<const std::string_view> hf_usual_token_names();

Result<HfTokenizerSettings> read_hf_tokenizer_settings(const Checkpoint& checkpoint);

}  // namespace quire
