#include "bench/problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "scalecom/core/hash.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/reference/reference.h"
#include "scalecom/kernels/select.h"
#include "scalecom/methods/scalecom/options.h"
#include "scalecom/wire/offsets.h"

namespace bench {
namespace {

namespace core = scalecom::core;
namespace kernels = scalecom::kernels;
namespace layout = scalecom::layout;
namespace wire = scalecom::wire;
using Kind = layout::Selection::Kind;

constexpr const char* kTensor = "gradient";

// work(begin, end) over [0, count) in runs of whole `unit`s, on the pool.
template <typename Work>
void over_runs(std::int64_t count, std::int64_t unit, const Work& work) {
  const std::int64_t run = std::max<std::int64_t>(1, 65536 / unit) * unit;
  core::parallel_for((count + run - 1) / run,
                     [&](std::int64_t i) { work(i * run, std::min(count, (i + 1) * run)); });
}

layout::Selection selection_of(const StepPlan& plan) {
  scalecom::methods::scalecom::Options options;
  options.read(core::OptionString::parse("scalecom,select=" + plan.select));
  return options.select;
}

}  // namespace

Problem::Problem(const StepPlan& plan)
    : plan_(plan),
      layout_({{kTensor, 0, plan.elements, plan.rate}}),
      selection_(selection_of(plan)),
      cut_(layout::cut(layout_.slices().front(), selection_)),
      source_(bytes()) {
  if (exact()) {
    const auto keep = std::llround(static_cast<double>(plan.elements) / plan.rate);
    cut_ = {plan.elements, plan.elements, std::max<std::int64_t>(1, keep), 0};
  }
  over_runs(plan.elements, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t bits = core::mix(static_cast<std::uint64_t>(i) + 1);
      const float value = (static_cast<float>(bits >> 40) - 8388607.5F) * 0x1p-26F;
      if (plan_.type == core::DType::kFloat32) {
        std::memcpy(source_.data() + 4 * i, &value, 4);
      } else {
        const std::uint16_t narrow = core::to_bits16(plan_.type, value);
        std::memcpy(source_.data() + 2 * i, &narrow, 2);
      }
    }
  });
  name_positions();
  const std::int64_t chunks = cut_.chunks();
  offsets_.resize(static_cast<std::size_t>(wire::packed_bytes(cut_, 0, chunks)));
  wire::pack(cut_, 0, chunks, positions_.data(), offsets_);
}

// Anywhere in the chunks, one at least in each.
void Problem::name_positions() {
  positions_.resize(static_cast<std::size_t>(cut_.kept()));
  if (cut_.keep == 1) {
    kernels::select_random(7, 0, cut_, 0, cut_.chunks(), positions_.data());
    return;
  }
  for (std::int64_t c = 0; c < cut_.chunks(); ++c) {
    const std::int64_t begin = c * cut_.chunk;
    const std::int64_t size = std::min(cut_.chunk, cut_.length - begin);
    const std::int64_t first = cut_.kept_before(c);
    const std::int64_t keep = cut_.kept_before(c + 1) - first;
    for (std::int64_t j = 0; j < keep; ++j) {
      positions_[static_cast<std::size_t>(first + j)] =
          static_cast<std::uint32_t>(begin + size * j / keep);
    }
  }
}

std::string Problem::method() const {
  return core::concat("scalecom,rate=", core::shortest(plan_.rate),
                      ",beta=", core::shortest(plan_.beta), ",select=", plan_.select);
}

std::int64_t Problem::bytes() const {
  return plan_.elements * core::size_of(plan_.type);
}

std::span<const std::byte> Problem::source() const {
  return {source_.data(), static_cast<std::size_t>(source_.size())};
}

Expected::Expected(const Problem& problem)
    : problem_(problem),
      gradient_(problem.bytes()),
      memory_(problem.plan().elements),
      positions_(problem.positions_.size()),
      values_(positions_.size()),
      before_(positions_.size()) {}

kernels::Tensor Expected::tensor() {
  return {gradient_.data(), problem_.plan().type, memory_.data(), problem_.plan().elements};
}

// What a leader names of a tensor whose memory is m'.
void Expected::select(std::int64_t number) {
  const layout::Cut& cut = problem_.cut_;
  const kernels::Filter filter{static_cast<float>(problem_.plan().beta), 1.0F};
  if (problem_.exact()) {
    const kernels::Tensor all = tensor();
    std::int64_t count = 0;
    kernels::select_exact({&all, 1}, filter, cut.keep, positions_.data(), &count);
    return;
  }
  over_runs(cut.length, cut.chunk, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin / cut.chunk;
    const std::int64_t last = (end + cut.chunk - 1) / cut.chunk;
    if (problem_.selection_.kind == Kind::kRandom) {
      const std::uint64_t seed =
          core::combine(core::combine(0, static_cast<std::uint64_t>(number)), core::hash(kTensor));
      kernels::select_random(seed, 0, cut, first, last, positions_.data());
    } else {
      // The largest of each chunk is the top one of it.
      kernels::select_top(tensor(), filter, cut, first, last, positions_.data());
    }
  });
}

void Expected::step(bool leads, int size, std::int64_t number) {
  const kernels::Table& reference = kernels::reference::table();
  const StepPlan& plan = problem_.plan();
  const kernels::Filter filter{static_cast<float>(plan.beta), 1.0F};
  std::memcpy(gradient_.data(), problem_.source().data(), problem_.source().size());
  over_runs(plan.elements, 1, [&](std::int64_t begin, std::int64_t end) {
    reference.accumulate(tensor(), filter, begin, end);
  });
  if (leads || problem_.selection_.kind == Kind::kRandom) {
    select(number);
  } else {
    positions_ = problem_.positions_;
  }
  const auto factor = 1.0F / static_cast<float>(size);
  const auto items = static_cast<std::int64_t>(positions_.size());
  over_runs(items, 1, [&](std::int64_t begin, std::int64_t end) {
    reference.take(tensor(), filter, core::DType::kFloat32, end - begin,
                   {positions_.data() + begin, values_.data() + begin, before_.data() + begin});
    for (std::int64_t i = begin; i < end; ++i) values_[static_cast<std::size_t>(i)] *= factor;
  });
  over_runs(plan.elements, 1, [&](std::int64_t begin, std::int64_t end) {
    reference.zero_and_put(tensor(), begin, end, 0, nullptr, nullptr);
  });
  reference.put(tensor(), items, positions_.data(), values_.data());
}

std::span<const std::byte> Expected::gradient() const {
  return {gradient_.data(), static_cast<std::size_t>(gradient_.size())};
}

std::span<const float> Expected::memory() const {
  return {memory_.data(), static_cast<std::size_t>(memory_.size())};
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace bench
