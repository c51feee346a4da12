#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/json_object.h"
#include "cli/model_source.h"
#include "cli/suggestion.h"
#include "cli/terminal.h"
#include "hub/local_models.h"

namespace quire {
namespace {

// "2026-01-02 03:04", in the time of this place, or as programs want it.
std::string time_text(int64_t seconds, bool for_programs) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  for_programs ? gmtime_r(&time, &parts) : localtime_r(&time, &parts);
  char text[40];
  std::strftime(text, sizeof text, for_programs ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M", &parts);
  return text;
}

Status unknown_local_model(const std::string& name, const std::string& folder) {
  const std::vector<LocalModel> models = local_models(folder);
  std::vector<std::string_view> names;
  std::string all;
  for (const LocalModel& model : models) {
    names.push_back(model.name);
    all.append(all.empty() ? "" : ", ").append(model.name);
  }
  return not_found(name + " is not in " + folder + did_you_mean(name, names) +
                   (models.empty() ? "; nothing is" : " (there is " + all + ")"));
}

}  // namespace

Status command_list(const Invocation& invocation) {
  QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(invocation.options));
  const std::vector<LocalModel> models = local_models(folder);
  if (invocation.options.json) {
    for (const LocalModel& model : models) {
      JsonObject object;
      object.text("name", model.name)
          .text("path", model.path)
          .number("bytes", model.bytes)
          .text("modified", time_text(model.changed_s, true));
      std::printf("%s\n", object.line().c_str());
    }
    return {};
  }
  std::vector<std::vector<std::string>> rows;
  for (const LocalModel& model : models) {
    rows.push_back({model.name, bytes_text(model.bytes), time_text(model.changed_s, false), model.path});
  }
  std::fputs(table_text(rows, "", "lrll").c_str(), stdout);
  if (models.empty()) note("no models in " + folder + " yet; `quire pull` lists what can be fetched.");
  return {};
}

Status command_remove(const Invocation& invocation) {
  if (!invocation.text) return invalid_argument("quire rm needs the NAME of a model (`quire list` shows them)");
  QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(invocation.options));
  const std::optional<LocalModel> model = find_local(folder, *invocation.text);
  if (!model) return unknown_local_model(*invocation.text, folder);
  QUIRE_RETURN_IF_ERROR(remove_local(*model));
  std::printf("removed %s (%s): %s\n", model->name.c_str(), bytes_text(model->bytes).c_str(), model->path.c_str());
  return {};
}

}  // namespace quire
