#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "scalecom/core/aligned_array.h"
#include "scalecom/core/cuda/runtime.h"

namespace scalecom::core {

/// A fixed-size array of plain numbers on a device, zero at first. On a CUDA device its elements
/// are not the host's to touch.
template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(Device device, std::int64_t size) : device_(device), size_(size) {
    if (size == 0) return;
    if (device.is_cuda()) {
      owner_ = cuda::allocate_zeroed(device, size * static_cast<std::int64_t>(sizeof(T)));
      data_ = static_cast<T*>(owner_.get());
    } else {
      auto host = std::make_shared<AlignedArray<T>>(size);
      data_ = host->data();
      owner_ = std::move(host);
    }
  }
  /// What is in host memory already, without a copy.
  explicit Array(AlignedArray<T> host) : size_(host.size()), data_(host.data()) {
    owner_ = std::make_shared<AlignedArray<T>>(std::move(host));
  }
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    Array moved(std::move(other));
    swap(moved);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::int64_t size() const { return size_; }
  Device device() const { return device_; }
  std::span<T> span() { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const T> span() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  void swap(Array& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    std::swap(owner_, other.owner_);
  }

  Device device_;
  std::int64_t size_ = 0;
  T* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace scalecom::core
