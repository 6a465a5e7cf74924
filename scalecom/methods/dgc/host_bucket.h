#pragma once

#include <cstdint>
#include <vector>

#include "scalecom/methods/dgc/options.h"
#include "scalecom/methods/dgc/packed_sizes.h"
#include "scalecom/methods/memory_store.h"
#include "scalecom/methods/sparse/bucket.h"
#include "scalecom/methods/sparse/items.h"

namespace scalecom::methods::dgc {

/// DGC of one bucket in host memory.
class HostBucket final : public sparse::HostBucket, public PackedSizes {
 public:
  HostBucket(const layout::Layout& layout, const Options& options, MemoryStore& memories);

  void compress() override;
  void exchange(comm::Communicator& communicator) override;

 protected:
  bool put_items() override;
  void put_back_items() override;

 private:
  struct Part {
    float* memory;
    float* velocity;
  };

  float clipping() const;
  bool accumulate(float scale);
  bool accumulate_dense(float scale);
  void take_largest();

  const Options options_;
  std::vector<Part> parts_;
  std::vector<float*> dense_velocities_;  // of each dense part
  sparse::Items taken_;
  std::vector<float> taken_velocities_;
  std::vector<float> velocities_before_;  // of the dense slices
  std::vector<std::byte> messages_;       // of all ranks
  std::vector<sparse::Items> arrived_;
};

}  // namespace scalecom::methods::dgc
