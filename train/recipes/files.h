#pragma once

#include <span>

namespace train::recipes {

/// A file of this folder, as the build found it.
struct File {
  const char* name;
  const char* content;
};

/// In alphabetical order. CMake writes it.
std::span<const File> files();

}  // namespace train::recipes
