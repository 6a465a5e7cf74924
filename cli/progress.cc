#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace cli {
namespace {

using namespace std::chrono_literals;

constexpr int kWidth = 30;

std::string time_text(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

void Progress::start(std::int64_t done, std::int64_t total) {
  first_ = done;
  total_ = total;
  started_ = shown_ = Clock::now();
  terminal_ = isatty(STDERR_FILENO) != 0;
}

void Progress::update(std::int64_t done, const std::string& note) {
  const auto now = Clock::now();
  if (!terminal_ || done <= first_ || now - started_ < 1s || now - shown_ < 100ms) return;
  shown_ = now;
  visible_ = true;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const double left =
      seconds / static_cast<double>(done - first_) * static_cast<double>(total_ - done);
  const auto filled = static_cast<int>(kWidth * done / total_);
  fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {}/{}  {} left  {}\x1b[K", "", filled, "", kWidth - filled,
             done, total_, time_text(left), note);
  std::fflush(stderr);
}

void Progress::clear() {
  if (!visible_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace cli
