#include "scalecom/kernels/bins.h"

#include <algorithm>
#include <cmath>

#include "scalecom/core/thread_pool.h"
#include "scalecom/layout/bins.h"

namespace scalecom::kernels::bins {
namespace {

// The bins of one task, and what it finds in them.
struct Part {
  std::vector<Ternary> entries;
  double largest_sum = 0;
  bool finite = true;
};

// One bin in the nearest cache: its gradient in fp32.
class Bin {
 public:
  explicit Bin(std::int64_t size) : g_(static_cast<std::size_t>(size)) {}

  void visit(const Tensor& tensor, std::int64_t begin, std::int64_t end, Part& part) {
    const std::int64_t count = end - begin;
    load(tensor, begin, count, part);
    float* const memory = tensor.memory + begin;
    float largest = 0;
    for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(memory[i]));
    part.largest_sum += static_cast<double>(largest);
    for (std::int64_t i = 0; i < count; ++i) {
      const float h = std::abs(memory[i] + g_[static_cast<std::size_t>(i)]);
      if (h < largest || memory[i] == 0) continue;
      part.entries.push_back({static_cast<std::uint32_t>(begin + i), memory[i] < 0});
    }
  }

 private:
  // m becomes G; what would make H not finite is left out.
  void load(const Tensor& tensor, std::int64_t begin, std::int64_t count, Part& part) {
    const auto* const grad = static_cast<const std::byte*>(tensor.grad);
    table().load(grad + begin * core::size_of(tensor.dtype), tensor.dtype, count, 1.0F, g_.data());
    float* const memory = tensor.memory + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      float& g = g_[static_cast<std::size_t>(i)];
      if (!std::isfinite((memory[i] + g) + g)) {
        part.finite = false;
        g = 0;
      }
      memory[i] += g;
    }
  }

  std::vector<float> g_;
};

}  // namespace

Sent select(const Tensor& tensor, std::int64_t bin) {
  constexpr std::int64_t kTask = 64 * 1024;
  const std::int64_t step = std::max<std::int64_t>(1, kTask / bin) * bin;
  std::vector<Part> parts(static_cast<std::size_t>((tensor.length + step - 1) / step));
  core::parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t task) {
    Bin scratch(bin);
    const std::int64_t end = std::min(tensor.length, (task + 1) * step);
    for (std::int64_t begin = task * step; begin < end; begin += bin) {
      scratch.visit(tensor, begin, std::min(end, begin + bin),
                    parts[static_cast<std::size_t>(task)]);
    }
  });

  Sent sent;
  double largest_sum = 0;
  for (const Part& part : parts) {
    largest_sum += part.largest_sum;
    sent.finite = sent.finite && part.finite;
    sent.entries.insert(sent.entries.end(), part.entries.begin(), part.entries.end());
  }
  const layout::Bins all{tensor.length, bin};
  sent.scale =
      static_cast<float>(largest_sum / static_cast<double>(std::max<std::int64_t>(1, all.count())));
  for (const Ternary& entry : sent.entries) {
    float& memory = tensor.memory[entry.position];
    sent.before.push_back(memory);
    memory -= entry.negative ? -sent.scale : sent.scale;
  }
  return sent;
}

void put_back(const Tensor& tensor, const Sent& sent) {
  for (std::size_t i = 0; i < sent.entries.size(); ++i) {
    tensor.memory[sent.entries[i].position] = sent.before[i];
  }
}

}  // namespace scalecom::kernels::bins
