#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/array.h"
#include "scalecom/methods/method.h"

/// What the tests of methods share: worlds of ranks as threads, and gradients to bring to them.
namespace scalecom::methods::testing {

using Gradients = std::vector<std::vector<float>>;  ///< one a rank

/// A world in which every rank has its own method, made from the same string; the ranks live from
/// call to call. Gradients lie on the device of the test.
class World {
 public:
  World(int size, const std::string& spec);

  int size() const { return static_cast<int>(ends_.size()); }
  Method& method(int rank) { return *methods_[static_cast<std::size_t>(rank)]; }
  comm::Communicator& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

  /// body(rank) on every rank at once. The first failure, by rank, is thrown again.
  void run(const std::function<void(int)>& body);

  /// One rank's reduction of a gradient in host memory: there, or, where
  /// scalecom::testing::device() is a GPU, by way of an array on it.
  void reduce_at(int rank, const core::Buffer& gradient, const layout::Layout& layout);

  /// Every rank's method follows a loss scale, which lies on the device of the test.
  void follow_scale(float scale);

  /// One bucket: every rank's gradient becomes the mean.
  void reduce(Gradients& gradients, const layout::Layout& layout);

 private:
  std::vector<std::unique_ptr<comm::Communicator>> ends_;
  std::vector<std::unique_ptr<Method>> methods_;
  // Of each rank, on a GPU.
  std::vector<core::Stream> streams_;
  std::vector<core::Array<std::byte>> arrays_;
  std::vector<core::Array<float>> scales_;

  core::Stream& stream(int rank);
};

/// Whole numbers in [-range, range], as floats.
Gradients integers(int ranks, std::int64_t elements, int range, std::mt19937& random);
/// Normal numbers, of very different sizes from one tensor position to the next.
Gradients normal(int ranks, std::int64_t elements, std::mt19937& random);

/// Slices of these lengths and rates, named a, b, c, ...
layout::Layout layout_of(const std::vector<std::pair<std::int64_t, double>>& slices);

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace scalecom::methods::testing
