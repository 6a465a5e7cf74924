#pragma once

#include <cstdint>
#include <span>

namespace train::decoding {

/// The fewest insertions, deletions and replacements that make `hypothesis` of `reference`. Over
/// the words of all references it is the word error rate.
std::int64_t edits(std::span<const int> reference, std::span<const int> hypothesis);

}  // namespace train::decoding
