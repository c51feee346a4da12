#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_reserve.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "eval/kv_divergence.h"
#include "eval/proof.h"
#include "formats/checkpoint.h"
#include "hub/catalogue.h"
#include "server/server.h"

namespace quire {
namespace {

constexpr int64_t kMib = 1 << 20;
constexpr int64_t kMaxFileBytes = 16 * kMib;  // of keys and templates
constexpr size_t kReserveBytes = 8 * kMib;
constexpr int kLargeBlockBytes = 1 << 20;

// One key a line; blanks around it and empty lines do not count.
Status add_keys_of_file(const std::string& path, std::vector<std::string>& keys) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxFileBytes));
  const size_t before = keys.size();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    line.erase(0, line.find_first_not_of(" \t\r"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) keys.push_back(std::move(line));
    begin = end + 1;
  }
  return keys.size() > before ? Status() : invalid_argument("--api-key-file " + path + " holds no key");
}

// Permissions in octal: "0660".
Result<uint32_t> parse_mode(const std::string& text) {
  uint32_t mode = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (error != std::errc() || end != text.data() + text.size() || mode > 0777) {
    return invalid_argument("--socket-mode " + text + " is no octal number of 0 to 0777");
  }
  return mode;
}

// What clients call the model where --served-model-name says nothing: its catalogue name, else its file or folder.
std::string model_name(const Options& options, const std::string& path) {
  if (find_in_catalogue(options.model) != nullptr) return options.model;
  std::filesystem::path file = std::filesystem::path(path).lexically_normal();
  if (!file.has_filename()) file = file.parent_path();
  const std::string name = file.extension() == ".gguf" ? file.stem().string() : file.filename().string();
  return name.empty() ? "model" : name;
}

Result<ServerOptions> server_options(const Options& options, const std::string& path) {
  ServerOptions server;
  server.api_keys = options.api_key;
  server.cors_origins = options.cors_origin;
  server.address.host = options.host;
  server.address.port = static_cast<uint16_t>(options.port);
  QUIRE_ASSIGN_OR_RETURN(server.address.socket_mode, parse_mode(options.socket_mode));
  if (options.admin_port) server.admin_port = static_cast<uint16_t>(*options.admin_port);
  for (const std::string& key : server.api_keys) {
    if (key.empty()) return invalid_argument("--api-key is empty");
  }
  if (!options.api_key_file.empty()) QUIRE_RETURN_IF_ERROR(add_keys_of_file(options.api_key_file, server.api_keys));
  server.insecure = options.insecure;
  server.model_names = options.served_model_name;
  if (server.model_names.empty()) server.model_names.push_back(model_name(options, path));
  server.lenient = options.lenient;
  server.clamp_max_tokens = options.clamp_max_tokens;
  server.ready_delay_s = options.ready_delay_s;
  server.drain_s = options.drain_s;
  server.stall_s = options.stall_s;
  server.request_bytes = options.request_memory * kMib;
  server.on_second_signal = [] { exit_soon_after_interrupt(); };
  server.log_file = options.log_file;
  server.request_defaults = options;
  server.limits.connections = static_cast<size_t>(options.max_connections);
  server.limits.connections_of_address = static_cast<size_t>(options.max_connections_per_address);
  server.limits.body_bytes = static_cast<size_t>(options.max_body_mib * kMib);
  return server;
}

Result<EngineOptions> engine_options(const Options& options, const std::string& path, const std::string& name) {
  EngineOptions engine;
  engine.model = model_options(options, path);
  engine.served_model_name = name;
  if (!options.chat_template.empty()) {
    QUIRE_ASSIGN_OR_RETURN(engine.chat_template, read_file(options.chat_template, kMaxFileBytes));
  }
  QUIRE_ASSIGN_OR_RETURN(engine.scheduler.policy.kind, parse_policy(options.policy));
  engine.scheduler.policy.batch_size = options.batch_size;
  engine.scheduler.policy.preferred_sizes = options.preferred_sizes;
  engine.scheduler.policy.max_delay_ns = static_cast<int64_t>(options.max_delay_ms * 1e6);
  engine.scheduler.max_seqs = options.max_seqs;
  engine.scheduler.max_step_rows = options.max_step_rows;
  engine.scheduler.queue = {.max_requests = options.max_queued, .max_tokens = options.max_queued_tokens};
  engine.kv_layout = options.kv == "contiguous" ? KvLayout::kContiguous : KvLayout::kPaged;
  engine.prefix_caching = options.prefix_cache == "on";
  engine.kv_memory_bytes = options.kv_memory * kMib;
  engine.memory_budget_bytes = options.memory_budget * kMib;
  engine.trace_requests = options.trace_requests;
  return engine;
}

constexpr double kKvSeconds = 8;

// Whether the model is as near to its original as --max-kl asks; the message says what was found.
Status check_divergence(const Options& options, const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::open(path));
  if (checkpoint->notes().proof.empty()) {
    return invalid_argument("--max-kl: " + path +
                            " holds no proof of what quantization cost it; make one with `quire " + "eval --model " +
                            path + " --reference ORIGINAL --compute f32 --store`, or go on with --warn");
  }
  QUIRE_ASSIGN_OR_RETURN(const Proof proof, parse_proof(checkpoint->notes().proof, path));
  QUIRE_ASSIGN_OR_RETURN(const KvDivergence kv, measure_kv_divergence(model_options(options, path), kKvSeconds));
  char found[200];
  std::snprintf(found, sizeof found, "KL divergence %.3g nats in its proof, and at most %.3g of KV over %lld tokens",
                proof.kl, kv.kl_upper, static_cast<long long>(kv.tokens));
  const double total = proof.kl + kv.kl_upper;
  char limit[80];
  std::snprintf(limit, sizeof limit, "%.3g of --max-kl %.3g", total, *options.max_kl);
  if (total <= *options.max_kl) {
    note(path + ": " + found + ": " + limit);
    return {};
  }
  return invalid_argument(
      path + ": " + found + ": " + limit +
      ", which is more; quantize it with more bits or another scheme, use --kv-dtype bf16, or go on "
      "with --warn");
}

void print_welcome(const Server& server, const ServerOptions& options, bool chats) {
  const std::string url = server.url();
  const std::string key = options.api_keys.empty() ? "" : " -H \"Authorization: Bearer $QUIRE_API_KEY\"";
  const std::string call =
      chats ? "/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'"
            : "/v1/completions -d '{\"prompt\": \"Once upon a time\"}'";
  const std::string address =
      options.address.is_unix() ? "--unix-socket " + options.address.host.substr(5) + " http://localhost" : url;
  std::printf("%s serves %s\n  curl %s%s%s\n", url.c_str(), options.model_names.front().c_str(), address.c_str(),
              call.c_str(), key.c_str());
  if (server.admin_port() != 0) std::printf("  port %u answers /health, /ready and /metrics\n", server.admin_port());
  std::fflush(stdout);
}

}  // namespace

Status command_serve(const Invocation& invocation) {
  const Options& options = invocation.options;
  for (const int number : {SIGHUP, SIGUSR1, SIGUSR2}) std::signal(number, SIG_IGN);  // until the server takes them
  QUIRE_ASSIGN_OR_RETURN(const std::string path, find_model(options));
  QUIRE_ASSIGN_OR_RETURN(const ServerOptions serving, server_options(options, path));
  QUIRE_ASSIGN_OR_RETURN(const EngineOptions running, engine_options(options, path, serving.model_names.front()));
  // The port first: it is the cheaper of the two to fail, and clients may connect while the model loads.
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::bind(serving));
  if (options.max_kl.has_value()) {
    const Status near = check_divergence(options, path);
    if (!near.ok() && !options.warn) return near;
    if (!near.ok()) note("warning: " + near.message());
  }
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, make_engine(running));
  note_remarks(engine->checkpoint(), &engine->tokenizer());
  note(plan_text(engine->plan(), serving.request_bytes > 0 ? serving.request_bytes : engine->plan().request_bytes));
  print_welcome(*server, serving, engine->chat_template() != nullptr);
  MemoryReserve::install(kReserveBytes);
  // What a large request took goes back to the system when it ends, instead of staying in the heap for the next.
  mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);
  const Status ended = server->run(*engine);
  exit_on_interrupt();  // again: nobody listens to signals any more
  if (engine->loading()) {
    // Nothing is being answered, and loading would have to be waited for.
    server.reset();
    std::fflush(nullptr);
    _exit(ended.ok() ? 0 : kInterruptExitCode);
  }
  return ended;
}

}  // namespace quire
