"""quantized_tools_reader.py TASK.json - runs quantized directories in the tools whose formats they are; a part of quantized_tools.py.

TASK.json is {"ids": [[...], ...], "directories": [...]}, an id list for each directory. For each directory a line of JSON goes to
standard output: {"directory", "exact", "loaded"}, log-probabilities of every id but the first, or {"directory", "error"}.

  loaded  by the model as the tool loads it: gptqmodel's torch kernels with f16 weights and activations; compressed-tensors
          through transformers, which decompresses to the type of the scales, f16, and computes in f32
  exact   in f32 with the weights that the tool's own decoder gives once the scales are f32, so that products are not rounded
"""

import json
import os
import sys
from pathlib import Path

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TORCHDYNAMO_DISABLE": "1", "GPTQMODEL_CPU_WORKERS": "4", "HF_HUB_OFFLINE": "1"}

import torch
from safetensors.torch import load_file


@torch.no_grad()
def logprobs(model, ids):
    x = torch.tensor([ids])
    scores = model(input_ids=x, use_cache=False).logits[0].float().log_softmax(-1)
    return scores[:-1].gather(1, x[0, 1:, None])[:, 0].tolist()


def replace(model, name, weight):
    """A plain linear in place of the tool's; weight is [n, k], f32."""
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    bias = getattr(model.get_submodule(name), "bias", None)
    linear.weight = torch.nn.Parameter(weight.contiguous(), requires_grad=False)
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias.float(), requires_grad=False)
    model.set_submodule(name, linear)


def by_gptqmodel(folder, method):
    from gptqmodel import BACKEND, GPTQModel
    from gptqmodel.nn_modules.qlinear import BaseQuantLinear
    from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm

    backend = BACKEND.AWQ_TORCH if method == "awq" else BACKEND.GPTQ_TORCH
    model = GPTQModel.load(str(folder), device="cpu", backend=backend, dtype=torch.float16).model.eval()

    def decoded():
        for name, module in list(model.named_modules()):
            if not isinstance(module, BaseQuantLinear):
                continue
            module.scales = module.scales.float()
            if method == "awq":
                weight = dequantize_gemm(module.qweight, module.qzeros, module.scales, module.bits, module.group_size)
            else:
                weight = module.dequantize_weight()
            yield name, weight.T

    return model, decoded


def by_compressed_tensors(folder, settings):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationConfig
    from transformers import AutoModelForCausalLM, CompressedTensorsConfig

    model = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", quantization_config=CompressedTensorsConfig(dequantize=True)).eval()

    def decoded():
        config = QuantizationConfig.model_validate(settings)
        compressor, scheme = BaseCompressor.get_value_from_registry(config.format), config.config_groups["group_0"]
        parts = {}
        for name, tensor in load_file(folder / "model.safetensors").items():
            module, part = name.rsplit(".", 1)
            parts.setdefault(module, {})[part] = tensor
        for module, tensors in parts.items():
            if "weight_packed" in tensors:
                tensors["weight_scale"] = tensors["weight_scale"].float()
                yield module, compressor.decompress(tensors, scheme)["weight"]

    return model, decoded


def run(folder, ids):
    settings = json.loads((folder / "config.json").read_text())["quantization_config"]
    method = settings["quant_method"]
    if method == "compressed-tensors":
        model, decoded = by_compressed_tensors(folder, settings)
    else:
        model, decoded = by_gptqmodel(folder, method)
    loaded, count = logprobs(model, ids), 0
    for name, weight in decoded():
        replace(model, name, weight)
        count += 1
    if count == 0 or count % model.config.num_hidden_layers:
        raise RuntimeError(f"the tool found {count} quantized linears in {model.config.num_hidden_layers} layers")
    return {"exact": logprobs(model.float(), ids), "loaded": loaded}


def main(task):
    # The tools print to standard output; only answers may go there.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for ids, directory in zip(task["ids"], task["directories"], strict=True):
        try:
            answer = run(Path(directory), ids)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"directory": directory} | answer), file=answers, flush=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
