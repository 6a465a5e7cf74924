#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/models/sequence.h"

namespace train::models {

/// Text into text (Vaswani et al., 2017), with norms before each part of a layer, and one table of
/// tokens for the source, the target and the output.
///
/// To learn and to score, a row has 2 L + 1 tokens: L of the source, and then L + 1 of the target,
/// which begins with `begin`; both end with `end` and are filled with `nothing`. A score is the
/// sample's loss, its target's tokens, and how many of them are the most probable given those
/// before. To answer, a row is a source, and the answer the tokens of its translation, filled in
/// the same way. The engine's table is positions().
struct TransformerOptions {
  static constexpr int kNothing = 0;
  static constexpr int kBegin = 1;
  static constexpr int kEnd = 2;

  std::int64_t vocabulary = 8000;
  std::int64_t width = 256;
  std::int64_t heads = 4;
  std::int64_t inner = 1024;  ///< width between the two layers of a feed-forward part
  std::int64_t layers = 3;    ///< of the encoder, and of the decoder
  double dropout = 0.1;
  double smoothing = 0.1;    ///< what of a label goes to all tokens alike
  std::int64_t longest = 1;  ///< tokens of a source, a target or an answer, `end` included
  int beam = 4;
  double tokens = 1;       ///< of a sample on average, for the tensors' FLOPs
  std::int64_t batch = 1;  ///< a learner's mini-batch

  /// What is added to the token at each place: sines and cosines, `width` numbers a place.
  std::vector<float> positions() const;
};

std::unique_ptr<SequenceModel> make_transformer(const TransformerOptions& options);

}  // namespace train::models
