// How a generation samples when options, model and fallbacks each say a part: one rule for every way of asking.
#pragma once

#include "base/status.h"
#include "engine/request.h"
#include "formats/hparams.h"
#include "options/options.h"
#include "sample/sampling_params.h"

namespace quire {

// Options first; what they leave open the model's own configuration decides, and where that says nothing about sampling
// at all, the fallbacks of options/options.h. A seed that nobody gave is drawn. Not yet validated.
SamplingParams sampling_params(const Options& options, const Hparams& hparams);

// What ends the answer: stop texts and ids, and whether the model's own end tokens do. Fails as StopTexts::create() does.
Status set_ends(const Options& options, Request& request);

}  // namespace quire
