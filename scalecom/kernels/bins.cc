#include "scalecom/kernels/bins.h"

#include <algorithm>

#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/layout/bins.h"

namespace scalecom::kernels::bins {
namespace {

// The bins of one task, and what it finds in them.
struct Part {
  std::vector<Ternary> entries;
  double largest_sum = 0;
  bool finite = true;
};

// A part's way through its bins.
class Finder {
 public:
  explicit Finder(std::int64_t bin)
      : positions_(static_cast<std::size_t>(bin)), keys_(static_cast<std::size_t>(bin)) {
    found_.positions = positions_.data();
    found_.keys = keys_.data();
  }

  void visit(const Tensor& tensor, std::int64_t begin, std::int64_t end, Part& part) {
    const std::int64_t count = table().bins.find(tensor, begin, end, found_);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t position = found_.positions[i];
      part.entries.push_back({position, tensor.memory[position] < 0});
    }
    part.largest_sum += static_cast<double>(found_.largest);
    part.finite = found_.finite;
  }

 private:
  std::vector<std::uint32_t> positions_;
  std::vector<std::int32_t> keys_;
  Found found_;
};

}  // namespace

Sent select(const Tensor& tensor, std::int64_t bin) {
  constexpr std::int64_t kTask = 65'536;
  const std::int64_t step = std::max<std::int64_t>(1, kTask / bin) * bin;
  std::vector<Part> parts(static_cast<std::size_t>((tensor.length + step - 1) / step));
  core::parallel_for(static_cast<std::int64_t>(parts.size()), [&](std::int64_t task) {
    Finder finder(bin);
    const std::int64_t end = std::min(tensor.length, (task + 1) * step);
    for (std::int64_t begin = task * step; begin < end; begin += bin) {
      finder.visit(tensor, begin, std::min(end, begin + bin),
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
