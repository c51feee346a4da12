// Which tensors a model of given hyper-parameters consists of, and the check of a file's tensors against that.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/checkpoint.h"
#include "formats/families.h"
#include "formats/hparams.h"

namespace quire {

struct SchemaTensors {
  std::vector<TensorRef> used;      // in the order given
  std::vector<std::string> unused;  // names the schema does not know, and biases of zeros where it knows none
};

// How messages speak of the file: its path, and a canonical name as the file spells it.
struct SchemaNaming {
  std::string where;
  std::function<std::string(const std::string&)> spelling;
};

// Splits `found` (canonical names) into those the model uses and others. Fails when a needed tensor is missing, a
// shape is not the one that follows from `hparams`, or a name occurs twice.
// With tied embeddings an "output.weight" is unused.
Result<SchemaTensors> match_schema(const Hparams& hparams, const Family& family, const BiasRules& biases,
                                   std::vector<TensorRef> found, const SchemaNaming& naming);

}  // namespace quire
