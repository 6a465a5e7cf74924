#include "scalecom/methods/memory_store.h"

#include <algorithm>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/kernels/elementwise.h"

namespace scalecom::methods {
namespace {

constexpr auto kBytes = static_cast<std::int64_t>(sizeof(float));

std::shared_ptr<core::Array<float>> zeros(core::Device device, std::int64_t length) {
  return std::make_shared<core::Array<float>>(device, length);
}

// Between arrays on the stream's device.
void copy(const float* from, std::int64_t length, float* to, const core::Stream& stream) {
  if (stream.device().is_cuda()) {
    core::cuda::copy(to, from, length * kBytes, stream);
  } else {
    std::copy_n(from, length, to);
  }
}

}  // namespace

void MemoryStore::use(const core::Stream& stream) {
  if (used_) {
    if (stream.device() != device()) {
      throw core::UsageError(
          core::concat("[reduce] the gradient is on ", core::to_string(stream.device()),
                       " and the memories of this method are on ", core::to_string(device())));
    }
    stream_ = stream;
    return;
  }
  Arrays moved;
  for (const auto& [name, memory] : memories_) {
    if (!stream.device().is_cuda()) break;
    auto there = zeros(stream.device(), memory->size());
    core::cuda::copy(there->data(), memory->data(), memory->size() * kBytes, stream);
    moved.emplace(name, std::move(there));
  }
  core::cuda::synchronize(stream);
  if (!moved.empty()) memories_ = std::move(moved);
  stream_ = stream;
  used_ = true;
}

float* MemoryStore::find(const std::string& name, std::int64_t length) {
  const auto found = memories_.find(name);
  if (found == memories_.end()) return nullptr;
  if (found->second->size() != length) {
    throw core::UsageError(core::concat("[memory] tensor '", name, "' has ", length,
                                        " elements and its memory ", found->second->size(),
                                        "; is this the memory of another model?"));
  }
  return found->second->data();
}

float* MemoryStore::of(const std::string& name, std::int64_t length) {
  if (float* memory = find(name, length)) return memory;
  return memories_.emplace(name, zeros(device(), length)).first->second->data();
}

void MemoryStore::claim(const layout::Slice& slice) {
  const std::string key = slice.key();
  const std::string parts = slice.name + "[";
  auto other = memories_.lower_bound(parts);
  // Another tensor may have such a name too: "w[bias]" is no part of "w".
  const auto is_part = [&slice](const std::string& name) {
    const auto part = layout::parse_part_key(name);
    return part && part->name == slice.name;
  };
  while (other != memories_.end() && other->first.starts_with(parts) && !is_part(other->first)) {
    ++other;
  }
  if (other != memories_.end() && other->first.starts_with(parts) && other->first != key) {
    throw core::UsageError(core::concat("[memory] '", key, "' is needed and '", other->first,
                                        "' is there: these memories are of ranks that were "
                                        "divided otherwise; restore whole tensors, as loading a "
                                        "saved folder or the states of all ranks does"));
  }
  const auto whole = memories_.find(slice.name);
  if (key == slice.name || whole == memories_.end()) return;
  const std::int64_t elements = layout::Tensor{slice.name, slice.shape}.elements();
  find(slice.name, elements);  // for its check of the length
  auto part = zeros(device(), slice.length);
  copy(whole->second->data() + slice.first, slice.length, part->data(), stream_);
  core::cuda::synchronize(stream_);
  memories_.erase(whole);
  memories_.insert_or_assign(key, std::move(part));
}

void MemoryStore::take_over(MemoryStore& ahead) {
  for (auto& [name, memory] : ahead.memories_) {
    const float* const before = find(name, memory->size());
    if (before != nullptr) copy(before, memory->size(), memory->data(), stream_);
    memories_.insert_or_assign(name, memory);
  }
  ahead.memories_.clear();
}

void MemoryStore::set_aside(const std::string& name) {
  if (auto node = memories_.extract(name)) aside_.insert(std::move(node));
}

void MemoryStore::bring_back() {
  memories_.merge(aside_);
  aside_.clear();
}

void MemoryStore::scale(float factor) {
  for (auto& [name, memory] : memories_) {
    kernels::elementwise::scale(memory->data(), memory->size(), factor, stream_);
  }
}

void MemoryStore::scale(const float* factor) {
  std::vector<kernels::elementwise::Numbers> all;
  for (auto& [name, memory] : memories_) all.push_back({memory->data(), memory->size()});
  kernels::elementwise::scale_all(all, factor, stream_);
}

std::vector<NamedMemory> MemoryStore::list() const {
  copies_.clear();
  for (const auto& [name, memory] : memories_) {
    if (!device().is_cuda()) break;
    auto here = zeros({}, memory->size());
    core::cuda::copy(here->data(), memory->data(), memory->size() * kBytes, stream_);
    copies_.emplace(name, std::move(here));
  }
  core::cuda::synchronize(stream_);
  std::vector<NamedMemory> all;
  for (const auto& [name, memory] : device().is_cuda() ? copies_ : memories_) {
    all.push_back({name, memory->span()});
  }
  return all;
}

void MemoryStore::replace(Memories&& memories) {
  memories_.clear();
  aside_.clear();
  for (auto& [name, memory] : memories) {
    memories_.emplace(name, std::make_shared<core::Array<float>>(std::move(memory)));
  }
  used_ = false;
  stream_ = {};
}

}  // namespace scalecom::methods
