// GGUF files of `quire quantize`, every type and scheme: the `gguf` package reads the very weights that quire does
// (check_written.py). Skipped where Python or the package is missing.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "model/registry.h"
#include "quantize/job.h"
#include "support/random_checkpoint.h"

namespace quire {
namespace {

const std::string kRoot = QUIRE_SOURCE_DIR;
constexpr int kPackageMissing = 77;

int check_with_package(const std::string& file, const std::string& given) {
  const std::string own = kRoot + "/.cache/venv/bin/python";
  const std::string python = std::filesystem::exists(own) ? "'" + own + "'" : "python3";
  const std::string command = python + " '" + kRoot + "/tests/model/check_written.py' '" + file + "' '" + given + "'";
  const int status = std::system((command + " >/dev/null").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// What quire reads from a file, as check_written.py takes it.
void write_given(const std::string& path, const std::string& given) {
  const auto checkpoint = Checkpoint::open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  std::ofstream out(given, std::ios::binary);
  for (const TensorRef& tensor : (*checkpoint)->tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.columns()));
    tensor.decode_f32(0, tensor.rows(), values.data());
    out << tensor.name << ' ' << tensor.rows() << ' ' << tensor.columns() << '\n';
    out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(4 * values.size()));
  }
}

Status quantize(const Checkpoint& source, const QuantizeRequest& request, const std::string& out) {
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig config, configure_model(source.hparams()));
  QUIRE_ASSIGN_OR_RETURN(const QuantizeTarget target, quantize_target(source, request, out));
  CpuDeviceOptions options;
  options.threads = 2;
  QUIRE_ASSIGN_OR_RETURN(const auto device, make_cpu_device(options));
  std::mt19937 random(3);  // NOLINT: the same text every time
  std::vector<std::vector<int32_t>> text(1);
  for (int i = 0; i < 48; ++i)
    text[0].push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(config.vocab_size)));
  const QuantizeJob job = {.checkpoint = source,
                           .config = config,
                           .device = *device,
                           .target = target,
                           .sequences = text,
                           .settings = target.description,
                           .out = out};
  QUIRE_ASSIGN_OR_RETURN(const QuantizeOutcome outcome, run_quantize_job(job, {}));
  QUIRE_RETURN_IF_ERROR(outcome.writer->finish({}));
  return remove_work(job);
}

TEST(QuantizedFiles, GgufIsReadByTheGgufPackage) {
  std::string folder = testing::TempDir() + "quire-quantized-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  write_random_checkpoint(folder + "/source.gguf", DType::kBF16, 17);
  const auto source = Checkpoint::open(folder + "/source.gguf");
  ASSERT_TRUE(source.ok()) << source.status().message();
  int status = 0;
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4_K, DType::kQ6_K}) {
    for (const QuantizeScheme scheme : {QuantizeScheme::kRtn, QuantizeScheme::kGptq}) {
      SCOPED_TRACE(std::string(dtype_info(type).name) + " " + scheme_name(scheme));
      QuantizeRequest request;
      request.type = type;
      request.scheme = scheme;
      const std::string out = folder + "/out.gguf";
      const Status written = quantize(**source, request, out);
      ASSERT_TRUE(written.ok()) << written.message();
      write_given(out, folder + "/given");
      status = check_with_package(out, folder + "/given");
      if (status == kPackageMissing) break;
      EXPECT_EQ(status, 0);
      std::filesystem::remove(out);
    }
  }
  std::filesystem::remove_all(folder);
  if (status == kPackageMissing) GTEST_SKIP() << "python lacks the package gguf (tests/requirements.txt)";
}

}  // namespace
}  // namespace quire
