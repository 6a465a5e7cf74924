#include "train/similarity/probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scalecom/comm/together.h"
#include "scalecom/comm/traffic.h"
#include "train/machine/host_copy.h"

namespace train::similarity {
namespace {

namespace comm = scalecom::comm;
namespace core = scalecom::core;
namespace methods = scalecom::methods;
using nlohmann::ordered_json;

// Elements that are looked at together.
constexpr std::int64_t kPiece = std::int64_t{1} << 18;

// Closer together where the tails are.
constexpr std::array kQuantiles = {0.0001, 0.001, 0.005, 0.01, 0.025, 0.05,  0.1,
                                   0.2,    0.3,   0.4,   0.5,  0.6,   0.7,   0.8,
                                   0.9,    0.95,  0.975, 0.99, 0.995, 0.999, 0.9999};

/// Calls body(begin, length) for one piece of the bucket after the other.
template <typename Body>
void for_each_piece(std::int64_t elements, const Body& body) {
  for (std::int64_t begin = 0; begin < elements; begin += kPiece) {
    body(begin, std::min(kPiece, elements - begin));
  }
}

std::vector<float> at_quantiles(std::vector<float> values) {
  std::vector<float> found;
  if (values.empty()) return found;
  auto from = values.begin();
  for (const double quantile : kQuantiles) {
    const auto last = static_cast<double>(values.size() - 1);
    const auto at = values.begin() + std::llround(quantile * last);
    std::nth_element(from, at, values.end());
    found.push_back(*at);
    from = at;
  }
  return found;
}

template <typename T, typename Field>
ordered_json or_null(const std::optional<T>& value, const Field& field) {
  return value ? ordered_json(field(*value)) : ordered_json(nullptr);
}

}  // namespace

ordered_json to_json(const Reading& reading) {
  const auto& distances = reading.distances;
  const auto& contraction = reading.contraction;
  using Distances = Gram::Distances;
  using methods::Contraction;
  return {{"cosine_distance", or_null(distances, [](const Distances& d) { return d.mean; })},
          {"cosine_distance_min", or_null(distances, [](const Distances& d) { return d.least; })},
          {"cosine_distance_max", or_null(distances, [](const Distances& d) { return d.most; })},
          {"hamming", or_null(contraction, [](const Contraction& c) { return c.hamming; })},
          {"contraction", or_null(contraction, [](const Contraction& c) { return c.measured; })},
          {"contraction_exact", or_null(contraction, [](const Contraction& c) { return c.exact; })},
          {"lemma1_bound", or_null(contraction, [](const Contraction& c) { return c.bound(); })},
          {"qq", or_null(reading.quantiles, [](const Reading::Quantiles& q) {
             return ordered_json{{"quantiles", q.at}, {"first", q.first}, {"second", q.second}};
           })}};
}

Probe::Probe(comm::Communicator& control, const methods::Method& method,
             const scalecom::layout::Layout& layout)
    : control_(control), method_(method), layout_(layout) {
  const methods::Learner own = method.learner(control);
  learners_ = static_cast<std::size_t>(own.learners);
  for (const methods::Learner& learner : comm::gather(control, own)) {
    learner_of_.push_back(static_cast<std::size_t>(learner.number));
  }
}

void Probe::before(std::span<const float> gradient, const core::Stream& stream) {
  choice_ = method_.choice(method_.steps());
  wanted_.clear();
  if (!choice_) return;
  const auto memories = method_.memories();
  const FlatMemory memory(layout_, memories);
  // A learner's gradient is the mean over its ranks, and each of its ranks has a part of its
  // memory, so the sum over all ranks is y.
  const auto of_gradient = static_cast<float>(choice_->gain / control_.size());
  const auto of_memory =
      static_cast<float>(choice_->gain * choice_->decay / static_cast<double>(learners_));
  std::vector<float> held;
  for_each_piece(layout_.elements(), [&](std::int64_t begin, std::int64_t length) {
    const auto count = static_cast<std::size_t>(length);
    auto piece = machine::to_host(gradient.subspan(static_cast<std::size_t>(begin), count), stream);
    const std::span<float> values(piece.data(), count);
    held.resize(count);
    memory.copy(begin, held);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = of_gradient * values[i] + of_memory * held[i];
    }
    control_.all_reduce(values);
    if (is_first()) wanted_.insert(wanted_.end(), values.begin(), values.end());
  });
}

Reading Probe::after(std::span<const float> mean, const core::Stream& stream) {
  Reading reading;
  if (learners_ > 1) {
    const auto memories = method_.memories();
    const FlatMemory memory(layout_, memories);
    const auto elements = comm::gather(control_, memory.elements());
    if (std::any_of(elements.begin(), elements.end(), [](std::int64_t e) { return e > 0; })) {
      reading.distances = distances(memory);
      reading.quantiles = quantiles(memory, elements);
    }
  }
  if (is_first() && choice_) {
    const auto sent = machine::to_host(mean, stream);
    reading.contraction = methods::measure_contraction(
        wanted_, {sent.data(), static_cast<std::size_t>(sent.size())}, layout_, choice_->selection);
  }
  return reading;
}

// Every rank is given its share of all memories, and multiplies those.
std::optional<Gram::Distances> Probe::distances(const FlatMemory& memory) {
  const int size = control_.size();
  Gram gram(learners_);
  std::vector<float> own;
  std::vector<float> shares;
  std::vector<float> rows;
  for_each_piece(layout_.elements(), [&](std::int64_t begin, std::int64_t length) {
    own.resize(static_cast<std::size_t>(length));
    memory.copy(begin, own);
    const auto count = static_cast<std::size_t>(comm::share(length, size, control_.rank()).size());
    std::vector<std::int64_t> out_sizes;
    for (int rank = 0; rank < size; ++rank) {
      out_sizes.push_back(comm::share(length, size, rank).size() *
                          static_cast<std::int64_t>(sizeof(float)));
    }
    const std::vector<std::int64_t> in_sizes(static_cast<std::size_t>(size),
                                             static_cast<std::int64_t>(count * sizeof(float)));
    shares.resize(count * static_cast<std::size_t>(size));
    control_.all_to_all(std::as_bytes(std::span(own)), out_sizes,
                        std::as_writable_bytes(std::span(shares)), in_sizes);
    rows.assign(count * learners_, 0.0F);
    for (std::size_t rank = 0; rank < learner_of_.size(); ++rank) {
      float* const row = rows.data() + learner_of_[rank] * count;
      for (std::size_t i = 0; i < count; ++i) row[i] += shares[rank * count + i];
    }
    gram.add(rows);
  });
  if (!is_first()) {
    control_.send(std::as_bytes(gram.sums()), 0);
    return std::nullopt;
  }
  Gram other(learners_);
  for (int rank = 1; rank < size; ++rank) {
    control_.receive(std::as_writable_bytes(other.sums()), rank);
    gram += other;
  }
  return gram.distances();
}

std::optional<Reading::Quantiles> Probe::quantiles(const FlatMemory& memory,
                                                   std::span<const std::int64_t> elements) {
  std::vector<float> first = quantiles_of(0, memory, elements);
  std::vector<float> second = quantiles_of(1, memory, elements);
  if (first.empty() || second.empty()) return std::nullopt;
  return Reading::Quantiles{
      {kQuantiles.begin(), kQuantiles.end()}, std::move(first), std::move(second)};
}

// At learner 0; the ranks of the learner that is asked about send it what they have. Quantiles do
// not depend on places.
std::vector<float> Probe::quantiles_of(std::size_t learner, const FlatMemory& memory,
                                       std::span<const std::int64_t> elements) {
  std::vector<float> values;
  const auto own = static_cast<std::size_t>(control_.rank());
  if (learner_of_[own] == learner) memory.append_to(values);
  if (!is_first()) {
    if (learner_of_[own] == learner) control_.send(std::as_bytes(std::span(values)), 0);
    return {};
  }
  for (std::size_t rank = 1; rank < learner_of_.size(); ++rank) {
    if (learner_of_[rank] != learner) continue;
    const std::size_t before = values.size();
    values.resize(before + static_cast<std::size_t>(elements[rank]));
    control_.receive(std::as_writable_bytes(std::span(values).subspan(before)),
                     static_cast<int>(rank));
  }
  return at_quantiles(std::move(values));
}

}  // namespace train::similarity
