#include "options/option_rows.h"

namespace quire {
namespace {

constexpr std::string_view kBaselineSection = "Baselines for measurement";

}  // namespace

std::vector<OptionRow> baseline_rows() {
  return {
      {.name = "k-factors",
       .member = &Options::k_factors,
       .commands = kComputes,
       .section = kBaselineSection,
       .value_name = "MODE",
       .help =
           "of int8 KV; on: even out the channels of K by factors from the model file, or else from a text of quire's "
           "own; off: for measuring what they gain",
       .choices = {"on", "off"}},
      {.name = "attention",
       .member = &Options::attention,
       .commands = kComputes,
       .section = kBaselineSection,
       .value_name = "METHOD",
       .help =
           "flash; for measuring what it saves: per-head reads K and V anew for each head, full keeps all scores in "
           "memory",
       .choices = {"flash", "per-head", "full"}},
      {.name = "activation-scales",
       .member = &Options::activation_scales,
       .commands = kComputes,
       .section = kBaselineSection,
       .value_name = "SCALES",
       .help =
           "of 32 activations as int8; exact: the largest becomes 127; power-of-two: products are about 5 % faster and "
           "rounding errors half as large again (`quire bench kernel` measures both)",
       .choices = {"exact", "power-of-two"},
       .in_environment = true},
      {.name = "kv",
       .member = &Options::kv,
       .commands = kServe,
       .section = kBaselineSection,
       .value_name = "LAYOUT",
       .help = "paged: KV memory in pages as answers grow; contiguous: reserved to the longest answer, for comparison",
       .choices = {"paged", "contiguous"},
       .in_environment = true},
  };
}

}  // namespace quire
