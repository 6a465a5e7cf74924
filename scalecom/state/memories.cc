#include "scalecom/state/memories.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "scalecom/state/checksum.h"
#include "scalecom/state/divided_tensors.h"
#include "scalecom/state/memory_set.h"
#include "scalecom/state/safetensors.h"

namespace scalecom::state {
namespace {

using core::concat;
using core::UsageError;

void check_rank(int rank, int world) {
  if (world < 1 || rank < 0 || rank >= world) {
    throw UsageError(concat("[state] rank ", rank, " of ", world,
                            "; a world has 1 rank or more, counted from 0"));
  }
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw core::IoError(
        concat("[state] cannot make folder '", folder.string(), "': ", failure.message()));
  }
}

std::string sum_of(std::span<const float> data) {
  Checksum sum;
  for (std::size_t at = 0; at < data.size(); at += Checksum::kBlock) {
    sum.add(data.subspan(at, std::min<std::size_t>(Checksum::kBlock, data.size() - at)));
  }
  return sum.text();
}

// A file whose memories go into those of a learner, with a whole weight out of the number of old
// learners.
struct Part {
  MemoryFile file;
  std::int64_t weight;
};

// The files of member `member` of the old learners that overlap the new one. In units of 1 / (old *
// learners), old learner i stands for [i * learners, (i + 1) * learners) and the new one for
// [number * old, (number + 1) * old), so its overlaps sum to `old`.
std::vector<Part> parts_of(const std::filesystem::path& folder, const CheckedSet& set,
                           std::size_t member, std::int64_t number, std::int64_t learners) {
  const std::int64_t old = set.learners();
  std::vector<Part> parts;
  for (std::int64_t i = number * old / learners; i < old && i * learners < (number + 1) * old;
       ++i) {
    const std::int64_t weight =
        std::min((i + 1) * learners, (number + 1) * old) - std::max(i * learners, number * old);
    parts.push_back({set.open(folder, static_cast<int>(i), member), weight});
  }
  return parts;
}

// One tensor of one learner, block by block, so that no second copy of it is ever in memory.
class Division {
 public:
  Division(std::span<const Part> parts, int learners, const std::string& name)
      : parts_(parts), learners_(learners), name_(name), sums_(parts.size()) {}

  void fill(core::AlignedArray<float>& out) {
    for (std::int64_t at = 0; at < out.size(); at += Checksum::kBlock) {
      const std::int64_t count = std::min(Checksum::kBlock, out.size() - at);
      const std::span<float> block(out.data() + at, static_cast<std::size_t>(count));
      if (parts_.size() == 1) {
        read(0, at, block);
      } else {
        mix(at, block);
      }
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].file.check_sum(name_, sums_[i]);
  }

 private:
  void read(std::size_t part, std::int64_t at, std::span<float> block) {
    const SafetensorsReader& reader = parts_[part].file.reader;
    reader.read(reader.tensor(name_), at, block);
    sums_[part].add(block);
  }

  void mix(std::int64_t at, std::span<float> block) {
    read_.resize(block.size());
    total_.assign(block.size(), 0.0);
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      read(part, at, read_);
      const auto weight = static_cast<double>(parts_[part].weight);
      for (std::size_t i = 0; i < block.size(); ++i) {
        total_[i] += weight * static_cast<double>(read_[i]);
      }
    }
    for (std::size_t i = 0; i < block.size(); ++i) {
      block[i] = static_cast<float>(total_[i] / static_cast<double>(learners_));
    }
  }

  std::span<const Part> parts_;
  int learners_;
  const std::string& name_;
  std::vector<Checksum> sums_;
  std::vector<float> read_;
  std::vector<double> total_;
};

}  // namespace

void write_file(const std::filesystem::path& folder, int rank, int world,
                const RankMemories& memories) {
  check_rank(rank, world);
  if (memories.step < 0 || memories.step > methods::kMostSteps) {
    throw UsageError(
        concat("[state] step ", memories.step, "; steps are from 0 to ", methods::kMostSteps));
  }
  if (memories.number < 0 || memories.number > kMostSaves) {
    throw UsageError(
        concat("[state] save ", memories.number, "; numbers are from 0 to ", kMostSaves));
  }
  std::vector<TensorView> tensors;
  std::map<std::string, std::int64_t> elements;
  std::map<std::string, std::string> sums;
  for (const auto& [name, data] : memories.named) {
    const auto count = static_cast<std::int64_t>(data.size());
    tensors.push_back({name, {count}, data});
    elements.emplace(name, count);
    sums.emplace(name, sum_of(data));
  }
  make_folder(folder);
  const methods::Learner learner = memories.learner.value_or(methods::Learner{rank, world});
  const Label label{memories.method, memories.step, memories.tag, world, rank, learner};
  write_safetensors(folder / file_name(rank, {memories.number, world}), tensors,
                    to_metadata(label, elements, sums));
}

void save(const std::filesystem::path& folder, int rank, int world, const RankMemories& memories) {
  write_file(folder, rank, world, memories);
  remove_replaced(folder, {memories.number, world});
}

Loaded load(const std::filesystem::path& folder, int number, int learners) {
  check_rank(number, learners);
  const CheckedSet set = check_set(folder);
  // Where a learner is one rank, every name is that of a whole tensor.
  DividedTensors divided;
  if (set.elements.size() > 1) divided = divided_tensors(folder, set.elements);
  Loaded loaded{set.first.method, set.first.step, {}};
  for (std::size_t member = 0; member < set.elements.size(); ++member) {
    const std::vector<Part> parts = parts_of(folder, set, member, number, learners);
    for (const auto& [name, elements] : set.elements[member]) {
      core::AlignedArray<float> data(elements);
      Division(parts, set.learners(), name).fill(data);
      loaded.memories.emplace(name, std::move(data));
    }
  }
  join(divided, loaded.memories);
  return loaded;
}

}  // namespace scalecom::state
