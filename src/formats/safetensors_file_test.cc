#include "formats/safetensors_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace quire {
namespace {

using namespace testing_files;

std::string error_of(const std::string& path) {
  const auto opened = SafetensorsFile::open(path);
  return opened.ok() ? "" : opened.status().message();
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

TEST(SafetensorsFile, ReadsTensorsInFileOrder) {
  const TempDir dir;
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
      R"("empty":{"dtype":"I64","shape":[0,5],"data_offsets":[16,16]},)"
      R"("a":{"shape":[],"data_offsets":[0,4],"dtype":"F32"}}   )";
  const auto file = SafetensorsFile::open(dir.write("a.safetensors", safetensors_bytes(header, "abcdefghijklmnop")));
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors[0].name, "a");
  EXPECT_TRUE(file->tensors[0].shape.empty());
  EXPECT_EQ(file->tensors[1].name, "b");
  EXPECT_EQ(file->tensors[1].dtype, "BF16");
  EXPECT_EQ(file->tensors[1].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(file->tensors[1].bytes, 12);
  EXPECT_EQ(static_cast<char>(*file->tensors[1].data), 'e');
  EXPECT_EQ(file->tensors[2].bytes, 0);
}

TEST(SafetensorsFile, EveryTruncationIsAnError) {
  const TempDir dir;
  const std::string bytes = safetensors_bytes(small_llama_tensors());
  const std::string path = dir.write("cut.safetensors", bytes);
  ASSERT_EQ(error_of(path), "");
  for (size_t length = bytes.size(); length-- > 0;) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(length)), 0);
    ASSERT_NE(error_of(path), "") << "cut to " << length << " of " << bytes.size();
  }
}

struct Hostile {
  const char* name;
  const char* message;
  std::string header;
  std::string data;
};
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileSafetensors : public testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefusedAtOnce) {
  const TempDir dir;
  const std::string path = dir.write("hostile.safetensors", safetensors_bytes(GetParam().header, GetParam().data));
  [[maybe_unused]] const int64_t before = peak_rss_bytes();
  const Stopwatch stopwatch;
  const std::string message = error_of(path);
  EXPECT_TRUE(stopwatch.within_a_second());
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(peak_rss_bytes() - before, 32 << 20);
#endif
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << "message: " << message;
  EXPECT_NE(message.find(path), std::string::npos) << message;
}

std::string tensor(const std::string& name, const std::string& fields) { return "\"" + name + "\":{" + fields + "}"; }

std::string repeat(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

const std::string kGood = tensor("a", R"("dtype":"F32","shape":[1],"data_offsets":[0,4])");

const Hostile kHostile[] = {
    {"empty_header", "claims a header of 0", "", ""},
    {"not_an_object", "does not start", "[1]", ""},
    {"only_a_brace", "not valid JSON", "{ ", ""},
    {"trailing_garbage", "not valid JSON", "{" + kGood + "} x", "abcd"},
    {"second_object", "not valid JSON", "{" + kGood + "}{}", "abcd"},
    {"invalid_utf8", "not valid JSON", "{\"\xff\":1}", ""},
    {"deep_arrays", "wrong kind", "{\"a\":" + std::string(1000000, '['), ""},
    {"deep_objects", "unknown field", "{\"a\":" + repeat("{\"a\":", 200000), ""},
    {"duplicate_tensor", "twice", "{" + kGood + "," + kGood + "}", "abcd"},
    {"duplicate_field", "has its dtype twice",
     "{" + tensor("a", R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])") + "}", "abcd"},
    {"duplicate_metadata", "twice", R"({"__metadata__":{"x":"1","x":"2"}})", ""},
    {"metadata_number", "wrong kind", R"({"__metadata__":{"x":1}})", ""},
    {"metadata_object", "wrong kind", R"({"__metadata__":{"x":{}}})", ""},
    {"missing_dtype", "lacks", "{" + tensor("a", R"("shape":[1],"data_offsets":[0,4])") + "}", "abcd"},
    {"missing_offset", "lacks", "{" + tensor("a", R"("dtype":"F32","shape":[1],"data_offsets":[0])") + "}", "abcd"},
    {"three_offsets", "more than two", "{" + tensor("a", R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])") + "}",
     "abcd"},
    {"unknown_field", "unknown field", "{" + tensor("a", R"("dtype":"F32","shape":[1],"strides":[1])") + "}", "abcd"},
    {"tensor_is_number", "wrong kind", R"({"a":1})", ""},
    {"shape_is_number", "wrong kind", "{" + tensor("a", R"("dtype":"F32","shape":1,"data_offsets":[0,4])") + "}",
     "abcd"},
    {"unknown_dtype", "unknown dtype \"F33\"",
     "{" + tensor("a", R"("dtype":"F33","shape":[1],"data_offsets":[0,4])") + "}", "abcd"},
    {"negative_size", "wrong kind", "{" + tensor("a", R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])") + "}",
     "abcd"},
    {"float_size", "wrong kind", "{" + tensor("a", R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])") + "}",
     "abcd"},
    {"huge_size", "wrong kind", "{" + tensor("a", R"("dtype":"F32","shape":[1e30],"data_offsets":[0,4])") + "}",
     "abcd"},
    {"size_over_63_bits", "impossible shape",
     "{" + tensor("a", R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])") + "}", "abcd"},
    {"product_wraps", "impossible shape",
     "{" + tensor("a", R"("dtype":"F32","shape":[4294967296,4294967296,1],"data_offsets":[0,4])") + "}", "abcd"},
    {"rank_9", "impossible shape",
     "{" + tensor("a", R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])") + "}", "abcd"},
    {"size_mismatch", "takes 8 bytes, not the 4",
     "{" + tensor("a", R"("dtype":"F32","shape":[2],"data_offsets":[0,4])") + "}", "abcd"},
    {"half_a_byte", "whole bytes", "{" + tensor("a", R"("dtype":"F4","shape":[3],"data_offsets":[0,1])") + "}", "a"},
    {"begin_after_end", "leaves a hole", "{" + tensor("a", R"("dtype":"F32","shape":[1],"data_offsets":[4,0])") + "}",
     "abcd"},
    {"past_the_end", "reaches past", "{" + tensor("a", R"("dtype":"F32","shape":[2],"data_offsets":[0,8])") + "}",
     "abcd"},
    {"hole", "leaves a hole", "{" + tensor("a", R"("dtype":"F32","shape":[1],"data_offsets":[4,8])") + "}", "abcdefgh"},
    {"overlap", "overlaps", "{" + kGood + "," + tensor("b", R"("dtype":"F32","shape":[1],"data_offsets":[2,6])") + "}",
     "abcdef"},
    {"bytes_left_over", "4 bytes follow", "{" + kGood + "}", "abcdefgh"},
    {"no_tensor_for_data", "4 bytes follow", "{}", "abcd"},
};
INSTANTIATE_TEST_SUITE_P(Safetensors, HostileSafetensors, testing::ValuesIn(kHostile),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(SafetensorsFile, RefusesImpossibleHeaderSizes) {
  const TempDir dir;
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{7}}) {
    const std::string path = dir.write("size.safetensors", Bytes().add(size).text("{}").str());
    EXPECT_NE(error_of(path).find("claims a header of " + std::to_string(size)), std::string::npos) << size;
  }
}

TEST(SafetensorsFile, CapsTheNumberOfTensors) {
  const TempDir dir;
  std::string header = "{";
  for (int i = 0; i <= 100000; ++i) {
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  const Stopwatch stopwatch;
  EXPECT_NE(
      error_of(dir.write("many.safetensors", safetensors_bytes(header + "}", ""))).find("more than 100000 tensors"),
      std::string::npos);
  EXPECT_TRUE(stopwatch.within_a_second());
}

TEST(SafetensorsFile, SurvivesChangedHeaders) {
  const TempDir dir;
  dir.write("config.json", small_llama_config());
  const std::string good = safetensors_bytes(small_llama_tensors());
  const std::string path = dir.write("model.safetensors", good);
  uint64_t header = 0;
  std::memcpy(&header, good.data(), sizeof header);
  header += sizeof header;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr char kJson[] = "{}[]\",:0123456789-.eE tfn\\";
  for (size_t round = 0; round < header + 2000; ++round) {
    std::string bytes = good;
    if (round < header) {
      bytes[round] = static_cast<char>(bytes[round] ^ (1 << random() % 8));
    } else {
      for (unsigned i = 0; i <= random() % 4; ++i) {
        bytes[8 + random() % (header - 8)] = kJson[random() % (sizeof kJson - 1)];
      }
    }
    dir.rewrite(path, bytes);
    const auto checkpoint = Checkpoint::open(dir.path());
    if (!checkpoint.ok()) continue;
    for (const TensorRef& each : (*checkpoint)->tensors()) {
      std::vector<float> values(static_cast<size_t>(each.rows() * each.columns()));
      each.decode_f32(0, each.rows(), values.data());
    }
  }
}

}  // namespace
}  // namespace quire
