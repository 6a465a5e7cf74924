#include "scalecom/state/text_file.h"

#include <gtest/gtest.h>

#include "scalecom/core/error.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::state {
namespace {

TEST(TextFile, HasAllOfTheText) {
  const TemporaryFolder folder;
  for (const std::string& text : {std::string(), std::string("a\nb\n"), std::string(100000, 'x')}) {
    write_text(folder / "a", text);
    EXPECT_EQ(contents(folder / "a"), text);
  }
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(TextFile, ReplacesALinkAndNotWhatItPointsTo) {
  const TemporaryFolder folder;
  put(folder / "kept", "old");
  std::filesystem::create_symlink("kept", folder / "a");
  write_text(folder / "a", "new");
  EXPECT_EQ(contents(folder / "a"), "new");
  EXPECT_EQ(contents(folder / "kept"), "old");
}

TEST(TextFile, WhatCannotBeReplacedStays) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a" / "b");
  EXPECT_FALSE(refusal<core::IoError>([&] { write_text(folder / "a", "new"); }).empty());
  EXPECT_FALSE(refusal<core::IoError>([&] { write_text(folder / "none" / "a", "new"); }).empty());
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a" / "b"));
  EXPECT_EQ(files_in(folder.path()), 1U);
}

}  // namespace
}  // namespace scalecom::state
