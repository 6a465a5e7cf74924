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
  label.learner = {label.rank, label.world};
  if (reader.metadata().contains("learners")) {
    label.learner.number = static_cast<int>(number_field(reader, "learner", kMostRanks));
    label.learner.learners = static_cast<int>(number_field(reader, "learners", kMostRanks));
  }
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

namespace {

void check_same_save(const MemoryFile& file, const Label& first) {
  const auto differs = [&](const char* what, const auto& here, const auto& there) {
    refuse(file.reader.path(), concat("has the ", what, " '", here, "' and rank 0's file '", there,
                                      "': they are not of one save"));
  };
  const Label& label = file.label;
  if (label.step != first.step) differs("step", label.step, first.step);
  if (label.method != first.method) differs("method", label.method, first.method);
  if (label.tag != first.tag) differs("tag", label.tag, first.tag);
  if (label.learner.learners != first.learner.learners) {
    differs("number of learners", label.learner.learners, first.learner.learners);
  }
  if (label.learner.number >= label.learner.learners) {
    refuse(file.reader.path(), concat("is damaged: it is of learner ", label.learner.number, " of ",
                                      label.learner.learners));
  }
}

void check_same_tensors(const MemoryFile& file, const std::string& other,
                        const std::map<std::string, std::int64_t>& elements) {
  for (const auto& [name, count] : file.elements) {
    const auto found = elements.find(name);
    if (found == elements.end()) {
      refuse(file.reader.path(), concat("has a tensor '", name, "' that ", other, " has not"));
    }
    if (found->second != count) {
      refuse(file.reader.path(), concat("has ", count, " elements in tensor '", name, "', and ",
                                        other, " ", found->second));
    }
  }
  for (const auto& [name, count] : elements) {
    if (!file.elements.contains(name)) {
      refuse(file.reader.path(), concat("has no tensor '", name, "', which ", other, " has"));
    }
  }
}

std::string rank_file(int rank) {
  return concat("rank ", rank, "'s file");
}

}  // namespace

CheckedSet check_set(const std::filesystem::path& folder) {
  const int world = complete_world(folder);
  CheckedSet set;
  for (int rank = 0; rank < world; ++rank) {
    MemoryFile file = MemoryFile::open(folder, rank, world);
    if (rank == 0) {
      set.first = file.label;
      const int learners = file.label.learner.learners;
      if (learners < 1 || learners > world || world % learners != 0) {
        refuse(file.reader.path(),
               concat("is damaged: ", learners, " learners of ", world, " ranks"));
      }
      set.ranks.resize(static_cast<std::size_t>(learners));
    }
    check_same_save(file, set.first);
    std::vector<int>& members = set.ranks[static_cast<std::size_t>(file.label.learner.number)];
    const std::size_t member = members.size();
    members.push_back(rank);
    if (member == set.elements.size()) {
      set.elements.push_back(std::move(file.elements));
    } else {
      // The first file of this member, whichever learner's it was.
      const std::string other = member == 0 ? rank_file(0) : "that of another learner";
      check_same_tensors(file, other, set.elements[member]);
    }
  }
  for (const std::vector<int>& members : set.ranks) {
    if (members.size() != set.ranks.front().size()) {
      throw UsageError(concat("[state] folder '", folder.string(),
                              "' is damaged: its learners have different numbers of ranks"));
    }
  }
  return set;
}

MemoryFile CheckedSet::open(const std::filesystem::path& folder, int learner,
                            std::size_t member) const {
  const int rank = ranks[static_cast<std::size_t>(learner)][member];
  MemoryFile file = MemoryFile::open(folder, rank, first.world);
  check_same_save(file, first);
  check_same_tensors(file, rank_file(ranks[0][member]), elements[member]);
  return file;
}

Saved describe(const std::filesystem::path& folder) {
  const CheckedSet set = check_set(folder);
  Saved saved{set.first.world, set.learners(), set.first.method, set.first.step, set.first.tag, {}};
  for (const auto& elements : set.elements) saved.elements.insert(elements.begin(), elements.end());
  return saved;
}

}  // namespace scalecom::state
