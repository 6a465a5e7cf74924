#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/runs/config.h"

/// Runs that have a name: the rows of the reproduction. Each is a file of this folder, which the
/// program carries with it.
namespace train::recipes {

struct Recipe {
  std::string name;
  int version = 1;        ///< raised whenever the file changes what is computed
  std::string about;      ///< a line for people
  int priority = 1;       ///< when it is run where all are: those of 1 come first
  runs::Request request;  ///< without seed and data
  std::vector<std::int64_t> seeds;
  std::string baseline;  ///< the name of the recipe that it is compared with; may be empty
};

/// In alphabetical order.
std::vector<std::string> names();

/// The recipe of this name, or that in the file NAME.json, which may lie anywhere. core::UsageError
/// for an unknown name, with those that are known, and for a file that is damaged or has an unknown
/// key, with those that are allowed.
Recipe find(const std::string& name_or_path);

/// core::UsageError as find(). `origin` stands in the message.
Recipe parse(const std::string& name, const nlohmann::ordered_json& json,
             const std::string& origin);

}  // namespace train::recipes
