#include "scalecom/state/memory_file.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/checksum.h"
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

// A file whose memories go into those of a rank, with a whole weight out of the number of files.
struct Part {
  MemoryFile file;
  std::int64_t weight;
};

// In units of 1 / (old * world), old rank i stands for [i * world, (i + 1) * world) and the new
// rank for [rank * old, (rank + 1) * old), so the overlaps of the new rank sum to `old`.
std::vector<Part> parts_of(const std::filesystem::path& folder, const Saved& saved,
                           std::int64_t rank, std::int64_t world) {
  const std::int64_t old = saved.world;
  std::vector<Part> parts;
  for (std::int64_t i = rank * old / world; i < old && i * world < (rank + 1) * old; ++i) {
    const std::int64_t weight =
        std::min((i + 1) * world, (rank + 1) * old) - std::max(i * world, rank * old);
    MemoryFile file = MemoryFile::open(folder, static_cast<int>(i), saved.world);
    file.check_beside(saved);  // again: it may have been replaced meanwhile
    parts.push_back({std::move(file), weight});
  }
  return parts;
}

// One tensor of one rank, block by block, so that no second copy of it is ever in memory.
class Division {
 public:
  Division(std::span<const Part> parts, int files, const std::string& name)
      : parts_(parts), files_(files), name_(name), sums_(parts.size()) {}

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
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const MemoryFile& file = parts_[i].file;
      if (sums_[i].text() != file.sums.at(name_)) {
        throw UsageError(concat("[state] '", file.reader.path().string(),
                                "' is damaged: the checksum of tensor '", name_,
                                "' does not fit its data"));
      }
    }
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
      block[i] = static_cast<float>(total_[i] / static_cast<double>(files_));
    }
  }

  std::span<const Part> parts_;
  int files_;
  const std::string& name_;
  std::vector<Checksum> sums_;
  std::vector<float> read_;
  std::vector<double> total_;
};

}  // namespace

void save(const std::filesystem::path& folder, int rank, int world, const Memories& memories) {
  check_rank(rank, world);
  if (memories.step < 0) {
    throw UsageError(concat("[state] step ", memories.step, "; steps are 0 or more"));
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
  const Label label{memories.method, memories.step, memories.tag, world, rank};
  write_safetensors(folder / file_name(rank, world), tensors, to_metadata(label, elements, sums));
}

Loaded load(const std::filesystem::path& folder, int rank, int world) {
  check_rank(rank, world);
  const Saved saved = describe(folder);
  const std::vector<Part> parts = parts_of(folder, saved, rank, world);
  Loaded loaded{saved.method, saved.step, {}};
  for (const auto& [name, elements] : saved.elements) {
    core::AlignedArray<float> data(elements);
    Division(parts, saved.world, name).fill(data);
    loaded.memories.emplace(name, std::move(data));
  }
  return loaded;
}

}  // namespace scalecom::state
