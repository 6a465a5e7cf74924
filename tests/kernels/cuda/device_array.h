#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/stream.h"

namespace scalecom::kernels::testing {

/// An array on the device between guards, at a chosen distance from a boundary of 256 bytes.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(std::int64_t size, std::int64_t shift, const core::Stream& stream)
      : size_(size), begin_(kGuard + shift), stream_(stream) {
    const std::vector<T> all(static_cast<std::size_t>(begin_ + size + kGuard), untouched());
    memory_ = core::cuda::allocate_zeroed(stream.device(), bytes(std::ssize(all)));
    copy(memory_.get(), all.data(), std::ssize(all));
  }

  /// What is there before anything is written.
  static T untouched() {
    T value;
    std::memset(&value, 0xa5, sizeof(T));
    return value;
  }

  T* data() { return static_cast<T*>(memory_.get()) + begin_; }
  std::int64_t size() const { return size_; }

  void write(const std::vector<T>& from) { copy(data(), from.data(), std::ssize(from)); }

  /// What it holds; its guards are checked.
  std::vector<T> read() {
    std::vector<T> all(static_cast<std::size_t>(begin_ + size_ + kGuard));
    copy(all.data(), memory_.get(), std::ssize(all));
    const T guard = untouched();
    for (std::int64_t i = 0; i < std::ssize(all); ++i) {
      if (i == begin_) i += size_;
      EXPECT_EQ(std::memcmp(&all[static_cast<std::size_t>(i)], &guard, sizeof(T)), 0)
          << "the guard " << i - begin_ << " of an array of " << size_ << " was written";
    }
    return {all.begin() + begin_, all.begin() + begin_ + size_};
  }

 private:
  static constexpr std::int64_t kGuard = 256 / sizeof(T);

  static std::int64_t bytes(std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(T));
  }
  void copy(void* to, const void* from, std::int64_t count) {
    core::cuda::copy(to, from, bytes(count), stream_);
    core::cuda::synchronize(stream_);
  }

  std::int64_t size_;
  std::int64_t begin_;
  core::Stream stream_;
  std::shared_ptr<void> memory_;
};

/// A number that can be printed.
template <typename T>
auto shown(T value) {
  if constexpr (std::is_same_v<T, std::byte>) {
    return std::to_integer<int>(value);
  } else {
    return value;
  }
}

/// Bit for bit.
template <typename T>
::testing::AssertionResult same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) {
    return ::testing::AssertionFailure() << a.size() << " elements and " << b.size();
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) {
      return ::testing::AssertionFailure() << "element " << i << " of " << a.size() << ": "
                                           << shown(a[i]) << " and " << shown(b[i]);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace scalecom::kernels::testing
