#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scalecom/core/array.h"
#include "scalecom/core/stream.h"
#include "scalecom/layout/layout.h"
#include "scalecom/methods/method.h"

namespace scalecom::methods {

/// The error feedback of a rank, by the name of the tensor it belongs to: buckets come and go, the
/// memories stay, on the device where they are first used. A copy of it shares the memories, and
/// knows no others that are made later.
class MemoryStore {
 public:
  /// The memories are used on this stream from now on; those that were brought from elsewhere move
  /// there. UsageError where they are in use on another device already.
  void use(const core::Stream& stream);
  core::Device device() const { return stream_.device(); }
  const core::Stream& stream() const { return stream_; }

  /// The memory of a tensor, made of zeros when it is new. UsageError where it has another length.
  float* of(const std::string& name, std::int64_t length);
  /// The same, or null where there is none.
  float* find(const std::string& name, std::int64_t length);

  /// Where a whole tensor's memory was brought back and the slice is a part of it, that part
  /// becomes the slice's own, and the rest, which is for other ranks, is given up. UsageError where
  /// another part of the tensor's memory is there, which would be lost.
  void claim(const layout::Slice& slice);

  /// Takes the memories of another store, which had been made ahead on the same device, and puts
  /// what was remembered here into them. Arrays stay where they are.
  void take_over(MemoryStore& ahead);

  /// There is no memory of a tensor any more.
  void forget(const std::string& name) { memories_.erase(name); }

  /// A memory that went out as a whole is no longer there, but can come back until it is forgotten.
  void set_aside(const std::string& name);
  void bring_back();
  void forget_aside() { aside_.clear(); }

  bool has_aside() const { return !aside_.empty(); }

  /// Every memory times `factor`; or times a number that lies where they do.
  void scale(float factor);
  void scale(const float* factor);

  /// In host memory: from a GPU copies are made, which stay until the next call.
  std::vector<NamedMemory> list() const;
  void replace(Memories&& memories);

 private:
  using Arrays = std::map<std::string, std::shared_ptr<core::Array<float>>>;

  bool used_ = false;  // whether stream_ says where they lie
  core::Stream stream_;
  Arrays memories_;
  Arrays aside_;
  mutable Arrays copies_;
};

}  // namespace scalecom::methods
