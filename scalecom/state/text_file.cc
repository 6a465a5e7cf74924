#include "scalecom/state/text_file.h"

#include <span>

#include "scalecom/state/file.h"

namespace scalecom::state {

void write_text(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace scalecom::state
