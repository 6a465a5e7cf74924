#include "scalecom/methods/memory_store.h"

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::methods {

float* MemoryStore::find(const std::string& name, std::int64_t length) {
  const auto found = memories_.find(name);
  if (found == memories_.end()) return nullptr;
  if (found->second.size() != length) {
    throw core::UsageError(core::concat("[memory] tensor '", name, "' has ", length,
                                        " elements and its memory ", found->second.size(),
                                        "; is this the memory of another model?"));
  }
  return found->second.data();
}

float* MemoryStore::of(const std::string& name, std::int64_t length) {
  if (float* memory = find(name, length)) return memory;
  return memories_.emplace(name, core::AlignedArray<float>(length)).first->second.data();
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
    for (float& value : memory) value *= factor;
  }
}

std::vector<NamedMemory> MemoryStore::list() const {
  std::vector<NamedMemory> all;
  for (const auto& [name, memory] : memories_) {
    all.push_back({name, {memory.data(), static_cast<std::size_t>(memory.size())}});
  }
  return all;
}

}  // namespace scalecom::methods
