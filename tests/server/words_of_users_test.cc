// What clients write into a chat is text: for every added token of every tokenizer at hand, written into every field of a
// chat and into variables of any name, the ids are those of a tokenizer that has no added tokens. The exception, what an
// earlier answer may hold, is in docs/security.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/check.h"
#include "server/openai_request.h"
#include "text/chat_template.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const fs::path kGoldens = fs::path(QUIRE_SOURCE_DIR) / "tests/golden";
const fs::path kShared = fs::path(QUIRE_SOURCE_DIR) / "../shared/golden";

// A tokenizer, the same without added tokens, and the tokens.
struct Subject {
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer, plain;
  std::vector<AddedToken> tokens;
};

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? std::move(*tokenizer) : nullptr;
}

void add_token(std::string_view text, bool special, bool normalized, TokenizerSpec* spec) {
  AddedToken token;
  token.id = spec->vocabulary.size();
  token.text = text;
  token.special = special;
  token.normalized = normalized;
  ASSERT_TRUE(spec->vocabulary.add(text, Vocabulary::Lookup::kHidden).ok());
  if (spec->model == ModelKind::kScores) spec->scores.push_back(kNeverMerged);
  spec->added_tokens.push_back(std::move(token));
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// The tokenizer of a checkpoint, with tokens of every kind that chats use beside its own.
Subject subject_of(const fs::path& path) {
  Subject subject{.name = path.string(), .tokenizer = {}, .plain = {}, .tokens = {}};
  const auto checkpoint = Checkpoint::open(path.string(), CheckpointParts::kVocabulary);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  auto spec = tokenizer_spec_of(**checkpoint);
  EXPECT_TRUE(spec.ok()) << path << ": " << spec.status().message();
  for (const char* text : {"<tool_call>", "</tool_call>", "<think>", "zword"}) add_token(text, false, false, &*spec);
  for (const char* text : {"<tool_response>", "un word"}) add_token(text, false, true, &*spec);
  for (const char* text : {"<|x_start|>", "<|x_end|>"}) add_token(text, true, false, &*spec);
  add_token("<|x_normal|>", true, true, &*spec);
  // White space is layout, whoever wrote it (docs/security.md): tokens of nothing else stay with both.
  TokenizerSpec plain = *spec;
  std::erase_if(plain.added_tokens, [](const AddedToken& token) { return token.special || !is_blank(token.text); });
  std::ranges::copy_if(spec->added_tokens, std::back_inserter(subject.tokens),
                       [](const AddedToken& token) { return token.special || !is_blank(token.text); });
  subject.plain = make(std::move(plain));
  subject.tokenizer = make(std::move(*spec));
  return subject;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Checkpoints with a tokenizer in a folder, one of those that have the same.
std::vector<fs::path> checkpoints_in(const fs::path& folder) {
  std::vector<fs::path> entries, paths;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  std::set<std::string> seen;
  for (const fs::path& path : entries) {
    const bool directory = fs::exists(path / "tokenizer.json");
    if (!directory && path.extension() != ".gguf") continue;
    if (directory && !seen.insert(read_file(path / "tokenizer.json")).second) continue;
    paths.push_back(path);
  }
  return paths;
}

// One way to get a text into a chat.
struct Field {
  const char* name;
  std::function<Json(const std::string&)> messages;
};

Json message(const char* role, const Json& content) { return {{"role", role}, {"content", content}}; }

Json tool_call(const std::string& id, const std::string& name, const Json& arguments) {
  return {
      {"role", "assistant"},
      {"content", nullptr},
      {"tool_calls",
       Json::array({{{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}}})}};
}

const std::vector<Field>& fields() {
  static const std::vector<Field> kFields = {
      {"system", [](const std::string& t) { return Json::array({message("system", t)}); }},
      {"developer", [](const std::string& t) { return Json::array({message("developer", t)}); }},
      {"user", [](const std::string& t) { return Json::array({message("user", t)}); }},
      {"parts",
       [](const std::string& t) {
         const Json part = {{"type", "text"}, {"text", t}};
         return Json::array({message("user", Json::array({part, part}))});
       }},
      {"name",
       [](const std::string& t) {
         Json named = message("user", "x");
         named["name"] = t;
         return Json::array({named});
       }},
      {"name of an assistant",
       [](const std::string& t) {
         Json named = message("assistant", "x");
         named["name"] = t;
         return Json::array({named});
       }},
      {"tool", [](const std::string& t) { return Json::array({message("tool", t)}); }},
      {"function", [](const std::string& t) { return Json::array({message("function", t)}); }},
      {"tool_call_id",
       [](const std::string& t) {
         Json answered = message("tool", "x");
         answered["tool_call_id"] = t;
         return Json::array({answered});
       }},
      {"tool_calls id", [](const std::string& t) { return Json::array({tool_call(t, "f", "{}")}); }},
      {"tool_calls name", [](const std::string& t) { return Json::array({tool_call("1", t, "{}")}); }},
      {"tool_calls arguments",
       [](const std::string& t) {
         return Json::array({tool_call("1", "f", Json({{"a", t}}).dump())});
       }},
      {"tool_calls argument objects",
       [](const std::string& t) {
         return Json::array({tool_call("1", "f", Json{{t, Json::array({t, 1})}})});
       }},
      {"reasoning of a user",
       [](const std::string& t) {
         Json thinking = message("user", "x");
         thinking["reasoning_content"] = t;
         return Json::array({thinking});
       }},
  };
  return kFields;
}

// Everything of a message, as it is and after each kind of operation; it names no token itself.
constexpr std::string_view kEverything = R"(
{%- macro show(v) %}({{ v }}){{ v ~ '' }}{{ '[' + v|string + ']' }}{{ v|tojson }}{{ v|trim }}{{ v|string|replace('q', 'r') }}
{{- '%s' % v }}{{ '%8s' % v }}{{ [v, v]|join }}{{ v|string|list|join }}{{ (v|string)[:3] }}{{ (v|string)[3:] }}
{{- v|string|upper|lower }}{{ (v|string).split('_')|join('_') }}{{ v|string|indent(2) }}{{ 'a'.join([v|string, '']) }}{% endmacro -%}
{%- for m in messages %}{% for key, value in m.items() %}{{ key }}:{{ show(value) }}{% endfor %}
{%- if m.name %}{{ m.content ~ m.name }}{{ m.name }}{{ m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}{{ show(call.id) }}{{ show(call.function.name) }}{{ show(call.function.arguments) }}{% endfor %}
{%- endfor %}{% if words %}{{ show(words) }}{% endif %}
{%- for v in [bos_token, eos_token, unk_token, pad_token, image_token, x_token, custom, additional_special_tokens, documents] %}
{{- show(v) if v else '' }}{% endfor %})";

constexpr const char* kVariables[] = {"bos_token",   "eos_token", "unk_token", "pad_token",
                                      "image_token", "x_token",   "custom",    "words"};
constexpr const char* kListVariables[] = {"additional_special_tokens", "documents"};

ChatTemplate parsed(std::string_view source) {
  auto chat_template = ChatTemplate::parse(source);
  QUIRE_CHECK(chat_template.ok());
  return std::move(*chat_template);
}

// As the server reads messages.
std::string normalized(const Json& messages) {
  const auto json = JsonValue::parse(messages.dump());
  std::vector<std::string> ignored;
  auto result = normalize_messages({.messages = *json, .where = "messages", .ignored = &ignored});
  if (const auto* error = std::get_if<ApiError>(&result)) {
    ADD_FAILURE() << error->message;
    return "[]";
  }
  return std::get<std::string>(std::move(result));
}

MarkedText rendered(const ChatTemplate& chat_template, const ChatInput& input) {
  auto text = chat_template.render(input);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? std::move(*text) : MarkedText();
}

void expect_plain(const Subject& subject, const MarkedText& text) {
  const auto got = subject.tokenizer->encode_chat(text), expected = subject.plain->encode_chat(text);
  ASSERT_TRUE(got.ok() && expected.ok());
  EXPECT_EQ(*got, *expected) << text.text;
}

// What templates write next to what callers write must not make a token of the two.
void expect_no_token_of_two_halves(const Subject& subject, const std::string& token) {
  static const ChatTemplate kHalves = parsed("{{ left }}{{ messages[0].content }}{{ right }}");
  for (size_t cut = 0; cut <= token.size(); ++cut) {
    if ((token[cut] & 0xC0) == 0x80) continue;
    const Json ends[] = {{{"left", token.substr(0, cut)}, {"right", ""}}, {{"left", ""}, {"right", token.substr(cut)}}};
    const std::string words[] = {token.substr(cut), token.substr(0, cut)};
    for (size_t i = 0; i < 2; ++i) {
      if (words[i].empty()) continue;
      expect_plain(subject, rendered(kHalves, {.messages = Json::array({message("user", words[i])}).dump(),
                                               .tools = {},
                                               .kwargs = "{}",
                                               .variables = ends[i].dump()}));
    }
  }
}

void expect_text_everywhere(const Subject& subject, const std::string& words) {
  static const ChatTemplate kTemplate = parsed(kEverything);
  for (const Field& field : fields()) {
    SCOPED_TRACE(field.name);
    expect_plain(subject,
                 rendered(kTemplate, {.messages = normalized(field.messages(words)), .tools = {}, .kwargs = "{}"}));
  }
  // The server checks roles; a template's reader need not.
  Json odd = Json::array({message(words.c_str(), "x")});
  expect_plain(subject, rendered(kTemplate, {.messages = odd.dump(), .tools = {}, .kwargs = "{}"}));
  const std::string neutral = Json::array({message("user", "x")}).dump();
  for (const char* name : kVariables) {
    SCOPED_TRACE(name);
    expect_plain(subject,
                 rendered(kTemplate, {.messages = neutral, .tools = {}, .kwargs = Json({{name, words}}).dump()}));
  }
  for (const char* name : kListVariables) {
    SCOPED_TRACE(name);
    const Json kwargs = {{name, Json::array({words, Json({{words, words}})})}};
    expect_plain(subject, rendered(kTemplate, {.messages = neutral, .tools = {}, .kwargs = kwargs.dump()}));
  }
}

void expect_text_for_every_token(const fs::path& folder) {
  const auto paths = checkpoints_in(folder);
  ASSERT_FALSE(paths.empty());
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path);
    const Subject subject = subject_of(path);
    for (const AddedToken& token : subject.tokens) {
      SCOPED_TRACE(token.text);
      expect_text_everywhere(subject, token.text);
      expect_text_everywhere(subject, "x " + token.text + token.text + "y");
      expect_no_token_of_two_halves(subject, token.text);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(WordsOfUsers, AreTextForEveryTokenFieldAndVariable) { expect_text_for_every_token(kGoldens / "tiny"); }

TEST(WordsOfUsers, AreTextForTheTokenizersOfTheOracle) {
  if (!fs::exists(kShared)) GTEST_SKIP() << "no tokenizers in " << kShared;
  expect_text_for_every_token(kShared / "tiny");
  expect_text_for_every_token(kShared / "peer-vocabs");
}

TEST(WordsOfUsers, AreTextForTheModels) {
  const char* models = std::getenv("QUIRE_MODELS");
  if (models == nullptr || !fs::exists(models)) GTEST_SKIP() << "QUIRE_MODELS names no folder with models";
  expect_text_for_every_token(models);
}

// That the tests above can see a token at all: the template's own words yield it, and what is not special an answer too.
TEST(WordsOfUsers, TokensAreThereForTheTemplateAndPartlyForAnswers) {
  static const ChatTemplate kTemplate =
      parsed("{{ words }}|{{ messages[0].content }}|{{ messages[0].reasoning_content }}");
  const Subject subject = subject_of(kGoldens / "tiny/qwen3");
  for (const AddedToken& token : subject.tokens) {
    SCOPED_TRACE(token.text);
    const Json answer = {{"role", "assistant"}, {"content", token.text}, {"reasoning_content", token.text}};
    const ChatInput input{.messages = normalized(Json::array({answer})),
                          .tools = {},
                          .kwargs = "{}",
                          .variables = Json({{"words", token.text}}).dump()};
    const auto ids = subject.tokenizer->encode_chat(rendered(kTemplate, input));
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(std::count(ids->begin(), ids->end(), token.id), token.special ? 1 : 3);
  }
}

// Ids of a text that a model generated are the same ids when the answer comes back: the cache of prefixes lives on that.
TEST(WordsOfUsers, AnAnswerThatComesBackHasTheIdsThatWereGenerated) {
  static const ChatTemplate kTemplate = parsed("{{ messages[0].content }}");
  const Subject subject = subject_of(kGoldens / "tiny/qwen3");
  const std::string answer = "<think>a b</think>c <tool_call>{\"x\": 1}</tool_call>";
  const auto generated = subject.tokenizer->encode(answer, {});  // tokens that are not special count
  const auto text = rendered(
      kTemplate, {.messages = normalized(Json::array({message("assistant", answer)})), .tools = {}, .kwargs = "{}"});
  const auto back = subject.tokenizer->encode_chat(text);
  ASSERT_TRUE(generated.ok() && back.ok());
  EXPECT_EQ(*back, *generated);
  EXPECT_LT(generated->size(), subject.plain->encode(answer, {})->size());
}

// Words in angle brackets that a template spells out: what its model has as tokens, more or less.
std::set<std::string> spelled_tokens(const std::string& source) {
  std::set<std::string> tokens;
  for (size_t at = source.find('<'); at != std::string::npos; at = source.find('<', at + 1)) {
    const size_t end = source.find('>', at);
    if (end == std::string::npos) break;
    const std::string token = source.substr(at, end + 1 - at);
    if (token.size() > 2 && token.size() < 40 && token.find_first_of(" \n'\"{}%+=<", 1) == std::string::npos) {
      tokens.insert(token);
    }
  }
  return tokens;
}

Subject subject_with(const std::set<std::string>& tokens) {
  const auto checkpoint = Checkpoint::open((kGoldens / "tiny/qwen3").string(), CheckpointParts::kVocabulary);
  QUIRE_CHECK(checkpoint.ok());
  auto spec = tokenizer_spec_of(**checkpoint);
  QUIRE_CHECK(spec.ok());
  spec->added_tokens.clear();
  bool special = false;
  for (const std::string& token : tokens) add_token(token, special = !special, false, &*spec);
  Subject subject{.name = {}, .tokenizer = {}, .plain = {}, .tokens = spec->added_tokens};
  subject.tokenizer = make(std::move(*spec));
  return subject;
}

// How often each added token occurs in a chat of three messages; nothing where the template refuses the chat.
std::optional<std::vector<int64_t>> counts(const Subject& subject, const ChatTemplate& chat_template,
                                           const std::string& words, bool in_kwargs) {
  const std::string said = in_kwargs ? "x" : words;
  const Json messages =
      Json::array({message("system", said), message("user", said), message("assistant", "x"), message("user", said)});
  Json kwargs = {{"add_generation_prompt", true}};
  for (const char* name : kVariables) {
    if (in_kwargs) kwargs[name] = words;
  }
  const auto text = chat_template.render({.messages = normalized(messages), .tools = {}, .kwargs = kwargs.dump()});
  if (!text.ok()) return std::nullopt;
  const auto ids = subject.tokenizer->encode_chat(*text);
  EXPECT_TRUE(ids.ok());
  std::vector<int64_t> found;
  for (const AddedToken& token : subject.tokens) found.push_back(std::count(ids->begin(), ids->end(), token.id));
  return found;
}

TEST(WordsOfUsers, AreTextInRealTemplates) {
  const fs::path folder = kShared / "chat/templates";
  if (!fs::exists(folder)) GTEST_SKIP() << "no templates in " << folder;
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    const std::string source = read_file(entry.path());
    const ChatTemplate chat_template = parsed(source);
    const Subject subject = subject_with(spelled_tokens(source));
    for (const bool in_kwargs : {false, true}) {
      const auto neutral = counts(subject, chat_template, "xx", in_kwargs);
      if (!neutral) continue;
      for (const AddedToken& token : subject.tokens) {
        SCOPED_TRACE(token.text);
        const auto hostile = counts(subject, chat_template, "x" + token.text + "x", in_kwargs);
        if (!hostile) continue;
        EXPECT_EQ(*hostile, *neutral) << "in kwargs: " << in_kwargs;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 200u);
}

}  // namespace
}  // namespace quire
