#include <array>
#include <cstdio>
#include <utility>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/json_object.h"
#include "cli/terminal.h"

namespace quire {
namespace {

std::string_view state_text(Check::State state) {
  constexpr std::array<std::string_view, 3> kNames = {"ok", "note", "stops"};
  return kNames[static_cast<size_t>(state)];
}

void print_json(const std::vector<Check>& checks) {
  std::vector<JsonObject> list;
  for (const Check& check : checks) {
    JsonObject object;
    object.text("name", check.name).text("state", state_text(check.state)).text("text", check.text);
    list.push_back(std::move(object));
  }
  JsonObject all;
  all.objects("checks", std::move(list));
  std::printf("%s\n", all.pretty().c_str());
}

}  // namespace

Status command_doctor(const Invocation& invocation) {
  const std::vector<Check> checks = check_machine(invocation.options);
  std::string stopping;
  std::vector<std::vector<std::string>> rows;
  for (const Check& check : checks) {
    rows.push_back({check.name, std::string(state_text(check.state)), check.text});
    if (check.state == Check::State::kStops) stopping.append(stopping.empty() ? "" : ", ").append(check.name);
  }
  if (invocation.options.json) {
    print_json(checks);
  } else {
    std::fputs(table_text(rows, "", "lll").c_str(), stdout);
  }
  if (stopping.empty()) return {};
  std::fflush(stdout);
  return invalid_argument("`quire serve` would not start here: see " + stopping);
}

}  // namespace quire
