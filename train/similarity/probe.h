#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "scalecom/comm/communicator.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/contraction.h"
#include "scalecom/methods/method.h"
#include "train/similarity/flat_memory.h"
#include "train/similarity/gram.h"

namespace train::similarity {

/// What learners had in common in a step. What does not apply is not there: angles and quantiles
/// where fewer than two learners have a memory, the rest where they do not all send the same
/// entries.
struct Reading {
  /// The memories of the first two learners, at the same quantiles: a Q-Q plot.
  struct Quantiles {
    std::vector<double> at;
    std::vector<float> first;
    std::vector<float> second;
  };

  std::optional<Gram::Distances> distances;  ///< between memories, after the step
  std::optional<scalecom::methods::Contraction> contraction;
  std::optional<Quantiles> quantiles;
};

/// The fields of a line of similarity.jsonl, null for what is not there.
nlohmann::ordered_json to_json(const Reading& reading);

/// Looks at a method's steps from outside, and changes nothing: what there is to send is computed
/// from the memories and the gradients, what was sent is seen in the mean that comes out, and the
/// learners exchange it over a communicator that is not the method's. Learners that share a memory,
/// as a group does, are one. A learner's part is taken in pieces: besides its memories no more than
/// a few megabytes are taken, but for learner 0, which holds y and what was sent.
class Probe {
 public:
  /// Every learner makes one, and calls it for the same steps; all of these outlive it. The layout
  /// is that of the one bucket that a step is.
  Probe(scalecom::comm::Communicator& control, const scalecom::methods::Method& method,
        const scalecom::layout::Layout& layout);

  /// Before the method is given this learner's gradient, which lies on the stream's device.
  void before(std::span<const float> gradient, const scalecom::core::Stream& stream);
  /// When the mean has come out; what was seen is told to learner 0 alone.
  Reading after(std::span<const float> mean, const scalecom::core::Stream& stream);

 private:
  bool is_first() const { return control_.rank() == 0; }
  std::optional<Gram::Distances> distances(const FlatMemory& memory);
  std::optional<Reading::Quantiles> quantiles(const FlatMemory& memory,
                                              std::span<const std::int64_t> elements);
  std::vector<float> quantiles_of(std::size_t learner, const FlatMemory& memory,
                                  std::span<const std::int64_t> elements);

  scalecom::comm::Communicator& control_;
  const scalecom::methods::Method& method_;
  const scalecom::layout::Layout& layout_;
  std::vector<std::size_t> learner_of_;  // by rank: several ranks may be one
  std::size_t learners_ = 1;
  std::optional<scalecom::methods::Choice> choice_;  // of the step under way
  std::vector<float> wanted_;                        // y, at learner 0
};

}  // namespace train::similarity
