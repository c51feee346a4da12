// What a quantization has done so far, in a folder beside its output ("OUT.work"): each finished layer and the residual
// stream after it, so that a stopped run is resumed. Removed when the output is complete.
//
// The files are safetensors, each written under its name only when it is whole. Thread: one caller.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "quantize/quantizer.h"

namespace quire {

class WorkFolder {
 public:
  // `settings` describe everything that the result depends on. An existing folder with the same settings is resumed;
  // with others it is an error that says so, and so are files of somebody else in it.
  static Result<WorkFolder> open(const std::string& path, const std::string& settings);

  // Layers that are done: those before this one.
  size_t layers() const { return layers_; }

  Status store(size_t layer, const QuantizedLayer& result, std::span<const float> residual);
  // What the file of a layer holds; whether that is a layer of this model is for the caller to check.
  Result<QuantizedLayer> load(size_t layer) const;
  // The residual stream after the last layer that is done.
  Status load_residual(std::span<float> out) const;

  // A failure that what lies in the folder caused, with the advice to start anew.
  Status damaged(const Status& status) const;

  Status remove();

 private:
  std::string path_;
  size_t layers_ = 0;
};

}  // namespace quire
