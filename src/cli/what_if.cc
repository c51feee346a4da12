#include "cli/what_if.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/json_object.h"
#include "cli/terminal.h"

namespace quire {
namespace {

std::string bits_text(double bits) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f", bits);
  return buffer;
}

std::string gib_text(int64_t bytes) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return buffer;
}

}  // namespace

void print_what_if(const WhatIf& answer) {
  std::printf("%s weights in the layers' matrices, %s in embedding and output matrix; %s of memory available now\n\n",
              count_text(answer.layer_weights).c_str(), count_text(answer.table_weights).c_str(),
              gib_text(answer.available_bytes).c_str());
  std::vector<std::vector<std::string>> rows = {{"KV cache", "a token", "a sequence of " + count_text(answer.context)}};
  for (const WhatIf::Kv& kv : answer.kv)
    rows.push_back({kv.name, bytes_text(kv.bytes_per_token), gib_text(kv.bytes_per_sequence)});
  std::printf("%s\n", table_text(rows).c_str());

  rows = {{"weights", "embedding, output", "bits", "file", "in memory"}};
  for (const WhatIf::Kv& kv : answer.kv) rows.front().push_back("sequences, " + kv.name);
  for (const WhatIf::Weights& weights : answer.weights) {
    rows.push_back({weights.name, weights.tables, bits_text(weights.bits), gib_text(weights.file_bytes),
                    gib_text(weights.packed_bytes)});
    for (const int64_t sequences : weights.sequences)
      rows.back().push_back(weights.fits ? count_text(sequences) : "does not fit");
  }
  std::fputs(table_text(rows, "", "llr").c_str(), stdout);
  std::printf(
      "\nbits: a weight of the layers, with its share of F16 scales and of zero points. In memory: as packed for this\n"
      "processor; the embedding stays in the file, unless it is the output matrix too. Matrices whose rows a type's\n"
      "blocks do not divide are counted as Q8_0. Sequences: of %s tokens,\n"
      "beside weights, workspace and tokenizer (%s as stored).\n",
      count_text(answer.context).c_str(), bytes_text(answer.weights.front().other_bytes).c_str());
}

void print_what_if_json(const WhatIf& answer) {
  std::vector<JsonObject> kv;
  for (const WhatIf::Kv& row : answer.kv) {
    kv.emplace_back()
        .text("name", row.name)
        .number("bytes_per_token", row.bytes_per_token)
        .number("bytes_per_sequence", row.bytes_per_sequence);
  }
  std::vector<JsonObject> weights;
  for (const WhatIf::Weights& row : answer.weights) {
    JsonObject sequences;
    for (size_t i = 0; i < answer.kv.size(); ++i) sequences.number(answer.kv[i].name, row.sequences[i]);
    weights.emplace_back()
        .text("name", row.name)
        .text("embedding_and_output", row.tables)
        .real("bits", row.bits)
        .number("layer_bytes", row.layer_bytes)
        .number("file_bytes", row.file_bytes)
        .number("packed_bytes", row.packed_bytes)
        .number("other_bytes", row.other_bytes)
        .boolean("fits", row.fits)
        .object("sequences", std::move(sequences));
  }
  JsonObject object;
  object.number("layer_weights", answer.layer_weights)
      .number("table_weights", answer.table_weights)
      .number("context", answer.context)
      .number("available_bytes", answer.available_bytes)
      .objects("kv", std::move(kv))
      .objects("weights", std::move(weights));
  std::printf("%s\n", object.pretty().c_str());
}

}  // namespace quire
