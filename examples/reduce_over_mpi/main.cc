// Reduces a gradient over MPI with ScaleCom, a few steps long: mpirun -n 4 reduce_over_mpi
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <vector>

#include "scalecom/comm/mpi/mpi.h"
#include "scalecom/core/buffer.h"
#include "scalecom/core/error.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace {

constexpr int kSteps = 5;

// What backpropagation would give: here, numbers that differ by rank and step.
void fill(std::vector<float>& grad, int rank, int step) {
  std::mt19937 random(static_cast<unsigned>(1000 * step + rank));
  std::normal_distribution<float> normal;
  for (float& value : grad) value = normal(random);
}

void train() {
  const auto communicator = scalecom::comm::mpi::make_communicator();
  const auto method = scalecom::methods::make("scalecom,rate=100,beta=0.1");

  // The model, tensor by tensor; its gradient lies in one array, in the same order.
  const std::vector<scalecom::layout::Tensor> model = {
      {"conv.weight", {32, 1, 3, 3}}, {"fc.weight", {1000, 512}}, {"fc.bias", {1000}}};
  const auto layout = scalecom::layout::make_layout(model, method->rate_policy());
  std::vector<float> grad(static_cast<std::size_t>(layout.elements()));

  for (int step = 0; step < kSteps; ++step) {
    fill(grad, communicator->rank(), step);
    // In: this rank's gradient. Out: the mean over ranks, in the same array.
    method->reduce(scalecom::core::Buffer::of(grad.data(), layout.elements()), layout,
                   *communicator);
  }

  if (communicator->rank() == 0) {
    std::printf("%s: %d ranks, %d steps over %lld values; rank 0 sent %lld bytes\n",
                method->spec().c_str(), communicator->size(), kSteps,
                static_cast<long long>(layout.elements()),
                static_cast<long long>(communicator->counters().total().sent));
  }
}

}  // namespace

int main() {
  try {
    const scalecom::comm::mpi::Session session;
    try {
      train();
    } catch (const scalecom::core::PeerError& error) {
      // A rank is lost, and the end of the session would wait for it.
      std::fprintf(stderr, "%s\n", error.what());
      scalecom::comm::mpi::Session::end_job(1);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
