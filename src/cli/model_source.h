// From what the user named to files on disk.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "capacity/model_options.h"
#include "formats/checkpoint.h"
#include "options/options.h"
#include "text/tokenizer.h"

namespace quire {

// The folder of pulled models: --cache, else $XDG_CACHE_HOME/quire, else ~/.cache/quire; its models/.
Result<std::string> model_folder(const Options& options);

// The path that --model stands for: a name of the catalogue, which is pulled on first use with a note on standard
// error; a path that exists; a name in the folder of models (hub/local_models.h).
Result<std::string> find_model(const Options& options);

// All names that --model takes.
std::vector<std::string> model_names(const Options& options);
// The error for what is none of them, with the nearest one.
Status unknown_model(const std::string& name, const Options& options);

// The same where the model is here already; empty: it would have to be fetched, or does not exist.
Result<std::string> find_local_model(const Options& options);

ModelOptions model_options(const Options& options, std::string path);

// Says on standard error how the files were read where they leave a choice (Checkpoint::remarks). `tokenizer` may be
// null.
void note_remarks(const Checkpoint& checkpoint, const Tokenizer* tokenizer);

// Pulls a model of the catalogue, with progress on standard error where that is a terminal. Ctrl-C cancels. Returns the
// path of the file.
Result<std::string> pull_with_progress(const Options& options, const std::string& name);

}  // namespace quire
