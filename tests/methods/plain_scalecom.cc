#include "tests/methods/plain_scalecom.h"

#include <algorithm>
#include <cmath>

namespace scalecom::methods::testing {

PlainScaleCom::PlainScaleCom(int ranks, Rules rules, layout::Layout layout)
    : ranks_(ranks),
      rules_(rules),
      layout_(std::move(layout)),
      memories_(static_cast<std::size_t>(ranks),
                std::vector<float>(static_cast<std::size_t>(layout_.elements()), 0.0F)) {}

std::vector<PlainScaleCom::Chunk> PlainScaleCom::chunks_of(const layout::Slice& slice) const {
  std::vector<Chunk> chunks;
  const std::int64_t length =
      rules_.top_of > 0 ? rules_.top_of : static_cast<std::int64_t>(std::round(slice.rate));
  for (std::int64_t begin = 0; begin < slice.length; begin += length) {
    const std::int64_t end = std::min(slice.length, begin + length);
    const double wanted = std::round(static_cast<double>(end - begin) / slice.rate);
    const auto keep = rules_.top_of > 0 ? std::max<std::int64_t>(1, std::llround(wanted)) : 1;
    chunks.push_back({slice.offset + begin, slice.offset + end, keep});
  }
  return chunks;
}

std::vector<std::int64_t> PlainScaleCom::largest(const std::vector<float>& u,
                                                 std::vector<std::int64_t> among,
                                                 std::int64_t keep) const {
  std::stable_sort(among.begin(), among.end(), [&](std::int64_t a, std::int64_t b) {
    return std::abs(u[static_cast<std::size_t>(a)]) > std::abs(u[static_cast<std::size_t>(b)]);
  });
  among.resize(static_cast<std::size_t>(keep));
  std::sort(among.begin(), among.end());
  return among;
}

std::vector<std::int64_t> PlainScaleCom::select_exact(const std::vector<float>& u) const {
  double wanted = 0;
  std::vector<std::int64_t> among;
  for (const layout::Slice& slice : layout_.slices()) {
    if (slice.rate <= 1) continue;
    wanted += static_cast<double>(slice.length) / slice.rate;
    for (std::int64_t i = 0; i < slice.length; ++i) among.push_back(slice.offset + i);
  }
  if (among.empty()) return {};
  return largest(u, among, std::max<std::int64_t>(1, std::llround(wanted)));
}

int PlainScaleCom::owner_of(std::size_t thing, std::size_t things) const {
  int owner = 0;
  const auto count = static_cast<std::int64_t>(things);
  while (static_cast<std::int64_t>(thing) >= comm::share(count, ranks_, owner).end) ++owner;
  return owner;
}

std::vector<std::int64_t> PlainScaleCom::select(const Gradients& u) const {
  if (rules_.exact) return select_exact(u[static_cast<std::size_t>(steps_ % ranks_)]);
  std::vector<Chunk> chunks;
  for (const layout::Slice& slice : layout_.slices()) {
    if (slice.rate <= 1) continue;
    for (const Chunk& chunk : chunks_of(slice)) chunks.push_back(chunk);
  }
  std::vector<std::int64_t> set;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    std::int64_t leader = steps_ % ranks_;
    if (rules_.sharded) {
      // Share s is led by the rank r for which (r + step) mod n is s.
      leader = ((owner_of(c, chunks.size()) - steps_) % ranks_ + ranks_) % ranks_;
    }
    std::vector<std::int64_t> among;
    for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i) among.push_back(i);
    for (const std::int64_t i :
         largest(u[static_cast<std::size_t>(leader)], among, chunks[c].keep)) {
      set.push_back(i);
    }
  }
  return set;
}

std::vector<float> PlainScaleCom::step(const Gradients& gradients) {
  Gradients u = gradients;
  for (std::size_t r = 0; r < u.size(); ++r) {
    for (std::size_t i = 0; i < u[r].size(); ++i) {
      float& m = memories_[r][i];
      m = std::fma(rules_.beta, gradients[r][i], rules_.decay * m);
      u[r][i] = std::fma(1.0F - rules_.beta, gradients[r][i], m);
    }
  }
  set_ = select(u);
  std::vector<float> mean(static_cast<std::size_t>(layout_.elements()), 0.0F);
  const float factor = 1.0F / static_cast<float>(ranks_);
  for (std::size_t item = 0; item < set_.size(); ++item) {
    const auto i = static_cast<std::size_t>(set_[item]);
    float sum = 0;
    for (std::size_t r = 0; r < u.size(); ++r) {
      const float sent = core::round_to(rules_.values, u[r][i]);
      memories_[r][i] = std::fma(-rules_.beta, sent, memories_[r][i]);
      sum = r == 0 ? sent : sum + sent;
    }
    mean[i] = core::round_to(rules_.values, sum * factor);
    if (rules_.values != core::DType::kFloat32) {
      // The owner of the item rounded the sum, and keeps what that left over.
      const auto owner = static_cast<std::size_t>(owner_of(item, set_.size()));
      const float rest = std::fma(-static_cast<float>(ranks_), mean[i], sum);
      memories_[owner][i] = std::fma(rules_.beta, rest, memories_[owner][i]);
    }
  }
  for (const layout::Slice& slice : layout_.slices()) {
    if (slice.rate > 1) continue;
    for (std::int64_t k = slice.offset; k < slice.offset + slice.length; ++k) {
      const auto i = static_cast<std::size_t>(k);
      mean[i] = gradients[0][i] * factor;
      for (std::size_t r = 1; r < u.size(); ++r) mean[i] += gradients[r][i] * factor;
    }
  }
  ++steps_;
  return mean;
}

}  // namespace scalecom::methods::testing
