// Checkpoints written and read again: every value, code, scale and zero point must come back to the bit, whichever format it
// came from and went to. What other programs read in these files is the matter of tests/model/written_checkpoints_test.cc.
#include "formats/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "formats/test_files.h"

namespace quire {
namespace {

using Format = CheckpointTarget::Format;
using testing_files::TempDir;

const std::string kGolden = std::string(QUIRE_SOURCE_DIR) + "/tests/golden/";

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  auto opened = Checkpoint::open(path);
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  return opened.ok() ? std::move(*opened) : nullptr;
}

std::vector<float> values_of(const TensorRef& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.columns()));
  tensor.decode_f32(0, tensor.rows(), values.data());
  return values;
}

std::function<DType(const TensorRef&)> always(DType dtype) {
  return [dtype](const TensorRef&) { return dtype; };
}

std::string output_path(const TempDir& dir, Format format) {
  return dir.path() + (format == Format::kGguf ? "/out.gguf" : "/out");
}

Status write_plain(const Checkpoint& source, const CheckpointTarget& target, const std::string& path,
                   const CheckpointNotes& notes = {}) {
  QUIRE_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::create(source, target, path));
  for (const TensorRef& tensor : source.tensors()) {
    QUIRE_RETURN_IF_ERROR(writer->write_values(tensor.name, values_of(tensor)));
  }
  return writer->finish(notes);
}

void expect_same_rope(const RopeParams& a, const RopeParams& b, const std::string& what) {
  EXPECT_EQ(a.theta, b.theta) << what;
  EXPECT_EQ(a.scaling, b.scaling) << what;
  EXPECT_NEAR(a.factor, b.factor, 1e-6) << what;
  EXPECT_EQ(a.beta_fast, b.beta_fast) << what;
  EXPECT_EQ(a.beta_slow, b.beta_slow) << what;
  EXPECT_EQ(a.attention_factor.has_value(), b.attention_factor.has_value()) << what;
}

// `rope`: the scaling is stated in the same way in both.
void expect_same_model(const Hparams& a, const Hparams& b, bool rope, const std::string& what) {
  EXPECT_EQ(a.architecture, b.architecture) << what;
  EXPECT_EQ(a.vocab_size, b.vocab_size) << what;
  EXPECT_EQ(a.context_length, b.context_length) << what;
  EXPECT_EQ(a.hidden, b.hidden) << what;
  EXPECT_EQ(a.layers, b.layers) << what;
  EXPECT_EQ(a.heads, b.heads) << what;
  EXPECT_EQ(a.kv_heads, b.kv_heads) << what;
  EXPECT_EQ(a.head_dim, b.head_dim) << what;
  EXPECT_EQ(a.ffn_hidden, b.ffn_hidden) << what;
  EXPECT_EQ(a.rms_norm_eps, b.rms_norm_eps) << what;
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings) << what;
  EXPECT_EQ(a.activation, b.activation) << what;
  EXPECT_EQ(a.rope_dim, b.rope_dim) << what;
  EXPECT_EQ(a.sliding_window, b.sliding_window) << what;
  EXPECT_EQ(a.layer_slides, b.layer_slides) << what;
  EXPECT_EQ(a.attention_scale, b.attention_scale) << what;
  EXPECT_EQ(a.attention_softcap, b.attention_softcap) << what;
  EXPECT_EQ(a.final_softcap, b.final_softcap) << what;
  EXPECT_EQ(a.default_temperature, b.default_temperature) << what;
  EXPECT_EQ(a.default_top_k, b.default_top_k) << what;
  EXPECT_EQ(a.default_top_p, b.default_top_p) << what;
  EXPECT_EQ(a.rope_local.has_value(), b.rope_local.has_value()) << what;
  if (rope) expect_same_rope(a.rope, b.rope, what);
  if (a.rope_local && b.rope_local) expect_same_rope(*a.rope_local, *b.rope_local, what);
}

// Factors of rope are a tensor in one format and numbers in the other.
void expect_same_tensors(const Checkpoint& a, const Checkpoint& b, const std::string& what) {
  size_t compared = 0;
  for (const TensorRef& tensor : a.tensors()) {
    if (tensor.name == "rope_freqs.weight") continue;
    const TensorRef* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << what << ": " << tensor.name;
    EXPECT_EQ(values_of(tensor), values_of(*other)) << what << ": " << tensor.name;
    ++compared;
  }
  const auto extra = static_cast<size_t>(b.find("rope_freqs.weight") != nullptr);
  EXPECT_EQ(b.tensors().size(), compared + extra) << what;
}

const std::vector<std::string> kSources = {"tiny/gemma3",
                                           "tiny/llama-gqa-llama3rope",
                                           "tiny/llama-linear-rope-bias",
                                           "tiny/llama-mha-spm",
                                           "tiny/llama-mqa-sharded",
                                           "tiny/llama-yarn",
                                           "tiny/mistral-window32",
                                           "tiny/qwen2",
                                           "tiny-gguf/gemma3.gguf",
                                           "tiny-gguf/llama-gqa-llama3rope.gguf",
                                           "tiny-gguf/llama-linear-rope-bias.gguf",
                                           "tiny-gguf/llama-mha-spm.gguf",
                                           "tiny-gguf/llama-mqa-sharded-00002-of-00003.gguf",
                                           "tiny-gguf/llama-yarn.gguf",
                                           "tiny-gguf/qwen2.gguf",
                                           "quantized/gptq-4bit-g32-asym-desc-act"};

TEST(CheckpointWriter, PlainValuesComeBackFromEitherFormatInEither) {
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    for (const std::string& name : kSources) {
      const TempDir dir;
      const auto source = open_checkpoint(kGolden + name);
      ASSERT_NE(source, nullptr);
      const std::string path = output_path(dir, format);
      const Status written = write_plain(*source, {.format = format, .dtype = always(DType::kF32)}, path);
      ASSERT_TRUE(written.ok()) << name << ": " << written.message();
      const auto copy = open_checkpoint(path);
      ASSERT_NE(copy, nullptr) << name;
      const bool same_format = source->format() == copy->format();
      expect_same_model(source->hparams(), copy->hparams(), same_format || name.find("llama3") == std::string::npos,
                        name);
      expect_same_tensors(*source, *copy, name);
    }
  }
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

CheckpointTarget target_of(Format format, DType dtype = DType::kBF16) {
  CheckpointTarget target{.format = format};
  target.dtype = always(dtype);
  target.group = 32;
  return target;
}

// A refusal leaves nothing behind.
void expect_refused(const Checkpoint& source, const CheckpointTarget& target, const std::string& words) {
  const TempDir dir;
  const auto writer = CheckpointWriter::create(source, target, output_path(dir, target.format));
  ASSERT_FALSE(writer.ok()) << words;
  EXPECT_NE(writer.status().message().find(words), std::string::npos) << writer.status().message();
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << words;
}

TEST(CheckpointWriter, RefusesWhatAFormatCannotHoldNamingTheTensor) {
  const auto base = open_checkpoint(kGolden + "quantized/base");
  const auto llama = open_checkpoint(kGolden + "tiny/llama-gqa-llama3rope");
  ASSERT_NE(base, nullptr);
  ASSERT_NE(llama, nullptr);
  const std::string down = "tensor \"model.layers.0.mlp.down_proj.weight\" ";
  const std::string gate = "tensor \"model.layers.0.mlp.gate_proj.weight\" ";
  const auto with = [](Format format, auto change) {
    CheckpointTarget target = target_of(format);
    change(target);
    return target;
  };
  expect_refused(*base, with(Format::kAwq, [](auto& t) { t.bits = 8; }), down + "cannot be written with 8 bits");
  expect_refused(*base, with(Format::kAwq, [](auto& t) { t.act_order = true; }),
                 down + "cannot be written with act-order");
  expect_refused(*base, with(Format::kAwq, [](auto& t) { t.group = 0; }),
                 down + "cannot be written with one scale a row");
  expect_refused(*base, with(Format::kGptq, [](auto& t) { t.bits = 3; }), down + "cannot be written with 3 bits");
  expect_refused(*base, with(Format::kGptq, [](auto& t) { t.group = 48; }), down + "cannot be written in groups of 48");
  // 96 columns.
  expect_refused(*llama, with(Format::kAwq, [](auto& t) { t.group = 64; }), gate + "has rows of 96 weights");
  expect_refused(*llama, with(Format::kCompressedTensors, [](auto& t) { t.group = 64; }),
                 gate + "has rows of 96 weights");
  expect_refused(*base, target_of(Format::kSafetensors, DType::kQ8_0), "cannot be written as Q8_0");
  expect_refused(*llama, target_of(Format::kGguf, DType::kQ6_K), "has rows of 96 weights, which Q6_K cannot hold");
  const auto everything = with(Format::kGptq, [](auto& t) { t.quantized = [](const TensorRef&) { return true; }; });
  expect_refused(*base, everything, "\"lm_head.weight\" cannot be quantized in a directory");
}

TEST(CheckpointWriter, RefusesLinearsThatAreNoMultipleOf32) {
  const TempDir dir;
  dir.write("config.json", testing_files::small_llama_config());
  dir.write("model.safetensors", testing_files::safetensors_bytes(testing_files::small_llama_tensors()));
  const auto source = open_checkpoint(dir.path());
  ASSERT_NE(source, nullptr);
  for (const Format format : {Format::kGptq, Format::kAwq, Format::kCompressedTensors}) {
    expect_refused(*source, target_of(format), "needs multiples of 32");
  }
}

TEST(CheckpointWriter, NeverReplacesAModel) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  const TempDir dir;
  const std::string gguf = dir.write("out.gguf", "mine");
  const std::string file = dir.write("out/notes.txt", "mine");
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    const auto writer = CheckpointWriter::create(*source, target_of(format), output_path(dir, format));
    EXPECT_EQ(writer.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(writer.status().message().find("is not overwritten"), std::string::npos) << writer.status().message();
  }
  EXPECT_EQ(contents(gguf), "mine");
  EXPECT_EQ(contents(file), "mine");
}

TEST(CheckpointWriter, AnUnfinishedCheckpointLeavesNothing) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    const TempDir dir;
    {
      auto writer = CheckpointWriter::create(*source, target_of(format), output_path(dir, format));
      ASSERT_TRUE(writer.ok()) << writer.status().message();
      const TensorRef& first = source->tensors().front();
      ASSERT_TRUE((*writer)->write_values(first.name, values_of(first)).ok());
      EXPECT_FALSE(std::filesystem::is_empty(dir.path()));
      EXPECT_FALSE(std::filesystem::exists(output_path(dir, format)));
    }
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  }
}

TEST(CheckpointWriter, RefusesValuesThatTheTypeCannotHold) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  const TensorRef& tensor = *source->find("output.weight");
  std::vector<float> values = values_of(tensor);
  values.back() = -70000.0f;
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    const TempDir dir;
    auto writer = CheckpointWriter::create(*source, target_of(format, DType::kF16), output_path(dir, format));
    ASSERT_TRUE(writer.ok());
    const Status status = (*writer)->write_values(tensor.name, values);
    EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
    EXPECT_NE(status.message().find("more than F16 can"), std::string::npos) << status.message();
  }
  const TempDir dir;
  auto writer = CheckpointWriter::create(*source, target_of(Format::kGguf, DType::kQ4_1), dir.path() + "/out.gguf");
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->write_values(tensor.name, values).code(), StatusCode::kUnsupported);
}

QuantizedMatrix codes_for(const TensorRef& tensor) {
  QuantizedMatrix matrix;
  matrix.n = tensor.rows();
  matrix.k = tensor.columns();
  matrix.group = 32;
  matrix.codes.assign(static_cast<size_t>(matrix.n * matrix.k), 3);
  matrix.scales.assign(static_cast<size_t>(matrix.n * matrix.k / 32), 1.0f);
  matrix.zeros.assign(matrix.scales.size(), 8);
  return matrix;
}

// What is given may come from a file that a stopped program left.
TEST(CheckpointWriter, RefusesCodesThatContradictWhatWasAskedFor) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  const TensorRef& tensor = *source->find("blk.1.ffn_up.weight");
  const std::pair<const char*, std::function<void(QuantizedMatrix&)>> cases[] = {
      {"has a scale of 1000000", [](auto& m) { m.scales.back() = 1e6f; }},
      {"has a scale of nan", [](auto& m) { m.scales.back() = std::nanf(""); }},
      {"has a scale of 0.1", [](auto& m) { m.scales.back() = 0.1f; }},  // no f16 value
      {"has a scale of 0", [](auto& m) { m.scales.back() = 0; }},       // readers refuse it
      {"outside its range", [](auto& m) { m.codes.back() = 16; }},
      {"outside its range", [](auto& m) { m.zeros.back() = 7; }},
      {"other sizes", [](auto& m) { m.codes.pop_back(); }},
      {"other sizes", [](auto& m) { m.bits = 8; }},
      {"other sizes", [](auto& m) { m.group_of.assign(static_cast<size_t>(m.k), 0); }},
      {"another shape", [](auto& m) { m.n /= 2; }}};
  for (const auto& [words, change] : cases) {
    const TempDir dir;
    auto writer = CheckpointWriter::create(*source, target_of(Format::kGptq), dir.path() + "/out");
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    QuantizedMatrix matrix = codes_for(tensor);
    change(matrix);
    const Status status = (*writer)->write_codes(tensor.name, matrix);
    EXPECT_NE(status.message().find(std::string("\"blk.1.ffn_up.weight\" ")), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << words << ": " << status.message();
  }
  const TempDir dir;
  auto writer = CheckpointWriter::create(*source, target_of(Format::kGguf), dir.path() + "/out.gguf");
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->write_values(tensor.name, std::vector<float>(3)).code(), StatusCode::kCorrupt);
  EXPECT_EQ((*writer)->write_blocks("blk.0.ffn_up.weight", {}).code(), StatusCode::kCorrupt);
}

// Each group of an order of columns has as many as it is to have, or no reader would take the file.
TEST(CheckpointWriter, RefusesGroupsOfUnevenSize) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  const TensorRef& tensor = *source->find("blk.1.ffn_up.weight");
  CheckpointTarget target = target_of(Format::kGptq);
  target.act_order = true;
  for (const bool even : {true, false}) {
    const TempDir dir;
    auto writer = CheckpointWriter::create(*source, target, dir.path() + "/out");
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    QuantizedMatrix matrix = codes_for(tensor);
    const auto groups = static_cast<int32_t>(matrix.k / 32);
    for (int32_t i = 0; i < matrix.k; ++i) matrix.group_of.push_back(i % groups);
    if (!even) matrix.group_of[0] = 1;
    EXPECT_EQ((*writer)->write_codes(tensor.name, matrix).ok(), even);
  }
}

// Some linears of a quantized directory may stay plain; its settings then say which.
TEST(CheckpointWriter, PlainLinearsAmongQuantizedOnesAreStated) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  for (const Format format : {Format::kGptq, Format::kAwq, Format::kCompressedTensors}) {
    const TempDir dir;
    CheckpointTarget target = target_of(format, DType::kF32);
    target.quantized = [](const TensorRef&) { return false; };
    const Status written = write_plain(*source, target, dir.path() + "/out");
    ASSERT_TRUE(written.ok()) << written.message();
    EXPECT_NE(contents(dir.path() + "/out/config.json").find("mlp"), std::string::npos);
    const auto copy = open_checkpoint(dir.path() + "/out");
    ASSERT_NE(copy, nullptr);
    expect_same_tensors(*source, *copy, dir.path());
  }
}

// Llama's rows of Q and K change places twice, in blocks that are never decoded.
TEST(CheckpointWriter, BlocksOfARealModelComeBack) {
  const char* models = std::getenv("QUIRE_MODELS");
  if (models == nullptr) GTEST_SKIP() << "QUIRE_MODELS is not set";
  const auto source = open_checkpoint(std::string(models) + "/smollm2-135m-instruct-q4_1.gguf");
  ASSERT_NE(source, nullptr);
  const TempDir dir;
  CheckpointTarget target = target_of(Format::kGguf);
  target.dtype = [](const TensorRef& tensor) { return tensor.dtype; };
  auto writer = CheckpointWriter::create(*source, target, dir.path() + "/out.gguf");
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  const auto blocks_of = [](const TensorRef& tensor) {
    const auto stored_row = static_cast<size_t>(row_bytes(tensor.dtype, tensor.columns()));
    std::vector<std::byte> blocks;
    for (int64_t row = 0; row < tensor.rows(); ++row) {
      blocks.insert(blocks.end(), tensor.row(row), tensor.row(row) + stored_row);
    }
    return blocks;
  };
  for (const TensorRef& tensor : source->tensors()) {
    ASSERT_TRUE((*writer)->write_blocks(tensor.name, blocks_of(tensor)).ok()) << tensor.name;
  }
  ASSERT_TRUE((*writer)->finish({}).ok());
  const auto copy = open_checkpoint(dir.path() + "/out.gguf");
  ASSERT_NE(copy, nullptr);
  expect_same_model(source->hparams(), copy->hparams(), true, "smollm2");
  ASSERT_EQ(copy->tensors().size(), source->tensors().size());
  for (const TensorRef& tensor : source->tensors()) {
    EXPECT_TRUE(blocks_of(tensor) == blocks_of(*copy->find(tensor.name))) << tensor.name;
  }
}

// ---- What stands beside the tensors ----

TEST(CheckpointWriter, ADirectoryTakesTheTokenizerAndSettingsOfItsSource) {
  const auto source = open_checkpoint(kGolden + "quantized/gptq-4bit-g32-sym");
  ASSERT_NE(source, nullptr);
  const TempDir dir;
  ASSERT_TRUE(write_plain(*source, target_of(Format::kSafetensors), dir.path() + "/out").ok());
  for (const std::string name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    EXPECT_EQ(contents(dir.path() + "/out/" + name), contents(source->path() + "/" + name)) << name;
  }
  const std::string config = contents(dir.path() + "/out/config.json");
  EXPECT_EQ(config.find("quantization_config"), std::string::npos);
  EXPECT_NE(config.find("\"dtype\": \"bfloat16\""), std::string::npos) << config;
  EXPECT_NE(config.find("\"initializer_range\": 0.15"), std::string::npos) << config;
}

// The text model of a multimodal directory stands alone afterwards.
TEST(CheckpointWriter, TheTextModelInsideAMultimodalOneIsWrittenAlone) {
  const TempDir dir;
  std::string text = testing_files::small_llama_config();
  text.erase(text.find("\"architectures\""), text.find("\"model_type\"") - text.find("\"architectures\""));
  dir.write("config.json", R"({"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava",
"eos_token_id": [2, 3], "vision_config": {"hidden_size": 4}, "text_config": )" +
                               text + "}");
  dir.write("model.safetensors", testing_files::safetensors_bytes(testing_files::small_llama_tensors()));
  const auto source = open_checkpoint(dir.path());
  ASSERT_NE(source, nullptr);
  const TempDir out;
  ASSERT_TRUE(write_plain(*source, target_of(Format::kSafetensors, DType::kF32), out.path() + "/out").ok());
  const std::string config = contents(out.path() + "/out/config.json");
  EXPECT_EQ(config.find("vision_config"), std::string::npos) << config;
  EXPECT_NE(config.find("\"LlamaForCausalLM\""), std::string::npos) << config;
  const auto copy = open_checkpoint(out.path() + "/out");
  ASSERT_NE(copy, nullptr);
  expect_same_tensors(*source, *copy, "text model");
  EXPECT_EQ(copy->hparams().eos_token_ids, (std::vector<int32_t>{2, 3}));
}

TEST(CheckpointWriter, GgufMetadataIsCarriedOverAsItIs) {
  using namespace testing_files;  // NOLINT: values of metadata
  const TempDir dir;
  Gguf model = small_llama_gguf();
  model.set("general.file_type", u32_value(7));
  model.set("general.alignment", u32_value(64));
  model.set("quantize.imatrix.file", string_value("of the source"));
  model.set("quire.proof", string_value("{\"old\": true}   "));
  model.set("some.tool", u16_value(3));  // a width that no reader of numbers would keep
  model.alignment = 64;
  const auto source = open_checkpoint(dir.write("in.gguf", model.bytes()));
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->notes().proof, "{\"old\": true}");
  CheckpointTarget target = target_of(Format::kGguf);
  target.dtype = [](const TensorRef& tensor) { return tensor.name.starts_with("blk.") ? DType::kBF16 : DType::kF32; };
  target.scheme = "rtn";
  ASSERT_TRUE(write_plain(*source, target, dir.path() + "/out.gguf").ok());
  const std::string bytes = contents(dir.path() + "/out.gguf");
  EXPECT_NE(bytes.find(Bytes().string("some.tool").text(u16_value(3)).str()), std::string::npos);
  EXPECT_NE(bytes.find(Bytes().string("general.file_type").text(u32_value(32)).str()), std::string::npos);
  EXPECT_NE(bytes.find(Bytes().string("general.quantization_version").text(u32_value(2)).str()), std::string::npos);
  EXPECT_NE(bytes.find(Bytes().string("quire.scheme").text(string_value("rtn")).str()), std::string::npos);
  for (const std::string gone : {"imatrix", "general.alignment", "old"}) {
    EXPECT_EQ(bytes.find(gone), std::string::npos) << gone;
  }
  const auto copy = open_checkpoint(dir.path() + "/out.gguf");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->notes().proof, "");
  EXPECT_EQ(std::get<std::vector<std::string>>(*copy->meta("tokenizer.ggml.tokens")),
            std::get<std::vector<std::string>>(*source->meta("tokenizer.ggml.tokens")));
}

TEST(CheckpointWriter, SamplingDefaultsAndEndsOfGenerationAreKept) {
  using namespace testing_files;  // NOLINT: values of metadata
  const TempDir dir;
  Gguf model = small_llama_gguf();
  model.set("general.sampling.temp", f32_value(0.7f));
  model.set("general.sampling.top_k", u32_value(20));
  model.set("general.sampling.top_p", f32_value(0.8f));
  model.set("tokenizer.ggml.eot_token_id", u32_value(5));
  const auto source = open_checkpoint(dir.write("in.gguf", model.bytes()));
  ASSERT_NE(source, nullptr);
  ASSERT_TRUE(write_plain(*source, target_of(Format::kSafetensors), dir.path() + "/out").ok());
  const auto copy = open_checkpoint(dir.path() + "/out");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->hparams().eos_token_ids, (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(copy->hparams().default_temperature, 0.7f);
  EXPECT_EQ(copy->hparams().default_top_k, 20);
  EXPECT_EQ(copy->hparams().default_top_p, 0.8f);
}

TEST(CheckpointWriter, RopeFactorsBecomeNumbersAndNumbersFactors) {
  const auto directory = open_checkpoint(kGolden + "tiny/llama-gqa-llama3rope");
  const auto gguf = open_checkpoint(kGolden + "tiny-gguf/llama-gqa-llama3rope.gguf");
  ASSERT_NE(directory, nullptr);
  ASSERT_NE(gguf, nullptr);
  const TempDir dir;
  ASSERT_TRUE(write_plain(*gguf, target_of(Format::kSafetensors), dir.path() + "/out").ok());
  ASSERT_TRUE(write_plain(*directory, target_of(Format::kGguf), dir.path() + "/out.gguf").ok());
  const auto to_numbers = open_checkpoint(dir.path() + "/out");
  const auto to_factors = open_checkpoint(dir.path() + "/out.gguf");
  ASSERT_NE(to_numbers, nullptr);
  ASSERT_NE(to_factors, nullptr);
  // Other numbers than the model was made with may give the same factors.
  EXPECT_EQ(to_numbers->hparams().rope.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(to_numbers->hparams().rope.factor, 8.0);
  const TempDir again;
  ASSERT_TRUE(write_plain(*to_numbers, target_of(Format::kGguf), again.path() + "/out.gguf").ok());
  const auto round_trip = open_checkpoint(again.path() + "/out.gguf");
  ASSERT_NE(round_trip, nullptr);
  const std::vector<float> wanted = values_of(*gguf->find("rope_freqs.weight"));
  for (const auto& each : {to_factors.get(), round_trip.get()}) {
    const std::vector<float> got = values_of(*each->find("rope_freqs.weight"));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5f * wanted[i]) << i;
  }
}

TEST(CheckpointWriter, RefusesModelsThatNoConfigurationDescribes) {
  using namespace testing_files;  // NOLINT: values of metadata
  const TempDir dir;
  Gguf factors = small_llama_gguf();
  factors.tensors.push_back({.name = "rope_freqs.weight", .dims = {2}, .data = Bytes().add(3.0f).add(2.0f).str()});
  const auto odd_factors = open_checkpoint(dir.write("factors.gguf", factors.bytes()));
  Gguf bias = small_llama_gguf();
  bias.add_f32("blk.0.attn_q.bias", {8});
  const auto one_bias = open_checkpoint(dir.write("bias.gguf", bias.bytes()));
  ASSERT_NE(odd_factors, nullptr);
  ASSERT_NE(one_bias, nullptr);
  expect_refused(*odd_factors, target_of(Format::kSafetensors), "Llama 3's rope scaling does not give");
  expect_refused(*one_bias, target_of(Format::kSafetensors), "only some of the linears have a bias");
}

// ---- Notes ----

TEST(CheckpointWriter, NotesComeBackFromEitherFormat) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  const Hparams& h = source->hparams();
  CheckpointNotes notes{.proof = R"({"perplexity":{"before":20.549,"after":20.7},"text":"é"})", .k_factors = {}};
  for (int64_t i = 0; i < h.layers * h.kv_heads * h.head_dim; ++i) {
    notes.k_factors.push_back(0.1f + static_cast<float>(i) * 0.37f);
  }
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    for (const bool with_factors : {false, true}) {
      const TempDir dir;
      CheckpointTarget target = target_of(format);
      target.k_factors = static_cast<int64_t>(notes.k_factors.size());
      const CheckpointNotes given{.proof = notes.proof,
                                  .k_factors = with_factors ? notes.k_factors : std::vector<float>()};
      const Status written = write_plain(*source, target, output_path(dir, format), given);
      ASSERT_TRUE(written.ok()) << written.message();
      const auto copy = open_checkpoint(output_path(dir, format));
      ASSERT_NE(copy, nullptr);
      EXPECT_EQ(copy->notes().proof, notes.proof);
      EXPECT_EQ(copy->notes().k_factors, given.k_factors);
    }
  }
  const TempDir dir;
  const Status too_long = write_plain(*source, target_of(Format::kGguf), dir.path() + "/out.gguf",
                                      {.proof = "{\"a\": \"" + std::string(2048, 'x') + "\"}", .k_factors = {}});
  EXPECT_EQ(too_long.code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(CheckpointWriter, RefusesNotesThatNoReaderWouldTake) {
  const auto source = open_checkpoint(kGolden + "quantized/base");
  ASSERT_NE(source, nullptr);
  for (const Format format : {Format::kGguf, Format::kSafetensors}) {
    for (const CheckpointNotes& notes :
         {CheckpointNotes{.proof = "{", .k_factors = {}}, CheckpointNotes{.proof = "", .k_factors = {1.0f, 2.0f}}}) {
      const TempDir dir;
      EXPECT_FALSE(write_plain(*source, target_of(format), output_path(dir, format), notes).ok());
      EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
    }
  }
}

}  // namespace
}  // namespace quire
