#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "scalecom/core/dtype.h"
#include "scalecom/kernels/kernels.h"

/// Data for the tests of the kernels.
namespace scalecom::kernels::testing {

using core::DType;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

/// An array with guard zones before and after it, at a chosen distance from a cache line's start.
template <typename T>
class Guarded {
 public:
  Guarded() = default;
  Guarded(std::int64_t size, std::int64_t shift) : size_(size), shift_(shift) {
    storage_.resize(static_cast<std::size_t>(size + 2 * kGuard + 2 * kLine));
    begin_ = aligned_start();
    for (std::size_t i = 0; i < storage_.size(); ++i) storage_[i] = untouched(i);
  }
  // A copy lies at the same distance from a line's start.
  Guarded(const Guarded& other) : Guarded(other.size_, other.shift_) {
    std::copy_n(other.data(), size_, data());
  }
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return storage_.data() + begin_; }
  const T* data() const { return storage_.data() + begin_; }
  std::int64_t size() const { return size_; }
  T& operator[](std::int64_t i) { return data()[i]; }
  const T& operator[](std::int64_t i) const { return data()[i]; }

  /// Bit for bit, the elements of both and the guards of this one.
  ::testing::AssertionResult same(const Guarded& other) const {
    for (std::int64_t i = 0; i < size_; ++i) {
      if (std::memcmp(&data()[i], &other.data()[i], sizeof(T)) != 0) {
        return ::testing::AssertionFailure()
               << "element " << i << " of " << size_ << ": " << data()[i] << " and " << other[i];
      }
    }
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      const bool inside = i >= begin_ && i < begin_ + static_cast<std::size_t>(size_);
      if (!inside && storage_[i] != untouched(i)) {
        return ::testing::AssertionFailure()
               << "the guard " << static_cast<std::int64_t>(i - begin_) << " was written";
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static constexpr std::int64_t kLine = 64 / sizeof(T);
  static constexpr std::int64_t kGuard = 2 * kLine;

  // What is there at first, wherever the array came to lie.
  T untouched(std::size_t i) const { return static_cast<T>((i + 1009 - begin_) % 251 + 1); }

  std::size_t aligned_start() const {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data() + kGuard);
    const auto to_line = (64 - address % 64) % 64 / sizeof(T);
    return static_cast<std::size_t>(kGuard + shift_) + to_line;
  }

  std::int64_t size_ = 0;
  std::int64_t shift_ = 0;
  std::size_t begin_ = 0;
  std::vector<T> storage_;
};

enum class Data { kNormal, kTies, kSpecial, kHuge, kZero };
constexpr Data kAllData[] = {Data::kNormal, Data::kTies, Data::kSpecial, Data::kHuge, Data::kZero};

/// Gradients may hold anything; memories are finite.
inline float draw(Data data, std::mt19937& random, bool finite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  static constexpr float kSpecial[] = {0.0F,  -0.0F,  1e-45F,   -1e-45F, 1e-40F, -3e-39F,
                                       1e-7F, -6e-8F, 65504,    65520,   kNan,   kInf,
                                       -kInf, -kNan,  3.39e38F, -3.4e38F};
  const auto bits = static_cast<std::uint32_t>(random());
  switch (data) {
    case Data::kZero:
      return bits % 7 == 0 ? -0.0F : 0.0F;
    case Data::kTies:
      return static_cast<float>(static_cast<int>(bits % 5) - 2);
    case Data::kHuge:
      return (bits & 1U ? 1.0F : -1.0F) * (3.4e38F - static_cast<float>(bits % 9) * 2e37F);
    case Data::kSpecial:
      if (bits % 16 == 0) {
        const float special = kSpecial[(bits >> 8) % std::size(kSpecial)];
        if (!finite || std::isfinite(special)) return special;
      }
      break;
    case Data::kNormal:
      break;
  }
  return std::normal_distribution<float>()(random);
}

/// A tensor with memory, its gradient of any type.
struct Problem {
  Problem(DType dtype, std::int64_t length, Data data, std::uint32_t seed, std::int64_t shift = 0,
          std::int64_t memory_shift = 0)
      : dtype(dtype),
        grad32(dtype == DType::kFloat32 ? length : 0, dtype == DType::kFloat32 ? shift : 0),
        grad16(dtype == DType::kFloat32 ? 0 : length, dtype == DType::kFloat32 ? 0 : shift),
        memory(length, memory_shift) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < length; ++i) {
      set_grad(i, draw(data, random, false));
      memory[i] = draw(data, random, true);
    }
  }

  Tensor tensor() {
    void* grad = dtype == DType::kFloat32 ? static_cast<void*>(grad32.data()) : grad16.data();
    return {grad, dtype, memory.data(), memory.size()};
  }
  float grad(std::int64_t i) const {
    return dtype == DType::kFloat32 ? grad32[i] : core::from_bits16(dtype, grad16[i]);
  }
  void set_grad(std::int64_t i, float value) {
    if (dtype == DType::kFloat32) {
      grad32[i] = value;
    } else {
      grad16[i] = core::to_bits16(dtype, value);
    }
  }
  void expect_same(const Problem& other) const {
    EXPECT_TRUE(grad32.same(other.grad32)) << "in the gradient";
    EXPECT_TRUE(grad16.same(other.grad16)) << "in the gradient";
    EXPECT_TRUE(memory.same(other.memory)) << "in the memory";
  }

  DType dtype;
  Guarded<float> grad32;
  Guarded<std::uint16_t> grad16;
  Guarded<float> memory;
};

/// Room for what is taken.
struct Items {
  explicit Items(std::int64_t count) : positions(count, 1), values(count, 3), before(count, 5) {}

  Taken taken() { return {positions.data(), values.data(), before.data()}; }
  void expect_same(const Items& other) const {
    EXPECT_TRUE(positions.same(other.positions)) << "in the positions";
    EXPECT_TRUE(values.same(other.values)) << "in the values";
    EXPECT_TRUE(before.same(other.before)) << "in before";
  }

  Guarded<std::uint32_t> positions;
  Guarded<float> values;
  Guarded<float> before;
};

/// Ascending positions in [begin, end), each with the same chance.
inline std::vector<std::uint32_t> some_positions(std::int64_t begin, std::int64_t end, double share,
                                                 std::uint32_t seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution chosen(share);
  std::vector<std::uint32_t> positions;
  for (std::int64_t i = begin; i < end; ++i) {
    if (chosen(random)) positions.push_back(static_cast<std::uint32_t>(i));
  }
  return positions;
}

inline std::int64_t chunks_of(std::int64_t length, std::int64_t chunk) {
  return (length + chunk - 1) / chunk;
}

}  // namespace scalecom::kernels::testing
