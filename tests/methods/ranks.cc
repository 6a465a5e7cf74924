#include "tests/methods/ranks.h"

#include <cmath>
#include <exception>
#include <thread>

namespace scalecom::methods::testing {

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
    method(rank).reduce(core::Buffer::of(mine.data(), static_cast<std::int64_t>(mine.size())),
                        layout, end(rank));
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
