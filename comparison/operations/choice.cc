#include "comparison/operations/choice.h"

#include <algorithm>
#include <cmath>

#include "comparison/operations/largest.h"
#include "scalecom/core/hash.h"
#include "scalecom/layout/selection.h"

namespace comparison::operations {
namespace {

namespace core = scalecom::core;
namespace layout = scalecom::layout;
using Kind = layout::Selection::Kind;
using Numbers = std::span<const Number>;
using Options = scalecom::methods::scalecom::Options;
using Positions = std::vector<std::size_t>;

/// core::mix() and core::combine(), counted.
Bits mix(Bits x) {
  x = x + Bits(0x9e3779b97f4a7c15ULL);
  x = (x ^ (x >> 30)) * Bits(0xbf58476d1ce4e5b9ULL);
  x = (x ^ (x >> 27)) * Bits(0x94d049bb133111ebULL);
  return x ^ (x >> 31);
}
Bits combine(Bits seed, Bits value) {
  return mix(seed ^ mix(value));
}

std::size_t drawn(std::uint64_t seed, std::int64_t chunk, std::int64_t size) {
  const Bits upper = combine(Bits(seed), Bits(static_cast<std::uint64_t>(chunk))) >> 32;
  return static_cast<std::size_t>(((upper * Bits(static_cast<std::uint64_t>(size))) >> 32).value());
}

std::size_t largest(Numbers u, std::size_t begin, std::size_t end) {
  std::size_t best = begin;
  Number most = abs(u[begin]);
  for (std::size_t i = begin + 1; i < end; ++i) {
    const Number size = abs(u[i]);
    if (size > most) {
      best = i;
      most = size;
    }
  }
  return best;
}

void add_candidates(Numbers u, std::size_t begin, std::size_t end, std::vector<Candidate>& among) {
  for (std::size_t i = begin; i < end; ++i) among.push_back({abs(u[i]), i});
}

void add_largest(std::vector<Candidate> among, std::int64_t keep, Positions& set) {
  keep_largest(among, keep);
  for (const Candidate& one : among) set.push_back(one.at);
}

void add_by_chunks(Numbers u, const layout::Slice& slice, const Options& options, std::int64_t step,
                   Positions& set) {
  const layout::Cut cut = layout::cut(slice, options.select);
  const std::uint64_t seed = core::combine(
      core::combine(static_cast<std::uint64_t>(options.seed), static_cast<std::uint64_t>(step)),
      core::hash(slice.name));
  for (std::int64_t c = 0; c < cut.chunks(); ++c) {
    const std::int64_t first = c * cut.chunk;
    const std::int64_t size = std::min(cut.chunk, cut.length - first);
    const auto begin = static_cast<std::size_t>(slice.offset + first);
    const auto end = begin + static_cast<std::size_t>(size);
    switch (options.select.kind) {
      case Kind::kRandom:
        set.push_back(begin + drawn(seed, c, size));
        break;
      case Kind::kTop: {
        std::vector<Candidate> among;
        add_candidates(u, begin, end, among);
        add_largest(std::move(among), cut.kept_before(c + 1) - cut.kept_before(c), set);
        break;
      }
      default:
        set.push_back(largest(u, begin, end));
    }
  }
}

Positions exact(Numbers u, const layout::Layout& bucket) {
  std::vector<Candidate> among;
  double keep = 0;
  for (const layout::Slice& slice : bucket.slices()) {
    if (slice.dense()) continue;
    keep += static_cast<double>(slice.length) / slice.rate;
    const auto begin = static_cast<std::size_t>(slice.offset);
    add_candidates(u, begin, begin + static_cast<std::size_t>(slice.length), among);
  }
  Positions set;
  if (!among.empty()) {
    add_largest(std::move(among), std::max<std::int64_t>(1, std::llround(keep)), set);
  }
  return set;
}

}  // namespace

Positions choose(Numbers u, const layout::Layout& bucket, const Options& options,
                 std::int64_t step) {
  if (options.select.kind == Kind::kExact) return exact(u, bucket);
  Positions set;
  for (const layout::Slice& slice : bucket.slices()) {
    if (!slice.dense()) add_by_chunks(u, slice, options, step, set);
  }
  return set;
}

}  // namespace comparison::operations
