#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace scalecom::core {

/// Memory of `bytes` bytes, all zero, at a cache line's boundary. Untouched pages take no room, and
/// large arrays ask for huge pages.
void* allocate_zeroed(std::size_t bytes);
void release_zeroed(void* data, std::size_t bytes);

/// A fixed-size array of plain numbers, zero at first, aligned for every vector instruction.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  /// std::bad_alloc for a size that is negative or that no memory could hold.
  explicit AlignedArray(std::int64_t size)
      : data_(size != 0 ? static_cast<T*>(allocate_zeroed(bytes_of(size))) : nullptr),
        size_(size) {}
  AlignedArray(AlignedArray&& other) noexcept { swap(other); }
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    AlignedArray moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~AlignedArray() {
    if (data_ != nullptr) release_zeroed(data_, bytes_of(size_));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  static std::size_t bytes_of(std::int64_t size) {
    if (size < 0 ||
        size > std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(sizeof(T))) {
      throw std::bad_array_new_length();
    }
    return static_cast<std::size_t>(size) * sizeof(T);
  }
  void swap(AlignedArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace scalecom::core
