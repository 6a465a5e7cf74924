#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "scalecom/kernels/pieces.h"
#include "scalecom/layout/layout.h"

namespace scalecom::methods::groups {

/// A bucket divided among the members of a group. Every tensor is, and which of its elements a
/// member gets depends on the tensor alone, so that buckets may change and no memory has to move.
class Division {
 public:
  /// `granule(slice)`: elements of a slice that stay together.
  using Granule = std::function<std::int64_t(const layout::Slice&)>;
  Division(const layout::Layout& layout, int members, const Granule& granule);

  int members() const { return static_cast<int>(layouts_.size()); }
  /// What a member looks after: its parts of the tensors, but for those of which it has none.
  const layout::Layout& layout_of(int member) const {
    return layouts_[static_cast<std::size_t>(member)];
  }

  /// The bucket as it travels inside the group: a slot a member, its parts one after the other and
  /// room for a mark at the end. All slots are as long as the longest.
  std::int64_t slot() const { return slot_; }
  std::int64_t elements() const { return slot_ * members(); }
  std::int64_t mark_of(int member) const { return (member + 1) * slot_ - 1; }
  const std::vector<kernels::Piece>& pieces() const { return pieces_; }

 private:
  std::vector<layout::Layout> layouts_;
  std::vector<kernels::Piece> pieces_;
  std::int64_t slot_ = 0;
};

}  // namespace scalecom::methods::groups
