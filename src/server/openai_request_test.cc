#include "server/openai_request.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace quire {
namespace {

class OpenaiRequestTest : public testing::Test {
 protected:
  ParsedCall parse(Api api, std::string_view body) const {
    return parse_generation_call(api, body,
                                 {.defaults = defaults_,
                                  .hparams = hparams_,
                                  .vocab_size = 1000,
                                  .lenient = lenient_,
                                  .content_parts = content_parts_});
  }
  GenerationCall accept(Api api, std::string_view body) const {
    ParsedCall parsed = parse(api, body);
    const auto* error = std::get_if<ApiError>(&parsed);
    EXPECT_EQ(error, nullptr) << body << ": " << (error == nullptr ? "" : error->message);
    return error == nullptr ? std::get<GenerationCall>(std::move(parsed)) : GenerationCall();
  }
  ApiError refuse(Api api, std::string_view body) const {
    ParsedCall parsed = parse(api, body);
    const auto* error = std::get_if<ApiError>(&parsed);
    EXPECT_NE(error, nullptr) << body;
    return error == nullptr ? ApiError() : *error;
  }

  Options defaults_;
  Hparams hparams_;
  bool lenient_ = false;
  bool content_parts_ = false;
};

constexpr std::string_view kMessages = R"("messages":[{"role":"user","content":"x"}])";

std::string chat(std::string_view fields) { return "{" + std::string(fields) + "," + std::string(kMessages) + "}"; }

TEST_F(OpenaiRequestTest, FlattensContents) {
  const GenerationCall call = accept(Api::kChat, R"({"messages":[
    {"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
    {"role":"assistant","content":null,"tool_calls":[{"id":"1"}],"refusal":null},
    {"role":"user","name":"n","content":"c"}]})");
  EXPECT_EQ(call.messages,
            R"([{"role":"system","content":"a\nb"},{"role":"assistant","content":"","tool_calls":[{"id":"1"}]},)"
            R"({"role":"user","content":"c","name":"n"}])");
  EXPECT_EQ(call.template_kwargs, R"({"add_generation_prompt":true})");
  EXPECT_EQ(call.request.max_tokens, -1);
}

TEST_F(OpenaiRequestTest, PassesTemplateVariablesOn) {
  EXPECT_EQ(
      accept(Api::kChat, chat(R"("chat_template_kwargs":{"enable_thinking":false},"add_generation_prompt":false)"))
          .template_kwargs,
      R"({"add_generation_prompt":false,"enable_thinking":false})");
}

TEST_F(OpenaiRequestTest, TakesEitherNameOfMaxTokens) {
  EXPECT_EQ(accept(Api::kChat, chat(R"("max_completion_tokens":7)")).request.max_tokens, 7);
  EXPECT_EQ(accept(Api::kChat, chat(R"("max_completion_tokens":7,"max_tokens":7)")).request.max_tokens, 7);
  EXPECT_EQ(refuse(Api::kChat, chat(R"("max_completion_tokens":7,"max_tokens":8)")).param, "max_tokens");
}

TEST_F(OpenaiRequestTest, PrefersRequestThenFlagThenModelThenFallback) {
  const auto temperature = [&](std::string_view body) {
    return accept(Api::kCompletions, body).request.sampling.temperature;
  };
  EXPECT_EQ(temperature(R"({"prompt":"x"})"), static_cast<float>(kFallbackTemperature));
  hparams_.default_top_k = 20;
  EXPECT_EQ(temperature(R"({"prompt":"x"})"), 1.0f);  // the model says something, and nothing of the temperature
  hparams_.default_temperature = 0.6f;
  EXPECT_EQ(temperature(R"({"prompt":"x"})"), 0.6f);
  defaults_.temperature = 0.3;
  EXPECT_EQ(temperature(R"({"prompt":"x"})"), 0.3f);
  EXPECT_EQ(temperature(R"({"prompt":"x","temperature":0})"), 0.0f);
  EXPECT_EQ(temperature(R"({"prompt":"x","temperature":null})"), 0.3f);
}

TEST_F(OpenaiRequestTest, DrawsASeedWhereNoneIsGiven) {
  const GenerationCall drawn = accept(Api::kCompletions, R"({"prompt":"x"})");
  EXPECT_FALSE(drawn.seed_given);
  const GenerationCall given = accept(Api::kCompletions, R"({"prompt":"x","seed":18446744073709551615})");
  EXPECT_TRUE(given.seed_given);
  EXPECT_EQ(given.request.sampling.seed, UINT64_MAX);
}

TEST_F(OpenaiRequestTest, ReadsPromptsOfEveryShape) {
  EXPECT_EQ(accept(Api::kCompletions, R"({"prompt":"a"})").prompts.size(), 1u);
  EXPECT_EQ(accept(Api::kCompletions, R"({"prompt":["a","b"]})").prompts.size(), 2u);
  const GenerationCall ids = accept(Api::kCompletions, R"({"prompt":[1,2,999]})");
  EXPECT_EQ(std::get<std::vector<int32_t>>(ids.prompts.at(0)), (std::vector<int32_t>{1, 2, 999}));
  EXPECT_EQ(accept(Api::kCompletions, R"({"prompt":[[1],[2,3]]})").prompts.size(), 2u);
  EXPECT_EQ(refuse(Api::kCompletions, R"({"prompt":[1,1000]})").param, "prompt");
  EXPECT_EQ(refuse(Api::kCompletions, R"({"prompt":[1,"a"]})").param, "prompt");
  EXPECT_EQ(refuse(Api::kCompletions, R"({"prompt":["a",true]})").param, "prompt[1]");
  EXPECT_EQ(refuse(Api::kCompletions, R"({"prompt":[1.5]})").param, "prompt[0]");
}

TEST_F(OpenaiRequestTest, NamesFieldsOfTheOtherEndpoint) {
  EXPECT_EQ(refuse(Api::kChat, chat(R"("echo":true)")).param, "echo");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("logprobs":3)")).param, "logprobs");
  EXPECT_EQ(refuse(Api::kCompletions, R"({"prompt":"x","messages":[]})").param, "messages");
  EXPECT_EQ(refuse(Api::kCompletions, R"({"prompt":"x","logprobs":true})").param, "logprobs");
}

TEST_F(OpenaiRequestTest, NamesWhatIsWrong) {
  EXPECT_EQ(refuse(Api::kChat, chat(R"("stop":5)")).param, "stop");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("n":"2")")).param, "n");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("n":1.5)")).param, "n");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("n":18446744073709551615)")).param, "n");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("best_of":2)")).param, "best_of");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("stream":"yes")")).param, "stream");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("stream":true,"stream_options":{"x":1})")).param, "stream_options.x");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("min_tokens":5,"max_tokens":4)")).param, "min_tokens");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("logit_bias":{"a":1})")).param, "logit_bias");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("logit_bias":{"1":101})")).param, "logit_bias.1");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("frequency_penalty":-2.5)")).param, "frequency_penalty");
  EXPECT_EQ(refuse(Api::kChat, R"({"messages":[{"role":"user","content":"x","colour":1}]})").param,
            "messages[0].colour");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("response_format":{"type":"json_schema"})")).code, "unsupported");
}

TEST_F(OpenaiRequestTest, HandsPartsOverAsTheTemplateTakesThem) {
  constexpr const char* kParts =
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]})";
  EXPECT_EQ(accept(Api::kChat, kParts).messages, R"([{"role":"user","content":"a\nb"}])");
  content_parts_ = true;
  EXPECT_EQ(accept(Api::kChat, kParts).messages,
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
}

TEST_F(OpenaiRequestTest, TakesNumbersAsTheApiDoes) {
  const GenerationCall call =
      accept(Api::kChat, chat(R"("max_tokens":3.0,"seed":-1,"top_k":-1,"top_p":0,"n":2.0,"min_tokens":1.0)"));
  EXPECT_EQ(call.request.max_tokens, 3);
  EXPECT_EQ(call.request.choices, 2);
  EXPECT_EQ(call.request.sampling.seed, UINT64_MAX);
  EXPECT_EQ(call.request.sampling.top_k, 1);  // the fewest tokens that reach 0
  EXPECT_EQ(call.request.sampling.min_tokens, 1);
  EXPECT_TRUE(accept(Api::kCompletions, R"({"prompt":"x","max_tokens":0})").prompt_only);
  EXPECT_TRUE(accept(Api::kChat, chat(R"("max_completion_tokens":0)")).prompt_only);
  EXPECT_EQ(std::get<std::vector<int32_t>>(accept(Api::kCompletions, R"({"prompt":[1.0,2]})").prompts.at(0)),
            (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(refuse(Api::kChat, chat(R"("stop_token_ids":[1,2.5])")).message,
            "\"stop_token_ids\" holds 2.5; it takes a list of whole numbers of 0 to 2147483647");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("temperature":{})")).message,
            "\"temperature\" is an object; it takes a number of 0 to 1000");
  for (const char* field :
       {R"("n":1e-09)", R"("max_tokens":1e+300)", R"("max_tokens":18446744073709551615)", R"("seed":1e+300)",
        R"("max_tokens":3.5)", R"("n":1.5)", R"("seed":0.5)", R"("top_k":-2)", R"("top_p":-0.1)"}) {
    const ApiError error = refuse(Api::kChat, chat(field));
    const std::string value = std::string(field).substr(std::string(field).find(':') + 1);
    EXPECT_NE(error.message.find(value), std::string::npos) << error.message;  // what was given, as it was given
  }
}

TEST_F(OpenaiRequestTest, ListsWhatItLeavesOutOfAccount) {
  lenient_ = true;
  EXPECT_EQ(accept(Api::kChat, chat(R"("x":1,"verbosity":"low")")).ignored,
            (std::vector<std::string>{"verbosity", "x"}));
  // Another kind of answer is not to be had by asking for this one.
  EXPECT_EQ(refuse(Api::kChat, chat(R"("tools":[{}])")).param, "tools");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("response_format":{"type":"json_object"})")).param, "response_format");
  lenient_ = false;
  EXPECT_EQ(accept(Api::kChat, R"({"messages":[{"role":"user","content":"x","cache_control":{"type":"ephemeral"}},
                                              {"role":"assistant","content":"y","refusal":null,"annotations":[]},
                                              {"role":"user","content":"x","cache_control":1}]})")
                .ignored,
            std::vector<std::string>{"messages.cache_control"});
  EXPECT_EQ(
      refuse(Api::kChat, R"({"messages":[{"role":"assistant","content":"x","function_call":{"name":"f"}}]})").param,
      "messages[0].function_call");
  EXPECT_EQ(accept(Api::kChat,
                   R"({"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"a":1}}]}]})")
                .ignored,
            std::vector<std::string>{"messages.content.cache_control"});
  EXPECT_EQ(
      refuse(Api::kChat, R"({"messages":[{"role":"user","content":[{"type":"text","text":"x","colour":1}]}]})").param,
      "messages[0].content[0].colour");
  EXPECT_EQ(refuse(Api::kChat, R"({"messages":[{"role":"user","content":"x","name":5}]})").param, "messages[0].name");
  // Empty calls are none, for templates that only ask whether there are any.
  EXPECT_EQ(
      accept(Api::kChat, R"({"messages":[{"role":"assistant","content":"x","tool_calls":[],"name":"n"}]})").messages,
      R"([{"role":"assistant","content":"x","name":"n"}])");
  EXPECT_EQ(refuse(Api::kChat, chat(R"("n":0)")).param, "n");  // what is known must still be right
}

}  // namespace
}  // namespace quire
