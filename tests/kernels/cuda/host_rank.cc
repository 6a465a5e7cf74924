#include "tests/kernels/cuda/host_rank.h"

#include "scalecom/comm/traffic.h"
#include "scalecom/core/hash.h"
#include "scalecom/kernels/reference/reference.h"
#include "scalecom/kernels/select.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::kernels::testing {
namespace {

using Kind = layout::Selection::Kind;

const Table& reference_table() {
  return reference::table();
}

}  // namespace

void Setting::add(std::int64_t length, double rate) {
  const std::int64_t offset = slices.empty() ? 0 : slices.back().offset + slices.back().length;
  slices.push_back({"tensor" + std::to_string(slices.size()), offset, length, rate});
}

HostRank::HostRank(const Setting& setting, int rank)
    : setting(setting), rank(rank), shape(layout::Layout(setting.slices), setting.selection) {
  for (const layout::Slice& slice : setting.slices) elements += slice.length;
  grad.resize(static_cast<std::size_t>(elements * core::size_of(setting.dtype)));
  for (const auto& part : shape.parts) {
    memories.emplace_back(static_cast<std::size_t>(part.length));
    first_items.push_back(part.first_item);
  }
  first_items.push_back(shape.items);
  positions.resize(static_cast<std::size_t>(shape.items));
  before.resize(static_cast<std::size_t>(shape.items));
  message.resize(static_cast<std::size_t>(shape.items + shape.dense_elements + 1));
}

void HostRank::draw(Data data, std::uint32_t seed) {
  std::mt19937 random(seed + static_cast<std::uint32_t>(rank) * 1000003U);
  std::vector<float> drawn(static_cast<std::size_t>(elements));
  for (float& g : drawn) g = testing::draw(data, random, false);
  reference_table().store(drawn.data(), elements, 1.0F, grad.data(), setting.dtype);
  if (step > 0) return;
  for (auto& memory : memories) {
    for (float& m : memory) m = testing::draw(data, random, true);
  }
}

Tensor HostRank::tensor(std::size_t part) {
  return {element(shape.parts[part].offset), setting.dtype, memories[part].data(),
          shape.parts[part].length};
}

methods::scalecom::ChunkRange HostRank::named(int r) const {
  if (setting.selection.kind == Kind::kRandom) return {};
  if (!setting.sharded) {
    return step % setting.size == r ? shape.whole() : methods::scalecom::ChunkRange{};
  }
  const comm::Share share =
      comm::share(shape.chunks, setting.size, static_cast<int>((r + step) % setting.size));
  return {share.begin, share.end};
}

cuda::Naming HostRank::naming() const {
  if (setting.selection.kind == Kind::kRandom) return cuda::Naming::kNone;
  if (setting.sharded) return cuda::Naming::kShare;
  return leads() ? cuda::Naming::kAll : cuda::Naming::kNone;
}

void HostRank::take_items(std::size_t part, std::int64_t first, std::int64_t last) {
  reference_table().take(tensor(part), setting.filter, setting.values, last - first, items(first));
}

// Chunks [first, last) of a part are named by this rank. `lead` zeroes the gradient, which is kept
// here: it works on a copy.
bool HostRank::lead(std::size_t part, std::int64_t first, std::int64_t last) {
  const layout::Cut& cut = shape.parts[part].cut;
  const std::int64_t first_item = shape.parts[part].first_item;
  const Tensor real = tensor(part);
  const std::int64_t begin = first * cut.chunk;
  const std::int64_t end = std::min(cut.length, last * cut.chunk);
  if (setting.selection.kind == Kind::kLargest) {
    std::vector<std::byte> grad_copy = grad;
    std::vector<float> memory_copy = memories[part];
    Tensor copy = real;
    copy.grad = grad_copy.data() + shape.parts[part].offset * core::size_of(setting.dtype);
    const bool finite = reference_table().lead(copy, setting.filter, setting.values, cut.chunk,
                                               first, last, items(first_item));
    copy = real;
    copy.memory = memory_copy.data();
    reference_table().accumulate(copy, setting.filter, begin, end);
    return finite;
  }
  const bool finite = reference_table().accumulate(real, setting.filter, begin, end);
  if (setting.selection.kind != Kind::kTop) return finite;
  select_top(real, setting.filter, cut, first, last, positions.data() + first_item);
  take_items(part, first_item + cut.kept_before(first), first_item + cut.kept_before(last));
  return finite;
}

void HostRank::first_pass() {
  bool finite = true;
  const methods::scalecom::ChunkRange mine = named(rank);
  const bool exact = setting.selection.kind == Kind::kExact;
  for (std::size_t p = 0; p < shape.parts.size(); ++p) {
    const methods::scalecom::Shape::Part& part = shape.parts[p];
    const std::int64_t chunks = exact ? 0 : part.cut.chunks();
    const std::int64_t first = std::clamp<std::int64_t>(mine.first - part.first_chunk, 0, chunks);
    const std::int64_t last = std::clamp<std::int64_t>(mine.last - part.first_chunk, 0, chunks);
    const std::int64_t begin = first < last ? first * part.cut.chunk : 0;
    const std::int64_t end = first < last ? std::min(part.length, last * part.cut.chunk) : 0;
    finite &= reference_table().accumulate(tensor(p), setting.filter, 0, begin);
    finite &= reference_table().accumulate(tensor(p), setting.filter, end, part.length);
    if (first < last) finite &= lead(p, first, last);
    if (setting.selection.kind == Kind::kRandom) {
      const std::uint64_t seed = core::combine(
          core::combine(setting.seed, static_cast<std::uint64_t>(step)), core::hash(part.name));
      select_random(seed, 0, part.cut, 0, chunks, positions.data() + part.first_item);
      take_items(p, part.first_item, part.first_item + part.items);
    }
  }
  if (exact && leads()) name_exact();
  for (const auto& part : shape.dense_parts) {
    finite &= reference_table().load(element(part.offset), setting.dtype, part.length,
                                     1.0F / static_cast<float>(setting.size),
                                     message.data() + shape.items + part.place);
  }
  flag() = finite ? 0.0F : 1.0F;
  pack();
}

void HostRank::name_exact() {
  std::vector<Tensor> tensors;
  for (std::size_t p = 0; p < shape.parts.size(); ++p) tensors.push_back(tensor(p));
  std::vector<std::int64_t> counts(tensors.size());
  select_exact(tensors, setting.filter, shape.items, positions.data(), counts.data());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    first_items[p + 1] = first_items[p] + counts[p];
    take_items(p, first_items[p], first_items[p + 1]);
  }
}

void HostRank::pack() {
  packed.clear();
  if (setting.selection.kind == Kind::kExact) {
    if (!leads()) return;
    packed.resize(static_cast<std::size_t>(shape.offset_bytes()));
    std::vector<std::uint32_t> absolute(positions);
    std::uint32_t base = 0;
    for (std::size_t p = 0; p < shape.parts.size(); ++p) {
      for (std::int64_t i = first_items[p]; i < first_items[p + 1]; ++i) {
        absolute[static_cast<std::size_t>(i)] += base;
      }
      base += static_cast<std::uint32_t>(shape.parts[p].length);
    }
    wire::pack(shape.exact_cut(), 0, 1, absolute.data(), packed);
    return;
  }
  packed.resize(static_cast<std::size_t>(shape.offset_bytes(named(rank))));
  shape.for_each_piece(named(rank), [&](const auto& part, std::int64_t first, std::int64_t last,
                                        std::int64_t begin, std::int64_t size) {
    wire::pack(
        part.cut, first, last, positions.data() + part.first_item,
        std::span(packed).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size)));
  });
}

void HostRank::take(const std::vector<std::vector<std::byte>>& slots) {
  if (setting.selection.kind == Kind::kExact) {
    if (!leads()) unpack_exact(slots[static_cast<std::size_t>(step % setting.size)]);
    return;
  }
  for (int r = 0; r < setting.size; ++r) {
    if (r == rank) continue;
    shape.for_each_piece(named(r), [&](const auto& part, std::int64_t first, std::int64_t last,
                                       std::int64_t begin, std::int64_t size) {
      const auto bytes =
          std::span(slots[static_cast<std::size_t>(r)])
              .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
      EXPECT_TRUE(wire::unpack(part.cut, first, last, bytes, positions.data() + part.first_item));
      take_items(static_cast<std::size_t>(&part - shape.parts.data()),
                 part.first_item + part.cut.kept_before(first),
                 part.first_item + part.cut.kept_before(last));
    });
  }
}

void HostRank::unpack_exact(const std::vector<std::byte>& bytes) {
  std::vector<std::uint32_t> absolute(positions.size());
  EXPECT_TRUE(wire::unpack(shape.exact_cut(), 0, 1, bytes, absolute.data()));
  std::size_t item = 0;
  std::uint32_t base = 0;
  for (std::size_t p = 0; p < shape.parts.size(); ++p) {
    const auto length = static_cast<std::uint32_t>(shape.parts[p].length);
    first_items[p] = static_cast<std::int64_t>(item);
    for (; item < absolute.size() && absolute[item] < base + length; ++item) {
      positions[item] = absolute[item] - base;
    }
    base += length;
    take_items(p, first_items[p], static_cast<std::int64_t>(item));
  }
}

void HostRank::finish(const std::vector<float>& sum, float factor) {
  message = sum;
  bool finite = flag() == 0.0F;
  std::vector<float> means(sum.begin(), sum.begin() + shape.items);
  for (float& mean : means) {
    mean *= factor;
    finite &= std::isfinite(mean);
  }
  for (std::size_t i = static_cast<std::size_t>(shape.items); i < sum.size(); ++i) {
    finite &= std::isfinite(sum[i]);
  }
  ++step;
  sent = true;
  if (!finite) {
    const std::vector<float> nan(static_cast<std::size_t>(elements),
                                 std::numeric_limits<float>::quiet_NaN());
    reference_table().store(nan.data(), elements, 1.0F, grad.data(), setting.dtype);
    put_back();
    sent = false;
    return;
  }
  for (std::size_t p = 0; p < shape.parts.size(); ++p) {
    reference_table().zero_and_put(
        tensor(p), 0, shape.parts[p].length, first_items[p + 1] - first_items[p],
        positions.data() + first_items[p], means.data() + first_items[p]);
  }
  for (const auto& part : shape.dense_parts) {
    reference_table().store(message.data() + shape.items + part.place, part.length, 1.0F,
                            element(part.offset), setting.dtype);
  }
}

void HostRank::settle_rounding(std::int64_t first, const std::vector<float>& rounding) {
  if (!sent) return;
  for (std::size_t p = 0; p < shape.parts.size(); ++p) {
    for (std::int64_t i = first_items[p]; i < first_items[p + 1]; ++i) {
      const std::int64_t at = i - first;
      if (at < 0 || at >= std::ssize(rounding)) continue;
      float& m = memories[p][positions[static_cast<std::size_t>(i)]];
      m = std::fma(setting.filter.beta, rounding[static_cast<std::size_t>(at)], m);
    }
  }
}

void HostRank::put_back() {
  if (!sent) return;
  for (std::size_t p = 0; p < shape.parts.size(); ++p) {
    for (std::int64_t i = first_items[p]; i < first_items[p + 1]; ++i) {
      memories[p][positions[static_cast<std::size_t>(i)]] = before[static_cast<std::size_t>(i)];
    }
  }
  sent = false;
}

}  // namespace scalecom::kernels::testing
