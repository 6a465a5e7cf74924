#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/kernels/cuda/step.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/scalecom/shape.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {

/// What a bucket's step is made of, but for its data.
struct Setting {
  std::vector<layout::Slice> slices;
  layout::Selection selection;
  DType dtype = DType::kFloat32;
  DType values = DType::kFloat32;
  Filter filter{0.25F, 1.0F};
  int size = 1;
  bool sharded = false;
  std::uint64_t seed = 77;

  /// In a bucket one after the other.
  void add(std::int64_t length, double rate);
};

/// One rank's step on the CPU, as the scalar reference and wire/ say it is.
class HostRank {
 public:
  HostRank(const Setting& setting, int rank);

  /// New gradients; memories too, the first time.
  void draw(Data data, std::uint32_t seed);

  void first_pass();
  /// `slots`: what each rank packed; only the leader's where the ranks lead in turn.
  void take(const std::vector<std::vector<std::byte>>& slots);
  void finish(const std::vector<float>& sum, float factor);
  void settle_rounding(std::int64_t first, const std::vector<float>& rounding);
  void put_back();

  bool leads() const { return !setting.sharded && step % setting.size == rank; }
  cuda::Naming naming() const;
  /// The chunks that rank `r` names.
  methods::scalecom::ChunkRange named(int r) const;
  Tensor tensor(std::size_t part);
  float& flag() { return message.back(); }

  Setting setting;
  int rank;
  methods::scalecom::Shape shape;
  std::int64_t elements = 0;
  std::int64_t step = 0;

  std::vector<std::byte> grad;
  std::vector<std::vector<float>> memories;
  std::vector<std::uint32_t> positions;
  std::vector<float> before;
  std::vector<float> message;
  std::vector<std::byte> packed;
  std::vector<std::int64_t> first_items;  ///< of the parts, and the end
  bool sent = false;

 private:
  Taken items(std::int64_t first) {
    return {positions.data() + first, message.data() + first, before.data() + first};
  }
  bool lead(std::size_t part, std::int64_t first, std::int64_t last);
  void name_exact();
  void pack();
  void unpack_exact(const std::vector<std::byte>& bytes);
  void take_items(std::size_t part, std::int64_t first, std::int64_t last);
  std::byte* element(std::int64_t i) { return grad.data() + i * core::size_of(setting.dtype); }
};

}  // namespace scalecom::kernels::testing
