#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "scalecom/comm/fabric.h"
#include "scalecom/comm/traffic.h"
#include "scalecom/core/stream.h"

/// What every Communicator checks before anything moves: UsageError where a call cannot be right.
namespace scalecom::comm {

/// The deadline to use: never so long that the clock would overflow.
std::chrono::milliseconds checked_deadline(std::chrono::milliseconds deadline);

/// A call by rank `rank` of `size`.
class Arguments {
 public:
  Arguments(int rank, int size) : rank_(rank), size_(size) {}

  void check_peer(Fabric::Call call, int peer) const;
  void check_root(int root) const;
  void check_all_gather(std::span<const std::byte> mine, std::span<const std::byte> all,
                        std::span<const std::int64_t> sizes) const;
  void check_all_to_all(std::span<const std::byte> out, std::span<const std::int64_t> out_sizes,
                        std::span<const std::byte> in,
                        std::span<const std::int64_t> in_sizes) const;

 private:
  void check_rank(Fabric::Call call, int peer) const;
  void check_sizes(Fabric::Call call, std::span<const std::int64_t> sizes, std::size_t total) const;

  int rank_;
  int size_;
};

/// Given a CUDA stream, that `data` lies on its device: a kernel that meets an address of the host
/// would take everybody's work on that device with it.
void check_place(Fabric::Call call, std::span<const std::byte> data, const core::Stream& stream);

template <typename T>
std::span<T> part(std::span<T> data, std::int64_t begin, std::int64_t size) {
  return data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
}

template <typename T>
std::span<T> part(std::span<T> data, const Share& share) {
  return part(data, share.begin, share.size());
}

}  // namespace scalecom::comm
