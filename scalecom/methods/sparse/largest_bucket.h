#pragma once

#include <vector>

#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/sparse/bucket.h"
#include "scalecom/methods/sparse/items.h"

namespace scalecom::methods::sparse {

/// Plain error feedback in host memory: u = m + grad, of every tensor the `keep` largest |u| are
/// taken out, and m is what is left.
class LargestBucket : public HostBucket {
 public:
  LargestBucket(const layout::Layout& layout, MemoryStore& memories);

  void compress() override;

 protected:
  void put_back_items() override;

  float* memory(std::size_t part) { return memories_[part]; }
  /// What was taken out.
  const Items& taken() const { return taken_; }

 private:
  std::vector<float*> memories_;  // of each part
  Items taken_;
};

/// The entries that every rank sends of each part.
std::vector<wire::Run> largest_runs(const Shape& shape);

}  // namespace scalecom::methods::sparse
