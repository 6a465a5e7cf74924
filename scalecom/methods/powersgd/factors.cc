#include "scalecom/methods/powersgd/factors.h"

#include <algorithm>
#include <utility>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/lowrank_batch.h"

namespace scalecom::methods::powersgd {
namespace {

namespace lowrank = kernels::lowrank;
using lowrank::Job;

constexpr const char* kSuffix = "/q";

core::AlignedArray<float> copy_of(std::span<const float> values) {
  core::AlignedArray<float> copy(static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), copy.begin());
  return copy;
}

// From host memory to an array of the stream's device.
void put(float* to, const core::AlignedArray<float>& from, const core::Stream& stream) {
  if (!stream.device().is_cuda()) {
    std::copy(from.begin(), from.end(), to);
    return;
  }
  core::cuda::copy(to, from.data(), from.size() * static_cast<std::int64_t>(sizeof(float)), stream);
  core::cuda::synchronize(stream);
}

core::AlignedArray<float> host_copy(const core::Array<float>& array, const core::Stream& stream) {
  if (!array.device().is_cuda()) return copy_of(array.span());
  core::AlignedArray<float> copy(array.size());
  core::cuda::copy(copy.data(), array.data(),
                   array.size() * static_cast<std::int64_t>(sizeof(float)), stream);
  core::cuda::synchronize(stream);
  return copy;
}

void clear(core::Array<float>& array, const core::Stream& stream) {
  if (array.device().is_cuda()) {
    core::cuda::set_zero(array.data(), array.size() * static_cast<std::int64_t>(sizeof(float)),
                         stream);
  } else {
    std::fill_n(array.data(), array.size(), 0.0F);
  }
}

}  // namespace

void Factors::use(const core::Stream& stream) {
  errors_.use(stream);
  starts_.use(stream);
}

void Factors::prepare(const Shape::Matrix& matrix, const Options& options) {
  warm_start_ = options.warm_start == Options::kOn;
  const std::int64_t q_size = options.rank * matrix.columns;
  errors_.of(matrix.name, matrix.elements());
  if (starts_.find(matrix.name, q_size) == nullptr) draw(matrix, options);
  Last& last = last_[matrix.name];
  if (last.rank != 0) return;
  last = {options.rank,
          matrix.rows,
          matrix.columns,
          -1,
          core::Array<float>(errors_.device(), options.rank * matrix.rows),
          core::Array<float>(errors_.device(), q_size)};
}

Job Factors::job_of(const std::string& name, Last& last) {
  const lowrank::Matrix matrix{nullptr, core::DType::kFloat32,
                               errors_.of(name, last.rows * last.columns), last.rows, last.columns};
  return {.matrix = matrix,
          .key = core::hash(name),
          .rank = last.rank,
          .last_p = last.p.data(),
          .last_q = last.q.data(),
          .start_q = starts_.of(name, last.rank * last.columns)};
}

// On the host, wherever it goes, so that every device begins with the same bits.
void Factors::draw(const Shape::Matrix& matrix, const Options& options) {
  const std::int64_t size = options.rank * matrix.columns;
  core::AlignedArray<float> drawn(size);
  const auto seed = static_cast<std::uint64_t>(options.seed);
  lowrank::draw_q(core::combine(seed, core::hash(matrix.name)), options.rank, matrix.columns,
                  drawn.data());
  put(starts_.of(matrix.name, size), drawn, stream());
}

Job Factors::job_of(const Shape::Matrix& matrix) {
  Job job = job_of(matrix.name, last_.at(matrix.name));
  job.offset = matrix.offset;
  return job;
}

float* Factors::settled(const std::string& name, std::int64_t length) {
  float* const memory = errors_.find(name, length);
  const auto found = last_.find(name);
  if (memory == nullptr || found == last_.end()) return memory;
  lowrank::Batch alone({job_of(name, found->second)}, stream());
  alone.adopt_q(stream());
  alone.settle(stream());
  return memory;
}

void Factors::set_aside(const std::string& name) {
  errors_.set_aside(name);
}

void Factors::undo(std::int64_t step) {
  errors_.bring_back();
  for (auto& [name, last] : last_) {
    if (last.step != step) continue;
    clear(last.p, stream());
    clear(last.q, stream());
  }
}

// The newest step of all is the one that was captured.
void Factors::replayed(std::int64_t steps) {
  std::int64_t newest = -1;
  for (const auto& [name, last] : last_) newest = std::max(newest, last.step);
  for (auto& [name, last] : last_) {
    if (last.step == newest) last.step = steps - 1;
  }
}

void Factors::settle() {
  errors_.forget_aside();
  for (auto& [name, last] : last_) {
    if (errors_.find(name, last.rows * last.columns) == nullptr) continue;
    static_cast<void>(settled(name, last.rows * last.columns));
  }
}

void Factors::forget_q() {
  settle();
  starts_.replace({});
  starts_.use(errors_.stream());
  last_.clear();
}

void Factors::scale(float factor) {
  settle();
  errors_.scale(factor);
}

std::vector<NamedMemory> Factors::list() const {
  copies_.clear();
  for (const NamedMemory& memory : errors_.list()) {
    copies_.emplace(memory.name, copy_of(memory.values));
  }
  for (const NamedMemory& q : warm_start_ ? starts_.list() : std::vector<NamedMemory>()) {
    copies_.emplace(q.name + kSuffix, copy_of(q.values));
  }
  for (const auto& [name, last] : last_) {
    const auto memory = copies_.find(name);
    if (memory == copies_.end()) continue;
    core::AlignedArray<float> p = host_copy(last.p, stream());
    core::AlignedArray<float> q = host_copy(last.q, stream());
    Job job{
        .matrix = {nullptr, core::DType::kFloat32, memory->second.data(), last.rows, last.columns},
        .rank = last.rank,
        .last_p = p.data(),
        .last_q = q.data()};
    if (warm_start_) {
      job.start_q = copies_.at(name + kSuffix).data();
      lowrank::adopt_q({&job, 1});
    }
    lowrank::settle({&job, 1});
  }
  std::vector<NamedMemory> all;
  for (const auto& [name, copy] : copies_) {
    all.push_back({name, {copy.data(), static_cast<std::size_t>(copy.size())}});
  }
  return all;
}

void Factors::replace(Memories memories) {
  Memories errors;
  Memories starts;
  for (auto& [name, memory] : memories) {
    if (name.ends_with(kSuffix)) {
      starts.emplace(name.substr(0, name.size() - 2), std::move(memory));
    } else {
      errors.emplace(name, std::move(memory));
    }
  }
  errors_.replace(std::move(errors));
  starts_.replace(std::move(starts));
  last_.clear();
}

}  // namespace scalecom::methods::powersgd
