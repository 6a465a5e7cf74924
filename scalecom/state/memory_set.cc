#include "scalecom/state/memory_set.h"

#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/state/checksum.h"

namespace scalecom::state {
namespace {

using core::concat;
using core::UsageError;

constexpr const char* kFormat = "scalecom-memory";
constexpr const char* kVersion = "1";

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& what) {
  throw UsageError(concat("[state] '", path.string(), "' ", what));
}

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
  label.step = number_field(reader, "step", std::numeric_limits<std::int64_t>::max());
  label.tag = field(reader, "tag");
  label.world = static_cast<int>(number_field(reader, "world", kMostRanks));
  label.rank = static_cast<int>(number_field(reader, "rank", kMostRanks));
  return label;
}

// The rank and world size that a file's name says; nothing for a name that no save has given.
std::optional<std::pair<int, int>> parse_file_name(const std::string& name) {
  int rank = 0;
  int world = 0;
  if (std::sscanf(name.c_str(), "rank-%9d-of-%9d", &rank, &world) != 2) return std::nullopt;
  if (rank < 0 || rank >= world || name != file_name(rank, world)) return std::nullopt;
  return std::pair(rank, world);
}

std::map<int, std::set<int>> ranks_by_world(const std::filesystem::path& folder) {
  std::map<int, std::set<int>> found;
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (const auto parsed = parse_file_name(entry.path().filename().string())) {
        found[parsed->second].insert(parsed->first);
      }
    }
  } catch (const std::filesystem::filesystem_error& why) {
    throw UsageError(
        concat("[state] cannot read folder '", folder.string(), "': ", why.code().message()));
  }
  return found;
}

std::string first_missing(const std::set<int>& ranks, int world) {
  int rank = 0;
  while (ranks.contains(rank)) ++rank;
  return file_name(rank, world);
}

int complete_world(const std::filesystem::path& folder) {
  std::vector<int> complete;
  std::vector<std::string> missing;
  for (const auto& [world, ranks] : ranks_by_world(folder)) {
    if (ranks.size() == static_cast<std::size_t>(world)) {
      complete.push_back(world);
    } else {
      missing.push_back(first_missing(ranks, world));
    }
  }
  if (complete.size() == 1) return complete.front();
  const std::string where = concat("[state] folder '", folder.string(), "' ");
  if (complete.size() > 1) {
    throw UsageError(concat(where, "holds complete sets of ", core::join(complete, " and "),
                            " ranks; remove the files of all but one"));
  }
  if (missing.empty()) throw UsageError(concat(where, "holds no memory files"));
  throw UsageError(concat(where, "holds no complete set: missing ", core::join(missing)));
}

}  // namespace

std::string file_name(int rank, int world) {
  char name[64];
  std::snprintf(name, sizeof name, "rank-%05d-of-%05d.safetensors", rank, world);
  return name;
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

MemoryFile MemoryFile::open(const std::filesystem::path& folder, int rank, int world) {
  MemoryFile file{SafetensorsReader(folder / file_name(rank, world)), {}, {}, {}};
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
  if (file.label.rank != rank || file.label.world != world) {
    refuse(reader.path(),
           concat("has been renamed: it is of rank ", file.label.rank, " of ", file.label.world));
  }
  return file;
}

void MemoryFile::check_beside(const Saved& set) const {
  const auto differs = [&](const char* what, const auto& here, const auto& there) {
    refuse(reader.path(), concat("has the ", what, " '", here, "' and rank 0's file '", there,
                                 "': they are not of one save"));
  };
  if (label.step != set.step) differs("step", label.step, set.step);
  if (label.method != set.method) differs("method", label.method, set.method);
  if (label.tag != set.tag) differs("tag", label.tag, set.tag);
  for (const auto& [name, count] : elements) {
    const auto other = set.elements.find(name);
    if (other == set.elements.end()) {
      refuse(reader.path(), concat("has a tensor '", name, "' that rank 0's file has not"));
    }
    if (other->second != count) {
      refuse(reader.path(), concat("has ", count, " elements in tensor '", name,
                                   "', and rank 0's file ", other->second));
    }
  }
  for (const auto& [name, count] : set.elements) {
    if (!elements.contains(name)) {
      refuse(reader.path(), concat("has no tensor '", name, "', which rank 0's file has"));
    }
  }
}

Saved describe(const std::filesystem::path& folder) {
  Saved saved;
  saved.world = complete_world(folder);
  for (int rank = 0; rank < saved.world; ++rank) {
    MemoryFile file = MemoryFile::open(folder, rank, saved.world);
    if (rank == 0) {
      saved.method = file.label.method;
      saved.step = file.label.step;
      saved.tag = file.label.tag;
      saved.elements = std::move(file.elements);
    } else {
      file.check_beside(saved);
    }
  }
  return saved;
}

}  // namespace scalecom::state
