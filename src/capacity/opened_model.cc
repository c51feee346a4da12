#include "capacity/opened_model.h"

#include <utility>

#include "capacity/model_setup.h"
#include "model/registry.h"
#include "model/weights.h"
#include "vocab/tokenizer_source.h"

namespace quire {

Result<ModelHeaders> open_headers(const ModelOptions& options) {
  ModelHeaders headers{.options = options, .checkpoint = nullptr, .config = {}, .sizes = nullptr};
  QUIRE_ASSIGN_OR_RETURN(headers.checkpoint, Checkpoint::open(options.model_path));
  QUIRE_ASSIGN_OR_RETURN(headers.config, configure_model(headers.checkpoint->hparams()));
  const int64_t trained = headers.config.context_length;
  if (options.context < 0 || options.context > trained) {
    return out_of_range("--context " + std::to_string(options.context) + ": this model was trained for at most " +
                        std::to_string(trained) + " tokens");
  }
  QUIRE_RETURN_IF_ERROR(check_head(headers.config, *headers.checkpoint, options.head));
  QUIRE_ASSIGN_OR_RETURN(headers.sizes, make_device_sizes(options));
  return headers;
}

Result<OpenedModel> open_model(const ModelOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(ModelHeaders headers, open_headers(options));
  OpenedModel model{std::move(headers), nullptr};
  QUIRE_ASSIGN_OR_RETURN(model.tokenizer, load_tokenizer(*model.checkpoint));
  return model;
}

Result<std::optional<ChatTemplate>> open_chat_template(const Checkpoint& checkpoint,
                                                       std::optional<std::string> source) {
  if (!source.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(source, chat_template_source(checkpoint));
  }
  if (!source.has_value()) return std::optional<ChatTemplate>();
  QUIRE_ASSIGN_OR_RETURN(ChatTemplate parsed, ChatTemplate::parse(*source));
  return std::optional(std::move(parsed));
}

}  // namespace quire
