#include "scalecom/layout/layout.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"

namespace scalecom::layout {
namespace {

using core::concat;
using core::UsageError;

void check(const Slice& slice, std::int64_t expected_offset) {
  if (slice.name.empty()) throw UsageError("[layout] a slice has no name; every slice needs one");
  // Memories of parts are told from those of whole tensors by their names alone.
  if (parse_part_key(slice.name)) {
    throw UsageError(concat("[layout] a tensor is named '", slice.name,
                            "', which is how a part of another one is named"));
  }
  if (slice.length < 0) {
    throw UsageError(concat("[layout] slice '", slice.name, "' has the length ", slice.length,
                            "; lengths are 0 or more"));
  }
  if (!std::isfinite(slice.rate) || slice.rate < kDense) {
    throw UsageError(concat("[layout] slice '", slice.name, "' has the rate ",
                            core::shortest(slice.rate), "; rates are finite and 1 or more"));
  }
  if (slice.first < 0) {
    throw UsageError(concat("[layout] slice '", slice.name, "' begins at element ", slice.first,
                            " of its tensor; elements are counted from 0"));
  }
  if (!slice.shape.empty()) {
    const std::int64_t elements = Tensor{slice.name, slice.shape}.elements();
    if (slice.first > elements || slice.length > elements - slice.first) {
      throw UsageError(concat("[layout] slice '", slice.name, "' has ", slice.length,
                              " elements from ", slice.first, " on, and its tensor has ",
                              elements));
    }
  }
  if (slice.offset != expected_offset) {
    throw UsageError(concat("[layout] slice '", slice.name, "' begins at ", slice.offset,
                            "; slices follow one another, so it must begin at ", expected_offset));
  }
}

std::string part_key(const PartKey& part) {
  return concat(part.name, "[", part.first, ":", part.end, "]");
}

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  bool overflow = false;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw UsageError(
          concat("[layout] tensor '", name, "' has the size ", size, "; sizes are 0 or more"));
    }
    empty = empty || size == 0;
    overflow = overflow || __builtin_mul_overflow(product, size, &product);
  }
  if (empty) return 0;
  if (overflow) {
    throw UsageError(concat("[layout] tensor '", name, "' has more than 2^63 - 1 elements"));
  }
  return product;
}

bool Slice::whole() const {
  return first == 0 && (shape.empty() || length == Tensor{name, shape}.elements());
}

std::string Slice::key() const {
  return whole() ? name : part_key({name, first, first + length});
}

std::optional<PartKey> parse_part_key(const std::string& key) {
  const std::size_t bracket = key.rfind('[');
  const std::size_t colon = key.rfind(':');
  if (bracket == std::string::npos || colon == std::string::npos || colon < bracket ||
      key.back() != ']') {
    return std::nullopt;
  }
  PartKey part{key.substr(0, bracket)};
  std::from_chars(key.data() + bracket + 1, key.data() + colon, part.first);
  std::from_chars(key.data() + colon + 1, key.data() + key.size() - 1, part.end);
  // Whatever was not a number, or not written as key() does, comes out otherwise.
  if (part.first < 0 || part.end < part.first || part_key(part) != key) return std::nullopt;
  return part;
}

Layout::Layout(std::vector<Slice> slices) : slices_(std::move(slices)) {
  std::unordered_set<std::string_view> names;
  fingerprint_ = core::hash("layout");
  for (const Slice& slice : slices_) {
    check(slice, elements_);
    if (!names.insert(slice.name).second) {
      throw UsageError(
          concat("[layout] the name '", slice.name, "' stands twice; names are unique"));
    }
    if (__builtin_add_overflow(elements_, slice.length, &elements_)) {
      throw UsageError("[layout] the slices have more than 2^63 - 1 elements together");
    }
    fingerprint_ = core::combine(fingerprint_, core::hash(slice.name));
    fingerprint_ = core::combine(fingerprint_, static_cast<std::uint64_t>(slice.length));
    fingerprint_ = core::combine(fingerprint_, std::bit_cast<std::uint64_t>(slice.rate));
    for (const std::int64_t size : slice.shape) {
      fingerprint_ = core::combine(fingerprint_, static_cast<std::uint64_t>(size));
    }
    if (slice.first != 0) {
      fingerprint_ = core::combine(fingerprint_, core::hash("first"));  // which is no size
      fingerprint_ = core::combine(fingerprint_, static_cast<std::uint64_t>(slice.first));
    }
  }
}

Layout all_dense(const Layout& layout) {
  std::vector<Slice> slices(layout.slices().begin(), layout.slices().end());
  for (Slice& slice : slices) slice.rate = kDense;
  return Layout(std::move(slices));
}

}  // namespace scalecom::layout
