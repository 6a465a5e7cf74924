#include "scalecom/state/memory_set.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/state/divided_tensors.h"
#include "scalecom/state/file.h"
#include "scalecom/state/refuse.h"

namespace scalecom::state {
namespace {

using core::concat;
using core::UsageError;

// The ranks whose files are there, by set, the oldest first.
using Sets = std::map<SetName, std::set<int>>;

Sets sets_in(const std::filesystem::path& folder) {
  Sets found;
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

bool is_complete(const SetName& set, const std::set<int>& ranks) {
  return ranks.size() == static_cast<std::size_t>(set.world);
}

std::string first_missing(const std::set<int>& ranks, const SetName& set) {
  int rank = 0;
  while (ranks.contains(rank)) ++rank;
  return file_name(rank, set);
}

bool is_same_save(const Label& a, const Label& b) {
  return a.step == b.step && a.method == b.method && a.tag == b.tag &&
         a.learner.learners == b.learner.learners;
}

// The step of a complete set; -1 where its files are of several saves, as one that was cut short
// may have replaced some of another's.
std::int64_t common_step(const std::filesystem::path& folder, const SetName& set) {
  const Label first = MemoryFile::open(folder, 0, set).label;
  for (int rank = 1; rank < set.world; ++rank) {
    if (!is_same_save(MemoryFile::open(folder, rank, set).label, first)) return -1;
  }
  return first.step;
}

// Of several complete sets, the oldest first. Files of older ones are not opened, as others may be
// removing them. Where numbers are the same, as without any, the later step is the newer.
SetName newest_of(const std::filesystem::path& folder, const std::vector<SetName>& complete) {
  std::vector<int> worlds;  // of the newest: more than one where nothing tells them apart
  SetName newest = complete.back();
  std::int64_t latest = -1;
  for (auto set = complete.rbegin(); set != complete.rend(); ++set) {
    if (!worlds.empty() && set->number != newest.number) break;
    const std::int64_t step = common_step(folder, *set);
    if (step < 0 || step < latest) continue;
    if (step > latest) worlds.clear();
    worlds.push_back(set->world);
    newest = *set;
    latest = step;
  }
  if (worlds.size() > 1) {
    throw UsageError(concat("[state] folder '", folder.string(), "' holds complete sets of ",
                            core::join(worlds, " and "), " ranks, all of step ", latest,
                            "; remove the files of all but one"));
  }
  return newest;
}

SetName newest_set(const std::filesystem::path& folder) {
  std::vector<SetName> complete;
  std::vector<std::string> missing;
  for (const auto& [set, ranks] : sets_in(folder)) {
    if (is_complete(set, ranks)) {
      complete.push_back(set);
    } else {
      missing.push_back(first_missing(ranks, set));
    }
  }
  if (complete.size() == 1) return complete.front();
  if (!complete.empty()) return newest_of(folder, complete);
  const std::string where = concat("[state] folder '", folder.string(), "' ");
  if (missing.empty()) throw UsageError(concat(where, "holds no memory files"));
  throw UsageError(concat(where, "holds no complete set: missing ", core::join(missing)));
}

// Whether every file of a set is there and all are of one save, as far as they can be read.
bool is_saved(const std::filesystem::path& folder, const SetName& set) {
  try {
    const Sets sets = sets_in(folder);
    const auto found = sets.find(set);
    return found != sets.end() && is_complete(set, found->second) && common_step(folder, set) >= 0;
  } catch (const core::Error&) {
    return false;
  }
}

// The files that are of no more use once `by` is complete. Sets of larger numbers are those of a
// run that has gone back to an earlier step, unless they lack files: those may be of a save that
// has begun already.
std::vector<std::pair<int, SetName>> replaced(const Sets& sets, const SetName& by) {
  std::vector<std::pair<int, SetName>> files;
  for (const auto& [set, ranks] : sets) {
    if (set == by || (set.number > by.number && !is_complete(set, ranks))) continue;
    for (const int rank : ranks) files.emplace_back(rank, set);
  }
  return files;
}

// A rank writes one file at a time, so that what it may be writing by now, for the next save, was
// begun after its file of `by` was written: what is older than all of those is nobody's. The times
// are those of the folder's file system, whichever machine the ranks are on.
void remove_abandoned(const std::filesystem::path& folder,
                      std::span<const std::filesystem::path> temporary, const SetName& by) {
  if (temporary.empty()) return;
  auto oldest = std::filesystem::file_time_type::max();
  for (int rank = 0; rank < by.world; ++rank) {
    std::error_code elsewhere;
    const auto written = std::filesystem::last_write_time(folder / file_name(rank, by), elsewhere);
    if (!elsewhere) oldest = std::min(oldest, written);
  }
  for (const std::filesystem::path& path : temporary) {
    std::error_code gone;
    const auto written = std::filesystem::last_write_time(path, gone);
    if (!gone && written < oldest) std::filesystem::remove(path, gone);
  }
}

}  // namespace

void remove_replaced(const std::filesystem::path& folder, const SetName& by,
                     std::optional<int> part) {
  Sets sets;
  try {
    sets = sets_in(folder);
  } catch (const UsageError&) {
    return;
  }
  const std::vector<std::pair<int, SetName>> files = replaced(sets, by);
  const std::vector<std::filesystem::path> temporary = temporary_files(folder);
  if ((files.empty() && temporary.empty()) || (!part && !is_saved(folder, by))) return;
  std::error_code ignored;  // another rank may be at the same
  for (const auto& [rank, set] : files) {
    if (part && rank % by.world != *part) continue;
    std::filesystem::remove(folder / file_name(rank, set), ignored);
  }
  remove_abandoned(folder, temporary, by);
}

std::int64_t next_number(const std::filesystem::path& folder) {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) return 0;  // who writes there says why it fails
  const Sets sets = sets_in(folder);
  return sets.empty() ? 0 : sets.rbegin()->first.number + 1;
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
  CheckedSet set;
  set.name = newest_set(folder);
  const int world = set.name.world;
  for (int rank = 0; rank < world; ++rank) {
    MemoryFile file = MemoryFile::open(folder, rank, set.name);
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
  MemoryFile file = MemoryFile::open(folder, rank, name);
  check_same_save(file, first);
  check_same_tensors(file, rank_file(ranks[0][member]), elements[member]);
  return file;
}

void CheckedSet::check_parts(const std::filesystem::path& folder) const {
  divided_tensors(folder, elements);
}

Saved describe(const std::filesystem::path& folder) {
  const CheckedSet set = check_set(folder);
  Saved saved{set.first.world, set.learners(), set.first.method, set.first.step, set.first.tag, {}};
  for (const auto& elements : set.elements) saved.elements.insert(elements.begin(), elements.end());
  return saved;
}

}  // namespace scalecom::state
