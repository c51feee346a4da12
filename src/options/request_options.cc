#include "options/option_rows.h"

namespace quire {
namespace {

constexpr std::string_view kRequestSection = "Requests";

}  // namespace

std::vector<OptionRow> request_rows() {
  return {
      {.name = "priority",
       .member = &Options::priority,
       .commands = kServe,
       .section = kRequestSection,
       .value_name = "N",
       .help = "requests of lower numbers run first",
       .minimum = -1000,
       .maximum = 1000,
       .in_request = true},
      {.name = "deadline-ms",
       .member = &Options::deadline_ms,
       .commands = kServe,
       .section = kRequestSection,
       .value_name = "MS",
       .help = "a request that takes longer fails with deadline_exceeded; 0: none",
       .minimum = 0,
       .maximum = 1e9,
       .in_environment = true,
       .in_request = true},
      {.name = "max-queue-s",
       .member = &Options::max_queue_s,
       .commands = kServe,
       .section = kRequestSection,
       .value_name = "S",
       .help = "a request that has waited this long without running is refused with status 429; 0: no limit",
       .minimum = 0,
       .maximum = 1e6,
       .in_environment = true,
       .in_request = true},
      {.name = "chat-template",
       .member = &Options::chat_template,
       .commands = kServe,
       .section = kRequestSection,
       .value_name = "FILE",
       .help = "a Jinja chat template to use instead of the model's",
       .unset_text = "the model's template"},
      {.name = "served-model-name",
       .member = &Options::served_model_name,
       .commands = kServe,
       .section = kRequestSection,
       .value_name = "NAME",
       .help = "name that requests call the model by; may be given again for further names"},
      {.name = "clamp-max-tokens",
       .member = &Options::clamp_max_tokens,
       .commands = kServe,
       .section = kRequestSection,
       .help = "shorten a max_tokens that does not fit the context beside the prompt, instead of refusing it"},
      {.name = "lenient",
       .member = &Options::lenient,
       .commands = kServe,
       .section = kRequestSection,
       .help = "leave fields of requests that quire does not know or support out of account, and name them in the "
               "header X-Quire-Ignored, instead of refusing the request"},
  };
}

}  // namespace quire
