#include "tests/methods/plain_sparse.h"

#include <algorithm>
#include <cmath>

namespace scalecom::methods::testing {
namespace {

Gradients zeros(int ranks, const layout::Layout& layout) {
  return Gradients(static_cast<std::size_t>(ranks),
                   std::vector<float>(static_cast<std::size_t>(layout.elements()), 0.0F));
}

std::int64_t kept_of(const layout::Slice& slice) {
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::floor(static_cast<double>(slice.length) / slice.rate)));
}

std::vector<std::pair<std::int64_t, float>> slice_of(const std::vector<float>& values,
                                                     const layout::Slice& slice) {
  std::vector<std::pair<std::int64_t, float>> entries;
  for (std::int64_t i = slice.offset; i < slice.offset + slice.length; ++i) {
    entries.emplace_back(i, values[static_cast<std::size_t>(i)]);
  }
  return entries;
}

bool compressed(const layout::Slice& slice) {
  return slice.rate > 1 && slice.length > 0;
}

void add_dense_mean(const layout::Layout& layout, const Gradients& gradients,
                    std::vector<float>& mean) {
  const float factor = 1.0F / static_cast<float>(gradients.size());
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.rate > 1) continue;
    for (std::int64_t k = slice.offset; k < slice.offset + slice.length; ++k) {
      const auto i = static_cast<std::size_t>(k);
      mean[i] = gradients[0][i] * factor;
      for (std::size_t r = 1; r < gradients.size(); ++r) mean[i] += gradients[r][i] * factor;
    }
  }
}

void add_up(Gradients& memories, const Gradients& gradients, const layout::Layout& layout) {
  for (const layout::Slice& slice : layout.slices()) {
    if (!compressed(slice)) continue;
    for (std::size_t r = 0; r < memories.size(); ++r) {
      for (std::int64_t i = slice.offset; i < slice.offset + slice.length; ++i) {
        memories[r][static_cast<std::size_t>(i)] += gradients[r][static_cast<std::size_t>(i)];
      }
    }
  }
}

// Out of the memory: what a rank sends of a slice.
PlainSet take(std::vector<float>& memory, const layout::Slice& slice) {
  const PlainSet largest = plain_largest(slice_of(memory, slice), kept_of(slice));
  for (const auto& [place, value] : largest) memory[static_cast<std::size_t>(place)] = 0;
  return largest;
}

}  // namespace

PlainSet plain_largest(std::vector<std::pair<std::int64_t, float>> entries, std::int64_t keep) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second) > std::abs(b.second);
  });
  entries.resize(static_cast<std::size_t>(keep));
  return {entries.begin(), entries.end()};
}

PlainTopk::PlainTopk(int ranks, layout::Layout layout)
    : layout_(std::move(layout)), memories_(zeros(ranks, layout_)) {}

std::vector<float> PlainTopk::step(const Gradients& gradients) {
  std::vector<float> mean(gradients[0].size(), 0.0F);
  const float factor = 1.0F / static_cast<float>(gradients.size());
  add_up(memories_, gradients, layout_);
  for (const layout::Slice& slice : layout_.slices()) {
    if (!compressed(slice)) continue;
    for (std::vector<float>& memory : memories_) {
      for (const auto& [place, value] : take(memory, slice)) {
        mean[static_cast<std::size_t>(place)] += value * factor;
      }
    }
  }
  add_dense_mean(layout_, gradients, mean);
  return mean;
}

PlainGtopk::PlainGtopk(int ranks, layout::Layout layout)
    : layout_(std::move(layout)), memories_(zeros(ranks, layout_)) {}

std::vector<float> PlainGtopk::step(const Gradients& gradients) {
  struct Dropped {
    std::size_t by;
    std::int64_t place;
    float value;
  };
  const std::size_t ranks = gradients.size();
  const float factor = 1.0F / static_cast<float>(ranks);
  std::vector<float> mean(gradients[0].size(), 0.0F);
  add_up(memories_, gradients, layout_);
  for (const layout::Slice& slice : layout_.slices()) {
    if (!compressed(slice)) continue;
    std::vector<PlainSet> sent;
    for (std::vector<float>& memory : memories_) sent.push_back(take(memory, slice));
    std::vector<PlainSet> held = sent;
    std::vector<Dropped> dropped;
    for (std::size_t stride = 1; stride < ranks; stride *= 2) {
      for (std::size_t r = 0; r + stride < ranks; r += 2 * stride) {
        PlainSet together = held[r];
        for (const auto& [place, value] : held[r + stride]) {
          const auto [entry, is_new] = together.try_emplace(place, value);
          if (!is_new) entry->second += value;
        }
        held[r] = plain_largest({together.begin(), together.end()}, kept_of(slice));
        for (const auto& [place, value] : together) {
          if (!held[r].contains(place)) dropped.push_back({r, place, value});
        }
      }
    }
    for (const auto& [place, value] : held[0]) {
      mean[static_cast<std::size_t>(place)] = value * factor;
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      for (const auto& [place, value] : sent[r]) {
        if (!held[0].contains(place)) memories_[r][static_cast<std::size_t>(place)] += value;
      }
    }
    for (const Dropped& one : dropped) {
      if (held[0].contains(one.place)) {
        memories_[one.by][static_cast<std::size_t>(one.place)] += one.value;
      }
    }
  }
  add_dense_mean(layout_, gradients, mean);
  return mean;
}

PlainDgc::PlainDgc(int ranks, Rules rules, layout::Layout layout)
    : rules_(rules),
      layout_(std::move(layout)),
      memories_(zeros(ranks, layout_)),
      velocities_(memories_),
      dense_(memories_) {}

const Gradients& PlainDgc::accumulate(const Gradients& gradients) {
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    double squares = 0;
    for (const float g : gradients[r]) squares += static_cast<double>(g) * g;
    const double most = rules_.clip / std::sqrt(static_cast<double>(gradients.size()));
    const bool clips = rules_.clip > 0 && std::sqrt(squares) > most;
    const float scale = clips ? static_cast<float>(most / std::sqrt(squares)) : 1.0F;
    for (std::size_t i = 0; i < gradients[r].size(); ++i) {
      const float g = gradients[r][i] * scale;
      float& u = velocities_[r][i];
      u = rules_.nesterov ? rules_.momentum * (u + g) : rules_.momentum * u + g;
      const float moved = rules_.nesterov ? u + g : u;
      memories_[r][i] += moved;
      dense_[r][i] = moved;
    }
  }
  return memories_;
}

std::vector<float> PlainDgc::send(const std::vector<std::vector<std::int64_t>>& sets) {
  std::vector<float> mean(memories_[0].size(), 0.0F);
  const float factor = 1.0F / static_cast<float>(sets.size());
  for (std::size_t r = 0; r < sets.size(); ++r) {
    for (const std::int64_t place : sets[r]) {
      const auto i = static_cast<std::size_t>(place);
      mean[i] += memories_[r][i] * factor;
      memories_[r][i] = 0;
      velocities_[r][i] = 0;
    }
  }
  add_dense_mean(layout_, dense_, mean);
  return mean;
}

PlainWeighted::PlainWeighted(int ranks, float a, float b, layout::Layout layout)
    : a_(a), b_(b), layout_(std::move(layout)), memories_(zeros(ranks, layout_)) {}

std::vector<float> PlainWeighted::step(const Gradients& gradients) {
  const std::size_t ranks = gradients.size();
  const auto leader = static_cast<std::size_t>(steps_++) % ranks;
  std::vector<float> mean(gradients[0].size(), 0.0F);
  for (const layout::Slice& slice : layout_.slices()) {
    if (!compressed(slice)) continue;
    for (std::int64_t k = slice.offset; k < slice.offset + slice.length; ++k) {
      const auto i = static_cast<std::size_t>(k);
      for (std::size_t r = 0; r < ranks; ++r) {
        memories_[r][i] = a_ * gradients[r][i] + b_ * memories_[r][i];
      }
    }
    const std::int64_t end = slice.offset + slice.length;
    const std::int64_t chunk = std::min<std::int64_t>(slice.length, std::llround(slice.rate));
    for (std::int64_t begin = slice.offset; begin < end; begin += chunk) {
      const auto entries = slice_of(
          memories_[leader], {slice.name, begin, std::min(end, begin + chunk) - begin, slice.rate});
      const auto i = static_cast<std::size_t>(plain_largest(entries, 1).begin()->first);
      float sum = memories_[0][i];
      for (std::size_t r = 1; r < ranks; ++r) sum += memories_[r][i];
      mean[i] = sum / static_cast<float>(ranks);
      for (std::size_t r = 0; r < ranks; ++r) memories_[r][i] = 0;
    }
  }
  add_dense_mean(layout_, gradients, mean);
  return mean;
}

}  // namespace scalecom::methods::testing
