#include "server/openai_answer.h"

#include <algorithm>
#include <utility>

#include "http/sse.h"
#include "json/json_writer.h"
#include "server/timings.h"
#include "unicode/utf8.h"

namespace quire {
namespace {

void write_usage(const Usage& usage, JsonWriter& out) {
  out.begin_object()
      .number("prompt_tokens", usage.prompt_tokens)
      .number("completion_tokens", usage.completion_tokens)
      .number("total_tokens", usage.prompt_tokens + usage.completion_tokens)
      .key("prompt_tokens_details")
      .begin_object()
      .number("cached_tokens", usage.cached_tokens)
      .end_object()
      .end_object();
}

std::string_view object_name(Api api, bool chunk) {
  if (api == Api::kCompletions) return "text_completion";
  return chunk ? "chat.completion.chunk" : "chat.completion";
}

void write_head(const AnswerIdentity& identity, bool chunk, JsonWriter& out) {
  out.begin_object()
      .text("id", identity.id)
      .text("object", object_name(identity.api, chunk))
      .number("created", identity.created_s)
      .text("model", identity.model);
}

// JSON has no infinity; OpenAI writes this for what cannot be.
float finite(float logprob) { return std::max(logprob, -9999.0f); }

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// Tokens that are no characters by themselves, as OpenAI's completions show them: bytes:\xe2\x80.
std::string token_label(const std::string& bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  constexpr char kHex[] = "0123456789abcdef";
  std::string label = "bytes:";
  for (const char c : bytes) {
    label.append("\\x");
    label.push_back(kHex[(static_cast<unsigned char>(c) >> 4) & 15]);
    label.push_back(kHex[static_cast<unsigned char>(c) & 15]);
  }
  return label;
}

void write_chat_token(const Tokenizer& tokenizer, int32_t id, float logprob, JsonWriter& out) {
  const std::string bytes = tokenizer.token_bytes(id, true);
  out.text("token", bytes).number("logprob", finite(logprob)).key("bytes").begin_array();
  for (const char c : bytes) out.number(int{static_cast<unsigned char>(c)});
  out.end_array();
}

std::string joined_list(const std::string& items) { return "[" + items + "]"; }

void append_item(std::string_view item, std::string* list) {
  if (!list->empty()) list->push_back(',');
  list->append(item);
}

}  // namespace

AnswerBuilder::AnswerBuilder(AnswerIdentity identity) : identity_(std::move(identity)) {
  JsonWriter writer(&chunk_head_);
  write_head(identity_, true, writer);
}

void AnswerBuilder::begin_chunk(int32_t choice, std::string* sse) const {
  sse->append("data: ").append(chunk_head_).append(",\"choices\":[{\"index\":").append(std::to_string(choice));
}

void AnswerBuilder::end_chunk(const Usage* usage, const RequestTimings* timings, std::string* sse) const {
  sse->append("}]");
  if (usage != nullptr) {
    sse->append(",\"usage\":");
    JsonWriter writer(sse);
    write_usage(*usage, writer);
  } else if (usage_announced_) {
    sse->append(",\"usage\":null");
  }
  if (timings != nullptr) {
    if (identity_.seed) sse->append(",\"seed\":").append(std::to_string(*identity_.seed));
    sse->append(",\"timings\":");
    JsonWriter writer(sse);
    write_timings(*timings, writer);
  }
  sse->append("}\n\n");
}

void AnswerBuilder::append_role(int32_t choice, const Usage* usage, std::string* sse) const {
  begin_chunk(choice, sse);
  sse->append(",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null");
  end_chunk(usage, nullptr, sse);
}

void AnswerBuilder::append_text(int32_t choice, std::string_view text, std::string_view logprobs, const Usage* usage,
                                std::string* sse) const {
  begin_chunk(choice, sse);
  const bool chat = identity_.api == Api::kChat;
  sse->append(chat ? ",\"delta\":{\"content\":" : ",\"text\":");
  append_json_string(text, sse);
  sse->append(chat ? "},\"logprobs\":" : ",\"logprobs\":");
  sse->append(logprobs.empty() ? "null" : logprobs).append(",\"finish_reason\":null");
  end_chunk(usage, nullptr, sse);
}

void AnswerBuilder::append_finish(int32_t choice, const Choice& end, const Usage* usage, const RequestTimings* timings,
                                  std::string* sse) const {
  begin_chunk(choice, sse);
  sse->append(identity_.api == Api::kChat ? ",\"delta\":{}" : ",\"text\":\"\"");
  sse->append(",\"logprobs\":null,\"finish_reason\":");
  append_json_string(end.finish_reason, sse);
  if (!end.stop_text.empty()) {
    sse->append(",\"stop_reason\":");
    append_json_string(end.stop_text, sse);
  }
  end_chunk(usage, timings, sse);
}

void AnswerBuilder::append_usage(const Usage& usage, const RequestTimings& timings, std::string* sse) const {
  sse->append("data: ").append(chunk_head_).append(",\"choices\":[],\"usage\":");
  JsonWriter counts(sse);
  write_usage(usage, counts);
  if (identity_.seed) sse->append(",\"seed\":").append(std::to_string(*identity_.seed));
  sse->append(",\"timings\":");
  JsonWriter times(sse);
  write_timings(timings, times);
  sse->append("}\n\n");
}

std::string AnswerBuilder::whole(const std::vector<Choice>& choices, const Usage& usage,
                                 const RequestTimings& timings) const {
  std::string json;
  JsonWriter out(&json);
  write_head(identity_, false, out);
  out.key("choices").begin_array();
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    out.begin_object().number("index", i);
    if (identity_.api == Api::kChat) {
      out.key("message").begin_object().text("role", "assistant").text("content", choice.text).null("refusal");
      out.end_object();
    } else {
      out.text("text", choice.text);
    }
    out.key("logprobs");
    choice.logprobs.empty() ? out.null() : out.raw(choice.logprobs);
    out.text("finish_reason", choice.finish_reason);
    if (!choice.stop_text.empty()) out.text("stop_reason", choice.stop_text);
    out.end_object();
  }
  out.end_array().key("usage");
  write_usage(usage, out);
  if (identity_.seed) out.number("seed", *identity_.seed);
  out.key("timings");
  write_timings(timings, out);
  out.end_object();
  return json;
}

std::string chat_logprobs_json(const Tokenizer& tokenizer, const std::vector<TokenLogprob>& tokens) {
  std::string json;
  JsonWriter out(&json);
  out.begin_object().key("content").begin_array();
  for (const TokenLogprob& token : tokens) {
    out.begin_object();
    write_chat_token(tokenizer, token.id, token.logprob, out);
    out.key("top_logprobs").begin_array();
    for (const TokenLogprob::Candidate& candidate : token.top) {
      out.begin_object();
      write_chat_token(tokenizer, candidate.id, candidate.logprob, out);
      out.end_object();
    }
    out.end_array().end_object();
  }
  out.end_array().null("refusal").end_object();
  return json;
}

void CompletionLogprobs::add_token(int32_t id) {
  const std::string bytes = tokenizer_.token_bytes(id, true);
  std::string label;
  append_json_string(token_label(bytes), &label);
  append_item(label, &tokens_);
  append_item(std::to_string(offset_), &offsets_);
  offset_ += count_characters(bytes);
}

void CompletionLogprobs::skip(std::string_view text) { offset_ += count_characters(text); }

void CompletionLogprobs::add_unscored(int32_t id) {
  add_token(id);
  append_item("null", &logprobs_);
  append_item("null", &tops_);
}

void CompletionLogprobs::add(const TokenLogprob& token) {
  add_token(token.id);
  std::string number;
  JsonWriter(&number).number(finite(token.logprob));
  append_item(number, &logprobs_);
  if (top_n_ == 0) return append_item("null", &tops_);

  std::string top;
  JsonWriter out(&top);
  out.begin_object();
  std::vector<std::string> labels;  // two tokens may have one label; JSON keys are distinct
  const auto entry = [&](int32_t id, float logprob) {
    std::string label = token_label(tokenizer_.token_bytes(id, true));
    if (std::find(labels.begin(), labels.end(), label) != labels.end()) return;
    out.number(label, finite(logprob));
    labels.push_back(std::move(label));
  };
  for (const TokenLogprob::Candidate& candidate : token.top) entry(candidate.id, candidate.logprob);
  entry(token.id, token.logprob);  // always there, also below the best
  out.end_object();
  append_item(top, &tops_);
}

std::string CompletionLogprobs::take_json() {
  std::string json;
  JsonWriter out(&json);
  out.begin_object();
  out.key("tokens").raw(joined_list(tokens_)).key("token_logprobs").raw(joined_list(logprobs_));
  out.key("top_logprobs");
  top_n_ == 0 ? out.null() : out.raw(joined_list(tops_));
  out.key("text_offset").raw(joined_list(offsets_)).end_object();
  for (std::string* list : {&tokens_, &logprobs_, &tops_, &offsets_}) list->clear();
  return json;
}

}  // namespace quire
