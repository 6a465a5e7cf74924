#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "scalecom/state/memories.h"

/// What tests of memories share: arrays as ranks save them.
namespace scalecom::state {

using Arrays = std::map<std::string, std::vector<float>>;

constexpr const char* kMethod = "scalecom,rate=100,beta=0.1";

void save_arrays(const std::filesystem::path& folder, int rank, int world, const Arrays& arrays,
                 std::int64_t step = 7, const std::string& method = kMethod,
                 const std::string& tag = "", std::int64_t number = 0);

/// Over a block and a half, short, one element, none.
Arrays random_arrays(int seed);

/// What the ranks of a world saved.
std::vector<Arrays> save_world(const std::filesystem::path& folder, int world,
                               std::int64_t step = 7, std::int64_t number = 0);

/// One rank's file of a save with a number.
void save_numbered(const std::filesystem::path& folder, int rank, int world, std::int64_t step,
                   std::int64_t number);

void expect_same_bits(const Loaded& loaded, const Arrays& arrays);

/// What load() refuses a folder with; nothing where it does not.
std::string load_refusal(const std::filesystem::path& folder, int rank = 0, int world = 1);

}  // namespace scalecom::state
