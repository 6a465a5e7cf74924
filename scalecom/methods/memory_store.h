#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scalecom/methods/method.h"

namespace scalecom::methods {

/// The error feedback of a rank, by the name of the tensor it belongs to: buckets come and go, the
/// memories stay.
class MemoryStore {
 public:
  /// The memory of a tensor, made of zeros when it is new. UsageError where it has another length.
  float* of(const std::string& name, std::int64_t length);
  /// The same, or null where there is none.
  float* find(const std::string& name, std::int64_t length);
  void drop(const std::string& name) { memories_.erase(name); }

  /// Every memory times `factor`.
  void scale(float factor);

  std::vector<NamedMemory> list() const;
  void replace(Memories memories) { memories_ = std::move(memories); }

 private:
  Memories memories_;
};

}  // namespace scalecom::methods
