#include "options/option_rows.h"

namespace quire {
namespace {

constexpr std::string_view kServerSection = "Server";

}  // namespace

std::vector<OptionRow> server_rows() {
  return {
      {.name = "max-kl",
       .member = &Options::max_kl,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "NATS",
       .help = "serve only a model whose distributions are this near to the original's: the mean KL divergence of the "
               "proof in its file, plus what the KV cache adds, measured for 8 s at start",
       .unset_text = "nothing is asked",
       .minimum = 0,
       .in_environment = true},
      {.name = "warn",
       .member = &Options::warn,
       .commands = kServe,
       .section = kServerSection,
       .help = "go on, with a warning, where --max-kl is not met"},
      {.name = "host",
       .member = &Options::host,
       .commands = kServe | kDoctor,
       .section = kServerSection,
       .value_name = "ADDRESS",
       .help = "address to listen on; one that others can reach wants --api-key or --insecure. unix:PATH: a "
               "Unix-domain socket",
       .in_environment = true},
      {.name = "socket-mode",
       .member = &Options::socket_mode,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "MODE",
       .help = "permissions of the socket of --host unix:PATH, in octal"},
      {.name = "port",
       .member = &Options::port,
       .commands = kServe | kDoctor,
       .section = kServerSection,
       .value_name = "N",
       .help = "port to listen on; 0: any free one",
       .minimum = 0,
       .maximum = 65535,
       .in_environment = true},
      {.name = "admin-port",
       .member = &Options::admin_port,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "N",
       .help = "a second port, for /health, /ready and /metrics alone, which --max-connections does not count; 0: any "
               "free one",
       .unset_text = "none",
       .minimum = 0,
       .maximum = 65535,
       .in_environment = true},
      {.name = "api-key",
       .member = &Options::api_key,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "KEY",
       .help = "key that clients must send; may be given again for further keys. Others on the machine can see flags: "
               "prefer the environment or --api-key-file",
       .in_environment = true},
      {.name = "cors-origin",
       .member = &Options::cors_origin,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "ORIGIN",
       .help =
           "let web pages of this origin (https://app.example) use the server; may be given again. Without keys local "
           "pages may in any case; with keys pages of any site, unless this is given",
       .in_environment = true},
      {.name = "api-key-file",
       .member = &Options::api_key_file,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "FILE",
       .help = "file with one key a line",
       .unset_text = "none",
       .in_environment = true},
      {.name = "insecure",
       .member = &Options::insecure,
       .commands = kServe,
       .section = kServerSection,
       .help = "allow an address that others can reach without a key"},
  };
}

std::vector<OptionRow> server_limit_rows() {
  return {
      {.name = "max-connections",
       .member = &Options::max_connections,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "N",
       .help =
           "connections at a time; for more, those that have been idle longest give way, and where none is idle only "
           "/health, /ready and /metrics are answered",
       .minimum = 1,
       .maximum = 65536},
      {.name = "max-connections-per-address",
       .member = &Options::max_connections_per_address,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "N",
       .help =
           "connections at a time from one address; 0: as many as --max-connections. Not for a server behind a proxy",
       .minimum = 0,
       .maximum = 65536},
      {.name = "request-memory",
       .member = &Options::request_memory,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "MIB",
       .help =
           "memory that requests may hold together: bodies, what is read from them, answers not yet sent; beyond it "
           "requests are answered with status 503. 0: a share of what the memory plan leaves",
       .minimum = 0,
       .maximum = 1 << 24,
       .in_environment = true},
      {.name = "max-body-mib",
       .member = &Options::max_body_mib,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "MIB",
       .help = "largest body of a request",
       .minimum = 1,
       .maximum = 1024},
      {.name = "ready-delay-s",
       .member = &Options::ready_delay_s,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "S",
       .help = "time between SIGTERM, when /ready turns 503, and when new connections are refused",
       .minimum = 0,
       .maximum = 1e6,
       .in_environment = true},
      {.name = "stall-s",
       .member = &Options::stall_s,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "S",
       .help =
           "time after which a step that has not ended is reported: in the log, in /metrics, and by /ready with 503",
       .minimum = 0.1,
       .maximum = 1e6,
       .in_environment = true},
      {.name = "drain-s",
       .member = &Options::drain_s,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "S",
       .help = "time that running requests have to end after SIGTERM or Ctrl-C; a second one stops at once",
       .minimum = 0,
       .maximum = 1e6,
       .in_environment = true},
      {.name = "log-file",
       .member = &Options::log_file,
       .commands = kServe,
       .section = kServerSection,
       .value_name = "FILE",
       .help = "where a line for each request goes, as JSON unless that is a terminal; -: standard error, none: "
               "nowhere. SIGHUP "
               "and SIGUSR1 open it anew",
       .in_environment = true},
  };
}

}  // namespace quire
