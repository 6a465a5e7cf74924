#include "scalecom/methods/groups/division.h"

#include <algorithm>

#include "scalecom/comm/traffic.h"
#include "scalecom/core/hash.h"

namespace scalecom::methods::groups {
namespace {

// The part of a slice that is a member's. Who gets the first part differs from tensor to tensor, as
// the first parts of many short tensors are the only ones.
layout::Slice part_of(const layout::Slice& slice, std::int64_t granule, int members, int member) {
  const std::int64_t granules = (slice.length + granule - 1) / granule;
  const auto turn = static_cast<int>(core::hash(slice.name) % static_cast<unsigned>(members));
  const comm::Share share = comm::share(granules, members, (member + turn) % members);
  layout::Slice part = slice;
  const std::int64_t begin = std::min(slice.length, share.begin * granule);
  part.first = slice.first + begin;
  part.length = std::min(slice.length, share.end * granule) - begin;
  if (part.shape.empty()) part.shape = {slice.first + slice.length};
  return part;
}

}  // namespace

Division::Division(const layout::Layout& layout, int members, const Granule& granule) {
  struct Place {
    std::int64_t in_bucket;
    std::int64_t in_slot;
    std::int64_t length;
    int member;
  };
  std::vector<Place> places;
  for (int member = 0; member < members; ++member) {
    std::vector<layout::Slice> parts;
    std::int64_t offset = 0;
    for (const layout::Slice& slice : layout.slices()) {
      layout::Slice part = part_of(slice, granule(slice), members, member);
      if (part.length == 0) continue;
      places.push_back({slice.offset + part.first - slice.first, offset, part.length, member});
      part.offset = offset;
      offset += part.length;
      parts.push_back(std::move(part));
    }
    layouts_.emplace_back(std::move(parts));
    slot_ = std::max(slot_, offset + 1);
  }
  for (const Place& place : places) {
    pieces_.push_back({place.in_bucket, place.member * slot_ + place.in_slot, place.length});
  }
}

}  // namespace scalecom::methods::groups
