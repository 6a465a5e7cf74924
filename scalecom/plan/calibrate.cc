#include "scalecom/plan/calibrate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "scalecom/comm/together.h"
#include "scalecom/core/array.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"

namespace scalecom::plan {
namespace {

constexpr std::size_t kUnknowns = 3;  // latency of short messages, of long ones, seconds a byte
using Row = std::array<double, kUnknowns>;

// Solves the normal equations by elimination; unknowns that no row has come out 0.
Row solve(std::array<Row, kUnknowns> matrix, Row right) {
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    const double pivot = matrix[i][i];
    if (std::abs(pivot) < std::numeric_limits<double>::min()) continue;
    for (std::size_t row = 0; row < kUnknowns; ++row) {
      if (row == i) continue;
      const double factor = matrix[row][i] / pivot;
      for (std::size_t k = 0; k < kUnknowns; ++k) matrix[row][k] -= factor * matrix[i][k];
      right[row] -= factor * right[i];
    }
  }
  Row solution{};
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    const double pivot = matrix[i][i];
    if (std::abs(pivot) >= std::numeric_limits<double>::min()) solution[i] = right[i] / pivot;
  }
  return solution;
}

struct Fit {
  Row solution{};
  double error = 0;  // mean of the squares of relative errors
};

// Messages of over `threshold` bytes are long.
Fit fit(std::span<const HopTime> times, double threshold) {
  std::array<Row, kUnknowns> matrix{};
  Row right{};
  const auto row_of = [&](const HopTime& time) {
    const bool is_long = time.message_bytes > threshold;
    return Row{is_long ? 0.0 : 1.0, is_long ? 1.0 : 0.0, time.sent_bytes};
  };
  for (const HopTime& time : times) {
    const Row row = row_of(time);
    const double weight = 1 / (time.seconds * time.seconds);
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t k = 0; k < kUnknowns; ++k) matrix[i][k] += weight * row[i] * row[k];
      right[i] += weight * row[i] * time.seconds;
    }
  }
  Fit result;
  result.solution = solve(matrix, right);
  for (const HopTime& time : times) {
    const Row row = row_of(time);
    double said = 0;
    for (std::size_t i = 0; i < kUnknowns; ++i) said += row[i] * result.solution[i];
    const double off = said / time.seconds - 1;
    result.error += off * off / static_cast<double>(times.size());
  }
  return result;
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

 private:
  comm::Communicator& ranks_;
  const core::Stream& stream_;
  core::Array<std::uint8_t> mine_;
  core::Array<std::uint8_t> all_;
};

}  // namespace

Link fit_link(std::span<const HopTime> times) {
  if (times.size() < kUnknowns) {
    throw core::UsageError("[plan] a link is fitted to three times or more");
  }
  for (const HopTime& time : times) {
    if (!(time.seconds > 0) || !(time.sent_bytes >= 0)) {
      throw core::UsageError("[plan] a link is fitted to times over 0");
    }
  }
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // A second latency has to earn its place.
  constexpr double kMuchBetter = 0.5;
  Fit best = fit(times, kNever);
  double threshold = kNever;
  double least = best.error * kMuchBetter;
  for (const HopTime& time : times) {
    const Fit other = fit(times, time.message_bytes);
    const bool sensible =
        other.solution[0] > 0 && other.solution[1] > other.solution[0] && other.solution[2] > 0;
    if (!sensible || other.error >= least) continue;
    best = other;
    threshold = time.message_bytes;
    least = other.error;
  }
  if (!(best.solution[2] > 0)) {
    throw core::UsageError("[plan] the times do not grow with the bytes: no bandwidth fits them");
  }
  Link link;
  link.latency = std::max(0.0, best.solution[0]);
  link.bandwidth = 1 / best.solution[2];
  if (std::isfinite(threshold)) {
    link.long_message = threshold;
    link.long_latency = best.solution[1];
  }
  return link;
}

std::vector<std::int64_t> hop_sizes() {
  std::vector<std::int64_t> sizes{1};
  constexpr std::int64_t kLargest = 4 << 20;
  for (std::int64_t bytes = 1024; bytes <= kLargest; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

std::vector<HopTime> measure_hops(comm::Communicator& ranks, std::span<const std::int64_t> sizes,
                                  const core::Stream& stream,
                                  const std::function<void(int done, int all)>& progress) {
  if (ranks.size() < 2) {
    throw core::UsageError(
        "[plan] a network is measured by two ranks or more; start this under mpirun or torchrun");
  }
  // Long enough to be told from noise, short enough for somebody who waits.
  constexpr double kRoundSeconds = 0.1;
  constexpr int kRounds = 5;
  constexpr int kMostTimes = 200;
  std::vector<HopTime> times;
  for (const std::int64_t bytes : sizes) {
    Exchange exchange(ranks, bytes, stream);
    exchange.seconds(2);
    const double once = exchange.seconds(1);
    const std::vector<double> first = comm::gather(ranks, once);
    const int repeats =
        static_cast<int>(std::clamp(kRoundSeconds / *std::max_element(first.begin(), first.end()),
                                    2.0, static_cast<double>(kMostTimes)));
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) rounds.push_back(exchange.seconds(repeats));
    const std::vector<double> all = comm::gather(ranks, median(rounds));
    const auto others = static_cast<double>(ranks.size() - 1);
    times.push_back({static_cast<double>(bytes), others * static_cast<double>(bytes), median(all)});
    if (progress) progress(static_cast<int>(times.size()), static_cast<int>(sizes.size()));
  }
  return times;
}

}  // namespace scalecom::plan
