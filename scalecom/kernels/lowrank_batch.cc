#include "scalecom/kernels/lowrank_batch.h"

#include <utility>

#include "scalecom/core/hash.h"
#include "scalecom/kernels/cuda/lowrank.h"

namespace scalecom::kernels::lowrank {

Batch::Batch(std::vector<Job> jobs, const core::Stream& stream) : jobs_(std::move(jobs)) {
  if (stream.device().is_cuda()) {
    on_device_ = std::make_unique<cuda::lowrank::Batch>(jobs_, stream);
  }
}

Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;

std::vector<Job>& Batch::bound_to(const core::Buffer& grad) {
  for (Job& job : jobs_) {
    job.matrix.grad = grad.at(job.offset);
    job.matrix.dtype = grad.dtype;
  }
  return jobs_;
}

void Batch::draw_q(std::uint64_t seed, const core::Stream& stream) {
  if (on_device_) return on_device_->draw_q(seed, stream);
  for (const Job& job : jobs_) {
    lowrank::draw_q(core::combine(seed, job.key), job.rank, job.matrix.columns, job.start_q);
  }
}

void Batch::adopt_q(const core::Stream& stream) {
  if (on_device_) return on_device_->adopt_q(stream);
  lowrank::adopt_q(jobs_);
}

void Batch::accumulate(const core::Buffer& grad, Flag* flag, const core::Stream& stream) {
  if (on_device_) return on_device_->accumulate(grad, flag, stream);
  lowrank::accumulate(bound_to(grad), flag);
}

void Batch::orthonormalise_p(const core::Stream& stream) {
  if (on_device_) return on_device_->orthonormalise_p(stream);
  lowrank::orthonormalise_p(jobs_);
}

void Batch::project(const core::Stream& stream) {
  if (on_device_) return on_device_->project(stream);
  lowrank::project(jobs_);
}

void Batch::average_q(float factor, Flag* flag, const core::Stream& stream) {
  if (on_device_) return on_device_->average_q(factor, flag, stream);
  lowrank::average_q(jobs_, factor, flag);
}

void Batch::expand(const core::Buffer& grad, const Flag* flag, const core::Stream& stream) {
  if (on_device_) return on_device_->expand(grad, flag, stream);
  lowrank::expand(bound_to(grad), flag);
}

void Batch::settle(const core::Stream& stream) {
  if (on_device_) return on_device_->settle(stream);
  lowrank::settle(jobs_);
}

}  // namespace scalecom::kernels::lowrank
