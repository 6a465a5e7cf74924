#include "scalecom/state/memory_file.h"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/methods/method.h"
#include "scalecom/state/refuse.h"

namespace scalecom::state {
namespace {

using core::concat;

constexpr const char* kFormat = "scalecom-memory";
constexpr const char* kVersion = "1";

const std::string& field(const SafetensorsReader& reader, const char* key) {
  const auto found = reader.metadata().find(key);
  if (found == reader.metadata().end()) refuse(reader.path(), concat("has no '", key, "'"));
  return found->second;
}

std::int64_t number_field(const SafetensorsReader& reader, const char* key, std::int64_t high) {
  const std::string& text = field(reader, key);
  std::int64_t value = -1;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc{} || result.ptr != end || value < 0 || value > high) {
    refuse(reader.path(), concat("is damaged: its ", key, " is '", text, "'"));
  }
  return value;
}

void check_format(const SafetensorsReader& reader) {
  const auto format = reader.metadata().find("format");
  if (format == reader.metadata().end() || format->second != kFormat) {
    refuse(reader.path(), "holds no memories: its format is not scalecom-memory");
  }
  if (const std::string& version = field(reader, "version"); version != kVersion) {
    refuse(reader.path(), concat("is of version ", version, "; version ", kVersion, " is known"));
  }
}

Label read_label(const SafetensorsReader& reader) {
  constexpr std::int64_t kMostRanks = std::numeric_limits<int>::max();
  Label label;
  label.method = field(reader, "method");
  label.step = number_field(reader, "step", methods::kMostSteps);
  label.tag = field(reader, "tag");
  label.world = static_cast<int>(number_field(reader, "world", kMostRanks));
  label.rank = static_cast<int>(number_field(reader, "rank", kMostRanks));
  label.learner = {label.rank, label.world};
  if (reader.metadata().contains("learners")) {
    label.learner.number = static_cast<int>(number_field(reader, "learner", kMostRanks));
    label.learner.learners = static_cast<int>(number_field(reader, "learners", kMostRanks));
  }
  return label;
}

}  // namespace

std::string file_name(int rank, int world) {
  return file_name(rank, SetName{0, world});
}

std::string file_name(int rank, const SetName& set) {
  char name[96];
  if (set.number == 0) {
    std::snprintf(name, sizeof name, "rank-%05d-of-%05d.safetensors", rank, set.world);
  } else {
    std::snprintf(name, sizeof name, "rank-%05d-of-%05d-save-%09" PRId64 ".safetensors", rank,
                  set.world, set.number);
  }
  return name;
}

std::optional<std::pair<int, SetName>> parse_file_name(const std::string& name) {
  int rank = 0;
  SetName set;
  const int read =
      std::sscanf(name.c_str(), "rank-%9d-of-%9d-save-%18" SCNd64, &rank, &set.world, &set.number);
  if (read < 2 || rank < 0 || rank >= set.world || set.number < 0) return std::nullopt;
  if (name != file_name(rank, set)) return std::nullopt;
  return std::pair(rank, set);
}

Metadata to_metadata(const Label& label, const std::map<std::string, std::int64_t>& elements,
                     const std::map<std::string, std::string>& sums) {
  Metadata metadata{{"format", kFormat},
                    {"version", kVersion},
                    {"method", label.method},
                    {"step", std::to_string(label.step)},
                    {"tag", label.tag},
                    {"world", std::to_string(label.world)},
                    {"rank", std::to_string(label.rank)}};
  if (label.learner.learners != label.world) {
    metadata["learner"] = std::to_string(label.learner.number);
    metadata["learners"] = std::to_string(label.learner.learners);
  }
  std::vector<std::string> list;
  list.reserve(sums.size());
  for (const auto& [name, sum] : sums) list.push_back(sum);
  metadata["sums"] = core::join(list, ",");

  std::uint64_t sum = core::hash(kFormat);
  const auto add = [&sum](const std::string& text) { sum = core::combine(sum, core::hash(text)); };
  for (const auto& [key, value] : metadata) {
    add(key);
    add(value);
  }
  for (const auto& [name, count] : elements) {
    add(name);
    add(std::to_string(count));
  }
  metadata["checksum"] = hex16(sum);
  return metadata;
}

MemoryFile MemoryFile::open(const std::filesystem::path& folder, int rank, const SetName& set) {
  MemoryFile file{SafetensorsReader(folder / file_name(rank, set)), {}, {}, {}};
  const SafetensorsReader& reader = file.reader;
  check_format(reader);
  file.label = read_label(reader);

  const std::string& sums = field(reader, "sums");
  std::vector<std::string> list;
  if (!sums.empty()) list = core::split(sums, ',');
  if (list.size() != reader.tensors().size()) {
    refuse(reader.path(), concat("is damaged: ", list.size(), " checksums for ",
                                 reader.tensors().size(), " tensors"));
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const SafetensorsReader::Tensor& tensor = reader.tensors()[i];
    if (tensor.dtype != "F32") {
      refuse(reader.path(),
             concat("has tensor '", tensor.name, "' as ", tensor.dtype, "; memories are F32"));
    }
    file.elements.emplace(tensor.name, tensor.elements);
    file.sums.emplace(tensor.name, std::move(list[i]));
  }
  if (to_metadata(file.label, file.elements, file.sums) != reader.metadata()) {
    refuse(reader.path(), "is damaged: the checksum of its header does not fit");
  }
  if (file.label.rank != rank || file.label.world != set.world) {
    refuse(reader.path(),
           concat("has been renamed: it is of rank ", file.label.rank, " of ", file.label.world));
  }
  return file;
}

void MemoryFile::check_sum(const std::string& tensor, const Checksum& sum) const {
  if (sum.text() == sums.at(tensor)) return;
  refuse(reader.path(),
         concat("is damaged: the checksum of tensor '", tensor, "' does not fit its data"));
}

}  // namespace scalecom::state
