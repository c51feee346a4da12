// Writes a checkpoint's tokenizer in the other format, for tests/full/tokenizer_export.py to read with the official packages:
//
//   quire_tokenizer_export MODEL.gguf DIRECTORY    tokenizer.json and the documents beside it
//   quire_tokenizer_export DIRECTORY FILE.json     an object of the GGUF keys
//
// and answers for the tokenizer as it is, of models too that quire does not run:
//
//   quire_tokenizer_export MODEL REQUESTS.jsonl ANSWERS.jsonl    text, add_special, parse_special -> ids, decoded
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "vocab/tokenizer_export.h"
#include "vocab/tokenizer_source.h"

namespace quire {
namespace {

Status write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.flush() ? Status() : io_error(path + " cannot be written");
}

Status answer(const std::string& model, const std::string& requests, const std::string& answers) {
  QUIRE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(model, CheckpointParts::kVocabulary));
  QUIRE_ASSIGN_OR_RETURN(const auto tokenizer, load_tokenizer(*checkpoint));
  std::ifstream file(requests);
  std::string text;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json request = nlohmann::json::parse(line);
    QUIRE_ASSIGN_OR_RETURN(
        const std::vector<int32_t> ids,
        tokenizer->encode(request["text"].get<std::string>(), {request["add_special"], request["parse_special"]}));
    text += nlohmann::json{{"ids", ids}, {"decoded", tokenizer->decode(ids, true)}}.dump() + "\n";
  }
  return write(answers, text);
}

Status run(const std::string& model, const std::string& target) {
  QUIRE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(model, CheckpointParts::kVocabulary));
  if (checkpoint->format().starts_with("GGUF")) {
    QUIRE_ASSIGN_OR_RETURN(const auto documents, hf_tokenizer_documents(*checkpoint));
    for (const auto& [name, text] : documents) QUIRE_RETURN_IF_ERROR(write(target + "/" + name, text));
    return {};
  }
  QUIRE_ASSIGN_OR_RETURN(const GgufMetadata keys, gguf_tokenizer_metadata(*checkpoint));
  nlohmann::json object;
  for (const auto& [key, value] : keys) {
    std::visit([&entry = object[key]](const auto& v) { entry = v; }, value);
  }
  return write(target, object.dump());
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: quire_tokenizer_export MODEL TARGET | MODEL REQUESTS ANSWERS\n");
    return 2;
  }
  const quire::Status status = argc == 3 ? quire::run(argv[1], argv[2]) : quire::answer(argv[1], argv[2], argv[3]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
