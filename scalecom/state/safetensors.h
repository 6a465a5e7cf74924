#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scalecom/state/file.h"

namespace scalecom::state {

class JsonCursor;

/// A tensor to be written, as F32.
struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> data;
};

using Metadata = std::map<std::string, std::string>;

/// Writes a safetensors file, in the order of `tensors`. The file at `path` is replaced when all of
/// it is on the disk; a failure (core::IoError, naming the path and the reason) leaves it as it
/// was. core::UsageError for a name that is not UTF-8, is "__metadata__" or stands twice, or a
/// shape that does not fit its data.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata);

/// An open safetensors file. All of its header is checked before anything else is read: offsets
/// within the file, neither gaps nor overlaps, lengths that fit types and shapes. What a file can
/// make the reader allocate is bounded by its own size. core::UsageError, naming the file and what
/// is wrong with it, for a file that is truncated, damaged or something else.
class SafetensorsReader {
 public:
  struct Tensor {
    std::string name;
    std::string dtype;  ///< as the file has it: "F32"
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    std::int64_t begin = 0;  ///< of its data, in bytes from the end of the header
    std::int64_t end = 0;
  };

  explicit SafetensorsReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const Metadata& metadata() const { return metadata_; }
  /// In the order of their names.
  std::span<const Tensor> tensors() const { return tensors_; }
  /// core::UsageError for a name that the file does not have.
  const Tensor& tensor(std::string_view name) const;

  /// The elements of an F32 tensor from `first` on, as many as `out` has room for. core::UsageError
  /// for another type, or more elements than there are.
  void read(const Tensor& tensor, std::int64_t first, std::span<float> out) const;
  /// All of a tensor; `out` has to have its size.
  void read(std::string_view name, std::span<float> out) const;

 private:
  void parse(std::string_view header);
  void parse_metadata(JsonCursor& json);
  void parse_tensor(JsonCursor& json, std::string name);
  void check_places(std::int64_t data_bytes) const;

  File file_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::int64_t data_begin_ = 0;
};

}  // namespace scalecom::state
