#include "scalecom/torch/ddp.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <future>
#include <limits>
#include <random>
#include <span>
#include <thread>

#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/core/error.h"
#include "scalecom/core/text.h"
#include "scalecom/layout/rates.h"
#include "scalecom/state/method_state.h"
#include "tests/state/temporary_folder.h"

namespace scalecom::torch {
namespace {

constexpr int kRanks = 3;
constexpr int kTensors = 40;
constexpr int kSteps = 6;
constexpr std::int64_t kRows = 20;
constexpr std::int64_t kColumns = 25;
constexpr const char* kSpec = "scalecom,rate=20,beta=0.1";

using Future = c10::intrusive_ptr<c10::ivalue::Future>;

/// Of one tensor, at a rank in a step.
std::vector<float> gradient_of(int rank, int step, int tensor) {
  std::mt19937 random(static_cast<unsigned>(10'000 * rank + 100 * step + tensor));
  std::normal_distribution<float> normal;
  std::vector<float> gradient(static_cast<std::size_t>(kRows * kColumns));
  for (float& x : gradient) x = normal(random);
  return gradient;
}

std::string name_of(int tensor) {
  return core::concat("layer", tensor, ".weight");
}

/// A module's parameters at one rank, and its hook, to which buckets of one of them each are given.
class Module {
 public:
  Module(const std::string& spec, std::unique_ptr<comm::Communicator> communicator) {
    std::vector<Ddp::Parameter> named;
    for (int i = 0; i < kTensors; ++i) {
      parameters_.push_back(at::zeros({kRows, kColumns}));
      named.push_back({name_of(i), parameters_.back()});
    }
    hook_ = std::make_shared<Ddp>(spec, named, std::move(communicator));
  }

  Ddp& hook() { return *hook_; }
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  Future bring(int tensor, const at::Tensor& gradient) {
    return bring(tensor, gradient, parameters_[static_cast<std::size_t>(tensor)]);
  }
  Future bring(int tensor, const at::Tensor& gradient, const at::Tensor& parameter) {
    c10d::GradBucket bucket(static_cast<std::size_t>(tensor), kTensors, gradient, {0},
                            {static_cast<std::size_t>(gradient.numel())}, {parameter.sizes()},
                            {parameter}, std::nullopt);
    return hook_->reduce(bucket);
  }
  /// As DDP asks for it, once every bucket has been brought.
  at::Tensor result_of(const Future& future) {
    future->wait();
    return hook_->result_of(future->value());
  }

 private:
  std::vector<at::Tensor> parameters_;
  std::shared_ptr<Ddp> hook_;
};

at::Tensor tensor_of(const std::vector<float>& values) {
  return at::tensor(values);
}

/// One step of all buckets, each of which comes out well.
void take_step(Module& module, int rank, int step) {
  std::vector<Future> futures;
  for (int i = 0; i < kTensors; ++i) {
    futures.push_back(module.bring(i, tensor_of(gradient_of(rank, step, i))));
  }
  for (const Future& future : futures) EXPECT_NO_THROW(module.result_of(future));
}

/// Runs `body` as each rank of a world, which takes its end of it away.
void run(const std::function<void(std::unique_ptr<comm::Communicator>)>& body,
         std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
  auto ends = comm::inproc::make_world(kRanks);
  std::vector<std::thread> threads;
  for (auto& end : ends) {
    end->set_deadline(deadline);
    threads.emplace_back([&body, &end] { body(std::move(end)); });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The means of all steps and tensors, one after the other, by the method alone.
std::vector<float> expected() {
  std::vector<float> means;
  comm::inproc::run(kRanks, [&](comm::Communicator& communicator) {
    const auto method = methods::make(kSpec);
    std::vector<layout::Tensor> model;
    for (int i = 0; i < kTensors; ++i) model.push_back({name_of(i), {kRows, kColumns}});
    const layout::RatePlan plan(model, method->rate_policy());
    for (int step = 0; step < kSteps; ++step) {
      for (int i = 0; i < kTensors; ++i) {
        auto gradient = gradient_of(communicator.rank(), step, i);
        const layout::Layout layout =
            plan.bucket(std::span(model).subspan(static_cast<std::size_t>(i), 1));
        method->reduce(core::Buffer::of(gradient.data(), layout.elements()), layout, communicator);
        if (communicator.rank() != 0) continue;
        means.insert(means.end(), gradient.begin(), gradient.end());
      }
    }
  });
  return means;
}

TEST(DdpTest, BucketsInFlightHaveTheBitsOfTheMethod) {
  const std::vector<float> means = expected();
  run([&](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    Module module(kSpec, std::move(end));
    const float* mean = means.data();
    for (int step = 0; step < kSteps; ++step) {
      std::vector<Future> futures;
      for (int i = 0; i < kTensors; ++i) {
        futures.push_back(module.bring(i, tensor_of(gradient_of(rank, step, i))));
      }
      for (const Future& future : futures) {
        const at::Tensor result = module.result_of(future);
        EXPECT_TRUE(std::equal(mean, mean + result.numel(), result.const_data_ptr<float>()));
        mean += result.numel();
      }
      // Between two steps, as a training loop does.
      EXPECT_EQ(module.hook().method().steps(), step + 1);
      EXPECT_EQ(module.hook().rates().size(), std::size_t{kTensors});
    }
  });
}

TEST(DdpTest, ABucketOfAStrangeParameterIsAnErrorOfItsFuture) {
  run([](std::unique_ptr<comm::Communicator> end) {
    Module module(kSpec, std::move(end));
    const at::Tensor strange = at::zeros({2, 2});
    const Future future = module.bring(0, at::zeros({4}), strange);
    EXPECT_THROW(module.result_of(future), core::UsageError);
  });
}

TEST(DdpTest, ARankThatDoesNotComeIsAnErrorOfTheOthers) {
  run(
      [](std::unique_ptr<comm::Communicator> end) {
        const int rank = end->rank();
        Module module(kSpec, std::move(end));
        if (rank == kRanks - 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(600));
          return;
        }
        std::vector<Future> futures;
        for (int i = 0; i < 3; ++i) {
          futures.push_back(module.bring(i, tensor_of(gradient_of(rank, 0, i))));
        }
        for (const Future& future : futures) {
          EXPECT_THROW(module.result_of(future), core::PeerError);
        }
      },
      std::chrono::milliseconds(200));
}

TEST(DdpTest, ARefusedBucketIsToldWhenNoOtherIsUnderWay) {
  run([](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    Module module("scalecom,rate=20,nonfinite=error", std::move(end));
    std::vector<float> spoiled = gradient_of(rank, 0, 0);
    spoiled[7] = std::numeric_limits<float>::quiet_NaN();
    const Future refused = module.bring(0, tensor_of(spoiled));
    // Others have long heard of the first bucket when the second can be reduced.
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Future other = module.bring(1, tensor_of(gradient_of(rank, 0, 1)));
    EXPECT_THROW(module.result_of(refused), core::CheckError);
    EXPECT_TRUE(other->completed());
    EXPECT_NO_THROW(module.result_of(other));
  });
}

TEST(DdpTest, AModuleMayGoWhileItsBucketsAreUnderWay) {
  run([](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    std::vector<Future> futures;
    {
      Module module(kSpec, std::move(end));
      for (int i = 0; i < kTensors; ++i) {
        futures.push_back(module.bring(i, tensor_of(gradient_of(rank, 0, i))));
      }
    }
    for (const Future& future : futures) {
      future->wait();
      EXPECT_TRUE(future->value().isTensor());
    }
  });
}

TEST(DdpTest, AHookHoldsNoParameterAndIsNotHeldByABucketThatIsDone) {
  run([](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    Module module(kSpec, std::move(end));
    const at::Tensor& parameter = module.parameters().front();
    EXPECT_EQ(parameter.use_count(), 1);
    const Future future = module.bring(0, tensor_of(gradient_of(rank, 0, 0)));
    EXPECT_EQ(parameter.use_count(), 1);  // while it is under way
    // How many hold the hook when the future is completed.
    const auto holders = std::make_shared<std::promise<long>>();
    future->addCallback([&module, holders](auto&) {
      holders->set_value(module.hook().weak_from_this().use_count());
    });
    EXPECT_EQ(holders->get_future().get(), 1);
    EXPECT_NO_THROW(module.result_of(future));
  });
}

TEST(DdpTest, OptionsThatCannotBeChangeNothing) {
  run([](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    Module module(kSpec, std::move(end));
    take_step(module, rank, 0);
    const std::string spec = module.hook().method().spec();
    const std::vector<double> rates = module.hook().rates();
    for (const char* settings : {"rates=flops", "beta=0.3,rates=paper", "rate=50,beta=7"}) {
      EXPECT_THROW(module.hook().configure(settings), core::UsageError) << settings;
      EXPECT_EQ(module.hook().method().spec(), spec) << settings;
      EXPECT_EQ(module.hook().rates(), rates) << settings;
    }
    take_step(module, rank, 1);
    EXPECT_EQ(module.hook().method().steps(), 2);
  });
}

TEST(DdpTest, RatesByFlopsAreOutOfRangeAtOnce) {
  run([](std::unique_ptr<comm::Communicator> end) {
    EXPECT_THROW(Module("scalecom,rate=2000,rates=flops", std::move(end)), core::UsageError);
  });
  run([](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    Module module("scalecom,rate=20,rates=flops", std::move(end));
    const std::string spec = module.hook().method().spec();
    EXPECT_THROW(module.hook().configure("rate=2000"), core::UsageError);
    EXPECT_EQ(module.hook().method().spec(), spec);
    module.hook().set_flops(std::vector<double>(std::size_t{kTensors}, 2.0));
    take_step(module, rank, 0);
    // FLOPs are counted, so that any way of using them is open.
    for (const char* settings : {"rates=uniform", "rates=paper", "rates=flops"}) {
      EXPECT_NO_THROW(module.hook().configure(settings)) << settings;
      take_step(module, rank, 1);
    }
  });
}

TEST(DdpTest, AnotherModelsMemoriesAreRefusedAtEveryRank) {
  const state::TemporaryFolder folder;
  run([&](std::unique_ptr<comm::Communicator> end) {
    const int rank = end->rank();
    Module module(kSpec, std::move(end));
    take_step(module, rank, 0);
    state::save_method(folder.path(), module.hook().method(), module.hook().communicator());
    EXPECT_NO_THROW(module.hook().load(folder.path()));
    take_step(module, rank, 1);
    EXPECT_EQ(module.hook().method().steps(), 2);
  });
  run([&](std::unique_ptr<comm::Communicator> end) {
    std::vector<Ddp::Parameter> parameters;
    for (int i = 0; i < kTensors; ++i) {
      const std::int64_t rows = i == kTensors - 1 ? kRows + 1 : kRows;
      parameters.push_back({name_of(i), at::zeros({rows, kColumns})});
    }
    const auto other = std::make_shared<Ddp>(kSpec, parameters, std::move(end));
    EXPECT_THROW(other->load(folder.path()), core::UsageError);
    EXPECT_EQ(other->method().steps(), 0);
    EXPECT_TRUE(other->method().memories().empty());
  });
}

}  // namespace
}  // namespace scalecom::torch
