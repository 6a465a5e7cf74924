#include "train/data/order.h"

#include "scalecom/core/hash.h"

namespace train::data {
namespace {

using scalecom::core::combine;

constexpr int kRounds = 6;

int half_bits(std::int64_t samples) {
  int bits = 1;
  while ((std::int64_t{1} << (2 * bits)) < samples) ++bits;
  return bits;
}

/// A permutation of [0, 4^half_bits), by a Feistel network: a bijection whatever its rounds do.
std::uint64_t permute(std::uint64_t x, std::uint64_t key, int half_bits) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = x >> half_bits;
  std::uint64_t right = x & mask;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t next =
        left ^ (combine(key + static_cast<std::uint64_t>(round), right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

}  // namespace

Order::Order(std::uint64_t seed, std::int64_t samples, int learners, std::int64_t batch)
    : seed_(seed),
      samples_(samples),
      learners_(learners),
      batch_(batch),
      half_bits_(half_bits(samples)) {}

std::int64_t Order::sample(std::int64_t position) const {
  const auto epoch = static_cast<std::uint64_t>(position / samples_);
  const std::uint64_t key = combine(combine(seed_, 0x6f72646572), epoch);
  auto x = static_cast<std::uint64_t>(position % samples_);
  // Walking on until the image is a sample keeps it a permutation; four steps at most on average.
  do {
    x = permute(x, key, half_bits_);
  } while (x >= static_cast<std::uint64_t>(samples_));
  return static_cast<std::int64_t>(x);
}

void Order::batch(int learner, std::int64_t step, std::span<std::int64_t> out) const {
  std::int64_t position = seen_after(step) + learner * batch_;
  for (std::int64_t& entry : out) entry = sample(position++);
}

}  // namespace train::data
