#include "scalecom/methods/powersgd/factors.h"

#include <algorithm>
#include <utility>

#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"

namespace scalecom::methods::powersgd {
namespace {

namespace lowrank = kernels::lowrank;
using lowrank::Job;

constexpr const char* kSuffix = "/q";

std::uint64_t seed_of(const Options& options, const std::string& name, std::int64_t step) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  return core::combine(core::combine(seed, static_cast<std::uint64_t>(step)), core::hash(name));
}

core::AlignedArray<float> copy_of(std::span<const float> values) {
  core::AlignedArray<float> copy(static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), copy.begin());
  return copy;
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
  if (starts_.find(matrix.name, q_size) == nullptr) {
    float* const q = starts_.of(matrix.name, q_size);
    lowrank::draw_q(seed_of(options, matrix.name, 0), options.rank, matrix.columns, q);
  }
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
  return {
      matrix,  last.rank, last.p.data(), last.q.data(), starts_.of(name, last.rank * last.columns),
      nullptr, nullptr};
}

Job Factors::begin(const Shape::Matrix& matrix, const Options& options, std::int64_t step) {
  Last& last = last_.at(matrix.name);
  last.step = step;
  const Job job = job_of(matrix.name, last);
  if (options.warm_start == Options::kOff) {
    lowrank::draw_q(seed_of(options, matrix.name, step), job.rank, matrix.columns, job.start_q);
  }
  return job;
}

float* Factors::settled(const std::string& name, std::int64_t length) {
  float* const memory = errors_.find(name, length);
  const auto found = last_.find(name);
  if (memory == nullptr || found == last_.end()) return memory;
  const Job job = job_of(name, found->second);
  lowrank::adopt_q({&job, 1});
  lowrank::settle({&job, 1});
  return memory;
}

void Factors::set_aside(const std::string& name) {
  errors_.set_aside(name);
}

void Factors::undo(std::int64_t step) {
  errors_.bring_back();
  for (auto& [name, last] : last_) {
    if (last.step != step) continue;
    std::fill_n(last.p.data(), last.p.size(), 0.0F);
    std::fill_n(last.q.data(), last.q.size(), 0.0F);
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
    core::AlignedArray<float> p = copy_of(last.p.span());
    core::AlignedArray<float> q = copy_of(last.q.span());
    Job job{{nullptr, core::DType::kFloat32, memory->second.data(), last.rows, last.columns},
            last.rank,
            p.data(),
            q.data(),
            nullptr,
            nullptr,
            nullptr};
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
