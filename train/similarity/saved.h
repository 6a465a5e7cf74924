#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace train::similarity {

/// How alike the memories of a saved set's learners are: of its ranks, or of groups of ranks that
/// share one among them.
struct Similarity {
  struct Tensor {
    std::string name;
    std::int64_t elements = 0;
    std::vector<double> norms;  ///< by learner
  };

  std::string method;
  std::int64_t step = 0;
  int ranks = 0;  ///< learners
  std::vector<Tensor> tensors;
  std::vector<double> norms;                ///< by rank, of all tensors together
  std::vector<std::vector<double>> cosine;  ///< of each two ranks; 0 where a memory is all zero

  /// 1 - cosine, averaged over pairs of different ranks: 0 for memories that point the same way,
  /// 1 for memories that have nothing to do with one another. 0 for a single rank.
  double mean_distance() const;
};

/// Reads a folder that scalecom/state wrote, each file once and in pieces, so that little room is
/// taken. core::UsageError, naming the file, where one is damaged.
Similarity measure(const std::filesystem::path& folder);

}  // namespace train::similarity
