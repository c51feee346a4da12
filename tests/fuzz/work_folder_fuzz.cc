// Any files in the folder of an unfinished `quire quantize`: an error, or a model that is written whole.
//
// Input: which output ("gptq", "ct", "gguf" or "residual"), then the tensors of layer 0 or, for "residual", of the stream
// after it (fuzz/documents.h), with "---" between them. The model has one layer, for "residual" two.
#include <memory>
#include <string>
#include <vector>

#include "fuzz/documents.h"
#include "model/registry.h"
#include "quantize/job.h"

namespace quire {
namespace {

constexpr const char* kSettings = "settings of the fuzzer\n";

std::string config_text(int layers) {
  return R"({"model_type":"llama","vocab_size":32,"hidden_size":32,"intermediate_size":32,"num_attention_heads":1,)"
         R"("num_key_value_heads":1,"max_position_embeddings":64,"rms_norm_eps":1e-5,"num_hidden_layers":)" +
         std::to_string(layers) + "}";
}

std::string tensors_text(int layers) {
  const std::string matrix = " F32 32 32 =0000803f000000bf0000003e\n", vector = " F32 32 =0000803f\n";
  std::string text = "model.embed_tokens.weight" + matrix + "lm_head.weight" + matrix + "model.norm.weight" + vector;
  for (int layer = 0; layer < layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                             "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      text += prefix + name + ".weight" + matrix;
    }
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) text += prefix + name + ".weight" + vector;
  }
  return text;
}

struct Model {
  explicit Model(int layers) {
    folder.write("config.json", config_text(layers));
    folder.write("model.safetensors", DescribedTensors(tensors_text(layers)).file());
    auto opened = Checkpoint::open(folder.path());
    fuzz_require(opened.ok(), opened.status().message());
    checkpoint = std::move(*opened);
    config = *configure_model(checkpoint->hparams());
  }
  FuzzFolder folder;
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
};

std::unique_ptr<Device> one_thread() {
  CpuDeviceOptions options;
  options.threads = 1;
  options.adapt_threads = false;
  return std::move(*make_cpu_device(options));
}

QuantizeRequest request_of(const std::string& output) {
  using Format = CheckpointTarget::Format;
  QuantizeRequest request;
  request.scheme = output == "residual" ? QuantizeScheme::kGptq : QuantizeScheme::kRtn;
  request.importance = false;
  if (output != "gguf") request.group = 32;
  request.format = output == "gguf" ? Format::kGguf : output == "ct" ? Format::kCompressedTensors : Format::kGptq;
  return request;
}

void resume(const Model& model, const std::string& output, const std::string& tensors) {
  static const std::unique_ptr<Device> device = one_thread();
  const FuzzFolder folder;
  const std::string out = folder.file(output == "gguf" ? "out.gguf" : "out");
  const auto target = quantize_target(*model.checkpoint, request_of(output), out);
  fuzz_require(target.ok(), target.status().message());
  std::filesystem::create_directory(out + ".work");
  const std::string work = out.substr(folder.path().size() + 1) + ".work/";
  folder.write(work + "settings.txt", kSettings);
  const std::string file = DescribedTensors(tensors).file();
  folder.write(work + "layer-0.safetensors", output == "residual" ? DescribedTensors("").file() : file);
  if (output == "residual") folder.write(work + "residual-0.safetensors", file);
  const QuantizeJob job = {.checkpoint = *model.checkpoint,
                           .config = model.config,
                           .device = *device,
                           .target = *target,
                           .sequences = {std::vector<int32_t>(8, 1)},
                           .settings = kSettings,
                           .out = out};
  const auto outcome = run_quantize_job(job, {.show = nullptr, .cancelled = nullptr});
  if (!outcome.ok()) {
    fuzz_require(outcome.status().message().find(out + ".work") != std::string::npos,
                 "the error names the folder: " + outcome.status().message());
    return;
  }
  const Status finished = outcome->writer->finish({});
  fuzz_require(finished.ok(), finished.message());
  const auto written = Checkpoint::open(out);
  fuzz_require(written.ok(), written.status().message());
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const quire::Model one(1), two(2);
  const auto parts = quire::split_documents({reinterpret_cast<const char*>(bytes), size}, 2);
  quire::resume(parts[0] == "residual" ? two : one, parts[0], parts[1]);
  return 0;
}
