#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cli {

/// Lines of cells under one another; the first column is set left, the others right. Rows may be of
/// different lengths.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// Lines of a name and what belongs to it.
std::string facts(const std::vector<std::pair<std::string, std::string>>& lines);

/// "12.3 MB"
std::string bytes_text(double bytes);

}  // namespace cli
