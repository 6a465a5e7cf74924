#include "scalecom/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/cuda/elementwise.h"
#include "scalecom/kernels/kernels.h"

namespace scalecom::kernels::elementwise {
namespace {

// Elements of one task of the pool: long enough to make its start cheap, short enough to divide a
// small array.
constexpr std::int64_t kBlock = 65'536;

// work(begin, end) over [0, count) in blocks, on the pool.
template <typename Work>
void for_each_block(std::int64_t count, const Work& work) {
  core::parallel_for((count + kBlock - 1) / kBlock,
                     [&](std::int64_t i) { work(i * kBlock, std::min(count, (i + 1) * kBlock)); });
}

const std::byte* at(const void* grad, core::DType dtype, std::int64_t index) {
  return static_cast<const std::byte*>(grad) + index * core::size_of(dtype);
}

std::byte* at(void* grad, core::DType dtype, std::int64_t index) {
  return static_cast<std::byte*>(grad) + index * core::size_of(dtype);
}

void fill_nan(void* grad, core::DType dtype, std::int64_t begin, std::int64_t end) {
  std::array<float, 1024> nan;
  nan.fill(std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t i = begin; i < end; i += static_cast<std::int64_t>(nan.size())) {
    const auto count = std::min<std::int64_t>(end - i, static_cast<std::int64_t>(nan.size()));
    table().store(nan.data(), count, 1.0F, at(grad, dtype, i), dtype);
  }
}

}  // namespace

void load(const void* grad, core::DType dtype, std::int64_t count, float factor, float* out,
          const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::load(grad, dtype, count, factor, out, stream);
    return;
  }
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    table().load(at(grad, dtype, begin), dtype, end - begin, factor, out + begin);
  });
}

void check_finite(const float* numbers, std::int64_t count, Flag* flag,
                  const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::check_finite(numbers, count, flag, stream);
    return;
  }
  std::atomic<bool> finite{true};
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    // Whole numbers, so that the compiler makes vectors of it.
    std::uint32_t found = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto magnitude = std::bit_cast<std::uint32_t>(numbers[i]) & 0x7fffffffU;
      found |= magnitude >= 0x7f800000U ? 1U : 0U;
    }
    if (found != 0) finite.store(false, std::memory_order_relaxed);
  });
  if (!finite) *flag = 1;
}

void store(const float* in, std::int64_t count, void* grad, core::DType dtype, const Flag* flag,
           const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::store(in, count, grad, dtype, flag, stream);
    return;
  }
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    if (*flag != 0) {
      fill_nan(grad, dtype, begin, end);
    } else if (in != grad) {
      table().store(in + begin, end - begin, 1.0F, at(grad, dtype, begin), dtype);
    }
  });
}

void narrow(const float* in, std::int64_t count, core::DType type, std::uint16_t* out,
            const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::narrow(in, count, type, out, stream);
    return;
  }
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    table().narrow(in + begin, end - begin, type, out + begin);
  });
}

void widen(const std::uint16_t* in, std::int64_t count, core::DType type, float* out,
           const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::widen(in, count, type, out, stream);
    return;
  }
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    table().widen(in + begin, end - begin, type, out + begin);
  });
}

void mean_of_narrow(const std::uint16_t* arrived, std::int64_t count, int ranks, core::DType type,
                    std::uint16_t* mean, float* rounding, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::mean_of_narrow(arrived, count, ranks, type, mean, rounding, stream);
    return;
  }
  const auto size = static_cast<float>(ranks);
  const float factor = 1.0F / size;
  for_each_block(count, [&](std::int64_t first, std::int64_t last) {
    constexpr std::int64_t kPiece = 1024;
    std::array<float, kPiece> sum;
    std::array<float, kPiece> next;
    for (std::int64_t begin = first; begin < last; begin += kPiece) {
      const std::int64_t piece = std::min(kPiece, last - begin);
      table().widen(arrived + begin, piece, type, sum.data());
      for (int r = 1; r < ranks; ++r) {
        table().widen(arrived + r * count + begin, piece, type, next.data());
        for (std::int64_t i = 0; i < piece; ++i) {
          sum[static_cast<std::size_t>(i)] += next[static_cast<std::size_t>(i)];
        }
      }
      for (std::int64_t i = 0; i < piece; ++i) {
        next[static_cast<std::size_t>(i)] = sum[static_cast<std::size_t>(i)] * factor;
      }
      table().narrow(next.data(), piece, type, mean + begin);
      table().widen(mean + begin, piece, type, next.data());
      // fma(-size, rounded, total) by way of double, which has room for the product and, where it
      // matters to a float, for the difference: without that instruction, fma is a slow call.
      for (std::int64_t i = 0; i < piece; ++i) {
        const double total = sum[static_cast<std::size_t>(i)];
        const double rounded = next[static_cast<std::size_t>(i)];
        rounding[begin + i] = static_cast<float>(total - static_cast<double>(size) * rounded);
      }
    }
  });
}

void add_quotient(float* to, const float* from, std::int64_t count, float divisor, float factor,
                  const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::add_quotient(to, from, count, divisor, factor, stream);
    return;
  }
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] += from[i] / divisor * factor;
  });
}

void scale(float* numbers, std::int64_t count, float factor, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::scale(numbers, count, factor, stream);
    return;
  }
  for_each_block(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) numbers[i] *= factor;
  });
}

void scale_all(std::span<const Numbers> arrays, const float* factor, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::scale_all(arrays, factor, stream);
    return;
  }
  if (*factor == 1.0F) return;
  for (const Numbers& array : arrays) scale(array.data, array.count, *factor, stream);
}

void follow(const float* now, float* last, float* factor, Flag* fell, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    cuda::elementwise::follow(now, last, factor, fell, stream);
    return;
  }
  *factor = *last > 0 ? *now / *last : 1.0F;
  *fell = *last > 0 && *now < *last ? 1 : 0;
  *last = *now;
}

}  // namespace scalecom::kernels::elementwise
