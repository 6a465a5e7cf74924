#include "scalecom/methods/contraction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "scalecom/kernels/largest.h"

namespace scalecom::methods {
namespace {

/// Sums over entries, in double precision.
struct Sums {
  double all = 0;           // of y^2
  double left = 0;          // of (y - sent)^2
  double taken = 0;         // of y^2 where y itself would choose
  std::int64_t chosen = 0;  // entries that it would choose, but for zeros
  std::int64_t missed = 0;  // those of them that were not sent
};

double square(double x) {
  return x * x;
}

/// The first of the largest magnitudes.
std::int64_t largest(std::span<const float> values) {
  const auto found = std::max_element(values.begin(), values.end(), [](float a, float b) {
    return kernels::magnitude_key(a) < kernels::magnitude_key(b);
  });
  return found - values.begin();
}

class Comparison {
 public:
  Comparison(std::span<const float> y, std::span<const float> sent) : y_(y), sent_(sent) {}

  const Sums& sums() const { return sums_; }

  /// One chunk, of which `keep` entries are chosen.
  void add_chunk(std::int64_t begin, std::int64_t length, std::int64_t keep) {
    if (keep == 1) {
      choose(begin + largest(y_.subspan(static_cast<std::size_t>(begin),
                                        static_cast<std::size_t>(length))));
      return;
    }
    positions_.resize(static_cast<std::size_t>(keep));
    kernels::select_largest(y_.data() + begin, length, keep, positions_.data());
    for (const std::uint32_t position : positions_) choose(begin + position);
  }

  void add_slice(const layout::Slice& slice) {
    for (std::int64_t i = slice.offset; i < slice.offset + slice.length; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sums_.all += square(y_[at]);
      sums_.left += square(static_cast<double>(y_[at]) - sent_[at]);
    }
  }

  void choose(std::int64_t position) {
    const auto at = static_cast<std::size_t>(position);
    if (y_[at] == 0) return;
    sums_.taken += square(y_[at]);
    ++sums_.chosen;
    if (sent_[at] == 0) ++sums_.missed;
  }

 private:
  std::span<const float> y_;
  std::span<const float> sent_;
  std::vector<std::uint32_t> positions_;
  Sums sums_;
};

void choose_by_chunk(Comparison& comparison, const layout::Slice& slice,
                     const layout::Selection& selection) {
  const layout::Cut cut = layout::cut(slice, selection);
  for (std::int64_t begin = 0; begin < slice.length; begin += cut.chunk) {
    const std::int64_t length = std::min(cut.chunk, slice.length - begin);
    comparison.add_chunk(slice.offset + begin, length,
                         length == cut.chunk ? cut.keep : cut.keep_tail);
  }
}

/// All compressed slices as one, of which an exact selection keeps as many as their rates say.
void choose_over_all(Comparison& comparison, std::span<const float> y,
                     const layout::Layout& layout) {
  std::vector<float> joined;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;  // in `joined`, in the bucket
  double wanted = 0;
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.dense()) continue;
    places.emplace_back(static_cast<std::int64_t>(joined.size()), slice.offset);
    const auto values =
        y.subspan(static_cast<std::size_t>(slice.offset), static_cast<std::size_t>(slice.length));
    joined.insert(joined.end(), values.begin(), values.end());
    wanted += static_cast<double>(slice.length) / slice.rate;
  }
  if (joined.empty()) return;
  const auto length = static_cast<std::int64_t>(joined.size());
  const std::int64_t keep = std::clamp<std::int64_t>(std::llround(wanted), 1, length);
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(keep));
  kernels::select_largest(joined.data(), length, keep, positions.data());
  auto place = places.begin();
  for (const std::uint32_t position : positions) {
    while (place + 1 != places.end() && (place + 1)->first <= position) ++place;
    comparison.choose(place->second + position - place->first);
  }
}

}  // namespace

std::optional<Contraction> measure_contraction(std::span<const float> y,
                                               std::span<const float> sent,
                                               const layout::Layout& layout,
                                               const layout::Selection& selection) {
  Comparison comparison(y, sent);
  for (const layout::Slice& slice : layout.slices()) {
    if (!slice.dense()) comparison.add_slice(slice);
  }
  const double all = comparison.sums().all;
  if (all == 0 || !std::isfinite(all) || !std::isfinite(comparison.sums().left)) {
    return std::nullopt;
  }
  if (selection.kind == layout::Selection::Kind::kExact) {
    choose_over_all(comparison, y, layout);
  } else {
    for (const layout::Slice& slice : layout.slices()) {
      if (!slice.dense()) choose_by_chunk(comparison, slice, selection);
    }
  }
  const Sums& sums = comparison.sums();
  return Contraction{static_cast<double>(sums.missed) / static_cast<double>(sums.chosen),
                     sums.left / all, std::max(0.0, (all - sums.taken) / all)};
}

}  // namespace scalecom::methods
