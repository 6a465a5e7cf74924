#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "scalecom/core/dtype.h"
#include "scalecom/kernels/bins.h"
#include "scalecom/kernels/lowrank.h"
#include "scalecom/kernels/sketch.h"

/// All that touches every element. Everything here is one rank's own work, on one thread; callers
/// divide the ranges among threads, and no result depends on the division.
///
/// One entry, in exactly these operations, rounded once each and never contracted or flushed:
///     m' = fma(beta, g, decay * m)
///     u  = fma(1 - beta, g, m')            what would be sent, and what is compared
///     sent = u rounded to the value type
///     m  = fma(-beta, sent, m') where sent, m' elsewhere
/// An entry whose u is not finite is taken as if its g were 0, and reported.
namespace scalecom::kernels {

/// The memory's low-pass filter and its decay.
struct Filter {
  float beta = 1;
  float decay = 1;
};

/// One compressed tensor: its gradient in the bucket and its memory. At most 2^32 - 1 elements.
struct Tensor {
  void* grad = nullptr;
  core::DType dtype = core::DType::kFloat32;
  float* memory = nullptr;
  std::int64_t length = 0;
};

/// What is taken out of a tensor, one item a kept entry, ascending by position.
struct Taken {
  std::uint32_t* positions = nullptr;  ///< in the tensor
  float* values = nullptr;             ///< sent: u rounded to the value type, held as fp32
  float* before = nullptr;             ///< m', so that what was sent can be put back
};

/// The kernels of one instruction set. Every table gives the same bits.
struct Table {
  const char* isa;

  /// The follower's first pass over [begin, end): m becomes m'. The gradient stays, but for entries
  /// that are not finite, which become 0. Returns whether all was finite.
  bool (*accumulate)(const Tensor& tensor, Filter filter, std::int64_t begin, std::int64_t end);

  /// The leader's only pass, over chunks [first, last) of `chunk` elements: m becomes m', the
  /// largest |u| of each chunk (the lowest position among equals) is taken and settled, and the
  /// gradient becomes 0. Item c of `out` is chunk c's. Returns whether all was finite.
  bool (*lead)(const Tensor& tensor, Filter filter, core::DType values, std::int64_t chunk,
               std::int64_t first, std::int64_t last, Taken out);

  /// Takes the entries at items[0 .. count).positions out of a tensor whose memory is m', and
  /// settles them. Fills values and before.
  void (*take)(const Tensor& tensor, Filter filter, core::DType values, std::int64_t count,
               Taken items);

  /// The only pass of a rank that knows the positions before it: accumulate and take, and the
  /// gradient becomes 0, in [begin, end), where the positions lie. `put` follows, as after lead.
  bool (*follow)(const Tensor& tensor, Filter filter, core::DType values, std::int64_t begin,
                 std::int64_t end, std::int64_t count, Taken items);

  /// |u| as an unsigned number that orders as |u| does (its bits without the sign), for [begin,
  /// end) of a tensor whose memory is m'. keys[0] is that of `begin`.
  void (*keys)(const Tensor& tensor, Filter filter, std::int64_t begin, std::int64_t end,
               std::uint32_t* keys);

  /// grad = 0 in [begin, end), then grad[positions[i]] = values[i]; the positions lie in [begin,
  /// end) and ascend. Writes without reading where it can.
  void (*zero_and_put)(const Tensor& tensor, std::int64_t begin, std::int64_t end,
                       std::int64_t count, const std::uint32_t* positions, const float* values);

  /// grad[positions[i]] = values[i], ascending. All that lies between the first position and the
  /// last is 0 already and nobody else's meanwhile: it may be written again. Here and above, a
  /// 16-bit gradient rounds to nearest and overflows to infinity, for a loss scaler to see.
  void (*put)(const Tensor& tensor, std::int64_t count, const std::uint32_t* positions,
              const float* values);

  /// `count` gradient elements to fp32, times `factor`; returns whether all results are finite. An
  /// fp32 gradient may be its own `out`.
  bool (*load)(const void* grad, core::DType dtype, std::int64_t count, float factor, float* out);
  /// fp32 times `factor`, rounded to the gradient's type (as put does); an fp32 gradient may be its
  /// own `in`.
  void (*store)(const float* in, std::int64_t count, float factor, void* grad, core::DType dtype);

  /// fp32 to the 16-bit patterns of round_to(type, .), and back.
  void (*narrow)(const float* in, std::int64_t count, core::DType type, std::uint16_t* out);
  void (*widen)(const std::uint16_t* in, std::int64_t count, core::DType type, float* out);

  /// A matrix and its thin factors.
  lowrank::Passes low_rank;

  /// Where elements go in a sketch.
  sketch::Passes sketch;

  /// What of a bin is sent by its sign.
  bins::Passes bins;
};

/// The table in use: the best this processor has, or the one that SCALECOM_ISA names ("scalar",
/// "avx2", "avx512"). Chosen once; UsageError for a name that is unknown or that this processor
/// lacks.
const Table& table();

/// The table of that name; UsageError as above.
const Table& table(const std::string& isa);

/// Every table this processor can run, the scalar reference first.
std::span<const Table* const> tables();

}  // namespace scalecom::kernels
