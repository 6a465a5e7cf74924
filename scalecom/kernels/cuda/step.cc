#include "scalecom/kernels/cuda/step.h"

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/cuda/native.h"
#include "scalecom/core/cuda/runtime.h"
#include "scalecom/kernels/cuda/launch.h"
#include "scalecom/kernels/cuda/tables.h"

namespace scalecom::kernels::cuda {
namespace {

using Kind = layout::Selection::Kind;

using core::cuda::native;

template <typename T>
void upload(const std::vector<T>& from, const T* d_to, const core::Stream& stream) {
  core::cuda::copy(const_cast<T*>(d_to), from.data(),
                   static_cast<std::int64_t>(from.size() * sizeof(T)), stream);
}

void lead(const Pass& pass, cudaStream_t stream) {
  const Tables& tables = pass.tables;
  const bool packs = pass.step.naming == Naming::kAll && tables.long_chunks == 0;
  if (tables.long_chunks > 0) {
    const auto bytes = static_cast<std::size_t>(tables.long_chunks) * sizeof(*tables.d_best);
    core::cuda::check(cudaMemsetAsync(tables.d_best, 0, bytes, stream), "cudaMemsetAsync");
  }
  launch_lead(pass, packs, stream);
  launch_take_best(pass, stream);
  if (!packs) launch_pack(pass, stream);
}

// Whether a follower's whole pass is left to take().
bool defers(const Pass& pass) {
  return pass.step.naming == Naming::kNone && pass.tables.kind == Kind::kLargest &&
         pass.tables.long_chunks == 0;
}

// Of a step that defers the rest: the dense slices.
void load_dense(Pass pass, cudaStream_t stream) {
  pass.tables.tiles = 0;
  launch_accumulate(pass, stream);
}

void lead_top(const Pass& pass, cudaStream_t stream) {
  launch_top(pass, stream);
  launch_long_top(pass, stream);
  launch_pack(pass, stream);
}

void lead_exact(const Pass& pass, cudaStream_t stream) {
  launch_exact_guess(pass, stream);
  launch_exact_list(pass, stream);
  launch_exact_narrow(pass, stream);
  launch_exact_take(pass, stream);
  launch_exact_pack(pass, stream);
}

}  // namespace

std::int64_t Bucket::scratch_bytes(const Shape& shape) {
  std::int64_t bytes = 0;
  HostTables(shape).place(nullptr, &bytes);
  return bytes;
}

Bucket::Bucket(const Shape& shape, void* d_scratch, const core::Stream& stream) {
  const core::cuda::DeviceScope scope(stream.device());
  const HostTables host(shape);
  std::int64_t bytes = 0;
  tables_ = std::make_shared<const Tables>(host.place(d_scratch, &bytes));
  // Kernels leave the state and the histogram as they found them.
  core::cuda::set_zero(d_scratch, bytes, stream);
  if (tables_->kind == Kind::kExact) {
    upload(std::vector<std::int64_t>{tables_->items}, tables_->d_tile_items + tables_->tiles,
           stream);
  }
  upload(host.tiles, tables_->d_tiles, stream);
  upload(host.dense_tiles, tables_->d_dense_tiles, stream);
  upload(host.parts, tables_->d_parts, stream);
  upload(host.first_items, tables_->d_first_items, stream);
  core::cuda::synchronize(stream);
}

void Bucket::first_pass(const Step& step, const core::Stream& stream) const {
  const core::cuda::DeviceScope scope(stream.device());
  const Pass pass(*tables_, step);
  core::cuda::set_zero(step.d_message + tables_->items + tables_->dense_elements, sizeof(float),
                       stream);
  const bool names = step.naming != Naming::kNone && tables_->items > 0;
  if (defers(pass)) {
    load_dense(pass, native(stream));
  } else if (!names || tables_->kind == Kind::kRandom) {
    launch_accumulate(pass, native(stream));
  } else if (tables_->kind == Kind::kLargest) {
    lead(pass, native(stream));
  } else if (tables_->kind == Kind::kTop) {
    lead_top(pass, native(stream));
  } else {
    lead_exact(pass, native(stream));
  }
}

void Bucket::take(const Step& step, const core::Stream& stream) const {
  if (step.naming == Naming::kAll || tables_->kind == Kind::kRandom) return;
  const core::cuda::DeviceScope scope(stream.device());
  const Pass pass(*tables_, step);
  if (defers(pass)) {
    launch_follow(pass, native(stream));
    return;
  }
  if (tables_->kind == Kind::kExact) {
    launch_exact_unpack(pass, native(stream));
  } else {
    launch_unpack(pass, native(stream));
  }
  if (tables_->kind != Kind::kLargest) launch_take_unpacked(pass, native(stream));
}

void Bucket::finish(const Step& step, float factor, const core::Stream& stream) const {
  const core::cuda::DeviceScope scope(stream.device());
  launch_finish(Pass(*tables_, step), factor, native(stream));
}

void Bucket::settle_rounding(const Step& step, std::int64_t first, std::int64_t count,
                             const float* d_rounding, const core::Stream& stream) const {
  const core::cuda::DeviceScope scope(stream.device());
  launch_settle_rounding(Pass(*tables_, step), first, count, d_rounding, native(stream));
}

void Bucket::put_back(const Step& step, const std::int32_t* d_condition,
                      const core::Stream& stream) const {
  const core::cuda::DeviceScope scope(stream.device());
  launch_put_back(Pass(*tables_, step), d_condition, native(stream));
}

}  // namespace scalecom::kernels::cuda
