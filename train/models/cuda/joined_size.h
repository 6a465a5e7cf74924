#pragma once

#include <cstdint>

namespace train::models::cuda {

/// How many of the `learners` of a process should be joined: as many as have `most` samples, and
/// the same number each time. 1 where none should be.
constexpr std::int64_t joined_size(std::int64_t learners, std::int64_t batch, std::int64_t most) {
  std::int64_t joined = learners;
  while (joined > 1 && (learners % joined != 0 || joined * batch > most)) --joined;
  return joined;
}

}  // namespace train::models::cuda
