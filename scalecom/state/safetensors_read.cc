#include <algorithm>
#include <bit>
#include <utility>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/json.h"
#include "scalecom/state/refuse.h"
#include "scalecom/state/safetensors.h"

namespace scalecom::state {
namespace {

using core::concat;

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

// The format's own bound on its header, and bounds that no real file comes near, so that a hostile
// one takes little more memory than its header.
constexpr std::int64_t kLargestHeader = 100'000'000;
constexpr std::size_t kMostEntries = std::size_t{1} << 18;
constexpr std::size_t kMostDimensions = 32;
constexpr std::int64_t kLengthBytes = 8;

constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

std::int64_t bytes_of_type(std::string_view dtype) {
  for (const auto& [name, bytes] : kTypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::vector<std::int64_t> numbers(JsonCursor& json, std::size_t most) {
  std::vector<std::int64_t> list;
  json.array([&] {
    if (list.size() == most) json.fail(concat("a list of over ", most, " numbers"));
    list.push_back(json.whole_number());
  });
  return list;
}

// The product of the shape, which has to be what lies between the offsets.
std::int64_t elements_of(const JsonCursor& json, const SafetensorsReader::Tensor& tensor) {
  const auto damaged = [&](const char* what) {
    json.fail(concat("tensor '", tensor.name, "' ", what));
  };
  const std::int64_t bytes_each = bytes_of_type(tensor.dtype);
  if (bytes_each == 0) damaged("has an unknown dtype");
  std::int64_t elements = 1;
  std::int64_t bytes = 0;
  bool overflow = false;
  for (const std::int64_t size : tensor.shape) {
    overflow = overflow || __builtin_mul_overflow(elements, size, &elements);
  }
  if (overflow || __builtin_mul_overflow(elements, bytes_each, &bytes)) {
    damaged("has a shape beyond 64 bits");
  }
  if (tensor.begin > tensor.end || tensor.end - tensor.begin != bytes) {
    damaged("has data_offsets that do not fit its shape");
  }
  return elements;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(File::open(path)) {
  const std::int64_t size = file_.size();
  if (size < kLengthBytes) {
    refuse(path, concat("is truncated or no safetensors file: it has only ", size, " bytes"));
  }
  std::uint64_t length = 0;
  file_.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > static_cast<std::uint64_t>(kLargestHeader)) {
    refuse(path, concat("is no safetensors file: its header would have ", length, " bytes, and ",
                        kLargestHeader, " is the most allowed"));
  }
  if (length > static_cast<std::uint64_t>(size - kLengthBytes)) {
    refuse(path, concat("is truncated or no safetensors file: its header would have ", length,
                        " bytes, and only ", size - kLengthBytes, " follow"));
  }
  std::string header(length, '\0');
  file_.read(kLengthBytes, std::as_writable_bytes(std::span(header)));
  data_begin_ = kLengthBytes + static_cast<std::int64_t>(length);
  try {
    parse(header);
  } catch (const JsonError& why) {
    refuse(path, concat("is damaged or no safetensors file: header, ", why.what()));
  }
  check_places(size - data_begin_);
}

void SafetensorsReader::parse(std::string_view header) {
  JsonCursor json(header);
  bool has_metadata = false;
  json.object([&](std::string name) {
    if (name != "__metadata__") {
      parse_tensor(json, std::move(name));
    } else if (std::exchange(has_metadata, true)) {
      json.fail("__metadata__ stands twice");
    } else {
      parse_metadata(json);
    }
  });
  json.end();
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  const auto twice =
      std::adjacent_find(tensors_.begin(), tensors_.end(),
                         [](const Tensor& a, const Tensor& b) { return a.name == b.name; });
  if (twice != tensors_.end()) json.fail(concat("tensor '", twice->name, "' stands twice"));
}

void SafetensorsReader::parse_metadata(JsonCursor& json) {
  json.object([&](const std::string& key) {
    if (metadata_.size() == kMostEntries) json.fail(concat("over ", kMostEntries, " metadata"));
    if (!metadata_.try_emplace(key, json.string()).second) {
      json.fail(concat("metadata '", key, "' stands twice"));
    }
  });
}

void SafetensorsReader::parse_tensor(JsonCursor& json, std::string name) {
  if (tensors_.size() == kMostEntries) json.fail(concat("over ", kMostEntries, " tensors"));
  Tensor tensor;
  tensor.name = std::move(name);
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
  json.object([&](const std::string& key) {
    if (key == "dtype" && !std::exchange(has_dtype, true)) {
      tensor.dtype = json.string();
    } else if (key == "shape" && !std::exchange(has_shape, true)) {
      tensor.shape = numbers(json, kMostDimensions);
    } else if (key == "data_offsets" && !std::exchange(has_offsets, true)) {
      const std::vector<std::int64_t> offsets = numbers(json, 2);
      if (offsets.size() != 2) json.fail("data_offsets are two numbers");
      tensor.begin = offsets[0];
      tensor.end = offsets[1];
    } else {
      json.fail(concat("'", key, "' is unknown or stands twice in tensor '", tensor.name, "'"));
    }
  });
  if (!has_dtype || !has_shape || !has_offsets) {
    json.fail(concat("tensor '", tensor.name, "' lacks dtype, shape or data_offsets"));
  }
  tensor.elements = elements_of(json, tensor);
  tensors_.push_back(std::move(tensor));
}

void SafetensorsReader::check_places(std::int64_t data_bytes) const {
  std::vector<const Tensor*> placed;
  placed.reserve(tensors_.size());
  for (const Tensor& tensor : tensors_) placed.push_back(&tensor);
  std::sort(placed.begin(), placed.end(), [](const Tensor* a, const Tensor* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  std::int64_t expected = 0;
  for (const Tensor* tensor : placed) {
    if (tensor->begin != expected) {
      refuse(path(), concat("is damaged: the data of tensor '", tensor->name, "' begin at ",
                            tensor->begin, ", not at ", expected,
                            tensor->begin < expected ? ", and overlap others" : ", after a gap"));
    }
    expected = tensor->end;
  }
  if (expected > data_bytes) {
    refuse(path(), concat("is truncated: its tensors need ", expected, " bytes, and only ",
                          data_bytes, " follow the header"));
  }
  if (expected < data_bytes) {
    refuse(path(),
           concat("is damaged: ", data_bytes - expected, " bytes follow the last tensor's data"));
  }
}

const SafetensorsReader::Tensor& SafetensorsReader::tensor(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const Tensor& tensor, std::string_view n) { return tensor.name < n; });
  if (found == tensors_.end() || found->name != name) {
    refuse(path(), concat("has no tensor '", name, "'"));
  }
  return *found;
}

void SafetensorsReader::read(const Tensor& tensor, std::int64_t first, std::span<float> out) const {
  if (tensor.dtype != "F32") {
    refuse(path(), concat("has tensor '", tensor.name, "' as ", tensor.dtype, ", not as F32"));
  }
  const auto wanted = static_cast<std::int64_t>(out.size());
  if (first < 0 || first > tensor.elements || wanted > tensor.elements - first) {
    refuse(path(), concat("has ", tensor.elements, " elements in tensor '", tensor.name, "'; ",
                          wanted, " from ", first, " on were asked for"));
  }
  file_.read(data_begin_ + tensor.begin + first * static_cast<std::int64_t>(sizeof(float)),
             std::as_writable_bytes(out));
}

void SafetensorsReader::read(std::string_view name, std::span<float> out) const {
  const Tensor& found = tensor(name);
  if (static_cast<std::int64_t>(out.size()) != found.elements) {
    refuse(path(),
           concat("has ", found.elements, " elements in tensor '", name, "', not ", out.size()));
  }
  read(found, 0, out);
}

}  // namespace scalecom::state
