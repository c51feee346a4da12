#include "text/shipped_texts.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <unordered_set>

#include "unicode/utf8.h"

namespace quire {
namespace {

std::string data_file(const std::string& name) {
  std::ifstream file(QUIRE_SOURCE_DIR "/data/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ShippedTexts, AreTheFilesOfTheRepository) {
  EXPECT_EQ(calibration_text(), data_file("calibration.txt"));
  EXPECT_EQ(evaluation_text(), data_file("evaluation.txt"));
  EXPECT_TRUE(is_valid_utf8(calibration_text()));
  EXPECT_TRUE(is_valid_utf8(evaluation_text()));
  // 128 windows of 512 tokens of 4.5 bytes are 295 kB: what a quantizer is calibrated on.
  EXPECT_GT(calibration_text().size(), size_t{300'000});
  EXPECT_GT(evaluation_text().size(), size_t{90'000});
}

TEST(ShippedTexts, HaveNoSentenceInCommon) {
  constexpr size_t kBytes = 60;
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i + kBytes <= calibration_text().size(); ++i) seen.insert(calibration_text().substr(i, kBytes));
  for (size_t i = 0; i + kBytes <= evaluation_text().size(); ++i) {
    ASSERT_FALSE(seen.contains(evaluation_text().substr(i, kBytes))) << "at byte " << i;
  }
}

}  // namespace
}  // namespace quire
