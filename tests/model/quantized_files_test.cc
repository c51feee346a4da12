// GGUF files of `quire quantize`, every type and scheme: the `gguf` package reads the very weights that quire does
// (check_written.py). Skipped where no Python has the package.

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
#include "support/test_python.h"

namespace quire {
namespace {

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
  if (const std::string reason = no_test_python(); !reason.empty()) GTEST_SKIP() << reason;
  std::string folder = testing::TempDir() + "quire-quantized-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  write_random_checkpoint(folder + "/source.gguf", DType::kBF16, 17);
  const auto source = Checkpoint::open(folder + "/source.gguf");
  ASSERT_TRUE(source.ok()) << source.status().message();
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
      EXPECT_EQ(run_test_python("check_written.py", {out, folder + "/given"}), 0);
      std::filesystem::remove(out);
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace quire
