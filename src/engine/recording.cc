#include "engine/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/byte_stream.h"
#include "base/mapped_file.h"

namespace quire {
namespace {

constexpr std::string_view kMagic = "quire steps 1\n";
constexpr size_t kGroupBytes = 16;  // of a PlanBounds::Group
constexpr int64_t kMostTokens = int64_t{1} << 32;
constexpr int64_t kMostRows = int64_t{1} << 20;
constexpr int64_t kMostPages = int64_t{1} << 31;

Status damaged(const std::string& what) { return corrupt("the recording is damaged: " + what); }

bool within(int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; }

Status check_bounds(const PlanBounds& bounds) {
  bool sane = within(bounds.vocab_size, 1, kMostRows) && within(bounds.max_rows, 1, kMostRows) &&
              within(bounds.context, 1, kMostTokens) && within(bounds.page_tokens, 1, kMostRows) &&
              !bounds.groups.empty();
  for (const PlanBounds::Group& group : bounds.groups)
    sane = sane && within(group.pages, 1, kMostPages) && within(group.window, 0, kMostTokens);
  return sane ? Status() : damaged("the sizes of its model make no sense");
}

}  // namespace

std::vector<std::vector<int32_t>> tokens_of(const StepResult& result) {
  std::vector<std::vector<int32_t>> tokens;
  for (const RowResult& row : result.rows) {
    for (const SampledSequence& sequence : row.sequences) tokens.push_back(sequence.tokens);
  }
  return tokens;
}

RecordedRun recorded_run(const ModelOptions& options, const Model& model, const ModelLimits& limits,
                         int64_t logit_rows) {
  RecordedRun run{.model = options, .bounds = {}, .logit_rows = logit_rows};
  run.bounds = {.vocab_size = model.config().vocab_size,
                .max_rows = limits.workspace.max_rows,
                .context = limits.workspace.max_context,
                .page_tokens = kPageTokens,
                .groups = {}};
  for (size_t g = 0; g < limits.kv_pages.size(); ++g)
    run.bounds.groups.push_back({.pages = limits.kv_pages[g], .window = model.config().kv_groups[g].window});
  return run;
}

std::string RecordedRun::bytes() const {
  ByteWriter out;
  out.put_text(model.model_path);
  out.put(static_cast<uint8_t>(model.compute));
  out.put(static_cast<uint8_t>(model.kv_dtype));
  out.put(static_cast<uint8_t>(model.isa));
  out.put(static_cast<uint8_t>(model.attention));
  out.put(model.k_factors);
  out.put(model.power_of_two_scales);
  out.put(model.head.has_value());
  out.put(static_cast<int32_t>(model.head.value_or(DType{})));
  out.put(model.context);
  out.put(bounds.vocab_size);
  out.put(bounds.max_rows);
  out.put(bounds.context);
  out.put(bounds.page_tokens);
  out.put(static_cast<uint64_t>(bounds.groups.size()));
  for (const PlanBounds::Group& group : bounds.groups) {
    out.put(group.pages);
    out.put(group.window);
  }
  out.put(logit_rows);
  return out.take();
}

Result<RecordedRun> RecordedRun::parse(std::string_view bytes) {
  ByteSource in(bytes);
  RecordedRun run;
  run.model.model_path = in.get_text();
  run.model.compute = in.get_choice(ComputeMode::kF32);
  run.model.kv_dtype = in.get_choice(KvDtype::kF32);
  run.model.isa = in.get_choice(Isa::kAvx512);
  run.model.attention = in.get_choice(Attention::kFullScores);
  run.model.k_factors = in.get_choice(true);
  run.model.power_of_two_scales = in.get_choice(true);
  const bool has_head = in.get_choice(true);
  const auto head = in.get<int32_t>();
  if (has_head && within(head, 0, static_cast<int64_t>(kDTypeCount) - 1)) {
    run.model.head = static_cast<DType>(head);
  } else if (has_head) {
    in.fail();
  }
  run.model.context = in.get<int64_t>();
  run.bounds.vocab_size = in.get<int64_t>();
  run.bounds.max_rows = in.get<int64_t>();
  run.bounds.context = in.get<int64_t>();
  run.bounds.page_tokens = in.get<int64_t>();
  const uint64_t groups = in.get_count(kGroupBytes);
  for (uint64_t i = 0; i < groups; ++i) {
    const auto pages = in.get<int64_t>();
    run.bounds.groups.push_back({.pages = pages, .window = in.get<int64_t>()});
  }
  run.logit_rows = in.get<int64_t>();
  if (!in.ok() || !in.at_end()) return damaged("what it says of its model does not end where it should");
  QUIRE_RETURN_IF_ERROR(check_bounds(run.bounds));
  if (!within(run.logit_rows, 1, kMostRows)) return damaged("the sizes of its model make no sense");
  return run;
}

std::string RecordedStep::bytes() const {
  ByteWriter out;
  out.put_text(plan.bytes());
  out.put_text(sampling.bytes());
  out.put(static_cast<uint64_t>(tokens.size()));
  for (const std::vector<int32_t>& sequence : tokens) out.put_list(sequence);
  out.put(logits_hash);
  return out.take();
}

Result<RecordedStep> RecordedStep::parse(std::string_view bytes, const PlanBounds& bounds) {
  ByteSource in(bytes);
  RecordedStep step;
  const std::string plan = in.get_text();
  const std::string sampling = in.get_text();
  const uint64_t sequences = in.get_count(sizeof(uint64_t));
  for (uint64_t i = 0; i < sequences; ++i) step.tokens.push_back(in.get_list<int32_t>());
  step.logits_hash = in.get<uint64_t>();
  if (!in.ok() || !in.at_end()) return damaged("a step does not end where its frame does");
  QUIRE_ASSIGN_OR_RETURN(step.plan, StepPlan::parse(plan));
  QUIRE_RETURN_IF_ERROR(check_plan(step.plan, bounds));
  QUIRE_ASSIGN_OR_RETURN(step.sampling, StepSampling::parse(sampling, step.plan, bounds.vocab_size));
  return step;
}

Result<std::unique_ptr<RecordingExecutor>> RecordingExecutor::create(Executor& inner, const std::string& path,
                                                                     const RecordedRun& run) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);  // prompts are private
  if (fd < 0) {
    return io_error("--record " + path + ": " + std::strerror(errno) +
                    (errno == EEXIST ? ": name a file that does not exist yet" : ""));
  }
  std::FILE* file = fdopen(fd, "wb");
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    unlink(path.c_str());
    return io_error("--record " + path + ": " + std::strerror(error));
  }
  std::unique_ptr<RecordingExecutor> executor(new RecordingExecutor(inner, path, file));
  if (std::fwrite(kMagic.data(), 1, kMagic.size(), file) != kMagic.size()) {
    executor->stop(std::strerror(errno));
  } else {
    executor->write_frame(run.bytes());
  }
  if (!executor->why_stopped_.empty()) {
    unlink(path.c_str());  // nothing is in it
    return io_error("--record " + executor->why_stopped_);
  }
  return executor;
}

RecordingExecutor::~RecordingExecutor() {
  if (file_ != nullptr) std::fclose(file_);
}

// Each step is handed to the system at once, so that what a crash leaves behind holds the steps before it.
void RecordingExecutor::write_frame(std::string_view bytes) {
  const auto size = static_cast<uint64_t>(bytes.size());
  if (written_ + size > kMostRecordedBytes) {
    stop("stopped at its limit of " + std::to_string(kMostRecordedBytes >> 20) + " MiB");
  } else if (std::fwrite(&size, 1, sizeof size, file_) != sizeof size ||
             std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() || std::fflush(file_) != 0) {
    stop(std::string(std::strerror(errno)) + ": the recording ends here");
  }
  written_ += size + sizeof size;
}

void RecordingExecutor::stop(const std::string& why) {
  why_stopped_ = path_ + ": " + why;
  std::fclose(file_);
  file_ = nullptr;
}

Result<StepResult> RecordingExecutor::run(const StepPlan& plan, const StepSampling& sampling) {
  if (file_ == nullptr) return inner_.run(plan, sampling);
  RecordedStep step{.plan = plan, .sampling = sampling, .tokens = {}};
  step.sampling.hash_logits = true;
  QUIRE_ASSIGN_OR_RETURN(StepResult result, inner_.run(plan, step.sampling));
  step.tokens = tokens_of(result);
  step.logits_hash = result.logits_hash;
  write_frame(step.bytes());
  return result;
}

Result<RecordingReader> RecordingReader::open(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > 2 * kMostRecordedBytes) return corrupt(path + ": is larger than any recording");
  std::string owned(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  QUIRE_RETURN_IF_ERROR(file.unchanged());
  Result<RecordingReader> reader = over(owned);
  if (!reader.ok()) return Status(reader.status().code(), path + ": " + reader.status().message());
  const size_t read = owned.size() - reader->rest_.size();
  reader->owned_ = std::move(owned);
  reader->rest_ = std::string_view(reader->owned_).substr(read);
  return reader;
}

Result<RecordingReader> RecordingReader::over(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return corrupt("is no recording of quire, or of another version");
  RecordingReader reader;
  reader.rest_ = bytes.substr(kMagic.size());
  const auto head = reader.frame();
  if (!head.has_value()) return damaged("it ends before the first step");
  QUIRE_ASSIGN_OR_RETURN(reader.run_, RecordedRun::parse(*head));
  return reader;
}

std::optional<std::string_view> RecordingReader::frame() {
  uint64_t size = 0;
  if (rest_.size() < sizeof size) {
    cut_off_ = !rest_.empty();
    return std::nullopt;
  }
  std::memcpy(&size, rest_.data(), sizeof size);
  if (size > rest_.size() - sizeof size) {
    cut_off_ = true;
    return std::nullopt;
  }
  const std::string_view bytes = rest_.substr(sizeof size, size);
  rest_.remove_prefix(sizeof size + size);
  return bytes;
}

Result<std::optional<RecordedStep>> RecordingReader::next() {
  const auto bytes = frame();
  if (!bytes.has_value()) return std::optional<RecordedStep>();
  QUIRE_ASSIGN_OR_RETURN(RecordedStep step, RecordedStep::parse(*bytes, run_.bounds));
  return std::optional<RecordedStep>(std::move(step));
}

}  // namespace quire
