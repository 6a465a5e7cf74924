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

  /// A memory that went out as a whole is no longer there, but can come back until it is forgotten.
  void set_aside(const std::string& name);
  void bring_back();
  void forget_aside() { aside_.clear(); }

  /// Every memory times `factor`.
  void scale(float factor);

  std::vector<NamedMemory> list() const;
  void replace(Memories memories) {
    memories_ = std::move(memories);
    aside_.clear();
  }

 private:
  Memories memories_;
  Memories aside_;
};

}  // namespace scalecom::methods
