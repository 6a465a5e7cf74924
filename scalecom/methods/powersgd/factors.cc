#include "scalecom/methods/powersgd/factors.h"

#include <algorithm>
#include <utility>

#include "scalecom/core/cuda/runtime.h"
#include "scalecom/core/error.h"
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

// Between arrays in host memory or on the stream's device.
void copy(float* to, const float* from, std::int64_t count, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    core::cuda::copy(to, from, count * static_cast<std::int64_t>(sizeof(float)), stream);
    core::cuda::synchronize(stream);
  } else {
    std::copy_n(from, count, to);
  }
}

core::AlignedArray<float> host_copy(const core::Array<float>& array, const core::Stream& stream) {
  core::AlignedArray<float> here(array.size());
  copy(here.data(), array.data(), array.size(), stream);
  return here;
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
  if (matrix.name.ends_with(kSuffix)) {
    throw core::UsageError(core::concat("[powersgd] a tensor is named '", matrix.name,
                                        "', which is the name of another one's Q"));
  }
  const std::int64_t q_size = options.rank * matrix.columns;
  errors_.of(matrix.name, matrix.elements());
  if (starts_.find(matrix.name, q_size) == nullptr) draw(matrix, options);
  if (last_.contains(matrix.name)) return;
  const core::Device device = errors_.device();
  Last last{options.rank,
            matrix.rows,
            matrix.columns,
            -1,
            core::Array<float>(device, options.rank * matrix.rows),
            core::Array<float>(device, q_size)};
  last_.emplace(matrix.name, std::make_shared<Last>(std::move(last)));
}

void Factors::take_over(Factors& ahead) {
  if (ahead.last_.empty()) return;
  settle();
  errors_.take_over(ahead.errors_);
  starts_.take_over(ahead.starts_);
  for (auto& [name, last] : ahead.last_) last_.insert_or_assign(name, last);
  ahead.last_.clear();
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
  copy(starts_.of(matrix.name, size), drawn.data(), size, stream());
}

Job Factors::job_of(const Shape::Matrix& matrix) {
  Job job = job_of(matrix.name, *last_.at(matrix.name));
  job.offset = matrix.offset;
  return job;
}

float* Factors::settled(const std::string& name, std::int64_t length) {
  float* const memory = errors_.find(name, length);
  const auto found = last_.find(name);
  if (memory == nullptr || found == last_.end()) return memory;
  lowrank::Batch alone({job_of(name, *found->second)}, stream());
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
    if (last->step != step) continue;
    clear(last->p, stream());
    clear(last->q, stream());
  }
}

// The newest step of all is the one that was captured.
void Factors::replayed(std::int64_t steps) {
  std::int64_t newest = -1;
  for (const auto& [name, last] : last_) newest = std::max(newest, last->step);
  for (auto& [name, last] : last_) {
    if (last->step == newest) last->step = steps - 1;
  }
}

void Factors::settle() {
  errors_.forget_aside();
  for (auto& [name, last] : last_) {
    const std::int64_t length = last->rows * last->columns;
    if (errors_.find(name, length) != nullptr) static_cast<void>(settled(name, length));
  }
}

void Factors::forget_q() {
  settle();
  starts_.replace({});
  last_.clear();
}

void Factors::scale(float factor) {
  settle();
  errors_.scale(factor);
}

// What the next step will begin with, in the bits of the device that it will run on.
core::AlignedArray<float> Factors::adopted(const std::string& name, const Last& last) const {
  const std::int64_t size = last.rank * last.columns;
  core::Array<float> q(last.q.device(), size);
  copy(q.data(), starts_.find(name, size), size, stream());
  core::Array<float> fresh(last.q.device(), size);
  copy(fresh.data(), last.q.data(), size, stream());
  lowrank::Batch alone({{.matrix = {.rows = last.rows, .columns = last.columns},
                         .rank = last.rank,
                         .last_q = fresh.data(),
                         .start_q = q.data()}},
                       stream());
  alone.adopt_q(stream());
  return host_copy(q, stream());
}

std::vector<NamedMemory> Factors::list(bool with_q) const {
  auto copies = std::make_shared<Memories>();
  for (const NamedMemory& memory : errors_.list()) {
    copies->emplace(memory.name, copy_of(memory.values));
  }
  for (const NamedMemory& q : with_q ? starts_.list() : std::vector<NamedMemory>()) {
    copies->emplace(q.name + kSuffix, copy_of(q.values));
  }
  for (const auto& [name, last] : last_) {
    const auto memory = copies->find(name);
    if (memory == copies->end()) continue;
    if (with_q) copies->at(name + kSuffix) = adopted(name, *last);
    core::AlignedArray<float> p = host_copy(last->p, stream());
    core::AlignedArray<float> q = host_copy(last->q, stream());
    const Job job{.matrix = {nullptr, core::DType::kFloat32, memory->second.data(), last->rows,
                             last->columns},
                  .rank = last->rank,
                  .last_p = p.data(),
                  .last_q = q.data()};
    lowrank::settle({&job, 1});
  }
  std::vector<NamedMemory> all;
  for (const auto& [name, copy] : *copies) {
    all.push_back({name, {copy.data(), static_cast<std::size_t>(copy.size())}});
  }
  copies_ = std::move(copies);
  return all;
}

void Factors::replace(Memories&& memories) {
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
