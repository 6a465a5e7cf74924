#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "train/data/samples.h"

/// What goes into a network and comes out of it on a GPU; no torch in it.
namespace train::models::cuda {

/// A set of samples on a GPU.
class DeviceSamples {
 public:
  DeviceSamples(scalecom::core::Device device, const data::Samples& samples);

  std::int64_t size() const { return labels_.size(); }
  const data::Shape& shape() const { return shape_; }

  /// The picks as a batch, a place's channels after the other's, in order on `stream`: the bits of
  /// data::copy(). The picks may be gone when this returns.
  void assemble(std::span<const data::Pick> picks, float* inputs, std::int64_t* labels,
                const scalecom::core::Stream& stream) const;

 private:
  data::Shape shape_;
  scalecom::core::Array<std::uint8_t> bytes_;
  scalecom::core::Array<float> scale_;
  scalecom::core::Array<float> floats_;
  scalecom::core::Array<std::uint8_t> labels_;
};

/// A matrix on the device, row after row, and where its transpose goes: the element of an array
/// that it begins at. A single row is a plain copy.
struct Matrix {
  const float* from = nullptr;
  std::int64_t to = 0;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
};

/// Many matrices that are transposed at once. torch keeps the weights of a convolution with the
/// outputs' index the slowest, Model the fastest.
class Transposition {
 public:
  Transposition() = default;
  Transposition(scalecom::core::Device device, std::span<const Matrix> matrices);

  /// In order on `stream`.
  void run(float* to, const scalecom::core::Stream& stream) const;

 private:
  scalecom::core::Array<Matrix> matrices_;
  scalecom::core::Array<std::int32_t> first_tiles_;  // of each matrix
  std::int32_t tiles_ = 0;
};

}  // namespace train::models::cuda
