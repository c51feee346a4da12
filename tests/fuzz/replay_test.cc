// A fuzz target over the inputs that are kept for it in fuzz/inputs/: seeds that reach far into it, and every input that
// once broke the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace {

TEST(QUIRE_FUZZ_TARGET, TakesEveryKeptInput) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(QUIRE_FUZZ_INPUTS)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  ASSERT_FALSE(paths.empty()) << QUIRE_FUZZ_INPUTS << " holds no inputs";
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_TRUE(file.good()) << path;
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());  // without a string's terminator behind it
    (void)LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
}

}  // namespace
