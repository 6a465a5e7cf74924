#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace comparison {

/// A method that takes part in a comparison.
struct Entrant {
  std::string label;  ///< as it was asked for: "scalecom"
  std::string spec;   ///< what is run, but for its warm-up: "scalecom,rate=100,beta=0.1"

  bool operator==(const Entrant&) const = default;
};

/// The methods of a list such as "dense,scalecom,topk,rate=50": a piece with "=" is an option of
/// the method before it. A name alone stands for the method's usual setting. "all" is every method
/// there is, and scalecom with a random set as a control. core::UsageError for an empty list, a
/// method or an option that is not, and one that stands twice.
std::vector<Entrant> parse_methods(const std::string& list);

/// The entrant's spec for a run of `steps` steps: where the method can send its first steps dense
/// and was not told how many, they are this share of them.
std::string with_warmup(const std::string& spec, double share, std::int64_t steps);

}  // namespace comparison
