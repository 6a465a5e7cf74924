#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace train::runs {

/// A JSON text that is no deeper than what the program writes, so that nobody who walks through it
/// runs out of stack. Nothing for any other.
std::optional<nlohmann::ordered_json> parse_json(const std::string& text);

/// Reads a JSON file; core::UsageError, naming it, where it is missing or not JSON.
nlohmann::ordered_json read_json(const std::filesystem::path& path);
/// Writes one, whole or not at all.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

/// Whether it is a whole number in [low, high]: 2.5, true and, for high = 2^31, 2^32 + 1 are none.
bool is_whole_number(const nlohmann::ordered_json& value, std::int64_t low, std::int64_t high);
/// That number; core::UsageError where it is none.
std::int64_t whole_number(const nlohmann::ordered_json& value, std::int64_t low, std::int64_t high);
/// That which an object has under a key, which the error then names; what nlohmann throws where the
/// key is missing.
std::int64_t whole_number(const nlohmann::ordered_json& object, const char* key, std::int64_t low,
                          std::int64_t high);

/// The number that an object has under a key, if it has one.
std::optional<double> number(const nlohmann::ordered_json& object, const char* key);

}  // namespace train::runs
