#include "scalecom/state/text_file.h"

#include <span>

#include "scalecom/state/file.h"

namespace scalecom::state {

void write_text(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

std::string read_text(const std::filesystem::path& path) {
  const File file = File::open(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace scalecom::state
