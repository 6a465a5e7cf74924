#include <bit>
#include <set>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/json.h"
#include "scalecom/state/safetensors.h"

namespace scalecom::state {
namespace {

using core::concat;
using core::UsageError;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

// Data begin at a multiple of this, so that they can be mapped.
constexpr std::size_t kAlignment = 8;

std::string quoted(const std::filesystem::path& path, const std::string& text) {
  try {
    return json_quoted(text);
  } catch (const JsonError&) {
    throw UsageError(concat("[state] cannot write '", path.string(), "': the name or text '", text,
                            "' is not UTF-8"));
  }
}

void check(const std::filesystem::path& path, const TensorView& tensor) {
  const auto refuse = [&](const char* why) {
    throw UsageError(
        concat("[state] cannot write '", path.string(), "': tensor '", tensor.name, "' ", why));
  };
  if (tensor.name == "__metadata__") refuse("has a name that the format keeps for itself");
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) {
    if (size < 0) refuse("has a negative size");
    if (__builtin_mul_overflow(elements, size, &elements)) refuse("has a shape beyond 64 bits");
  }
  if (elements != static_cast<std::int64_t>(tensor.data.size())) {
    refuse("has a shape that does not fit its data");
  }
}

std::string header_of(const std::filesystem::path& path, std::span<const TensorView> tensors,
                      const Metadata& metadata) {
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) {
      pairs.push_back(concat(quoted(path, key), ":", quoted(path, value)));
    }
    members.push_back(concat("\"__metadata__\":{", core::join(pairs, ","), "}"));
  }
  std::set<std::string_view> names;
  std::size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    check(path, tensor);
    if (!names.insert(tensor.name).second) {
      throw UsageError(concat("[state] cannot write '", path.string(), "': the name '", tensor.name,
                              "' stands twice"));
    }
    const std::size_t end = offset + tensor.data.size_bytes();
    members.push_back(concat(quoted(path, tensor.name), ":{\"dtype\":\"F32\",\"shape\":[",
                             core::join(tensor.shape, ","), "],\"data_offsets\":[", offset, ",",
                             end, "]}"));
    offset = end;
  }
  std::string header = concat("{", core::join(members, ","), "}");
  header.append((kAlignment - header.size() % kAlignment) % kAlignment, ' ');
  return header;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata) {
  const std::string header = header_of(path, tensors, metadata);
  const std::uint64_t length = header.size();
  NewFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const TensorView& tensor : tensors) file.write(std::as_bytes(tensor.data));
  file.commit();
}

}  // namespace scalecom::state
