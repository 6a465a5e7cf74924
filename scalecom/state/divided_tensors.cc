#include "scalecom/state/divided_tensors.h"

#include <algorithm>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/layout.h"

namespace scalecom::state {
namespace {

using core::concat;

[[noreturn]] void refuse(const std::filesystem::path& folder, const std::string& what) {
  throw core::UsageError(concat("[state] folder '", folder.string(), "' ", what));
}

void check(const std::filesystem::path& folder, const std::string& tensor,
           const std::set<TensorPart>& parts) {
  std::int64_t end = 0;
  for (const TensorPart& part : parts) {
    const std::int64_t next = part.first + part.count;
    if (part.first > end) {
      refuse(folder, concat("has no memory of elements ", end, " to ", part.first, " of tensor '",
                            tensor, "'"));
    }
    if (part.first < end) {
      refuse(folder, concat("has the memory of elements ", part.first, " to ", std::min(end, next),
                            " of tensor '", tensor, "' twice"));
    }
    end = next;
  }
}

}  // namespace

DividedTensors divided_tensors(const std::filesystem::path& folder,
                               std::span<const std::map<std::string, std::int64_t>> members) {
  DividedTensors divided;
  for (const auto& elements : members) {
    for (const auto& [key, count] : elements) {
      const auto part = layout::parse_part_key(key);
      if (!part) continue;
      if (part->end - part->first != count) {
        refuse(folder, concat("is damaged: it has ", count, " elements in '", key, "'"));
      }
      divided[part->name].insert({part->first, count, key});
    }
  }
  for (const auto& [tensor, parts] : divided) check(folder, tensor, parts);
  return divided;
}

// A part's key comes after the name of its tensor, so that none is overwritten before it is taken.
void join(const DividedTensors& divided,
          std::map<std::string, core::AlignedArray<float>>& memories) {
  for (const auto& [name, parts] : divided) {
    core::AlignedArray<float> whole(parts.rbegin()->first + parts.rbegin()->count);
    for (const TensorPart& part : parts) {
      const auto data = memories.extract(part.key);
      std::copy_n(data.mapped().begin(), part.count, whole.begin() + part.first);
    }
    // A whole beside parts is what a member that has none of them had once loaded.
    memories.insert_or_assign(name, std::move(whole));
  }
}

}  // namespace scalecom::state
