#include <algorithm>
#include <vector>

#include "comparison/operations/largest.h"
#include "comparison/operations/methods.h"
#include "scalecom/core/hash.h"
#include "scalecom/layout/selection.h"
#include "scalecom/methods/scalecom/options.h"

namespace comparison::operations {
namespace {

namespace core = scalecom::core;
namespace layout = scalecom::layout;
using Kind = layout::Selection::Kind;
using Options = scalecom::methods::scalecom::Options;

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

/// Of a rank that names the entries, whose work is the most.
class ScaleCom final : public Statement {
 public:
  explicit ScaleCom(const Options& options) : options_(options) {}

  void step(std::span<Number> gradient, const layout::Layout& bucket, std::int64_t step) override {
    memory_.resize(gradient.size());
    u_.resize(gradient.size());
    for (const layout::Slice& slice : bucket.slices()) {
      const auto values = gradient.subspan(static_cast<std::size_t>(slice.offset),
                                           static_cast<std::size_t>(slice.length));
      if (slice.dense()) {
        mean_of_dense(values);
      } else {
        accumulate(slice, values);
      }
    }
    std::vector<std::size_t> set =
        options_.select.kind == Kind::kExact ? exact(bucket) : by_slices(bucket, step);
    for (const layout::Slice& slice : bucket.slices()) {
      if (slice.dense()) continue;
      std::fill_n(gradient.begin() + slice.offset, slice.length, Number(0));
    }
    const Number factor = 1;
    for (const std::size_t i : set) gradient[i] = settle(i) * factor;
  }

 private:
  void accumulate(const layout::Slice& slice, std::span<const Number> gradient) {
    const Number beta = static_cast<float>(options_.beta);
    const Number rest = 1.0F - beta.value();
    const Number decay = static_cast<float>(options_.decay);
    bool finite = true;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(slice.offset) + i;
      memory_[at] = fma(beta, gradient[i], decay * memory_[at]);
      u_[at] = fma(rest, gradient[i], memory_[at]);
      finite = is_finite(u_[at]) && finite;
    }
  }

  /// What is sent of entry `i`.
  Number settle(std::size_t i) {
    const Number sent = rounded(options_.value_type(), u_[i]);
    memory_[i] = fma(-static_cast<float>(options_.beta), sent, memory_[i]);
    return sent;
  }

  std::vector<std::size_t> by_slices(const layout::Layout& bucket, std::int64_t step) const {
    std::vector<std::size_t> set;
    for (const layout::Slice& slice : bucket.slices()) {
      if (slice.dense()) continue;
      const layout::Cut cut = layout::cut(slice, options_.select);
      const std::uint64_t seed =
          core::combine(core::combine(static_cast<std::uint64_t>(options_.seed),
                                      static_cast<std::uint64_t>(step)),
                        core::hash(slice.name));
      for (std::int64_t c = 0; c < cut.chunks(); ++c) {
        const std::int64_t first = c * cut.chunk;
        const std::int64_t size = std::min(cut.chunk, cut.length - first);
        const auto begin = static_cast<std::size_t>(slice.offset + first);
        const auto end = begin + static_cast<std::size_t>(size);
        switch (options_.select.kind) {
          case Kind::kRandom:
            set.push_back(begin + drawn(seed, c, size));
            break;
          case Kind::kTop: {
            std::vector<Candidate> among;
            add_candidates(begin, end, among);
            add_largest(std::move(among), cut.kept_before(c + 1) - cut.kept_before(c), set);
            break;
          }
          default:
            set.push_back(largest(begin, end));
        }
      }
    }
    return set;
  }

  static std::size_t drawn(std::uint64_t seed, std::int64_t chunk, std::int64_t size) {
    const Bits upper = combine(Bits(seed), Bits(static_cast<std::uint64_t>(chunk))) >> 32;
    return static_cast<std::size_t>(
        ((upper * Bits(static_cast<std::uint64_t>(size))) >> 32).value());
  }

  std::size_t largest(std::size_t begin, std::size_t end) const {
    std::size_t best = begin;
    Number most = abs(u_[begin]);
    for (std::size_t i = begin + 1; i < end; ++i) {
      const Number size = abs(u_[i]);
      if (size > most) {
        best = i;
        most = size;
      }
    }
    return best;
  }

  static void add_largest(std::vector<Candidate> among, std::int64_t keep,
                          std::vector<std::size_t>& set) {
    keep_largest(among, keep);
    for (const Candidate& one : among) set.push_back(one.at);
  }

  void add_candidates(std::size_t begin, std::size_t end, std::vector<Candidate>& among) const {
    for (std::size_t i = begin; i < end; ++i) among.push_back({abs(u_[i]), i});
  }

  std::vector<std::size_t> exact(const layout::Layout& bucket) const {
    std::vector<Candidate> among;
    double keep = 0;
    for (const layout::Slice& slice : bucket.slices()) {
      if (slice.dense()) continue;
      keep += static_cast<double>(slice.length) / slice.rate;
      const auto begin = static_cast<std::size_t>(slice.offset);
      add_candidates(begin, begin + static_cast<std::size_t>(slice.length), among);
    }
    std::vector<std::size_t> set;
    if (!among.empty()) {
      add_largest(std::move(among), std::max<std::int64_t>(1, std::llround(keep)), set);
    }
    return set;
  }

  Options options_;
  std::vector<Number> memory_;
  std::vector<Number> u_;
};

}  // namespace

std::unique_ptr<Statement> state_scalecom(const core::OptionString& options) {
  Options read;
  read.read(options);
  return std::make_unique<ScaleCom>(read);
}

}  // namespace comparison::operations
