#include <cstdio>
#include <memory>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/jsonl.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "formats/checkpoint.h"
#include "text/tokenizer.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

Result<JsonObject> answer(const Tokenizer& tokenizer, Options options, JsonRequest& request) {
  QUIRE_ASSIGN_OR_RETURN(const auto text, request.take_text("text"));
  QUIRE_RETURN_IF_ERROR(request.take_options(options, kTokenize));
  QUIRE_RETURN_IF_ERROR(request.finish());
  if (!text) return invalid_argument("the request has no \"text\"");
  QUIRE_ASSIGN_OR_RETURN(const auto ids, tokenizer.encode(*text, {options.add_special, options.parse_special}));
  JsonObject object;
  object.ids("ids", ids).text("decoded", tokenizer.decode(ids, true));
  return object;
}

}  // namespace

Status command_tokenize(const Invocation& invocation) {
  const Options& options = invocation.options;
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(path));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, load_tokenizer(*checkpoint));
  note_remarks(*checkpoint, tokenizer.get());
  if (options.jsonl) {
    return answer_lines([&](JsonRequest& request) { return answer(*tokenizer, options, request); });
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string text, argument_or_input(invocation.text, "text"));
  QUIRE_ASSIGN_OR_RETURN(const auto ids, tokenizer->encode(text, {options.add_special, options.parse_special}));
  std::vector<std::vector<std::string>> rows;
  for (const int32_t id : ids) rows.push_back({std::to_string(id), visible_text(tokenizer->token_bytes(id, true))});
  std::fputs(table_text(rows, "", "rl").c_str(), stdout);
  std::printf("%s\n", styled(stdout, Style::kDim, counted(static_cast<int64_t>(ids.size()), "token")).c_str());
  return {};
}

}  // namespace quire
