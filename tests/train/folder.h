#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace train {

/// A folder of the running test's own, empty at first and gone afterwards.
class Folder {
 public:
  Folder() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("scalecom_") + test->test_suite_name() + "_" + test->name() + "_" +
             std::to_string(getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// What `body` throws as an E.
template <typename E, typename Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace train
