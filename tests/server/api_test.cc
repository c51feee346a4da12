// What each route answers, over a fake engine.
#include <string>
#include <vector>

#include "server/server_fixture.h"

namespace quire {
namespace {

const std::string kHello = R"("messages":[{"role":"user","content":"Hello"}])";

TEST(Api, AnswersAChatWhole) {
  RunningServer server;
  const RawAnswer answer = server.ask(post(kChat, "{\"model\":\"fake\",\"max_tokens\":5," + kHello + "}"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body.starts_with("{\"id\":\"chatcmpl-")) << answer.body;
  for (const char* part :
       {"\"object\":\"chat.completion\"", "\"model\":\"fake\"", "\"role\":\"assistant\"",
        "\"finish_reason\":\"length\"", "\"completion_tokens\":5", "\"cached_tokens\":1", "\"timings\":{"}) {
    EXPECT_NE(answer.body.find(part), std::string::npos) << part << " is not in " << answer.body;
  }
  EXPECT_EQ(between(answer.body, "\"content\":\"", "\"").size(), 5u);
  EXPECT_NE(answer.head.find("X-Request-Id: "), std::string::npos) << answer.head;
  const std::vector<Request> seen = server.engine().seen_requests();
  EXPECT_EQ(server.engine().tokenizer().decode(seen.at(0).prompt, true),
            "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
}

TEST(Api, StreamsWhatItAnswersWhole) {
  RunningServer server;
  const std::string body = "\"max_tokens\":40,\"n\":3,\"temperature\":1,\"seed\":9," + kHello + "}";
  const RawAnswer whole = server.ask(post(kChat, "{" + body));
  const RawAnswer stream =
      server.ask(post(kChat, "{\"stream\":true,\"stream_options\":{\"include_usage\":true}," + body));
  EXPECT_NE(stream.head.find("text/event-stream"), std::string::npos);
  EXPECT_NE(stream.head.find("X-Accel-Buffering: no"), std::string::npos);
  std::string rest = whole.body;
  for (int index = 0; index < 3; ++index) {
    const std::string text = between(rest, "\"content\":\"", "\"");
    rest.erase(0, rest.find("\"content\":\"") + 1);
    EXPECT_EQ(text.size(), 40u);
    EXPECT_EQ(streamed_text(stream.body, index, "content"), text);
  }
  EXPECT_EQ(occurrences(stream.body, "\"role\":\"assistant\""), 3u);
  EXPECT_EQ(occurrences(stream.body, "\"finish_reason\":\"length\""), 3u);
  EXPECT_EQ(occurrences(stream.body, "\"timings\":{"), 1u);
  EXPECT_NE(stream.body.find("\"choices\":[],\"usage\":{\"prompt_tokens\""), std::string::npos) << stream.body;
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

TEST(Api, CompletesPromptListsAndTokenIds) {
  RunningServer server;
  const RawAnswer answer = server.ask(post(kCompletions, R"({"prompt":["ab","c"],"max_tokens":3,"echo":true})"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.body.find("{\"index\":0,\"text\":\"ab"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("{\"index\":1,\"text\":\"c"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("\"prompt_tokens\":3,\"completion_tokens\":6,\"total_tokens\":9"), std::string::npos);
  const RawAnswer ids = server.ask(post(kCompletions, R"({"prompt":[97,98],"max_tokens":3,"echo":true})"));
  EXPECT_EQ(between(ids.body, "\"text\":\"", "\""), between(answer.body, "\"text\":\"", "\""));
  const RawAnswer default_length = server.ask(post(kCompletions, R"({"prompt":"x"})"));
  EXPECT_NE(default_length.body.find("\"completion_tokens\":16,"), std::string::npos);
}

TEST(Api, ScoresAnEchoedPrompt) {
  RunningServer server;
  const RawAnswer answer =
      server.ask(post(kCompletions, R"({"prompt":"abc","max_tokens":0,"echo":true,"logprobs":1})"));
  EXPECT_EQ(between(answer.body, "\"text\":\"", "\""), "abc");
  EXPECT_NE(answer.body.find(R"("tokens":["a","b","c"],"token_logprobs":[null,-0.5,-0.5])"), std::string::npos)
      << answer.body;
  EXPECT_NE(answer.body.find(R"("top_logprobs":[null,{"b":-0.5},{"c":-0.5}],"text_offset":[0,1,2])"),
            std::string::npos);
  EXPECT_NE(answer.body.find("\"completion_tokens\":0"), std::string::npos);
  const RawAnswer empty = server.ask(post(kCompletions, R"({"prompt":"abc","max_tokens":0})"));
  EXPECT_EQ(empty.status, 200);
  EXPECT_NE(empty.body.find(R"("text":"")"), std::string::npos) << empty.body;
  EXPECT_NE(empty.body.find(R"("finish_reason":"length")"), std::string::npos) << empty.body;
}

// Who asks for one token to score a prompt leaves out the last of the lists, whatever it is.
TEST(Api, ListsTheTokenThatEndsACompletion) {
  RunningServer server;
  for (const char* stream : {"", R"("stream":true,)"}) {
    const RawAnswer answer = server.ask(
        post(kCompletions, "{" + std::string(stream) + R"("prompt":"eos=1","max_tokens":9,"echo":true,"logprobs":1})"));
    EXPECT_EQ(occurrences(answer.body, "-0.5") > 0, true) << answer.body;
    EXPECT_NE(answer.body.find("\"<|endoftext|>\"]"), std::string::npos) << answer.body;
    EXPECT_EQ(answer.body.find("eos=1<"), std::string::npos) << "it is no text";
  }
  const RawAnswer chat =
      server.ask(post(kChat, R"({"messages":[{"role":"user","content":"eos=2"}],"max_tokens":9,"logprobs":true})"));
  EXPECT_EQ(occurrences(chat.body, "\"top_logprobs\":[]"), 2u) << chat.body;
}

TEST(Api, ContinuesTheFinalMessage) {
  RunningServer server;
  const std::string begun =
      R"("messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"The sky is"}],"max_tokens":2)";
  const RawAnswer answer = server.ask(post(kChat, R"({"continue_final_message":true,)" + begun + "}"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  const std::vector<Request> seen = server.engine().seen_requests();
  ASSERT_EQ(seen.size(), 1u);
  const std::string prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nThe sky is";
  EXPECT_EQ(server.engine().tokenizer().decode(seen[0].prompt, true), prompt);
  const RawAnswer tokens = server.ask(post(
      "/tokenize",
      R"({"continue_final_message":true,"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"The sky is"}]})"));
  EXPECT_NE(tokens.body.find("{\"count\":" + std::to_string(seen[0].prompt.size()) + ","), std::string::npos)
      << tokens.body;
  const std::string last = R"("messages":[{"role":"user","content":"Hi"}])";
  for (const std::string& bad :
       {R"({"continue_final_message":true,"add_generation_prompt":true,)" + begun + "}",
        R"({"continue_final_message":true,)" + last + "}",
        R"({"continue_final_message":true,"messages":[{"role":"assistant","tool_calls":[{"id":"1"}]}]})" +
            std::string(),
        R"({"continue_final_message":1,)" + begun + "}",
        R"({"chat_template_kwargs":{"continue_final_message":true},)" + begun + "}"}) {
    EXPECT_EQ(server.ask(post(kChat, bad)).status, 400) << bad;
  }
}

TEST(Api, TellsTheTokenizersTokensAndTemplate) {
  RunningServer server;
  const RawAnswer answer = server.ask(get("/tokenizer_info"));
  EXPECT_EQ(answer.status, 200);
  for (const char* name : {"bos_token", "eos_token", "pad_token", "unk_token", "chat_template"}) {
    EXPECT_NE(answer.body.find("\"" + std::string(name) + "\":"), std::string::npos) << answer.body;
  }
}

TEST(Api, GivesLogprobsOfAChat) {
  RunningServer server;
  const RawAnswer answer =
      server.ask(post(kChat, "{\"max_tokens\":2,\"logprobs\":true,\"top_logprobs\":2," + kHello + "}"));
  EXPECT_EQ(occurrences(answer.body, "\"top_logprobs\":[{\"token\":"), 2u) << answer.body;
  EXPECT_EQ(occurrences(answer.body, "\"bytes\":["), 6u);
}

TEST(Api, StopsAtAText) {
  RunningServer server;
  const std::string whole =
      between(server.ask(post(kCompletions, R"({"prompt":"q","max_tokens":30})")).body, "\"text\":\"", "\"");
  const std::string stop = whole.substr(10, 3);
  const RawAnswer answer = server.ask(post(kCompletions, R"({"prompt":"q","max_tokens":30,"stop":[")" + stop + "\"]}"));
  EXPECT_EQ(between(answer.body, "\"text\":\"", "\""), whole.substr(0, whole.find(stop)));
  EXPECT_NE(answer.body.find("\"finish_reason\":\"stop\",\"stop_reason\":\"" + stop + "\""), std::string::npos)
      << answer.body;
}

struct BadRequest {
  const char* path;
  std::string body;
  int status;
  std::string says;  // in the answer
};

TEST(Api, RefusesBadRequestsByName) {
  RunningServer server;
  const std::string deep(100, '[');
  const std::vector<BadRequest> cases = {
      {kChat, "", 400, "invalid_json"},
      {kChat, "{\"messages\": ", 400, "invalid_json"},
      {kChat, "[1,2]", 400, "must be a JSON object"},
      {kChat, "{\"a\":NaN}", 400, "invalid_json"},
      {kChat, "{\"a\":" + deep, 400, "levels deep"},
      {kChat, "{\"n\":1,\"n\":2," + kHello + "}", 400, "twice"},
      {kChat, "{}", 400, "\"param\":\"messages\""},
      {kChat, "{\"messages\":[]}", 400, "holds no message"},
      {kChat, "{\"messages\":\"x\"}", 400, "\"param\":\"messages\""},
      {kChat, R"({"messages":[{"role":"frob","content":"x"}]})", 400, "\"param\":\"messages[0].role\""},
      {kChat, R"({"messages":[{"role":"user"}]})", 400, "\"param\":\"messages[0].content\""},
      {kChat, R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", 400, "text only"},
      {kChat, R"({"messages":[{"role":"tool","content":"x"}]})", 400, "no tools here"},
      {kChat, "{\"tools\":[{\"type\":\"function\"}]," + kHello + "}", 400, "\"param\":\"tools\""},
      {kChat, "{\"response_format\":{\"type\":\"json_object\"}," + kHello + "}", 400, "\"param\":\"response_format\""},
      {kChat, "{\"tool_choice\":\"required\"," + kHello + "}", 400, "\"param\":\"tool_choice\""},
      {kChat, "{\"frobnicate\":3," + kHello + "}", 400, "\"param\":\"frobnicate\""},
      {kChat, "{\"n\":0," + kHello + "}", 400, "\"param\":\"n\""},
      {kChat, "{\"max_tokens\":-5," + kHello + "}", 400, "\"param\":\"max_tokens\""},
      {kChat, "{\"max_tokens\":3.5," + kHello + "}", 400, "not 3.5"},
      {kChat, "{\"max_tokens\":1e300," + kHello + "}", 400, "\"param\":\"max_tokens\""},
      {kChat, "{\"temperature\":-1," + kHello + "}", 400, "\"param\":\"temperature\""},
      {kChat, "{\"temperature\":\"hot\"," + kHello + "}", 400, "\"param\":\"temperature\""},
      {kChat, "{\"top_p\":7," + kHello + "}", 400, "\"param\":\"top_p\""},
      {kChat, "{\"seed\":0.5," + kHello + "}", 400, "\"param\":\"seed\""},
      {kChat, "{\"top_logprobs\":2," + kHello + "}", 400, "\"param\":\"top_logprobs\""},
      {kChat, "{\"logit_bias\":{\"99999\":1}," + kHello + "}", 400, "\"param\":\"logit_bias\""},
      {kChat, "{\"stop\":[\"\"]," + kHello + "}", 400, "\"param\":\"stop\""},
      {kChat, "{\"model\":\"nope\"," + kHello + "}", 404, "model_not_found"},
      {kChat, "{\"max_tokens\":4090," + kHello + "}", 400, "context_length_exceeded"},
      {kCompletions, R"({"max_tokens":4})", 400, "\"param\":\"prompt\""},
      {kCompletions, R"({"prompt":{"a":1}})", 400, "\"param\":\"prompt\""},
      {kCompletions, R"({"prompt":[1,-2]})", 400, "\"param\":\"prompt\""},
      {kCompletions, R"({"prompt":[]})", 400, "\"param\":\"prompt\""},
      {kCompletions, R"({"prompt":""})", 400, "has no tokens"},
      {kCompletions, R"({"prompt":"x","stream_options":{"include_usage":true}})", 400, "stream_options"},
      {kCompletions, "{\"prompt\":\"" + std::string(5000, 'w') + "\"}", 400, "the prompt has 5000"},
      {"/v1/embeddings", "{}", 404, "unknown_url"},
      {"/v1/models", "{}", 405, "method_not_allowed"},
  };
  for (const BadRequest& bad : cases) {
    const RawAnswer answer = server.ask(post(bad.path, bad.body));
    EXPECT_EQ(answer.status, bad.status) << bad.body.substr(0, 200) << " -> " << answer.body;
    EXPECT_TRUE(answer.body.starts_with("{\"error\":{\"message\":")) << answer.body;
    EXPECT_NE(answer.body.find(bad.says), std::string::npos) << bad.body.substr(0, 200) << " -> " << answer.body;
  }
  EXPECT_TRUE(server.engine().seen_requests().empty());
}

TEST(Api, LeavesHarmlessFieldsAlone) {
  RunningServer server;
  const RawAnswer answer = server.ask(post(
      kChat,
      R"({"user":"u","metadata":{"a":"b"},"store":true,"cache_prompt":false,"service_tier":"auto","tools":[],"tool_choice":"auto",)"
      R"("response_format":{"type":"text"},"max_tokens":1,"temperature":null,)" +
          kHello + "}"));
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(Api, LenientlyNamesWhatItIgnores) {
  ServerOptions options;
  options.lenient = true;
  RunningServer server({}, options);
  const RawAnswer answer =
      server.ask(post(kChat, "{\"max_tokens\":1,\"verbosity\":\"low\",\"frobnicate\":1," + kHello + "}"));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.head.find("X-Quire-Ignored: verbosity, frobnicate\r\n"), std::string::npos) << answer.head;
}

TEST(Api, PassesSamplingOn) {
  RunningServer server;
  server.ask(post(kCompletions,
                  R"({"prompt":"x","max_tokens":9,"temperature":1.5,"top_p":0.5,"top_k":7,"min_p":0.1,"seed":11,)"
                  R"("repetition_penalty":1.1,"frequency_penalty":0.5,"presence_penalty":-0.5,"min_tokens":2,)"
                  R"("logit_bias":{"65":-100},"bad_words":["no"],"stop_token_ids":[5],"ignore_eos":true,"priority":3,)"
                  R"("deadline_ms":9000,"max_queue_s":1.5})"));
  const std::vector<Request> seen = server.engine().seen_requests();
  ASSERT_EQ(seen.size(), 1u);
  const SamplingParams& sampling = seen[0].sampling;
  EXPECT_EQ(sampling.temperature, 1.5f);
  EXPECT_EQ(sampling.top_p, 0.5f);
  EXPECT_EQ(sampling.top_k, 7);
  EXPECT_EQ(sampling.min_p, 0.1f);
  EXPECT_EQ(sampling.seed, 11u);
  EXPECT_EQ(sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(sampling.frequency_penalty, 0.5f);
  EXPECT_EQ(sampling.presence_penalty, -0.5f);
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_EQ(sampling.bad_words.size(), 2u);
  ASSERT_EQ(sampling.logit_bias.size(), 1u);
  EXPECT_EQ(sampling.logit_bias[0].id, 65);
  EXPECT_EQ(seen[0].max_tokens, 9);
  EXPECT_EQ(seen[0].stop_token_ids, std::vector<int32_t>{5});
  EXPECT_TRUE(seen[0].ignore_eos);
  EXPECT_EQ(seen[0].priority, 3);
  EXPECT_EQ(seen[0].deadline_ms, 9000);
  EXPECT_EQ(seen[0].max_queue_ms, 1500);
  EXPECT_EQ(seen[0].cache_salt, 0u);
}

TEST(Api, SaysNoTemplateWhereThereIsNone) {
  RunningServer server({.has_template = false});
  const RawAnswer answer = server.ask(post(kChat, "{" + kHello + "}"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("--chat-template"), std::string::npos) << answer.body;
}

TEST(Api, EncodesLongPromptsOnTheWorker) {
  RunningServer server({.context = 1 << 20});
  const std::string body = "{\"prompt\":\"" + std::string(100'000, 'x') + "\",\"max_tokens\":2}";
  const RawAnswer answer = server.ask(post(kCompletions, body));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.body.find("\"prompt_tokens\":100000,"), std::string::npos);
}

TEST(Api, APromptInAListGetsWhatItGetsAlone) {
  RunningServer server;
  const std::string options = R"(,"max_tokens":30,"temperature":1,"seed":5})";
  const std::string alone =
      between(server.ask(post(kCompletions, R"({"prompt":"a")" + options)).body, "\"text\":\"", "\"");
  const std::string list = server.ask(post(kCompletions, R"({"prompt":["b","a","a"])" + options)).body;
  EXPECT_FALSE(alone.empty());
  EXPECT_EQ(occurrences(list, "\"text\":\"" + alone + "\""), 2u) << list;
}

TEST(Api, TracesAreForTheKeyThatAsked) {
  ServerOptions options;
  options.api_keys = {"sk-one", "sk-two"};
  RunningServer server({}, options);
  const std::string one = "Authorization: Bearer sk-one\r\n";
  const std::string id = between(server.ask(post(kCompletions, R"({"prompt":"x"})", one)).body, "\"id\":\"", "\"");
  ASSERT_FALSE(id.empty());
  EXPECT_EQ(server.ask(get("/v1/requests/" + id + "/trace", one)).status, 200);
  EXPECT_EQ(server.ask(get("/v1/requests/" + id + "/trace", "Authorization: Bearer sk-two\r\n")).status, 404);
}

TEST(Api, ReadsIdsOfBiasesAsPlainNumbers) {
  RunningServer server;
  const auto status_of = [&](const std::string& bias) {
    return server.ask(post(kCompletions, R"({"prompt":"x","max_tokens":2,"logit_bias":{)" + bias + "}}")).status;
  };
  EXPECT_EQ(status_of(R"("7":1,"0":-3.5)"), 200);
  for (const char* bias : {R"("07":1)", R"("+7":1)", R"("-0":1)", R"("7 ":1)", R"("":1)", R"("7":101)", R"("7":"1")",
                           R"("7":1,"7":2)", R"("99999999999":1)"}) {
    EXPECT_EQ(status_of(bias), 400) << bias;
  }
}

TEST(Api, ListsModelsTokensAndTraces) {
  RunningServer server;
  EXPECT_NE(server.ask(get("/v1/models")).body.find("\"id\":\"fake\""), std::string::npos);
  EXPECT_EQ(server.ask(get("/v1/models/alias")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models/nope")).status, 404);
  EXPECT_EQ(server.ask(post("/tokenize", R"({"prompt":"ab"})")).body,
            "{\"count\":2,\"max_model_len\":4096,\"tokens\":[97,98]}");
  EXPECT_EQ(server.ask(post("/detokenize", R"({"tokens":[97,98]})")).body, "{\"prompt\":\"ab\"}");
  EXPECT_NE(server.ask(post("/tokenize", "{" + kHello + "}")).body.find("\"count\":"), std::string::npos);
  EXPECT_EQ(server.ask(post("/detokenize", R"({"tokens":[97,99999]})")).status, 400);
  EXPECT_EQ(server.ask(get("/version")).status, 200);
  EXPECT_NE(server.ask(get("/v1/engine")).body.find("{\"engine\":{\"policy\":\"fake\"},\"server\":{"),
            std::string::npos);
  const std::string id = between(server.ask(post(kCompletions, R"({"prompt":"x"})")).body, "\"id\":\"", "\"");
  EXPECT_EQ(server.ask(get("/v1/requests/" + id + "/trace")).body, "{\"id\":\"" + id + "\"}");
  EXPECT_EQ(server.ask(get("/v1/requests/nope/trace")).status, 404);
  const std::string metrics = server.ask(get("/metrics")).body;
  EXPECT_NE(metrics.find("quire_fake 1"), std::string::npos);
  EXPECT_NE(metrics.find("quire_http_requests_total{route=\"/v1/completions\",status=\"200\"} 1"), std::string::npos)
      << metrics;
}

TEST(Api, TakesASlashBehindThePath) {
  RunningServer server;
  EXPECT_EQ(server.ask(get("/v1/models/")).status, 200);
  EXPECT_EQ(server.ask(post(std::string(kChat) + "/", "{\"max_tokens\":1," + kHello + "}")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models//")).status, 404);
  EXPECT_EQ(server.ask(get("/v1/models/alias/")).status, 200);
  EXPECT_EQ(server.ask(get("/health/")).status, 200);
  const std::string id = between(server.ask(post(kCompletions, R"({"prompt":"x"})")).body, "\"id\":\"", "\"");
  EXPECT_EQ(server.ask(get("/v1/requests/" + id + "/trace/")).status, 200);
}

TEST(Api, ShortensMaxTokensWhereToldTo) {
  ServerOptions options;
  options.clamp_max_tokens = true;
  RunningServer server({}, options);
  const RawAnswer answer = server.ask(post(kCompletions, R"({"prompt":"abc","max_tokens":99999,"stop":"x"})"));
  EXPECT_NE(answer.head.find("X-Quire-Ignored: max_tokens\r\n"), std::string::npos) << answer.head;
  const std::vector<Request> seen = server.engine().seen_requests();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].max_tokens, 4096 - 3);
}

// Each answer that a page may read says so, and no other does.
TEST(Api, LetsAdmittedPagesRead) {
  constexpr const char* kLocal = "Origin: http://localhost:5173\r\n";
  constexpr const char* kFar = "Origin: https://app.example\r\n";
  const auto allows = [](const RawAnswer& answer, const std::string& origin) {
    return answer.head.find("Access-Control-Allow-Origin: " + origin + "\r\n") != std::string::npos &&
           answer.head.find("Vary: Origin\r\n") != std::string::npos &&
           answer.head.find("Access-Control-Expose-Headers: Retry-After, X-Request-Id, X-Quire-Ignored") !=
               std::string::npos;
  };
  const auto silent = [](const RawAnswer& answer) {
    return answer.head.find("Access-Control-Allow-Origin") == std::string::npos;
  };
  {
    RunningServer server;
    EXPECT_TRUE(allows(server.ask(get("/v1/models", kLocal)), "http://localhost:5173"));
    EXPECT_TRUE(allows(server.ask(get("/nowhere", kLocal)), "http://localhost:5173"));
    EXPECT_TRUE(allows(server.ask(post(kChat, "{}", kLocal)), "http://localhost:5173"));
    EXPECT_TRUE(allows(server.ask(post(kChat, "{\"stream\":true,\"max_tokens\":1," + kHello + "}", kLocal)),
                       "http://localhost:5173"));
    EXPECT_TRUE(silent(server.ask(get("/v1/models"))));
    for (const char* origin : {kFar, "Origin: null\r\n"}) {
      const RawAnswer refused = server.ask(get("/v1/models", origin));
      EXPECT_EQ(refused.status, 403);
      EXPECT_TRUE(silent(refused));
    }
    // What the transport refuses by itself.
    EXPECT_TRUE(allows(server.ask(post(kChat, std::string(17 << 20, ' '), kLocal)), "http://localhost:5173"));
    EXPECT_TRUE(
        allows(server.ask(get("/v1/models", std::string(kLocal) + "Expect: a miracle\r\n")), "http://localhost:5173"));
    EXPECT_TRUE(
        allows(server.ask(get("/v1/models", std::string(kLocal) + "x-api-key: a\r\nAuthorization: Bearer a\r\n")),
               "http://localhost:5173"));
    EXPECT_TRUE(silent(server.ask(get("/v1/models", std::string(kFar) + "Expect: a miracle\r\n"))));
    const RawAnswer preflight =
        server.ask("OPTIONS " + std::string(kChat) + " HTTP/1.1\r\nHost: localhost\r\n" + kLocal +
                   "Access-Control-Request-Method: POST\r\n"
                   "Access-Control-Request-Headers: content-type,x-stainless-os\r\n"
                   "Access-Control-Request-Private-Network: true\r\n\r\n");
    EXPECT_EQ(preflight.status, 204);
    EXPECT_TRUE(allows(preflight, "http://localhost:5173"));
    for (const char* header : {"Access-Control-Allow-Headers: content-type,x-stainless-os\r\n",
                               "Access-Control-Max-Age: 7200\r\n", "Access-Control-Allow-Private-Network: true\r\n"}) {
      EXPECT_NE(preflight.head.find(header), std::string::npos) << header << preflight.head;
    }
  }
  {
    ServerOptions options;
    options.api_keys = {"k"};
    RunningServer server({}, options);
    const RawAnswer refused = server.ask(get("/v1/models", kFar));
    EXPECT_EQ(refused.status, 401);
    EXPECT_TRUE(allows(refused, "https://app.example"));
    EXPECT_EQ(server.ask("OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n" + std::string(kFar) + "\r\n").status,
              204);
  }
  ServerOptions options;
  options.cors_origins = {"https://App.example:443"};
  RunningServer server({}, options);
  EXPECT_TRUE(allows(server.ask(get("/v1/models", kFar)), "https://app.example"));
  EXPECT_EQ(server.ask(get("/v1/models", "Origin: https://other.example\r\n")).status, 403);
}

TEST(Api, EchoesTheRequestId) {
  RunningServer server;
  const RawAnswer answer = server.ask(get("/health", "X-Request-Id: my-id-7\r\n"));
  EXPECT_NE(answer.head.find("X-Request-Id: my-id-7\r\n"), std::string::npos);
}

TEST(Api, WantsItsKeys) {
  ServerOptions options;
  options.api_keys = {"sk-one", "sk-two"};
  RunningServer server({}, options);
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  EXPECT_EQ(server.ask(get("/ready")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models")).status, 401);
  EXPECT_EQ(server.ask(get("/metrics")).status, 401);
  EXPECT_EQ(server.ask(get("/v1/models", "Authorization: Bearer sk-thr\r\n")).status, 401);
  EXPECT_EQ(server.ask(get("/v1/models", "Authorization: Bearer sk-two\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models", "authorization: bearer sk-one\r\nOrigin: https://a.example\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models", "x-api-key: sk-one\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/v1/models", "x-api-key: nope\r\n")).status, 401);
  EXPECT_EQ(server.ask(get("/v1/models", "x-api-key: sk-one\r\nAuthorization: Bearer sk-one\r\n")).status, 400);
  server.ask(post(kCompletions, R"({"prompt":"x"})", "Authorization: Bearer sk-one\r\n"));
  server.ask(post(kCompletions, R"({"prompt":"x"})", "Authorization: Bearer sk-two\r\n"));
  const std::vector<Request> seen = server.engine().seen_requests();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[0].cache_salt, 0u);
  EXPECT_NE(seen[0].cache_salt, seen[1].cache_salt);
}

TEST(Api, RefusesForeignPagesWithoutAKey) {
  RunningServer server;
  EXPECT_EQ(server.ask("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
  EXPECT_EQ(server.ask("GET /health HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n").status, 200);
  EXPECT_EQ(server.ask("GET /health HTTP/1.1\r\nHost: [::1]:1\r\n\r\n").status, 200);
  EXPECT_EQ(server.ask(get("/health", "Origin: https://evil.example\r\n")).status, 403);
  EXPECT_EQ(server.ask(get("/health", "Origin: null\r\n")).status, 403);
  EXPECT_EQ(server.ask(get("/health", "Origin: http://localhost:3000\r\n")).status, 200);
}

}  // namespace
}  // namespace quire
