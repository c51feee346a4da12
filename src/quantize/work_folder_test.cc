// What a stopped quantization keeps, and that going on with it gives the same bytes.

#include "quantize/work_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "quantize/job.h"
#include "quantize/test_model.h"

namespace quire {
namespace {

using namespace testing_inputs;

class Folder {
 public:
  Folder() : path_(testing::TempDir() + "quire-work-XXXXXX") { EXPECT_NE(::mkdtemp(path_.data()), nullptr); }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

void expect_says(const Status& status, std::initializer_list<std::string> parts) {
  ASSERT_FALSE(status.ok());
  for (const std::string& part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos) << part << " is not in: " << status.message();
}

QuantizedLayer random_layer() {
  QuantizedLayer layer;
  std::mt19937 random(8);  // NOLINT: the same layer every time
  for (size_t i = 0; i < layer.linears.size(); ++i) {
    QuantizedRows& rows = layer.linears[i];
    if (i % 2 == 0) {
      for (int b = 0; b < 40; ++b) rows.blocks.push_back(static_cast<std::byte>(random()));
      continue;
    }
    rows.codes = {
        .bits = 8, .n = 3, .k = 8, .group = 4, .codes = {}, .scales = random_values(6, 9), .zeros = {}, .group_of = {}};
    for (int c = 0; c < 24; ++c) rows.codes.codes.push_back(static_cast<uint8_t>(random()));
    rows.codes.zeros.assign(6, static_cast<uint8_t>(random()));
    if (i % 3 == 0) rows.codes.group_of = {1, 0, 1, 0, 0, 1, 0, 1};
  }
  layer.vectors["attn_norm.weight"] = random_values(8, 10);
  layer.vectors["attn_q.bias"] = random_values(3, 11);
  return layer;
}

TEST(WorkFolder, KeepsLayersAndTheStreamAfterTheLast) {
  const Folder folder;
  const QuantizedLayer layer = random_layer();
  const std::vector<float> first = random_values(50, 12);
  const std::vector<float> second = random_values(50, 13);
  {
    auto work = WorkFolder::open(folder.file("w"), "settings");
    ASSERT_TRUE(work.ok()) << work.status().message();
    EXPECT_EQ(work->layers(), 0u);
    ASSERT_TRUE(work->store(0, layer, first).ok());
    ASSERT_TRUE(work->store(1, layer, second).ok());
  }
  auto work = WorkFolder::open(folder.file("w"), "settings");
  ASSERT_TRUE(work.ok()) << work.status().message();
  EXPECT_EQ(work->layers(), 2u);
  std::vector<float> stream(50);
  ASSERT_TRUE(work->load_residual(stream).ok());
  EXPECT_EQ(stream, second);
  const auto loaded = work->load(1);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->vectors, layer.vectors);
  for (size_t i = 0; i < layer.linears.size(); ++i) {
    EXPECT_TRUE(same_rows(loaded->linears[i], layer.linears[i])) << i;
    if (layer.linears[i].blocks.empty()) {
      const QuantizedMatrix& m = loaded->linears[i].codes;
      EXPECT_EQ(std::vector<int64_t>({m.bits, m.n, m.k, m.group}), std::vector<int64_t>({8, 3, 8, 4}));
    }
  }
  ASSERT_TRUE(work->remove().ok());
  EXPECT_FALSE(std::filesystem::exists(folder.file("w")));
}

TEST(WorkFolder, RefusesOtherSettingsAndOtherPeoplesFiles) {
  const Folder folder;
  ASSERT_TRUE(WorkFolder::open(folder.file("w"), "GPTQ, 4-bit\nmodel\n").ok());
  expect_says(WorkFolder::open(folder.file("w"), "GPTQ, 8-bit\nmodel\n").status(),
              {folder.file("w"), "other settings", "(\"GPTQ, 4-bit\")", "remove the folder"});

  std::filesystem::create_directory(folder.file("mine"));
  write(folder.file("mine/thesis.txt"), "years");
  expect_says(WorkFolder::open(folder.file("mine"), "s").status(), {folder.file("mine/thesis.txt"), "another output"});
  EXPECT_EQ(read(folder.file("mine/thesis.txt")), "years");

  write(folder.file("file"), "");
  expect_says(WorkFolder::open(folder.file("file"), "s").status(), {folder.file("file")});
  expect_says(WorkFolder::open(folder.file("none/w"), "s").status(), {folder.file("none/w")});
}

TEST(WorkFolder, NamesDamagedFiles) {
  const Folder folder;
  auto work = WorkFolder::open(folder.file("w"), "s");
  ASSERT_TRUE(work.ok());
  ASSERT_TRUE(work->store(0, random_layer(), random_values(50, 12)).ok());
  const std::string layer = folder.file("w/layer-0.safetensors");
  const std::string whole = read(layer);
  const auto refused = [&] { return work->load(0).status(); };
  write(layer, whole.substr(0, whole.size() - 1));
  expect_says(refused(), {layer, "remove " + folder.file("w") + " to start anew"});
  write(layer, "");
  expect_says(refused(), {layer, "remove "});
  std::string renamed = whole;
  renamed.replace(renamed.find("6.blocks"), 1, "7");
  write(layer, renamed);
  expect_says(refused(), {layer, "7.blocks", "remove "});
  std::vector<float> longer(51);
  expect_says(work->load_residual(longer), {folder.file("w/residual-0.safetensors"), "remove "});
  std::filesystem::remove(folder.file("w/residual-0.safetensors"));
  std::vector<float> stream(50);
  expect_says(work->load_residual(stream), {folder.file("w/residual-0.safetensors"), "remove "});
}

TEST(WorkFolder, NeverWaitsForAPipe) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("w"));
  ASSERT_EQ(::mkfifo(folder.file("w/settings.txt").c_str(), 0600), 0);
  expect_says(WorkFolder::open(folder.file("w"), "s").status(), {folder.file("w/settings.txt"), "to start anew"});
}

TEST(WorkFolder, RefusesAResidualStreamThatIsNoNumber) {
  const Folder folder;
  auto work = WorkFolder::open(folder.file("w"), "s");
  ASSERT_TRUE(work.ok());
  std::vector<float> stream = random_values(50, 12);
  stream[20] = std::nanf("");
  ASSERT_TRUE(work->store(0, random_layer(), stream).ok());
  expect_says(work->load_residual(stream), {folder.file("w/residual-0.safetensors"), "NaN", "to start anew"});
}

// --- a whole run ----------------------------------------------------------------------------------------------

struct Scenario {
  const char* model;
  QuantizeRequest request;
  const char* out;
};

Result<QuantizeOutcome> run(const TinyModel& model, const Scenario& what, const std::string& out, int layers) {
  auto target = quantize_target(*model.checkpoint, what.request, out);
  if (!target.ok()) return target.status();
  const auto device = make_device(2, false);
  const QuantizeJob job = {.checkpoint = *model.checkpoint,
                           .config = model.config,
                           .device = *device,
                           .target = *target,
                           .sequences = model.text(2, 40),
                           .settings = target->description,
                           .out = out};
  int asked = 0;
  auto outcome = run_quantize_job(job, {.show = nullptr, .cancelled = [&] { return asked++ >= layers; }});
  if (!outcome.ok()) return outcome;
  QUIRE_RETURN_IF_ERROR(outcome->writer->finish({}));
  QUIRE_RETURN_IF_ERROR(remove_work(job));
  return outcome;
}

std::vector<Scenario> scenarios() {
  using Format = CheckpointTarget::Format;
  QuantizeRequest gguf_rtn;
  gguf_rtn.scheme = QuantizeScheme::kRtn;
  gguf_rtn.format = Format::kGguf;
  QuantizeRequest ordered;
  ordered.gptq.act_order = true;
  ordered.symmetric = false;
  QuantizeRequest awq;
  awq.scheme = QuantizeScheme::kAwq;
  QuantizeRequest gguf_gptq;
  gguf_gptq.type = DType::kQ4_1;
  return {{"tiny/gemma3", {}, "out"},
          {"tiny/gemma3", ordered, "out"},
          {"tiny/qwen2", awq, "out"},
          {"tiny-gguf/gemma3.gguf", gguf_rtn, "out.gguf"},
          {"tiny-gguf/qwen2.gguf", gguf_gptq, "out.gguf"}};
}

TEST(QuantizeJob, GoesOnWhereItStoppedWithTheSameBytes) {
  for (const Scenario& what : scenarios()) {
    SCOPED_TRACE(std::string(what.model) + " as " + what.out);
    const TinyModel model(what.model);
    const int layers = static_cast<int>(model.config.layers.size());
    const Folder folder;
    const bool gguf = std::string(what.out).ends_with(".gguf");
    const std::string tensors = gguf ? "" : "/model.safetensors";
    const std::string whole = folder.file(std::string("whole-") + what.out);
    const auto at_once = run(model, what, whole, layers);
    ASSERT_TRUE(at_once.ok()) << at_once.status().message();
    EXPECT_EQ(at_once->resumed_layers, 0u);

    const std::string out = folder.file(what.out);
    for (int done = 0; done + 1 < layers; ++done) {
      const auto stopped = run(model, what, out, 1);  // a layer further each time
      ASSERT_EQ(stopped.status().code(), StatusCode::kCancelled) << stopped.status().message();
      expect_says(stopped.status(), {"the same command goes on", out + ".work"});
      EXPECT_FALSE(std::filesystem::exists(out));
    }
    const auto last = run(model, what, out, layers);
    ASSERT_TRUE(last.ok()) << last.status().message();
    EXPECT_EQ(last->resumed_layers, static_cast<size_t>(layers - 1));
    EXPECT_TRUE(read(out + tensors) == read(whole + tensors));
    EXPECT_FALSE(std::filesystem::exists(out + ".work"));
  }
}

// A layer of another model, or one that somebody made up, must not become part of the output.
TEST(QuantizeJob, RefusesLayersThatAreNotOfThisModel) {
  const Scenario what = scenarios()[4];
  const TinyModel model(what.model);
  const Folder folder;
  const std::string out = folder.file(what.out), layer = out + ".work/layer-0.safetensors";
  ASSERT_EQ(run(model, what, out, 1).status().code(), StatusCode::kCancelled);
  const std::string whole = read(layer);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    changed.replace(changed.find(from), from.size(), to);
    write(layer, changed);
    return run(model, what, out, 100).status();
  };
  expect_says(refused("vector.attn_q.bias", "vector.attn_x.bias"),
              {out + ".work", "lacks blk.0.attn_q.bias", "to start anew"});
  expect_says(refused("0.blocks", "0.bLocks"), {out + ".work", "blk.0.attn_q.weight", "to start anew"});
  write(layer, whole);
  EXPECT_TRUE(run(model, what, out, 100).ok());
}

}  // namespace
}  // namespace quire
