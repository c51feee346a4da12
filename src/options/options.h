// Every option of quire, once: its name, type, default, range, help, and where it may be set. The command line, the
// environment, JSON requests, --help and docs/options.md are all read off option_table().
//
// An option called "top-k" is the flag --top-k, the environment variable QUIRE_TOP_K and the JSON key "top_k".
// Precedence: request, flag, environment, default. Defaults are the initialisers of Options.
// Plain data without state; usable from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace quire {

struct Options {
  // Which model, and how it is computed.
  std::string model = "smollm2-135m-instruct";
  std::string cache;  // empty: $XDG_CACHE_HOME/quire, else ~/.cache/quire
  std::string compute = "default";
  std::string kv_dtype = "auto";
  std::string isa = "auto";
  std::string adapt_threads = "on";
  std::string attention = "flash";
  std::string activation_scales = "exact";
  std::string k_factors = "on";
  std::string head = "as-stored";
  std::string pack_cache;
  std::string record;
  int64_t threads = 0;  // 0: the cores this process may use
  int64_t context = 0;  // 0: trained, or what fits
  int64_t sequences = 1;

  // What is generated. Absent: the model's own configuration, or the fallback that the table names.
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<uint64_t> seed;       // absent: drawn, and reported
  std::optional<int64_t> max_tokens;  // absent: the rest of the context
  std::vector<std::string> stop;
  std::vector<int64_t> stop_token_ids;
  bool ignore_eos = false;
  double frequency_penalty = 0.0;
  double presence_penalty = 0.0;
  int64_t min_tokens = 0;

  // How `serve` runs the model for many requests at a time.
  std::string policy = "mixed";
  int64_t max_seqs = 32;
  int64_t max_step_rows = 512;
  int64_t max_queued = 1024;
  int64_t max_queued_tokens = 1 << 20;
  int64_t batch_size = 8;
  std::vector<int64_t> preferred_sizes;
  double max_delay_ms = 0.0;
  std::string kv = "paged";
  std::string prefix_cache = "on";
  int64_t kv_memory = 0;      // MiB; 0: by the rule of plan_pool (capacity/memory_plan.h)
  int64_t memory_budget = 0;  // MiB; 0: what is available
  int64_t trace_requests = 1000;

  // How `serve` treats requests.
  int64_t priority = 0;
  int64_t deadline_ms = 0;   // 0: none
  double max_queue_s = 0.0;  // 0: no limit
  std::string chat_template;
  std::vector<std::string> served_model_name;
  bool lenient = false;
  bool clamp_max_tokens = false;

  // Where `serve` listens and what it allows.
  std::string host = "127.0.0.1";
  int64_t port = 8000;
  std::vector<std::string> api_key;
  std::vector<std::string> cors_origin;
  std::string api_key_file;
  bool insecure = false;
  std::optional<double> max_kl;  // absent: nothing is asked of the model
  bool warn = false;
  int64_t max_connections = 1024;
  int64_t max_body_mib = 16;
  double drain_s = 30.0;
  std::string log_file = "-";
  std::optional<int64_t> admin_port;
  std::string socket_mode = "0600";
  int64_t max_connections_per_address = 0;
  int64_t request_memory = 0;  // MiB
  double ready_delay_s = 0.0;
  double stall_s = 30.0;

  // What `bench` measures.
  std::vector<int64_t> rows;  // empty: each part's own choice
  int64_t prefill = 512;
  int64_t decode = 32;
  int64_t depth = 0;
  int64_t repeats = 3;

  // What `eval` judges, and on what.
  std::string score = "half";
  bool store = false;
  std::string reference;          // empty: none
  std::vector<std::string> also;  // further models
  std::string text;               // a file; empty: the text that comes with quire
  int64_t window = 512;
  int64_t tokens = 0;  // 0: the whole text

  // What `quantize` makes.
  std::string scheme = "gptq";
  int64_t bits = 4;
  int64_t group = 0;  // -1: one scale a row; 0: the largest of 128, 64 and 32 that fits
  bool asym = false;
  bool act_order = false;
  bool static_groups = false;
  double damp = 0.01;
  std::string format = "auto";
  std::string type = "auto";
  std::string importance = "auto";
  std::string calibration;  // empty: the shipped text
  int64_t calibration_sequences = 128;
  int64_t calibration_length = 512;
  int64_t proof_tokens = 8192;

  // What is read and how it is answered.
  std::string system;
  std::string history;  // empty: by the rule of cli/history_file.h
  bool raw = false;
  bool add_special = false;
  bool parse_special = false;
  std::string template_file;
  std::string now;
  bool jsonl = false;
  bool json = false;
  bool what_if = false;
};

// What `run` samples with where neither the user nor the model says anything.
inline constexpr double kFallbackTemperature = 0.7;
inline constexpr double kFallbackTopP = 0.95;

enum Command : uint32_t {
  kRun = 1 << 0,
  kInspect = 1 << 1,
  kTokenize = 1 << 2,
  kTemplate = 1 << 3,
  kScore = 1 << 4,
  kPull = 1 << 5,
  kServe = 1 << 6,
  kBench = 1 << 7,
  kEval = 1 << 8,
  kQuantize = 1 << 9,
  kReplay = 1 << 10,
  kList = 1 << 11,
  kRemove = 1 << 12,
  kDoctor = 1 << 13,
  kHelp = 1 << 14,
  kVersion = 1 << 15,
};

using OptionMember = std::variant<bool Options::*, int64_t Options::*, double Options::*, std::string Options::*,
                                  std::optional<int64_t> Options::*, std::optional<uint64_t> Options::*,
                                  std::optional<double> Options::*, std::vector<std::string> Options::*,
                                  std::vector<int64_t> Options::*>;

// A value as it was read, before it meets its option's type and range.
using OptionValue =
    std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<std::string>, std::vector<int64_t>>;

struct OptionRow {
  std::string_view name;
  char short_name = 0;  // 0: none
  OptionMember member;
  uint32_t commands = 0;             // Command bits
  std::string_view section;          // heading in --help
  std::string_view value_name = {};  // "N", "FILE"; empty for switches
  std::string_view help;
  std::string_view unset_text = {};  // what an absent default means
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;  // the minimum itself is excluded
  std::vector<std::string_view> choices = {};
  bool in_environment = false;
  bool in_request = false;  // a key of JSON requests
};

std::span<const OptionRow> option_table();
const OptionRow* find_option(std::string_view name);  // null: no such option

std::string environment_name(const OptionRow& row);                    // "QUIRE_TOP_K"
std::string json_key(const OptionRow& row);                            // "top_k"
std::string default_text(const OptionRow& row);                        // "0.7"; empty for switches and lists
std::string value_text(const Options& options, const OptionRow& row);  // "0.2"; empty: absent, or an empty list
// "0 or more", "above 0, at most 1"; empty: any. Limits that only guard against overflow are left out unless `exact`.
std::string range_text(const OptionRow& row, bool exact = false);

// What its values are, for messages: "a whole number of 0 to 1024".
std::string accepted_text(const OptionRow& row);

bool is_switch(const OptionRow& row);
bool is_list(const OptionRow& row);

// Reads `text` as a flag or environment variable gives it: lists of ids as "1,2,3", switches as 0 or 1.
Result<OptionValue> parse_option(const OptionRow& row, std::string_view text, std::string_view shown_as);

// Stores a value; lists replace what was there. Fails with `shown_as` ("--top-k", "\"top_k\"") on type and range.
Status set_option(Options& options, const OptionRow& row, const OptionValue& value, std::string_view shown_as);

// 3 of 3.0; nothing where it is no whole number of 64 bits.
std::optional<int64_t> whole_number(double value);

// Sets what `command` takes from the environment. An empty variable counts as absent.
Status read_environment(Options& options, Command command);

}  // namespace quire
