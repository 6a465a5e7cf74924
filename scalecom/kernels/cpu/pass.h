#pragma once

#include <xmmintrin.h>

#include "scalecom/kernels/cpu/items.h"
#include "scalecom/kernels/cpu/lanes.h"

/// The passes over every element.
namespace scalecom::kernels::cpu {

/// How far ahead of the follower's pass memory is fetched, in bytes. The hardware's own prefetcher
/// stops at every page; asking for the second-level cache leaves the few slots of the first free.
constexpr std::int64_t kAheadBytes = 1024;

/// Chunks that the leader's pass settles together: few enough to be in the cache still.
constexpr std::int64_t kSettledTogether = 16;

/// The first pass over one vector: m becomes m'; u is returned. With kClear the gradient becomes 0.
template <typename L, typename G, bool kClear>
class FirstPass {
 public:
  using Floats = typename L::Floats;

  FirstPass(G* grad, float* memory, Filter filter)
      : beta_(L::broadcast(filter.beta)),
        rest_(L::broadcast(1.0F - filter.beta)),
        decay_(L::broadcast(filter.decay)),
        grad_(grad),
        memory_(memory) {}

  /// `mask` is nothing for a whole vector, or its lanes.
  template <typename... Mask>
  Floats step(std::int64_t i, Mask... mask) {
    Floats g = L::load(grad_ + i, mask...);
    const Floats decayed = L::times(decay_, L::load(memory_ + i, mask...));
    Floats after = L::fma(beta_, g, decayed);
    Floats u = L::fma(rest_, g, after);
    if (const auto bad = not_finite<L>(u); __builtin_expect(L::any(bad), 0)) {
      finite_ = false;
      g = L::select(bad, L::broadcast(0.0F), g);
      after = L::fma(beta_, g, decayed);
      u = L::fma(rest_, g, after);
      if constexpr (!kClear) L::store(grad_ + i, g, mask...);
    }
    L::store(memory_ + i, after, mask...);
    if constexpr (kClear) L::clear(grad_ + i, mask...);
    return u;
  }

  bool finite() const { return finite_; }

 private:
  Floats beta_;
  Floats rest_;
  Floats decay_;
  G* grad_;
  float* memory_;
  bool finite_ = true;
};

template <typename L>
bool accumulate(const Tensor& tensor, Filter filter, std::int64_t begin, std::int64_t end) {
  return with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    FirstPass<L, std::remove_pointer_t<decltype(grad)>, false> pass(grad, tensor.memory, filter);
    for_each_vector<L>(tensor.memory, begin, end, [&](std::int64_t i, auto... mask) {
      _mm_prefetch(reinterpret_cast<const char*>(grad + i) + kAheadBytes, _MM_HINT_T1);
      _mm_prefetch(reinterpret_cast<const char*>(tensor.memory + i) + kAheadBytes, _MM_HINT_T1);
      pass.step(i, mask...);
    });
    return pass.finite();
  });
}

/// The largest |u| so far of each lane, and where it was found.
template <typename L>
class Largest {
 public:
  /// `mask` as in FirstPass; positions: those of u's lanes.
  template <typename... Mask>
  void look(typename L::Floats u, typename L::Ints positions, Mask... mask) {
    const auto key = key_of<L>(u);
    const auto more = L::greater(key, key_, mask...);
    key_ = L::select(more, key, key_);
    positions_ = L::select(more, positions, positions_);
    u_ = L::select(more, u, u_);
  }

  /// The lowest position among those of the largest |u|, and that u.
  void finish(std::uint32_t* position, float* u) const {
    std::uint32_t lanes = L::equal(key_, L::largest(key_));
    if (__builtin_expect((lanes & (lanes - 1)) != 0, 0)) {
      const auto lowest = L::lowest(positions_, lanes);
      lanes &= L::equal(positions_, lowest);
    }
    *position = static_cast<std::uint32_t>(L::pick(positions_, lanes));
    *u = L::pick(u_, lanes);
  }

 private:
  // Under every key, so that a lane holds nothing until it has been looked at.
  typename L::Ints key_ = L::broadcast(-1);
  typename L::Ints positions_ = L::broadcast(0);
  typename L::Floats u_ = L::broadcast(0.0F);
};

/// The leader's pass. Vectors lie at the memory's vector boundaries, so that no store crosses a
/// line; a vector that chunks share is computed once and looked at by each of them.
template <typename L, typename G>
class Lead {
 public:
  Lead(const Tensor& tensor, G* grad, Filter filter, std::int64_t chunk, std::int64_t begin,
       std::int64_t end)
      : pass_(grad, tensor.memory, filter), chunk_(chunk), end_(end) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.memory + begin);
    const auto into = static_cast<std::int64_t>(address / sizeof(float) % kWidth);
    next_ = begin - into;
    if (into > 0) {
      shared_ = pass_.step(next_, L::lanes(into, end - next_));
      next_ += kWidth;
    }
  }

  /// Chunks are given in order, from the one that starts at `begin`.
  void chunk(std::int64_t c, std::uint32_t* position, float* u) {
    const std::int64_t begin = c * chunk_;
    const std::int64_t end = smaller<L>(begin + chunk_, end_);
    Largest<L> largest;
    if (begin < next_) {
      const std::int64_t i = next_ - kWidth;
      largest.look(shared_, positions(i), L::lanes(begin - i, end - i));
    }
    typename L::Ints at = positions(next_);
    for (; next_ + kWidth <= end; next_ += kWidth) {
      largest.look(pass_.step(next_), at);
      at = L::plus(at, L::broadcast(kWidth));
    }
    if (next_ < end) {
      shared_ =
          next_ + kWidth <= end_ ? pass_.step(next_) : pass_.step(next_, L::lanes(0, end_ - next_));
      largest.look(shared_, at, L::lanes(0, end - next_));
      next_ += kWidth;
    }
    largest.finish(position, u);
  }

  bool finite() const { return pass_.finite(); }

 private:
  static constexpr int kWidth = L::kWidth;

  static typename L::Ints positions(std::int64_t i) {
    return L::plus(L::numbers(), L::broadcast(static_cast<int>(i)));
  }

  FirstPass<L, G, true> pass_;
  std::int64_t chunk_;
  std::int64_t end_;
  std::int64_t next_ = 0;                           // the first vector not yet computed
  typename L::Floats shared_ = L::broadcast(0.0F);  // u of the vector before it
};

template <typename L>
bool lead(const Tensor& tensor, Filter filter, core::DType values, std::int64_t chunk,
          std::int64_t first, std::int64_t last, Taken out) {
  if (first >= last) return true;
  return with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    using G = std::remove_pointer_t<decltype(grad)>;
    const std::int64_t end = smaller<L>(last * chunk, tensor.length);
    Lead<L, G> pass(tensor, grad, filter, chunk, first * chunk, end);
    for (std::int64_t c = first; c < last;) {
      const std::int64_t from = c;
      const std::int64_t to = smaller<L>(c + kSettledTogether, last);
      for (; c < to; ++c) pass.chunk(c, out.positions + c, out.values + c);
      const Taken items{out.positions + from, out.values + from, out.before + from};
      settle<L>(tensor.memory, filter, values, to - from, items);
    }
    return pass.finite();
  });
}

template <typename L>
bool follow(const Tensor& tensor, Filter filter, core::DType values, std::int64_t begin,
            std::int64_t end, std::int64_t count, Taken items) {
  return with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    FirstPass<L, std::remove_pointer_t<decltype(grad)>, true> pass(grad, tensor.memory, filter);
    std::int64_t taken = 0;
    std::int64_t settled = 0;
    const auto settle_taken = [&] {
      settle<L>(tensor.memory, filter, values, taken - settled,
                {items.positions + settled, items.values + settled, items.before + settled});
      settled = taken;
    };
    for_each_vector<L>(tensor.memory, begin, end, [&](std::int64_t i, auto... mask) {
      const auto u = pass.step(i, mask...);
      if (taken == count || items.positions[taken] >= i + L::kWidth) return;
      float us[L::kWidth];
      L::store(us, u);
      for (; taken < count && items.positions[taken] < i + L::kWidth; ++taken) {
        items.values[taken] = us[items.positions[taken] - i];
      }
      if (taken - settled >= kSettledTogether) settle_taken();
    });
    settle_taken();
    return pass.finite();
  });
}

template <typename L>
void keys(const Tensor& tensor, Filter filter, std::int64_t begin, std::int64_t end,
          std::uint32_t* keys) {
  with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    const auto rest = L::broadcast(1.0F - filter.beta);
    auto* out = reinterpret_cast<float*>(keys) - begin;
    for_each_vector<L>(tensor.memory, begin, end, [&](std::int64_t i, auto... mask) {
      const auto u = L::fma(rest, L::load(grad + i, mask...), L::load(tensor.memory + i, mask...));
      L::store(out + i, L::floats(key_of<L>(u)), mask...);
    });
  });
}

}  // namespace scalecom::kernels::cpu
