#include "cli/interrupt.h"

#include <chrono>
#include <csignal>
#include <cstdint>

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

/// Who ends a job signals its processes and their launcher, which passes the signal on: what comes
/// within this time is the same wish.
constexpr auto kSameWish = std::chrono::seconds(1);

constexpr std::int64_t kNever = -1;
std::atomic<std::int64_t> first{kNever};  // when the first signal came
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler sets them");

void on_signal(int number) {
  const std::int64_t now = nanoseconds(Clock::now().time_since_epoch()).count();
  std::int64_t before = kNever;
  interrupted = true;
  if (first.compare_exchange_strong(before, now)) return;
  if (nanoseconds(now - before) < kSameWish) return;
  // It comes again when this returns, and ends the program.
  std::signal(number, SIG_DFL);
  static_cast<void>(std::raise(number));
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace cli
