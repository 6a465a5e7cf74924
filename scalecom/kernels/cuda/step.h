#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "scalecom/core/dtype.h"
#include "scalecom/core/stream.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/layout/selection.h"

/// A rank's own work on a bucket that lies on a GPU: the operations of kernels.h and select.h, with
/// the same bits, over all tensors of the bucket at once. Every call puts its kernels on the stream
/// and returns; none looks at the device, so all can be captured into a graph.
///
/// `d_` marks device pointers. Nothing here allocates: a bucket's tables and scratch lie in memory
/// that the caller asks scratch_bytes() for and gives.
namespace scalecom::kernels::cuda {

/// One compressed tensor of a bucket.
struct Part {
  std::int64_t offset = 0;         ///< of its first element in the bucket
  layout::Cut cut;                 ///< an exact selection uses its length alone
  std::int64_t first_chunk = 0;    ///< in the bucket's own count of chunks
  std::int64_t first_item = 0;     ///< in the bucket's own count of kept entries
  std::uint64_t name = 0;          ///< core::hash() of its tensor's name, for random draws
  std::int64_t chunks_before = 0;  ///< of its tensor, likewise
  float* d_memory = nullptr;
};

/// One dense tensor, and its place among all dense elements.
struct DensePart {
  std::int64_t offset = 0;
  std::int64_t length = 0;
  std::int64_t place = 0;
};

/// What a layout and a selection fix.
struct Shape {
  layout::Selection selection;
  std::vector<Part> parts;
  std::vector<DensePart> dense;
  std::int64_t elements = 0;             ///< of the bucket
  std::int64_t compressed_elements = 0;  ///< of `parts`
  std::int64_t dense_elements = 0;
  std::int64_t chunks = 0;
  std::int64_t items = 0;
};

/// Whose entries this rank names.
enum class Naming : std::uint8_t {
  kNone,   ///< another rank's turn, or a random selection
  kAll,    ///< this rank leads
  kShare,  ///< the chunks of comm::share(chunks, size, (rank + step) % size)
};

/// One bucket's step. The arrays stay as they are from first_pass() to finish(), and until the next
/// step for put_back().
struct Step {
  void* d_grad = nullptr;
  core::DType dtype = core::DType::kFloat32;
  Filter filter;
  core::DType values = core::DType::kFloat32;
  Naming naming = Naming::kNone;
  int rank = 0;
  int size = 1;
  std::uint64_t seed = 0;  ///< of a random selection

  /// The step's number, read for kShare and for random draws; finish() adds one. On the device, so
  /// that a captured step can be replayed.
  std::int64_t* d_step = nullptr;
  std::uint32_t* d_positions = nullptr;  ///< `items`, each in its tensor
  float* d_before = nullptr;             ///< `items`
  /// [values of all items | dense slices | flag]: 1 in the flag where this rank's bucket held
  /// something that is not finite.
  float* d_message = nullptr;
  /// Offsets as wire/offsets.h packs them, piece after piece: all of them for kAll and kNone; for
  /// kShare `size` slots of slot_bytes, slot r holding those of the chunks that rank r names.
  std::byte* d_packed = nullptr;
  std::int64_t slot_bytes = 0;
  /// 1 from finish() on where the items were sent, 0 where they were refused or put back.
  std::int32_t* d_sent = nullptr;
};

struct Tables;

class Bucket {
 public:
  /// Bytes of device memory for the tables and scratch of a bucket of this shape.
  static std::int64_t scratch_bytes(const Shape& shape);

  /// `d_scratch` holds scratch_bytes(shape) at a boundary of 256 bytes and outlives the bucket.
  Bucket(const Shape& shape, void* d_scratch, const core::Stream& stream);

  /// Memories become m'; the entries that this rank names are chosen, and taken: positions, values,
  /// before and packed offsets are written, the memory is settled. A random selection draws and
  /// takes all of its entries. Dense slices go into the message, times 1 / size; the flag is set or
  /// cleared. The gradient stays, but for what is not finite, which becomes 0.
  ///
  /// Where the largest of each chunk is sent and none is named here, the compressed tensors are
  /// left to take(), which goes over them once, knowing the entries: fetching those one by one
  /// afterwards would cost more than half of the pass again.
  void first_pass(const Step& step, const core::Stream& stream) const;

  /// The offsets that other ranks named are unpacked, and their entries taken. Bytes that cannot be
  /// offsets set the flag, and do no other harm.
  void take(const Step& step, const core::Stream& stream) const;

  /// The message is a sum over ranks: values times `factor` go into the gradient, which is 0
  /// elsewhere, and dense slices as they are. Where the flag is not 0, or anything in the message
  /// is not finite, the whole gradient becomes NaN instead and the memory is put back.
  void finish(const Step& step, float factor, const core::Stream& stream) const;

  /// Adds beta * d_rounding[i] to the memory of item first + i, where the items were sent: what a
  /// 16-bit mean took from this rank's part of the sum.
  void settle_rounding(const Step& step, std::int64_t first, std::int64_t count,
                       const float* d_rounding, const core::Stream& stream) const;

  /// The memories as if nothing had been sent, where something was; and, where a condition is
  /// given, only if it is not 0.
  void put_back(const Step& step, const std::int32_t* d_condition,
                const core::Stream& stream) const;

 private:
  std::shared_ptr<const Tables> tables_;
};

}  // namespace scalecom::kernels::cuda
