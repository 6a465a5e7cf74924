#include "scalecom/plan/calibrate.h"

#include <algorithm>
#include <chrono>

#include "scalecom/comm/together.h"
#include "scalecom/core/array.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::plan {
namespace {

struct Line {
  double at_zero = 0;
  double slope = 0;
};

// Through times over bytes, with the least sum of squares of relative errors.
Line fit_line(std::span<const HopTime> times) {
  double w = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (const HopTime& time : times) {
    const double weight = 1 / (time.seconds * time.seconds);
    w += weight;
    x += weight * time.sent_bytes;
    y += weight * time.seconds;
    xx += weight * time.sent_bytes * time.sent_bytes;
    xy += weight * time.sent_bytes * time.seconds;
  }
  const double determinant = w * xx - x * x;
  if (!(determinant > 0)) return {};
  return {(xx * y - x * xy) / determinant, (w * xy - x * y) / determinant};
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Exchanges in a row: each waits for all ranks, so that their mean is that of one, whoever began.
class Exchange {
 public:
  Exchange(comm::Communicator& ranks, std::int64_t bytes, const core::Stream& stream)
      : ranks_(ranks),
        stream_(stream),
        mine_(stream.device(), bytes),
        all_(stream.device(), bytes * ranks.size()) {}

  /// Of one exchange, once it takes no less than those before it: at first a connection's window
  /// grows. The same at every rank.
  double settled_seconds() {
    // Long enough to be told from noise.
    constexpr double kRoundSeconds = 0.1;
    constexpr int kFewestTimes = 2;
    constexpr int kMostTimes = 200;
    constexpr std::ptrdiff_t kRounds = 5;
    constexpr std::ptrdiff_t kMostRounds = 20;
    constexpr double kNoMoreThan = 1.05;
    seconds(2);
    const std::vector<double> once = comm::gather(ranks_, seconds(1));
    const double longest = *std::max_element(once.begin(), once.end());
    const auto times =
        static_cast<int>(std::clamp<double>(kRoundSeconds / longest, kFewestTimes, kMostTimes));
    for (std::vector<double> rounds;;) {
      // A rank that is ahead in one exchange waits in the next; none gains in the mean.
      rounds.push_back(comm::mean_over_ranks(ranks_, seconds(times)));
      if (std::ssize(rounds) < kRounds) continue;
      const double found = median({rounds.end() - kRounds, rounds.end()});
      if (*(rounds.end() - kRounds) < kNoMoreThan * found || std::ssize(rounds) == kMostRounds) {
        return found;
      }
    }
  }

 private:
  // Of one of so many in a row.
  double seconds(int times) {
    const double sum = seconds_of([&] {
      for (int i = 0; i < times; ++i) {
        ranks_.all_gather(std::as_bytes(mine_.span()), std::as_writable_bytes(all_.span()),
                          stream_);
      }
      if (stream_.device().is_cuda()) core::cuda::synchronize(stream_);
    });
    return sum / times;
  }

  comm::Communicator& ranks_;
  const core::Stream& stream_;
  core::Array<std::uint8_t> mine_;
  core::Array<std::uint8_t> all_;
};

}  // namespace

Link fit_link(std::span<const HopTime> times) {
  constexpr std::size_t kFewest = 3;
  if (times.size() < kFewest) {
    throw core::UsageError("[plan] a link is fitted to three times or more");
  }
  for (const HopTime& time : times) {
    if (!(time.seconds > 0) || !(time.sent_bytes >= 0)) {
      throw core::UsageError("[plan] a link is fitted to times over 0");
    }
  }
  std::vector<HopTime> sorted(times.begin(), times.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const HopTime& a, const HopTime& b) { return a.sent_bytes < b.sent_bytes; });
  // What a message costs apart from its bytes, those tell whose bytes cost next to nothing; what a
  // byte costs, those that take far longer. What lies between is at the mercy of buffers.
  constexpr double kNextToNothing = 0.1;
  constexpr double kFarLonger = 4;
  const double a_byte =
      fit_line(std::span(sorted).last(std::max<std::size_t>(2, sorted.size() / 3))).slope;
  const auto without_bytes = [&](const HopTime& time) {
    return time.seconds - a_byte * time.sent_bytes;
  };
  const auto is_short = [&](const HopTime& time) {
    return time.seconds - without_bytes(time) < kNextToNothing * time.seconds;
  };
  std::vector<double> pings{without_bytes(sorted.front())};
  for (const HopTime& time : std::span(sorted).subspan(1)) {
    if (is_short(time)) pings.push_back(without_bytes(time));
  }
  // Where no message is short, what is left of one can be less than nothing.
  const double ping = std::max(0.0, median(pings));
  const auto begin = std::find_if(sorted.begin(), sorted.end(), [&](const HopTime& time) {
    return time.seconds > kFarLonger * ping;
  });
  const bool has_long = sorted.end() - begin >= 2;
  const Line line = has_long ? fit_line({begin, sorted.end()}) : fit_line(sorted);
  if (!(line.slope > 0)) {
    throw core::UsageError("[plan] the times do not grow with the bytes: no bandwidth fits them");
  }
  Link link;
  link.bandwidth = 1 / line.slope;
  link.latency = has_long ? ping : std::max(0.0, line.at_zero);
  for (const HopTime& time : sorted) {
    // Of those that cost what a ping costs, the median is better than each.
    constexpr double kClearly = 1.5;
    const bool is_ping = is_short(time) && without_bytes(time) < kClearly * ping;
    const double seconds = is_ping ? ping + a_byte * time.sent_bytes : time.seconds;
    const double least = link.timed.empty() ? 0 : link.timed.back().seconds;
    link.timed.push_back({time.sent_bytes, std::max(seconds, least)});
  }
  return link;
}

std::vector<std::int64_t> hop_sizes(int ranks) {
  constexpr std::int64_t kLargest = std::int64_t{12} << 20;
  const std::int64_t largest = std::max<std::int64_t>(1, kLargest / std::max(1, ranks - 1));
  std::vector<std::int64_t> sizes{1};
  // Where buffers and windows end, a straight line from one size to the next has to be short.
  constexpr std::int64_t kShort = std::int64_t{64} << 10;
  for (std::int64_t bytes = 64; bytes < largest; bytes *= bytes < kShort ? 4 : 2) {
    sizes.push_back(bytes);
  }
  sizes.push_back(largest);
  return sizes;
}

std::vector<HopTime> measure_hops(comm::Communicator& ranks, std::span<const std::int64_t> sizes,
                                  const core::Stream& stream,
                                  const std::function<void(int done, int all)>& progress) {
  if (ranks.size() < 2) {
    throw core::UsageError(
        "[plan] a network is measured by two ranks or more; start this under mpirun or torchrun");
  }
  // Short enough for somebody who waits: over a slow network the longest messages are left out.
  constexpr double kEnoughSeconds = 0.3;
  std::vector<HopTime> times;
  const auto others = static_cast<double>(ranks.size() - 1);
  for (const std::int64_t bytes : sizes) {
    Exchange exchange(ranks, bytes, stream);
    times.push_back({others * static_cast<double>(bytes), exchange.settled_seconds()});
    const bool is_enough = times.back().seconds > kEnoughSeconds;
    const std::size_t all = is_enough ? times.size() : sizes.size();
    if (progress) progress(static_cast<int>(times.size()), static_cast<int>(all));
    if (is_enough) break;
  }
  return times;
}

}  // namespace scalecom::plan
