// The answers of the routes that api_handler.cc lists.
#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include "json/json_writer.h"
#include "server/api_handler.h"
#include "server/field_reader.h"
#include "server/random_id.h"

namespace quire {
namespace {

// Bodies beyond that take a while to read, render and tokenize.
constexpr size_t kLongBodyBytes = 64 << 10;

std::string_view state_name(Engine::State state) {
  switch (state) {
    case Engine::State::kLoading:
      return "loading";
    case Engine::State::kReady:
      return "ready";
    case Engine::State::kFailed:
      return "failed";
    case Engine::State::kDraining:
      return "draining";
  }
  return "unknown";
}

std::string status_json(std::string_view status) {
  std::string json;
  JsonWriter(&json).begin_object().text("status", status).end_object();
  return json;
}

ApiError unknown_model(std::string_view name, const std::vector<std::string>& served) {
  return {.status = 404,
          .message = "there is no model \"" + std::string(name.substr(0, 100)) + "\"; this server has \"" +
                     served.front() + "\"",
          .param = "model",
          .code = "model_not_found"};
}

ApiError too_busy() {
  return {.status = 503,
          .message = "too much is being asked at the moment; try again later",
          .code = "overloaded",
          .retry_after_s = 1};
}

ApiError out_of_memory() {
  return {.status = 503, .message = "out of memory; try again later", .code = "overloaded", .retry_after_s = 1};
}

// What reading a body, rendering and tokenizing it may take beside the body itself: the texts in it up to four times over
// (parsed, rendered, split, as ids), and an object for each value.
int64_t working_bytes(std::string_view body) {
  constexpr int64_t kValueBytes = 96;
  const auto separators = std::ranges::count_if(body, [](char c) { return c == ',' || c == '[' || c == '{'; });
  const int64_t values = std::min<int64_t>(separators + 1, JsonValue::kMaxValues);
  return 4 * static_cast<int64_t>(body.size()) + values * kValueBytes;
}

// Names to the client what was left out of account.
void name_ignored(const std::vector<std::string>& ignored, Reply& reply) {
  if (ignored.empty()) return;
  std::string names;
  for (const std::string& name : ignored) names.append(names.empty() ? "" : ", ").append(header_safe(name));
  reply.add_header("X-Quire-Ignored", names);
}

constexpr std::string_view kIndex = R"(quire serves a language model here.

  POST /v1/chat/completions   answer a conversation
  POST /v1/completions        continue a text
  POST /tokenize, /detokenize
  GET  /tokenizer_info        special tokens by name, chat template
  GET  /v1/models             what is served
  GET  /v1/engine             what is on, what is off, and why
  GET  /v1/requests/ID/trace  what happened to a request
  GET  /metrics               for Prometheus
  GET  /health, /ready, /version
)";

}  // namespace

void ApiHandler::answer_index(ReplyPointer reply) {
  reply->respond({.content_type = "text/plain; charset=utf-8", .body = std::string(kIndex)});
}

void ApiHandler::answer_health(ReplyPointer reply) {
  const bool failed = parts_.engine.state() == Engine::State::kFailed;
  reply->respond({.status = failed ? 503 : 200, .body = status_json(failed ? "failed" : "ok")});
}

void ApiHandler::answer_ready(ReplyPointer reply) {
  const Engine::State state = drain_begins_ ? Engine::State::kDraining : parts_.engine.state();
  const bool ready = state == Engine::State::kReady && !stalled_;
  const std::string_view name = state == Engine::State::kReady && stalled_ ? "stalled" : state_name(state);
  reply->respond({.status = ready ? 200 : 503, .body = status_json(name)});
}

void ApiHandler::answer_version(ReplyPointer reply) { reply->respond_json("{\"version\":\"" QUIRE_VERSION "\"}"); }

void ApiHandler::answer_metrics(ReplyPointer reply) {
  reply->respond({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text()});
}

std::string ApiHandler::metrics_text() const {
  std::string text = parts_.engine.metrics_text() + counters_.metrics_text();
  const auto metric = [&text](std::string_view name, std::string_view type, std::string_view help, auto value) {
    text.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    text.append(type).append("\n").append(name).append(" ").append(std::to_string(value)).append("\n");
  };
  metric("quire_http_connections", "gauge", "Connections that are open.", parts_.http.connections());
  metric("quire_http_refused_connections_total", "counter", "Connections that found no place (--max-connections).",
         parts_.http.refused_connections());
  metric("quire_http_evicted_connections_total", "counter", "Idle connections that gave way to new ones.",
         parts_.http.evicted_connections());
  metric("quire_request_memory_bytes", "gauge", "Bytes that requests hold.", parts_.budget.used());
  metric("quire_request_memory_limit_bytes", "gauge", "Bytes that requests may hold (--request-memory).",
         parts_.budget.limit());
  metric("quire_request_memory_refused_total", "counter", "Times that no memory was left for a request.",
         parts_.budget.refused());
  metric("quire_memory_pressure", "gauge", "1 while the process is near the end of its memory.",
         parts_.budget.closed() ? 1 : 0);
  metric("quire_worker_jobs_waiting", "gauge", "Requests that wait to be read and tokenized.", workers_.waiting());
  metric("quire_worker_jobs_refused_total", "counter", "Requests refused because too many waited to be read.",
         workers_.refused());
  metric("quire_log_lines_lost_total", "counter", "Lines that could not be written to the log.", parts_.log.lost());
  metric("quire_engine_stalled", "gauge", "1 while a step has not ended for longer than --stall-s.", stalled_ ? 1 : 0);
  return text;
}

void ApiHandler::answer_engine(ReplyPointer reply) {
  std::string json;
  JsonWriter out(&json);
  out.begin_object().key("engine").raw(parts_.engine.describe_json()).key("server").begin_object();
  out.text("version", QUIRE_VERSION)
      .text("state", state_name(drain_begins_ ? Engine::State::kDraining : parts_.engine.state()))
      .boolean("api_keys", parts_.access.has_keys())
      .boolean("lenient", parts_.options.lenient)
      .number("connections", parts_.http.connections())
      .number("max_connections", parts_.options.limits.connections)
      .number("max_body_bytes", parts_.options.limits.body_bytes)
      .number("request_memory_bytes", parts_.budget.limit())
      .number("running_requests", generations_.size());
  out.end_object().end_object();
  reply->respond_json(std::move(json));
}

bool ApiHandler::serves(std::string_view name) const {
  for (const std::string& known : parts_.options.model_names) {
    if (known == name) return true;
  }
  return false;
}

std::string ApiHandler::model_json(std::string_view name) const {
  std::string json;
  JsonWriter(&json)
      .begin_object()
      .text("id", name)
      .text("object", "model")
      .number("created", started_s_)
      .text("owned_by", "quire")
      .number("max_model_len", parts_.engine.limits().context)
      .end_object();
  return json;
}

void ApiHandler::answer_models(ReplyPointer reply) {
  std::string json;
  JsonWriter out(&json);
  out.begin_object().text("object", "list").key("data").begin_array();
  for (const std::string& name : parts_.options.model_names) out.raw(model_json(name));
  out.end_array().end_object();
  reply->respond_json(std::move(json));
}

void ApiHandler::answer_model(ReplyPointer reply) {
  const std::string name(path_of(reply->request()).substr(std::string_view("/v1/models/").size()));
  if (!serves(name)) return reply->fail(unknown_model(name, parts_.options.model_names));
  reply->respond_json(model_json(name));
}

void ApiHandler::answer_trace(ReplyPointer reply) {
  constexpr std::string_view kPrefix = "/v1/requests/";
  constexpr std::string_view kSuffix = "/trace";
  std::string_view id = path_of(reply->request());
  if (!id.ends_with(kSuffix) || id.size() <= kPrefix.size() + kSuffix.size()) {
    return reply->fail({.status = 404, .message = "a trace is at /v1/requests/ID/trace", .code = "unknown_url"});
  }
  id = id.substr(kPrefix.size(), id.size() - kPrefix.size() - kSuffix.size());
  run_work(reply, [this, reply, id = std::string(id)](const WorkBudget&) -> std::function<void()> {
    Result<std::string> trace = parts_.engine.trace_json(id, parts_.access.cache_salt(reply->request()));
    if (!trace.ok()) return [reply, error = api_error_of(trace.status())] { reply->fail(error); };
    return [reply, json = std::move(*trace)] { reply->respond_json(json); };
  });
}

void ApiHandler::run_work(const ReplyPointer& reply, Work work) {
  HttpRequest& request = reply->request();
  if (!request.held.grow(working_bytes(request.body))) return reply->fail(too_busy());
  const auto then = [&http = parts_.http, reply](std::function<void()> rest) {
    http.post([reply, rest = std::move(rest)] {
      try {
        rest();
      } catch (const std::bad_alloc&) {
        reply->fail(out_of_memory());
      }
    });
  };
  WorkerPool::Job job;
  job.run = [reply, work = std::move(work), then](const WorkBudget& budget) {
    if (!reply->gone()) then(work(budget));
  };
  job.is_long = request.body.size() > kLongBodyBytes;
  job.ran_out_of_memory = [reply, then] { then([reply] { reply->fail(out_of_memory()); }); };
  const WorkerPool::Ticket ticket = workers_.add(parts_.access.client_of(request), std::move(job));
  if (ticket == WorkerPool::kRefused) return reply->fail(too_busy());
  reply->on_gone([this, ticket] { workers_.drop(ticket); });
}

void ApiHandler::generate(ReplyPointer reply, Api api) {
  if (parts_.engine.state() == Engine::State::kLoading) {
    return reply->fail(
        {.status = 503, .message = "the model is being loaded; see /ready", .code = "loading", .retry_after_s = 1});
  }
  run_work(reply, [this, reply, api](const WorkBudget& budget) -> std::function<void()> {
    ParsedCall parsed = parse_generation_call(api, reply->request().body,
                                              {.defaults = parts_.options.request_defaults,
                                               .hparams = parts_.engine.checkpoint().hparams(),
                                               .vocab_size = parts_.engine.tokenizer().vocab_size(),
                                               .lenient = parts_.options.lenient,
                                               .clamp_max_tokens = parts_.options.clamp_max_tokens,
                                               .content_parts = parts_.encoder.content_parts()});
    if (auto* error = std::get_if<ApiError>(&parsed)) return [reply, error = std::move(*error)] { reply->fail(error); };
    auto call = std::make_shared<GenerationCall>(std::get<GenerationCall>(std::move(parsed)));
    if (!call->model.empty() && !serves(call->model)) {
      return [this, reply, call] { reply->fail(unknown_model(call->model, parts_.options.model_names)); };
    }
    EncodedPrompts prompts = parts_.encoder.encode(*call, budget);
    if (auto* error = std::get_if<ApiError>(&prompts))
      return [reply, error = std::move(*error)] { reply->fail(error); };
    auto ids = std::make_shared<std::vector<std::vector<int32_t>>>(
        std::get<std::vector<std::vector<int32_t>>>(std::move(prompts)));
    return [this, reply, call, ids] { start_generation(reply, std::move(*call), std::move(*ids)); };
  });
}

void ApiHandler::start_generation(ReplyPointer reply, GenerationCall call, std::vector<std::vector<int32_t>> prompts) {
  if (reply->gone()) return;
  AnswerIdentity identity{.api = call.api,
                          .id = (call.api == Api::kChat ? "chatcmpl-" : "cmpl-") + random_id(),
                          .model = call.model.empty() ? parts_.options.model_names.front() : call.model,
                          .created_s = std::time(nullptr),
                          .seed = std::nullopt};
  if (!call.seed_given && call.request.sampling.temperature > 0) identity.seed = call.request.sampling.seed;
  reply->record().generation_id = identity.id;
  call.request.cache_salt = parts_.access.cache_salt(reply->request());
  name_ignored(call.ignored, *reply);
  reply->request().drop_body();
  generations_.start(std::make_unique<Generation>(parts_.engine, parts_.budget, std::move(reply), std::move(call),
                                                  std::move(identity)),
                     std::move(prompts));
}

void ApiHandler::answer_tokenize(ReplyPointer reply) {
  run_work(reply, [this, reply](const WorkBudget& budget) -> std::function<void()> {
    const auto failed = [reply](ApiError error) { return [reply, error = std::move(error)] { reply->fail(error); }; };
    const Result<JsonValue> document = JsonValue::parse(reply->request().body);
    if (!document.ok()) return failed({.message = document.status().message(), .code = "invalid_json"});
    FieldReader fields(*document);
    const std::string model = fields.text("model").value_or("");
    const auto prompt = fields.text("prompt");
    const JsonValue* messages = fields.take("messages");
    const bool add_special = fields.boolean("add_special_tokens").value_or(true);
    const bool parse_special = fields.boolean("parse_special").value_or(true);
    const ChatEnd end = read_chat_end(fields);
    for (const std::string& name : fields.rest()) fields.fail(name, "is not a field that quire knows", "unknown_field");
    if (prompt.has_value() == (messages != nullptr)) {
      fields.fail("prompt", "or \"messages\" must be there, and only one of them");
    }
    if (fields.error()) return failed(*fields.error());
    if (!model.empty() && !serves(model)) return failed(unknown_model(model, parts_.options.model_names));

    std::vector<int32_t> ids;
    std::vector<std::string> ignored;
    if (prompt) {
      auto encoded = parts_.engine.tokenizer().encode(
          *prompt, {.add_special = add_special, .parse_special = parse_special}, &budget);
      if (!encoded.ok()) return failed(api_error_of(encoded.status()));
      ids = std::move(*encoded);
    } else {
      BegunAnswer begun{.tag = end.continues ? new_tag() : std::string(), .words = {}};
      auto normalized = normalize_messages({.messages = *messages,
                                            .where = "messages",
                                            .content_parts = parts_.encoder.content_parts(),
                                            .ignored = &ignored,
                                            .begun = end.continues ? &begun : nullptr});
      if (auto* error = std::get_if<ApiError>(&normalized)) return failed(std::move(*error));
      auto encoded = parts_.encoder.encode_chat(std::get<std::string>(normalized),
                                                end.begins ? "{\"add_generation_prompt\":true}" : "{}", begun, budget);
      if (auto* error = std::get_if<ApiError>(&encoded)) return failed(std::move(*error));
      ids = std::get<std::vector<int32_t>>(std::move(encoded));
    }
    std::string json;
    JsonWriter out(&json);
    out.begin_object().number("count", ids.size()).number("max_model_len", parts_.engine.limits().context);
    out.key("tokens").begin_array();
    for (const int32_t id : ids) out.number(id);
    out.end_array().end_object();
    return [reply, ignored = std::move(ignored), json = std::move(json)] {
      name_ignored(ignored, *reply);
      reply->respond_json(json);
    };
  });
}

void ApiHandler::answer_tokenizer_info(ReplyPointer reply) { reply->respond_json(parts_.encoder.tokenizer_info()); }

void ApiHandler::answer_detokenize(ReplyPointer reply) {
  run_work(reply, [this, reply](const WorkBudget&) -> std::function<void()> {
    const auto failed = [reply](ApiError error) { return [reply, error = std::move(error)] { reply->fail(error); }; };
    const Result<JsonValue> document = JsonValue::parse(reply->request().body);
    if (!document.ok()) return failed({.message = document.status().message(), .code = "invalid_json"});
    FieldReader fields(*document);
    const std::string model = fields.text("model").value_or("");
    const auto ids = fields.ids("tokens", parts_.engine.tokenizer().vocab_size());
    if (!ids) fields.fail("tokens", "is missing");
    for (const std::string& name : fields.rest()) fields.fail(name, "is not a field that quire knows", "unknown_field");
    if (fields.error()) return failed(*fields.error());
    if (!model.empty() && !serves(model)) return failed(unknown_model(model, parts_.options.model_names));
    std::string json;
    JsonWriter(&json).begin_object().text("prompt", parts_.engine.tokenizer().decode(*ids, true)).end_object();
    return [reply, json = std::move(json)] { reply->respond_json(json); };
  });
}

}  // namespace quire
