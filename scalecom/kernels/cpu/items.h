#pragma once

#include <xmmintrin.h>

#include "scalecom/kernels/cpu/lanes.h"

/// The kernels that touch a few entries: one cache line each, far apart, ascending.
namespace scalecom::kernels::cpu {

/// Items that `take` fetches ahead: as many as the second-level cache can wait for at once. The
/// first-level cache waits for half as many, so that nothing is fetched into it.
constexpr std::int64_t kItemsAhead = 48;

/// Bytes that zero_and_put puts together at a time: a part of the first-level cache.
constexpr std::int64_t kStreamBytes = 4096;

/// Sends u (in items.values) rounded, and settles the memory, which holds m'.
template <typename L>
void settle(float* memory, Filter filter, core::DType values, std::int64_t count, Taken items) {
  const auto minus_beta = L::broadcast(-filter.beta);
  for (std::int64_t i = 0; i < count; i += L::kWidth) {
    const std::int64_t n = smaller<L>(count - i, L::kWidth);
    const auto lanes = L::lanes(0, n);
    for (std::int64_t k = i; k < i + n; ++k) items.before[k] = memory[items.positions[k]];
    const auto sent = rounded<L>(values, L::load(items.values + i, lanes));
    const auto settled = L::fma(minus_beta, sent, L::load(items.before + i, lanes));
    L::store(items.values + i, sent, lanes);
    float after[L::kWidth];
    L::store(after, settled);
    for (std::int64_t k = 0; k < n; ++k) memory[items.positions[i + k]] = after[k];
  }
}

/// Whole lines of a gradient, written past the caches: nothing is read first.
template <typename L, typename G>
class Lines {
 public:
  explicit Lines(G* grad) : grad_(grad) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() { _mm_sfence(); }

  /// Lines are numbered through the address space.
  std::uintptr_t of(std::int64_t element) const {
    return reinterpret_cast<std::uintptr_t>(grad_ + element) / kLineBytes;
  }
  /// The first line that begins at `element` or after it.
  std::uintptr_t from(std::int64_t element) const {
    return (reinterpret_cast<std::uintptr_t>(grad_ + element) + kLineBytes - 1) / kLineBytes;
  }
  /// The first element in [begin, end) that lies in `line` or after it, or `end`.
  std::int64_t element(std::uintptr_t line, std::int64_t begin, std::int64_t end) const {
    const auto bytes = static_cast<std::int64_t>(line * kLineBytes -
                                                 reinterpret_cast<std::uintptr_t>(grad_ + begin));
    return bytes < 0 ? begin
                     : smaller<L>(begin + bytes / static_cast<std::int64_t>(sizeof(G)), end);
  }

  /// Writes the line of positions[i]: the items that lie in it, and 0. Returns the item after them.
  std::int64_t write(std::int64_t i, std::int64_t count, const std::uint32_t* positions,
                     const float* values) const {
    const std::uintptr_t line = of(positions[i]);
    typename L::Ints parts[kVectors];
    for (auto& part : parts) part = L::broadcast(0);
    do {
      const auto byte = reinterpret_cast<std::uintptr_t>(grad_ + positions[i]) % kLineBytes;
      const auto bits = L::pattern(grad_, values[i]) << (8 * (byte % kWordBytes));
      for (int k = 0; k < kVectors; ++k) {
        const int lane = static_cast<int>(byte / kWordBytes) - k * L::kWidth;
        parts[k] = L::either(parts[k], L::only(lane, static_cast<int>(bits)));
      }
    } while (++i < count && of(positions[i]) == line);
    for (int k = 0; k < kVectors; ++k) L::stream(words(line, k), parts[k]);
    return i;
  }

 private:
  static constexpr int kWordBytes = 4;
  static constexpr int kVectors = kLineBytes / kWordBytes / L::kWidth;

  std::uint32_t* words(std::uintptr_t line, int vector) const {
    const auto from_grad =
        static_cast<std::int64_t>(line * kLineBytes - reinterpret_cast<std::uintptr_t>(grad_));
    char* start = reinterpret_cast<char*>(grad_) + from_grad;
    return reinterpret_cast<std::uint32_t*>(start) + vector * L::kWidth;
  }

  G* grad_;
};

/// Reads the gradients and the memory at the items' positions, far enough ahead; u goes to
/// items.values.
template <typename L, typename G>
class Reader {
 public:
  Reader(const G* grad, const float* memory, Filter filter, std::int64_t count, Taken items)
      : grad_(grad), memory_(memory), rest_(1.0F - filter.beta), count_(count), items_(items) {
    for (std::int64_t i = 0; i < smaller<L>(kItemsAhead, count); ++i) fetch(i);
  }

  void read(std::int64_t i) const {
    fetch(smaller<L>(i + kItemsAhead, count_ - 1));
    const std::uint32_t position = items_.positions[i];
    const float m = memory_[position];
    items_.values[i] = rest_ == 0 ? m : __builtin_fmaf(rest_, L::number(grad_[position]), m);
  }

 private:
  void fetch(std::int64_t i) const {
    const std::uint32_t position = items_.positions[i];
    _mm_prefetch(reinterpret_cast<const char*>(memory_ + position), _MM_HINT_T1);
    if (rest_ != 0) _mm_prefetch(reinterpret_cast<const char*>(grad_ + position), _MM_HINT_T1);
  }

  const G* grad_;
  const float* memory_;
  float rest_;  // where it is 0, u is m' to the bit, and the gradient's lines are left alone
  std::int64_t count_;
  Taken items_;
};

template <typename L>
void take(const Tensor& tensor, Filter filter, core::DType values, std::int64_t count,
          Taken items) {
  with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    using G = std::remove_pointer_t<decltype(grad)>;
    const Reader<L, G> reader(grad, tensor.memory, filter, count, items);
    for (std::int64_t i = 0; i < count; i += L::kWidth) {
      const std::int64_t n = smaller<L>(L::kWidth, count - i);
      for (std::int64_t k = i; k < i + n; ++k) reader.read(k);
      settle<L>(tensor.memory, filter, values, n,
                {items.positions + i, items.values + i, items.before + i});
    }
  });
}

template <typename L, typename G>
void put_one(G* grad, std::uint32_t position, float value) {
  const std::uint32_t bits = L::pattern(grad, value);
  __builtin_memcpy(grad + position, &bits, sizeof(G));
}

template <typename L>
void put(const Tensor& tensor, std::int64_t count, const std::uint32_t* positions,
         const float* values) {
  if (count == 0) return;
  with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    const Lines<L, std::remove_pointer_t<decltype(grad)>> lines(grad);
    // The lines of the first and of the last item may hold what is not the caller's.
    const std::uintptr_t first = lines.of(positions[0]);
    const std::uintptr_t last = lines.of(positions[count - 1]);
    std::int64_t i = 0;
    for (; i < count && lines.of(positions[i]) == first; ++i) {
      put_one<L>(grad, positions[i], values[i]);
    }
    while (i < count && lines.of(positions[i]) != last) {
      i = lines.write(i, count, positions, values);
    }
    for (; i < count; ++i) put_one<L>(grad, positions[i], values[i]);
  });
}

/// The elements of [begin, end), made of whole lines, one block after the other: a block is put
/// together in the first-level cache and streamed out. The first item is the first in [begin,
/// end); returns the first after it.
template <typename L, typename G>
std::int64_t stream_blocks(G* grad, std::int64_t begin, std::int64_t end, std::int64_t i,
                           std::int64_t count, const std::uint32_t* positions,
                           const float* values) {
  constexpr std::int64_t kBlock = kStreamBytes / static_cast<std::int64_t>(sizeof(G));
  alignas(kLineBytes) G block[kBlock] = {};
  for (std::int64_t from = begin; from < end; from += kBlock) {
    const std::int64_t n = smaller<L>(kBlock, end - from);
    const std::int64_t first = i;
    for (; i < count && positions[i] < from + n; ++i) {
      put_one<L>(block, static_cast<std::uint32_t>(positions[i] - from), values[i]);
    }
    constexpr auto kStep = static_cast<std::int64_t>(L::kWidth * sizeof(float) / sizeof(G));
    for (std::int64_t k = 0; k < n; k += kStep) {
      L::stream(reinterpret_cast<std::uint32_t*>(grad + from + k), L::load_ints(block + k));
    }
    for (std::int64_t k = first; k < i; ++k) block[positions[k] - from] = G{};
  }
  return i;
}

template <typename L>
void zero_and_put(const Tensor& tensor, std::int64_t begin, std::int64_t end, std::int64_t count,
                  const std::uint32_t* positions, const float* values) {
  with_elements<L>(tensor.dtype, tensor.grad, [&](auto* grad) {
    const Lines<L, std::remove_pointer_t<decltype(grad)>> lines(grad);
    const std::int64_t first = lines.element(lines.from(begin), begin, end);
    const std::int64_t last = lines.element(lines.of(end), first, end);
    for (std::int64_t k = begin; k < first; ++k) grad[k] = {};
    for (std::int64_t k = last; k < end; ++k) grad[k] = {};
    std::int64_t i = 0;
    for (; i < count && positions[i] < first; ++i) put_one<L>(grad, positions[i], values[i]);
    i = stream_blocks<L>(grad, first, last, i, count, positions, values);
    for (; i < count; ++i) put_one<L>(grad, positions[i], values[i]);
  });
}

}  // namespace scalecom::kernels::cpu
