#include <cstdio>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/model_source.h"
#include "cli/terminal.h"
#include "hub/catalogue.h"
#include "hub/pull.h"

namespace quire {
namespace {

Status list_catalogue(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::string folder, model_folder(options));
  std::vector<std::vector<std::string>> rows;
  for (const CatalogueEntry& entry : catalogue()) {
    rows.push_back({std::string(entry.name), std::string(entry.licence), std::string(entry.description),
                    bytes_text(entry.bytes), is_pulled(entry, folder) ? "fetched" : ""});
  }
  std::fputs(table_text(rows, "", "lllrl").c_str(), stdout);
  std::fputs("\nFetch one with: quire pull NAME\n", stdout);
  return {};
}

}  // namespace

Status command_pull(const Invocation& invocation) {
  if (!invocation.text) return list_catalogue(invocation.options);
  QUIRE_ASSIGN_OR_RETURN(const std::string path, pull_with_progress(invocation.options, *invocation.text));
  std::printf("%s\n", path.c_str());
  if (is_terminal(stdout)) std::printf("\nNext: quire run --model %s\n", invocation.text->c_str());
  return {};
}

}  // namespace quire
