#include "scalecom/plan/schedule.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>

namespace scalecom::plan {
namespace {

enum Resource : std::size_t { kInside, kDevice, kBetween, kResources };

/// The stations of a bucket, in order.
constexpr std::array kWay{kInside, kDevice, kBetween, kInside};

double time_at(const BucketTimes& bucket, std::size_t station) {
  return std::array{bucket.gather, bucket.compress, bucket.between, bucket.spread}.at(station);
}

class Simulation {
 public:
  explicit Simulation(const StepParts& parts) : parts_(parts), now_(parts.forward) {
    free_.fill(parts.forward);
  }

  double run() {
    // Starts come in order of time, so that whatever arrives later cannot have been first.
    while (const auto next = earliest()) {
      if (next->computes) {
        compute(next->start);
      } else {
        serve(next->resource, next->start);
      }
    }
    return now_;
  }

 private:
  struct Waiting {
    double since;
    std::size_t bucket;
    std::size_t station;
    bool operator>(const Waiting& other) const {
      return std::tie(since, bucket, station) > std::tie(other.since, other.bucket, other.station);
    }
  };
  using Queue = std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>;

  struct Start {
    double start;
    Resource resource;
    bool computes;
  };

  std::optional<Start> earliest() const {
    std::optional<Start> best;
    const auto offer = [&](const Start& start) {
      if (!best || start.start < best->start) best = start;
    };
    for (const Resource resource : {kInside, kDevice, kBetween}) {
      if (queues_[resource].empty()) continue;
      offer({std::max(free_[resource], queues_[resource].top().since), resource, false});
    }
    if (part_ < parts_.backward.size()) offer({free_[kDevice], kDevice, true});
    return best;
  }

  void compute(double start) {
    const double end = start + parts_.backward[part_];
    occupy(kDevice, end);
    for (; bucket_ < parts_.buckets.size(); ++bucket_) {
      if (parts_.buckets[bucket_].ready_after > part_) break;
      send_on(bucket_, 0, end);
    }
    ++part_;
  }

  void serve(Resource resource, double start) {
    const Waiting task = queues_[resource].top();
    queues_[resource].pop();
    const double end = start + time_at(parts_.buckets[task.bucket], task.station);
    occupy(resource, end);
    send_on(task.bucket, task.station + 1, end);
  }

  void send_on(std::size_t bucket, std::size_t station, double at) {
    while (station < kWay.size() && time_at(parts_.buckets[bucket], station) == 0) ++station;
    if (station < kWay.size()) queues_[kWay.at(station)].push({at, bucket, station});
  }

  void occupy(Resource resource, double until) {
    free_[resource] = until;
    now_ = std::max(now_, until);
  }

  const StepParts& parts_;
  double now_;
  std::size_t part_ = 0;    // of the backward pass, next
  std::size_t bucket_ = 0;  // next to become ready
  std::array<double, kResources> free_{};
  std::array<Queue, kResources> queues_;
};

}  // namespace

StepTime schedule(const StepParts& parts) {
  StepTime time;
  time.compute =
      std::accumulate(parts.backward.begin(), parts.backward.end(), parts.forward + parts.other);
  for (const BucketTimes& bucket : parts.buckets) {
    time.compress += bucket.compress;
    time.comm += bucket.gather + bucket.between + bucket.spread;
  }
  const double busy = time.compute + time.compress;
  time.step = parts.overlaps ? Simulation(parts).run() + parts.other : busy + time.comm;
  time.exposed = std::max(0.0, time.step - busy);
  return time;
}

}  // namespace scalecom::plan
