#include "tests/methods/ranks.h"

#include <cmath>
#include <exception>
#include <thread>

#include "tests/device.h"

namespace scalecom::methods::testing {

World::World(int size, const std::string& spec)
    : ends_(comm::inproc::make_world(size)),
      streams_(static_cast<std::size_t>(size)),
      arrays_(static_cast<std::size_t>(size)),
      scales_(static_cast<std::size_t>(size)) {
  for (int r = 0; r < size; ++r) methods_.push_back(make(spec));
}

core::Stream& World::stream(int rank) {
  core::Stream& stream = streams_[static_cast<std::size_t>(rank)];
  const core::Device device = ::scalecom::testing::device();
  if (stream.device() != device) stream = core::Stream::cuda(device);
  return stream;
}

void World::follow_scale(float scale) {
  run([&](int rank) {
    core::Array<float>& array = scales_[static_cast<std::size_t>(rank)];
    if (array.size() == 0) array = core::Array<float>(::scalecom::testing::device(), 1);
    if (array.device().is_cuda()) {
      core::cuda::copy(array.data(), &scale, sizeof scale, stream(rank));
    } else {
      *array.data() = scale;
    }
    method(rank).follow_scale(array.data(), stream(rank));
  });
}

void World::reduce_at(int rank, const core::Buffer& gradient, const layout::Layout& layout) {
  const core::Device device = ::scalecom::testing::device();
  if (!device.is_cuda()) {
    method(rank).reduce(gradient, layout, end(rank));
    return;
  }
  core::Stream& stream = this->stream(rank);
  core::Array<std::byte>& array = arrays_[static_cast<std::size_t>(rank)];
  const std::int64_t bytes = gradient.elements * core::size_of(gradient.dtype);
  if (array.size() < bytes) array = core::Array<std::byte>(device, bytes);
  core::cuda::copy(array.data(), gradient.data, bytes, stream);
  method(rank).reduce({array.data(), gradient.elements, gradient.dtype, device}, layout, end(rank),
                      stream);
  core::cuda::copy(gradient.data, array.data(), bytes, stream);
  core::cuda::synchronize(stream);
}

void World::run(const std::function<void(int)>& body) {
  std::vector<std::exception_ptr> failures(ends_.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void World::reduce(Gradients& gradients, const layout::Layout& layout) {
  run([&](int rank) {
    std::vector<float>& mine = gradients[static_cast<std::size_t>(rank)];
    reduce_at(rank, core::Buffer::of(mine.data(), static_cast<std::int64_t>(mine.size())), layout);
  });
}

Gradients integers(int ranks, std::int64_t elements, int range, std::mt19937& random) {
  std::uniform_int_distribution<int> draw(-range, range);
  Gradients all(static_cast<std::size_t>(ranks));
  for (auto& one : all) {
    for (std::int64_t i = 0; i < elements; ++i) one.push_back(static_cast<float>(draw(random)));
  }
  return all;
}

Gradients normal(int ranks, std::int64_t elements, std::mt19937& random) {
  std::normal_distribution<float> draw;
  std::uniform_int_distribution<int> exponent(-12, 4);
  Gradients all(static_cast<std::size_t>(ranks));
  for (auto& one : all) {
    for (std::int64_t i = 0; i < elements; ++i) {
      one.push_back(std::ldexp(draw(random), exponent(random)));
    }
  }
  return all;
}

layout::Layout layout_of(const std::vector<std::pair<std::int64_t, double>>& slices) {
  std::vector<layout::Slice> all;
  std::int64_t offset = 0;
  for (const auto& [length, rate] : slices) {
    all.push_back({std::string(1, static_cast<char>('a' + all.size())), offset, length, rate});
    offset += length;
  }
  return layout::Layout(std::move(all));
}

}  // namespace scalecom::methods::testing
