// The two ways to write down a SentencePiece-style vocabulary: a score for each piece (GGUF), or a list of merges
// (tokenizer.json).
//
// With scores, any two neighbours may join whose text is a piece: the highest score first, the leftmost on ties. With
// merges, only listed pairs may join, the earliest listed first. Both give the same tokens when the pairs of a piece
// stand together in the list, in the order of the scores, and no pair is left out. Pieces of one score can only be told
// apart by place, so they are refused, but for runs of one character: there "the longest left part first" comes to
// "leftmost first". The same order is used among the pairs of one piece, as Hugging Face's converter does; two pairs of
// one piece compete only where two occurrences of it overlap, out of reach of the pieces around.
//
// Pure functions, any thread. Memory: some 30 bytes a merge. Source: huggingface/transformers, convert_slow_tokenizer.py
// (generate_merges); google/sentencepiece, bpe_model.cc.
#pragma once

#include <vector>

#include "base/status.h"
#include "text/tokenizer_spec.h"

namespace quire {

// The merges of a spec with scores. Messages name tokenizer.ggml.scores.
Result<std::vector<Merge>> merges_from_scores(const TokenizerSpec& spec);

// A score for each token of a spec with merges: 0, -1, ... for pieces in the order of their merges, then for those that no
// merge makes, by id, as SentencePiece numbers them; 0 for control, byte and unknown tokens. Fails where no scores say what the merges say: messages name model.merges of tokenizer.json.
Result<std::vector<float>> scores_from_merges(const TokenizerSpec& spec);

}  // namespace quire
