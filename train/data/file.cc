#include "train/data/file.h"

#include <fstream>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace train::data {

namespace core = scalecom::core;
namespace fs = std::filesystem;

void refuse(const fs::path& path, const std::string& what) {
  throw core::UsageError(core::concat("[data] ", path.string(), " ", what));
}

std::vector<std::uint8_t> read_file(const fs::path& path) {
  if (!fs::is_regular_file(path)) refuse(path, "is missing or not a plain file");
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> content(fs::file_size(path));
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file) refuse(path, "cannot be read: is it yours to read?");
  return content;
}

}  // namespace train::data
