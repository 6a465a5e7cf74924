#include "tests/kernels/cuda/device_rank.h"

#include <cuda_runtime_api.h>

#include "scalecom/core/cuda/check.h"
#include "scalecom/core/hash.h"
#include "scalecom/wire/offsets.h"

namespace scalecom::kernels::testing {
namespace {

// Memories lie one after the other, a gap between them, so that tensors differ in alignment as
// their lengths and the shift say.
std::vector<std::int64_t> places_of(const HostRank& host) {
  std::vector<std::int64_t> places{0};
  for (const auto& memory : host.memories) places.push_back(places.back() + std::ssize(memory) + 1);
  return places;
}

// The most that any rank packs at any step.
std::int64_t most_bytes(const HostRank& host) {
  if (!host.setting.sharded) return host.shape.offset_bytes();
  std::int64_t most = 0;
  for (int r = 0; r < host.setting.size; ++r) {
    most = std::max(most, host.shape.offset_bytes(host.named(r)));
  }
  return most + 3;
}

cuda::Shape device_shape(const HostRank& host, float* d_memory,
                         const std::vector<std::int64_t>& places) {
  cuda::Shape shape;
  shape.selection = host.setting.selection;
  shape.elements = host.elements;
  shape.compressed_elements = host.shape.compressed_elements;
  shape.dense_elements = host.shape.dense_elements;
  shape.chunks = host.shape.chunks;
  shape.items = host.shape.items;
  for (std::size_t p = 0; p < host.shape.parts.size(); ++p) {
    const auto& part = host.shape.parts[p];
    cuda::Part entry{part.offset,           part.cut, part.first_chunk,    part.first_item,
                     core::hash(part.name), 0,        d_memory + places[p]};
    entry.cut.length = part.length;
    shape.parts.push_back(entry);
  }
  for (const auto& part : host.shape.dense_parts) {
    shape.dense.push_back({part.offset, part.length, part.place});
  }
  return shape;
}

}  // namespace

DeviceRank::DeviceRank(const HostRank& host, Shifts shifts, bool captured,
                       const core::Stream& stream)
    : setting_(host.setting),
      rank_(host.rank),
      captured_(captured),
      stream_(stream),
      slot_bytes_(most_bytes(host)),
      memory_places_(places_of(host)),
      grad_(std::ssize(host.grad), shifts.grad * core::size_of(host.setting.dtype), stream),
      memory_(memory_places_.back(), shifts.memory, stream),
      positions_(host.shape.items, 1, stream),
      before_(host.shape.items, 1, stream),
      message_(std::ssize(host.message), 1, stream),
      packed_(slot_bytes_ * (host.setting.sharded ? host.setting.size : 1), 3, stream),
      counter_(1, 0, stream),
      sent_(1, 0, stream) {
  const cuda::Shape shape = device_shape(host, memory_.data(), memory_places_);
  scratch_.emplace(cuda::Bucket::scratch_bytes(shape), 0, stream);
  bucket_.emplace(shape, scratch_->data(), stream);
  counter_.write({host.step});
  sent_.write({0});
  load(host);
  step_ = {.d_grad = grad_.data(),
           .dtype = setting_.dtype,
           .filter = setting_.filter,
           .values = setting_.values,
           .rank = rank_,
           .size = setting_.size,
           .seed = setting_.seed,
           .d_step = counter_.data(),
           .d_positions = positions_.data(),
           .d_before = before_.data(),
           .d_message = message_.data(),
           .d_packed = packed_.data(),
           .slot_bytes = setting_.sharded ? slot_bytes_ : 0,
           .d_sent = sent_.data()};
}

DeviceRank::~DeviceRank() {
  core::cuda::synchronize(stream_);
}

void DeviceRank::load(const HostRank& host) {
  grad_.write(host.grad);
  std::vector<float> memory = memory_.read();
  for (std::size_t p = 0; p < host.memories.size(); ++p) {
    std::copy(host.memories[p].begin(), host.memories[p].end(), memory.begin() + memory_places_[p]);
  }
  memory_.write(memory);
}

void DeviceRank::run(const std::string& name, const std::function<void()>& launch) {
  if (!captured_) {
    launch();
    return;
  }
  auto* native = static_cast<cudaStream_t>(stream_.native());
  Graph& graph = graphs_[name];
  if (!graph) {
    cudaGraph_t recorded = nullptr;
    cudaGraphExec_t made = nullptr;
    core::cuda::check(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), "begin");
    launch();
    core::cuda::check(cudaStreamEndCapture(native, &recorded), "end");
    core::cuda::check(cudaGraphInstantiate(&made, recorded, 0), "instantiate");
    core::cuda::check(cudaGraphDestroy(recorded), "destroy");
    graph = {made, [](void* old) {
               static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(old)));
             }};
  }
  core::cuda::check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph.get()), native), "launch");
}

// Where ranks lead in turn, a leader's graph is another than a follower's.
void DeviceRank::first_pass() {
  const std::int64_t step = counter_.read()[0];
  const bool random = setting_.selection.kind == layout::Selection::Kind::kRandom;
  step_.naming = random                          ? cuda::Naming::kNone
                 : setting_.sharded              ? cuda::Naming::kShare
                 : step % setting_.size == rank_ ? cuda::Naming::kAll
                                                 : cuda::Naming::kNone;
  run("first" + std::to_string(static_cast<int>(step_.naming)),
      [&] { bucket_->first_pass(step_, stream_); });
}

void DeviceRank::take() {
  run("take" + std::to_string(static_cast<int>(step_.naming)),
      [&] { bucket_->take(step_, stream_); });
}

void DeviceRank::finish(float factor) {
  run("finish", [&] { bucket_->finish(step_, factor, stream_); });
}

void DeviceRank::settle_rounding(std::int64_t first, const std::vector<float>& rounding) {
  rounding_.emplace(std::ssize(rounding), 1, stream_);
  rounding_->write(rounding);
  bucket_->settle_rounding(step_, first, std::ssize(rounding), rounding_->data(), stream_);
}

void DeviceRank::put_back() {
  run("put_back", [&] { bucket_->put_back(step_, nullptr, stream_); });
}

std::vector<std::byte> DeviceRank::packed(const HostRank& host) {
  const std::vector<std::byte> all = packed_.read();
  const auto begin = all.begin() + (setting_.sharded ? rank_ * slot_bytes_ : 0);
  return {begin, begin + std::ssize(host.packed)};
}

void DeviceRank::set_packed(const std::vector<std::vector<std::byte>>& slots) {
  std::vector<std::byte> all = packed_.read();
  for (std::size_t r = 0; r < slots.size(); ++r) {
    const std::int64_t at = setting_.sharded ? static_cast<std::int64_t>(r) * slot_bytes_ : 0;
    std::copy(slots[r].begin(), slots[r].end(), all.begin() + at);
  }
  packed_.write(all);
}

void DeviceRank::expect_same_arrays(HostRank& host) {
  EXPECT_TRUE(same(grad_.read(), host.grad)) << "in the gradient";
  const std::vector<float> memory = memory_.read();
  for (std::size_t p = 0; p < host.memories.size(); ++p) {
    const auto begin = memory.begin() + memory_places_[p];
    EXPECT_TRUE(
        same(std::vector<float>(begin, begin + std::ssize(host.memories[p])), host.memories[p]))
        << "in the memory of part " << p;
    const float gap = memory_.untouched();
    EXPECT_EQ(std::memcmp(&memory[static_cast<std::size_t>(memory_places_[p + 1] - 1)], &gap,
                          sizeof(float)),
              0)
        << "after the memory of part " << p;
  }
}

void DeviceRank::expect_same_items(HostRank& host, bool all) {
  const auto positions = positions_.read();
  const auto before = before_.read();
  const auto message = message_.read();
  const auto kind = setting_.selection.kind;
  for (std::size_t p = 0; p < host.shape.parts.size(); ++p) {
    const auto& part = host.shape.parts[p];
    std::int64_t first = host.first_items[p];
    std::int64_t last = host.first_items[p + 1];
    if (!all && kind == layout::Selection::Kind::kExact) {
      if (!host.leads()) continue;
    } else if (!all && kind != layout::Selection::Kind::kRandom) {
      const methods::scalecom::ChunkRange named = host.named(rank_);
      const std::int64_t chunks = part.cut.chunks();
      const auto kept = [&](std::int64_t chunk) {
        return part.cut.kept_before(std::clamp<std::int64_t>(chunk - part.first_chunk, 0, chunks));
      };
      first = part.first_item + kept(named.first);
      last = part.first_item + kept(named.last);
    }
    for (std::int64_t item = first; item < last; ++item) {
      const auto i = static_cast<std::size_t>(item);
      ASSERT_EQ(positions[i], host.positions[i]) << "item " << i << " in part " << p;
      ASSERT_EQ(std::memcmp(&message[i], &host.message[i], sizeof(float)), 0)
          << "value " << i << ": " << message[i] << " and " << host.message[i];
      ASSERT_EQ(std::memcmp(&before[i], &host.before[i], sizeof(float)), 0)
          << "before " << i << ": " << before[i] << " and " << host.before[i];
    }
  }
}

void DeviceRank::expect_same_rest(HostRank& host) {
  const auto message = message_.read();
  for (auto i = static_cast<std::size_t>(host.shape.items); i < message.size(); ++i) {
    if (std::isnan(message[i]) && std::isnan(host.message[i])) continue;
    ASSERT_EQ(std::memcmp(&message[i], &host.message[i], sizeof(float)), 0)
        << "element " << i << " of the message: " << message[i] << " and " << host.message[i];
  }
}

}  // namespace scalecom::kernels::testing
