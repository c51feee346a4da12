// Disks that fail at each call in turn, full, broken or in the middle of a write: what writes files says so with the name of
// the file, leaves nothing half-written behind, and what was there before stays as it was.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/recording.h"
#include "formats/checkpoint_notes.h"
#include "formats/checkpoint_writer.h"
#include "formats/store_notes.h"
#include "formats/test_files.h"
#include "quantize/work_folder.h"
#include "sched/scheduler.h"
#include "support/failing_files.h"

namespace quire {
namespace {

using testing_files::TempDir;
using Contents = std::map<std::string, std::string>;  // of a folder: bytes by path

constexpr FileFault kFaults[] = {FileFault::kFull, FileFault::kBroken, FileFault::kShort};

Contents contents_of(const std::string& folder) {
  Contents contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    contents[entry.path().string()] =
        entry.is_regular_file() ? std::string(std::istreambuf_iterator<char>(file), {}) : "a folder";
  }
  return contents;
}

std::string names_of(const Contents& contents) {
  std::string names;
  for (const auto& [name, bytes] : contents) names += name + " (" + std::to_string(bytes.size()) + ") ";
  return names;
}

// Fails each call of `write` that changes a file. It gets a folder that `prepare` has filled, and must leave it so.
// Returns how many calls there were.
int64_t strike_each_call(const std::function<void(const std::string& folder)>& prepare,
                         const std::function<Status(const std::string& folder)>& write) {
  int64_t struck = 0;
  for (const FileFault fault : kFaults) {
    for (int64_t k = 1;; ++k) {
      const TempDir dir;
      prepare(dir.path());
      const Contents before = contents_of(dir.path());
      std::string call;
      Status status;
      {
        const FailingFiles failing(k, fault);
        status = write(dir.path());
        call = failing.failed_call();
      }
      SCOPED_TRACE("call " + std::to_string(k) + ", " + call + ", fault " + std::to_string(static_cast<int>(fault)));
      if (call.empty()) {
        EXPECT_TRUE(status.ok()) << status.message();
        break;
      }
      ++struck;
      EXPECT_FALSE(status.ok());
      EXPECT_NE(status.message().find(dir.path()), std::string::npos) << status.message();
      EXPECT_EQ(status.message().find("Success"), std::string::npos) << status.message();
      const Contents after = contents_of(dir.path());
      EXPECT_TRUE(after == before) << "before: " << names_of(before) << "\nafter: " << names_of(after);
      const Status again = write(dir.path());
      EXPECT_TRUE(again.ok()) << "where the disk is well again: " << again.message();
      if (testing::Test::HasFailure()) return struck;
    }
  }
  return struck;
}

void prepare_nothing(const std::string&) {}

const Checkpoint& source() {
  static const std::unique_ptr<Checkpoint> opened =
      std::move(*Checkpoint::open(std::string(QUIRE_SOURCE_DIR) + "/tests/golden/tiny-gguf/llama-mha-spm.gguf"));
  return *opened;
}

Status write_checkpoint(CheckpointTarget::Format format, const std::string& path, const CheckpointNotes& notes) {
  CheckpointTarget target;
  target.format = format;
  target.dtype = [](const TensorRef&) { return DType::kF32; };
  target.quantized = [](const TensorRef&) { return false; };
  target.k_factors = static_cast<int64_t>(notes.k_factors.size());
  QUIRE_ASSIGN_OR_RETURN(const auto writer, CheckpointWriter::create(source(), target, path));
  for (const TensorRef& tensor : source().tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.columns()));
    tensor.decode_f32(0, tensor.rows(), values.data());
    QUIRE_RETURN_IF_ERROR(writer->write_values(tensor.name, values));
  }
  return writer->finish(notes);
}

CheckpointNotes notes_with(const std::string& kl, float factor) {
  const Hparams& hparams = source().hparams();
  CheckpointNotes notes;
  notes.proof = "{\"kl\":" + kl + "}";
  notes.k_factors.assign(static_cast<size_t>(hparams.layers * hparams.kv_heads * hparams.head_dim), factor);
  return notes;
}

TEST(FailingFiles, WritingAGgufFile) {
  const int64_t struck = strike_each_call(prepare_nothing, [](const std::string& folder) {
    return write_checkpoint(CheckpointTarget::Format::kGguf, folder + "/out.gguf", notes_with("0.5", 1.5f));
  });
  EXPECT_GT(struck, 50);
}

TEST(FailingFiles, WritingADirectory) {
  const int64_t struck = strike_each_call(prepare_nothing, [](const std::string& folder) {
    return write_checkpoint(CheckpointTarget::Format::kSafetensors, folder + "/out", notes_with("0.5", 1.5f));
  });
  EXPECT_GT(struck, 50);
}

Status change_notes(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::open(path));
  return store_notes(*checkpoint, notes_with("0.25", 2.5f));
}

TEST(FailingFiles, ChangingTheNotesOfAGgufFile) {
  const int64_t struck = strike_each_call(
      [](const std::string& folder) {
        const auto format = CheckpointTarget::Format::kGguf;
        ASSERT_TRUE(write_checkpoint(format, folder + "/out.gguf", notes_with("0.5", 1.5f)).ok());
      },
      [](const std::string& folder) { return change_notes(folder + "/out.gguf"); });
  EXPECT_GE(struck, 3 * 3) << "two writes, put on the disk";
}

TEST(FailingFiles, ChangingTheNotesOfADirectory) {
  const int64_t struck = strike_each_call(
      [](const std::string& folder) {
        const auto format = CheckpointTarget::Format::kSafetensors;
        ASSERT_TRUE(write_checkpoint(format, folder + "/out", notes_with("0.5", 1.5f)).ok());
      },
      [](const std::string& folder) { return change_notes(folder + "/out"); });
  EXPECT_GE(struck, 6 * 3);
}

// What a stopped quantization has done so far may stay, if it is whole: the next one goes on from there.
TEST(FailingFiles, TheWorkOfAQuantization) {
  QuantizedLayer layer;
  layer.linears[0].blocks.assign(40, std::byte{7});
  layer.vectors["attn_norm.weight"] = {1, 2, 3};
  const std::vector<float> residual(50, 0.5f);
  const auto work = [&](const std::string& folder) -> Status {
    QUIRE_ASSIGN_OR_RETURN(WorkFolder opened, WorkFolder::open(folder + "/out.work", "settings"));
    for (size_t i = opened.layers(); i < 3; ++i) QUIRE_RETURN_IF_ERROR(opened.store(i, layer, residual));
    return {};
  };
  const auto relative = [](const std::string& folder) {
    Contents named;
    for (const auto& [name, bytes] : contents_of(folder)) named[name.substr(folder.size())] = bytes;
    return named;
  };
  const TempDir whole;
  ASSERT_TRUE(work(whole.path()).ok());
  const Contents expected = relative(whole.path());
  for (const FileFault fault : kFaults) {
    for (int64_t k = 1;; ++k) {
      const TempDir dir;
      std::string call;
      Status status;
      {
        const FailingFiles failing(k, fault);
        status = work(dir.path());
        call = failing.failed_call();
      }
      SCOPED_TRACE("call " + std::to_string(k) + ", " + call);
      if (call.empty()) break;
      ASSERT_FALSE(status.ok());
      EXPECT_NE(status.message().find(dir.path() + "/out.work"), std::string::npos) << status.message();
      for (const auto& [name, bytes] : relative(dir.path())) {
        EXPECT_FALSE(name.ends_with(".partial")) << name;
        const auto wanted = expected.find(name);
        EXPECT_TRUE(wanted == expected.end() || bytes == wanted->second) << name;
      }
      const Status resumed = work(dir.path());
      ASSERT_TRUE(resumed.ok()) << resumed.message();
      EXPECT_TRUE(relative(dir.path()) == expected) << names_of(relative(dir.path()));
    }
  }
}

class Silent final : public Executor {
 public:
  int64_t vocab_size() const override { return 10; }
  Result<StepResult> run(const StepPlan& plan, const StepSampling&) override {
    StepResult result;
    result.rows.resize(plan.rows.size());
    ++steps;
    return result;
  }
  int steps = 0;
};

// A recording that fails ends, the run goes on, and what is in the file can be read.
TEST(FailingFiles, ARecording) {
  KvCacheConfig cache;
  cache.groups = {{64, 0, 1}};
  cache.max_sequence_tokens = 200;
  const auto scheduler = std::move(*Scheduler::create({}, cache));
  ASSERT_TRUE(scheduler->submit({.prompt = {1, 2, 3}, .max_tokens = 4}, 1).ok());
  const StepPlan& plan = scheduler->plan(1);
  StepSampling sampling;
  sampling.rows.resize(plan.rows.size());
  RecordedRun run;
  run.bounds.vocab_size = 10;
  run.bounds.max_rows = 64;
  run.bounds.context = 200;
  run.bounds.page_tokens = cache.page_tokens;
  run.bounds.groups.push_back({.pages = 64, .window = 0});
  run.logit_rows = 4;
  int64_t stopped = 0, refused = 0;
  for (const FileFault fault : kFaults) {
    for (int64_t k = 1;; ++k) {
      const TempDir dir;
      const std::string path = dir.path() + "/steps";
      Silent inner;
      std::string call;
      {
        const FailingFiles failing(k, fault);
        auto recording = RecordingExecutor::create(inner, path, run);
        for (int i = 0; i < 3 && recording.ok(); ++i) EXPECT_TRUE((*recording)->run(plan, sampling).ok());
        call = failing.failed_call();
        const std::string why = recording.ok() ? (*recording)->why_stopped() : recording.status().message();
        EXPECT_EQ(why.empty(), call.empty());
        EXPECT_TRUE(call.empty() || why.find(path) != std::string::npos) << why;
        stopped += recording.ok() && !call.empty();
        refused += !recording.ok();
        EXPECT_EQ(recording.ok(), std::filesystem::exists(path)) << "no file is left where nothing was recorded";
        EXPECT_EQ(inner.steps, recording.ok() ? 3 : 0);
      }
      SCOPED_TRACE("call " + std::to_string(k) + ", " + call);
      if (std::filesystem::exists(path)) {
        auto reader = RecordingReader::open(path);
        ASSERT_TRUE(reader.ok()) << reader.status().message();
        for (int i = 0; i < 4; ++i) EXPECT_TRUE(reader->next().ok());
      }
      if (call.empty()) break;
    }
  }
  EXPECT_GE(stopped, 3);
  EXPECT_GE(refused, 3);
}

}  // namespace
}  // namespace quire
