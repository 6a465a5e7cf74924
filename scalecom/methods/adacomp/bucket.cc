#include "scalecom/methods/adacomp/bucket.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/core/thread_pool.h"
#include "scalecom/kernels/kernels.h"
#include "scalecom/wire/ternary.h"

namespace scalecom::methods::adacomp {
namespace {

// [scale | bytes of the words]
constexpr std::size_t kHead = sizeof(float) + sizeof(std::uint32_t);
// Of a tensor's words, should every element be sent; positions are numbers of 32 bits as well.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::uint32_t>::max();

[[noreturn]] void damaged() {
  throw core::PeerError("[adacomp] the message of some rank is damaged");
}

}  // namespace

Bucket::Bucket(const layout::Layout& layout, const BinSizes& sizes, MemoryStore* memories) {
  std::int64_t elements = 0;
  for (const layout::Slice& slice : layout.slices()) {
    if (slice.shape.size() < 2 || slice.length == 0) {
      dense_.add(slice);
      continue;
    }
    const std::int64_t bin = slice.shape.size() > 2 ? sizes.convolution : sizes.other;
    if (const std::int64_t most = kMostBytes / wire::word_bytes(bin); slice.length > most) {
      throw core::UsageError(core::concat("[adacomp] tensor '", slice.name, "' has ", slice.length,
                                          " elements; with bins of ", bin, " it has at most ",
                                          most));
    }
    parts_.push_back({slice.name,
                      slice.offset,
                      elements,
                      {slice.length, bin},
                      memories != nullptr ? memories->of(slice.name, slice.length) : nullptr,
                      {}});
    elements += slice.length;
  }
  if (memories != nullptr) sums_ = core::AlignedArray<float>(elements);
}

std::int64_t Bucket::least_bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += static_cast<std::int64_t>(kHead) + part.bins.count() * wire::word_bytes(part.bins.bin);
  }
  return bytes;
}

std::int64_t Bucket::most_bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += static_cast<std::int64_t>(kHead) + part.bins.length * wire::word_bytes(part.bins.bin);
  }
  return bytes;
}

bool Bucket::select(const core::Buffer& grad) {
  bool finite = true;
  for (Part& part : parts_) {
    part.sent = kernels::bins::select(
        {grad.at(part.offset), grad.dtype, part.memory, part.bins.length}, part.bins.bin);
    finite = finite && part.sent.finite;
  }
  return finite;
}

std::vector<std::byte> Bucket::message() const {
  std::vector<std::byte> all;
  for (const Part& part : parts_) {
    const std::size_t head = all.size();
    all.resize(head + kHead);
    wire::pack(part.bins, part.sent.entries, all);
    const auto bytes = static_cast<std::uint32_t>(all.size() - head - kHead);
    std::memcpy(all.data() + head, &part.sent.scale, sizeof(float));
    std::memcpy(all.data() + head + sizeof(float), &bytes, sizeof bytes);
  }
  return all;
}

std::vector<Bucket::Words> Bucket::cut(std::span<const std::byte> message) const {
  std::vector<Words> all;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    if (message.size() < kHead) damaged();
    Words words;
    std::uint32_t bytes = 0;
    std::memcpy(&words.scale, message.data(), sizeof(float));
    std::memcpy(&bytes, message.data() + sizeof(float), sizeof bytes);
    message = message.subspan(kHead);
    if (message.size() < bytes) damaged();
    words.bytes = message.first(bytes);
    message = message.subspan(bytes);
    all.push_back(words);
  }
  if (!message.empty()) damaged();
  return all;
}

void Bucket::add(const Part& part, const Words& words, float* sums) const {
  std::vector<kernels::Ternary> entries;
  if (!wire::unpack(part.bins, words.bytes, entries)) damaged();
  for (const kernels::Ternary& entry : entries) {
    sums[entry.position] += entry.negative ? -words.scale : words.scale;
  }
}

bool Bucket::add_up(std::span<const std::span<const std::byte>> messages, float factor,
                    const core::Buffer& grad) {
  std::vector<std::vector<Words>> of_ranks;
  for (const auto& message : messages) of_ranks.push_back(cut(message));
  std::atomic<bool> finite{true};
  core::parallel_for(static_cast<std::int64_t>(parts_.size()), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const Part& part = parts_[at];
    float* const sums = sums_.data() + part.first;
    const std::int64_t length = part.bins.length;
    std::fill_n(sums, length, 0.0F);
    for (const auto& words : of_ranks) add(part, words[at], sums);
    const auto& table = kernels::table();
    if (!table.load(sums, core::DType::kFloat32, length, factor, sums)) {
      finite.store(false, std::memory_order_relaxed);
    }
    table.store(sums, length, 1.0F, grad.at(part.offset), grad.dtype);
  });
  return finite;
}

void Bucket::put_back() {
  for (Part& part : parts_) {
    kernels::bins::put_back({nullptr, core::DType::kFloat32, part.memory, part.bins.length},
                            part.sent);
  }
  forget_sent();
}

void Bucket::forget_sent() {
  for (Part& part : parts_) part.sent = {};
}

}  // namespace scalecom::methods::adacomp
