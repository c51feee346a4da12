#include "formats/gguf_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>

#include "formats/test_files.h"

namespace quire {
namespace {

using namespace testing_files;

std::string error_of(const std::string& path) {
  const auto opened = Checkpoint::open(path);
  return opened.ok() ? "" : opened.status().message();
}

// Reads everything a loader would.
void decode_everything(const Checkpoint& checkpoint) {
  for (const TensorRef& tensor : checkpoint.tensors()) {
    std::vector<float> row(static_cast<size_t>(tensor.columns()));
    for (int64_t r = 0; r < tensor.rows(); ++r) tensor.decode_f32(r, 1, row.data());
  }
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

TEST(GgufFile, ReadsEveryKindOfValue) {
  const TempDir dir;
  Gguf gguf;
  gguf.version = 2;
  gguf.set("a.u8", Bytes().add<uint32_t>(kU8).add<uint8_t>(200).str());
  gguf.set("a.i8", Bytes().add<uint32_t>(kI8).add<int8_t>(-3).str());
  gguf.set("a.u16", u16_value(65535));
  gguf.set("a.i16", Bytes().add<uint32_t>(kI16).add<int16_t>(-300).str());
  gguf.set("a.u32", u32_value(4000000000u));
  gguf.set("a.i32", Bytes().add<uint32_t>(kI32).add<int32_t>(-7).str());
  gguf.set("a.f32", f32_value(1.5f));
  gguf.set("a.bool", bool_value(true));
  gguf.set("a.string", string_value("text"));
  gguf.set("a.u64", Bytes().add<uint32_t>(kU64).add<uint64_t>(~uint64_t{0}).str());
  gguf.set("a.i64", Bytes().add<uint32_t>(kI64).add<int64_t>(-5000000000).str());
  gguf.set("a.f64", Bytes().add<uint32_t>(kF64).add(0.1).str());
  gguf.set("a.strings", strings_value({"x", "", "yz"}));
  gguf.set("a.bools", bools_value({true, false}));
  gguf.set("a.ints", ints_value({1, -1}));
  gguf.set("a.floats", floats_value({0.5f}));
  const auto file = GgufFile::open(dir.write("values.gguf", gguf.bytes()), true);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufMetadata& meta = file->metadata;
  EXPECT_EQ(meta.at("a.u8"), MetaValue(uint64_t{200}));
  EXPECT_EQ(meta.at("a.i8"), MetaValue(int64_t{-3}));
  EXPECT_EQ(meta.at("a.u16"), MetaValue(uint64_t{65535}));
  EXPECT_EQ(meta.at("a.i16"), MetaValue(int64_t{-300}));
  EXPECT_EQ(meta.at("a.u32"), MetaValue(uint64_t{4000000000u}));
  EXPECT_EQ(meta.at("a.i32"), MetaValue(int64_t{-7}));
  EXPECT_EQ(meta.at("a.f32"), MetaValue(1.5));
  EXPECT_EQ(meta.at("a.bool"), MetaValue(true));
  EXPECT_EQ(meta.at("a.string"), MetaValue(std::string("text")));
  EXPECT_EQ(meta.at("a.u64"), MetaValue(~uint64_t{0}));
  EXPECT_EQ(meta.at("a.i64"), MetaValue(int64_t{-5000000000}));
  EXPECT_EQ(meta.at("a.f64"), MetaValue(0.1));
  EXPECT_EQ(meta.at("a.strings"), MetaValue(std::vector<std::string>{"x", "", "yz"}));
  EXPECT_EQ(meta.at("a.bools"), MetaValue(std::vector<bool>{true, false}));
  EXPECT_EQ(meta.at("a.ints"), MetaValue(std::vector<int64_t>{1, -1}));
  EXPECT_EQ(meta.at("a.floats"), MetaValue(std::vector<double>{0.5}));
}

TEST(GgufFile, HonoursTheAlignmentAndAllowsGaps) {
  const TempDir dir;
  Gguf gguf = small_llama_gguf();
  gguf.set("general.alignment", u32_value(256));
  gguf.alignment = 256;
  EXPECT_EQ(error_of(dir.write("aligned.gguf", gguf.bytes())), "");
  gguf = small_llama_gguf();
  gguf.tensors.back().offset = static_cast<int64_t>(gguf.bytes().size() - gguf.header().size()) + 96;
  gguf.tensors.back().offset -= gguf.tensors.back().offset % 32;
  std::string bytes = gguf.bytes();
  bytes.resize(gguf.header().size() + static_cast<size_t>(gguf.tensors.back().offset) + 512, '\0');
  EXPECT_EQ(error_of(dir.write("gap.gguf", bytes)), "");
}

TEST(GgufFile, EveryTruncationIsAnError) {
  const TempDir dir;
  const std::string bytes = small_llama_gguf().bytes();
  const std::string path = dir.write("cut.gguf", bytes);
  ASSERT_EQ(error_of(path), "");
  for (size_t length = bytes.size(); length-- > 0;) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(length)), 0);
    ASSERT_NE(error_of(path), "") << "cut to " << length << " of " << bytes.size();
  }
}

struct Hostile {
  const char* name;
  const char* message;  // part of it
  std::function<void(Gguf&)> spoil;
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileGguf : public testing::TestWithParam<Hostile> {};

TEST_P(HostileGguf, IsRefusedAtOnce) {
  const TempDir dir;
  Gguf gguf = small_llama_gguf();
  GetParam().spoil(gguf);
  const std::string path = dir.write("hostile.gguf", gguf.bytes());
  [[maybe_unused]] const int64_t before = peak_rss_bytes();
  const Stopwatch stopwatch;
  const std::string message = error_of(path);
  EXPECT_TRUE(stopwatch.within_a_second());
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(peak_rss_bytes() - before, 8 << 20);
#endif
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << "message: " << message;
  EXPECT_NE(message.find(path), std::string::npos) << message;
}

std::string array_header(uint32_t type, uint64_t count) {
  return Bytes().add<uint32_t>(kArray).add(type).add(count).str();
}

const Hostile kHostile[] = {
    {"magic", "not a GGUF file", [](Gguf& g) { g.magic = "GGML"; }},
    {"version_0", "big-endian", [](Gguf& g) { g.version = 0; }},
    {"version_1", "GGUF version 1", [](Gguf& g) { g.version = 1; }},
    {"version_4", "GGUF version 4", [](Gguf& g) { g.version = 4; }},
    {"big_endian", "big-endian", [](Gguf& g) { g.version = 0x03000000; }},
    {"many_tensors", "tensors, more than", [](Gguf& g) { g.tensor_count = INT64_MAX; }},
    {"many_entries", "metadata entries", [](Gguf& g) { g.entry_count = INT64_MAX; }},
    {"one_entry_more", "tensor entry 1", [](Gguf& g) { g.entry_count = 14; }},
    {"one_tensor_more", "tensor entry", [](Gguf& g) { g.tensor_count = 13; }},
    {"empty_key", "empty or not plain", [](Gguf& g) { g.set("", u32_value(1)); }},
    {"nul_in_key", "not plain", [](Gguf& g) { g.set(std::string("a\0b", 3), u32_value(1)); }},
    {"non_ascii_key", "not plain", [](Gguf& g) { g.set("caf\xc3\xa9", u32_value(1)); }},
    {"long_key", "a key of", [](Gguf& g) { g.set(std::string(70000, 'k'), u32_value(1)); }},
    {"duplicate_key", "occurs twice", [](Gguf& g) { g.entries.emplace_back("general.name", string_value("again")); }},
    {"value_type", "unknown value type 13", [](Gguf& g) { g.set("x", Bytes().add<uint32_t>(13).str()); }},
    {"bool_2", "boolean with value 2", [](Gguf& g) { g.set("x", Bytes().add<uint32_t>(kBool).add<uint8_t>(2).str()); }},
    {"bool_in_array", "boolean with value 9",
     [](Gguf& g) { g.set("x", array_header(kBool, 1) + std::string(1, '\x09')); }},
    {"huge_string", "claims a string",
     [](Gguf& g) { g.set("x", Bytes().add<uint32_t>(kString).add<uint64_t>(UINT64_MAX).str()); }},
    {"string_past_end", "claims a string",
     [](Gguf& g) { g.set("x", Bytes().add<uint32_t>(kString).add<uint64_t>(1 << 20).str()); }},
    {"huge_array", "claims an array", [](Gguf& g) { g.set("x", array_header(kU8, UINT64_MAX)); }},
    {"array_past_end", "claims an array", [](Gguf& g) { g.set("x", array_header(kU64, 600)); }},
    {"huge_string_array", "claims an array", [](Gguf& g) { g.set("x", array_header(kString, uint64_t{1} << 60)); }},
    {"nested_array", "array of arrays",
     [](Gguf& g) { g.set("x", array_header(kArray, 1) + array_header(kU8, 0).substr(4)); }},
    {"array_of_unknown", "unknown type 99", [](Gguf& g) { g.set("x", array_header(99, 1)); }},
    {"alignment_0", "power of two", [](Gguf& g) { g.set("general.alignment", u32_value(0)); }},
    {"alignment_24", "power of two", [](Gguf& g) { g.set("general.alignment", u32_value(24)); }},
    {"alignment_2g", "power of two", [](Gguf& g) { g.set("general.alignment", u32_value(1u << 31)); }},
    {"alignment_text", "power of two", [](Gguf& g) { g.set("general.alignment", string_value("32")); }},
    {"no_dims", "0 dimensions", [](Gguf& g) { g.tensors[0].dims = {}; }},
    {"five_dims", "5 dimensions",
     [](Gguf& g) {
       g.tensors[0].dims = {8, 8, 1, 1, 1};
     }},
    {"dim_0", "a dimension of 0",
     [](Gguf& g) {
       g.tensors[0].dims = {8, 0};
     }},
    {"dim_huge", "a dimension of",
     [](Gguf& g) {
       g.tensors[0].dims = {8, uint64_t{1} << 41};
     }},
    {"dim_negative", "a dimension of",
     [](Gguf& g) {
       g.tensors[0].dims = {8, static_cast<uint64_t>(-8)};
     }},
    {"product_overflows", "larger than the file",
     [](Gguf& g) {
       g.tensors[0].dims = {uint64_t{1} << 40, uint64_t{1} << 40, uint64_t{1} << 40, uint64_t{1} << 40};
     }},
    {"product_wraps", "larger than the file",
     [](Gguf& g) {
       g.tensors[0].dims = {uint64_t{1} << 32, uint64_t{1} << 32, 1};
     }},
    {"row_past_end", "reaches past the end", [](Gguf& g) { g.tensors[0].dims = {uint64_t{1} << 40}; }},
    {"lying_dims", "shape [9, 8], not the [8, 8]",
     [](Gguf& g) {
       g.tensors[0].dims = {8, 9};
       g.tensors[0].data.resize(288);
     }},
    {"swapped_dims", "shape [8, 4], not the [4, 8]",
     [](Gguf& g) {
       g.tensor("blk.0.attn_k.weight").dims = {4, 8};
     }},
    {"broken_block", "not a multiple of the block of Q4_0", [](Gguf& g) { g.tensors[0].type = 2; }},
    {"unsupported_type", "\"token_embd.weight\" has type IQ2_XXS", [](Gguf& g) { g.tensors[0].type = 16; }},
    {"dead_type", "has type id 4", [](Gguf& g) { g.tensors[0].type = 4; }},
    {"negative_type", "has type id 4294967295", [](Gguf& g) { g.tensors[0].type = 0xffffffffu; }},
    {"long_name", "a name of 64 bytes", [](Gguf& g) { g.tensors[0].name = std::string(64, 't'); }},
    {"empty_name", "empty or not plain", [](Gguf& g) { g.tensors[0].name = ""; }},
    {"nul_in_name", "not plain", [](Gguf& g) { g.tensors[0].name = std::string("token\0embd", 10); }},
    {"duplicate_tensor", "occurs twice",
     [](Gguf& g) {
       g.add_f32("output.weight", {8, 8});
     }},
    {"misaligned", "not a multiple of 32", [](Gguf& g) { g.tensors[1].offset = 264; }},
    {"offset_past_end", "reaches past the end", [](Gguf& g) { g.tensors[1].offset = 1 << 20; }},
    {"offset_wraps", "reaches past the end", [](Gguf& g) { g.tensors[1].offset = INT64_MAX - 31; }},
    {"overlap", "overlap", [](Gguf& g) { g.tensors[1].offset = 32; }},
    {"same_place", "overlap", [](Gguf& g) { g.tensors[3].offset = 256; }},
};

INSTANTIATE_TEST_SUITE_P(Gguf, HostileGguf, testing::ValuesIn(kHostile),
                         [](const auto& each) { return std::string(each.param.name); });

// Any header bits: an error or a model that can be decoded, never a crash.
TEST(GgufFile, SurvivesFlippedBits) {
  const TempDir dir;
  const Gguf gguf = small_llama_gguf();
  const std::string good = gguf.bytes();
  const std::string path = dir.write("changed.gguf", good);
  const size_t header = gguf.header().size();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int opened = 0;
  for (size_t round = 0; round < header + 2000; ++round) {
    std::string bytes = good;
    // Each byte once, then a few at a time.
    const size_t flips = round < header ? 1 : 1 + random() % 8;
    for (size_t i = 0; i < flips; ++i) {
      const size_t at = round < header ? round : random() % header;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    }
    dir.rewrite(path, bytes);
    const auto checkpoint = Checkpoint::open(path);
    if (!checkpoint.ok()) continue;
    ++opened;
    decode_everything(**checkpoint);
  }
  EXPECT_GT(opened, 0);
}

// Random values in the fixed-width fields reach further into the parser than single bits do.
TEST(GgufFile, SurvivesRandomFields) {
  const TempDir dir;
  const Gguf gguf = small_llama_gguf();
  const std::string good = gguf.bytes();
  const std::string path = dir.write("changed.gguf", good);
  const size_t header = gguf.header().size();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const uint64_t extremes[] = {0, 1, 2, 13, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~uint64_t{0}};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    const size_t width = size_t{1} << random() % 4;
    const size_t at = random() % (header - width);
    const uint64_t value = random() % 2 == 0 ? extremes[random() % std::size(extremes)] : random();
    std::memcpy(bytes.data() + at, &value, width);
    dir.rewrite(path, bytes);
    const auto checkpoint = Checkpoint::open(path);
    if (checkpoint.ok()) decode_everything(**checkpoint);
  }
}

}  // namespace
}  // namespace quire
