#include "bench/turns.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace bench {
namespace {

/// Passes that take what is told of each: in the first two rounds, which are not to count, far
/// more.
class Turns : public testing::Test {
 protected:
  StepFigures timed(Against against, int repeats) {
    const auto pass = [this](const std::string& name) {
      return [this, name] {
        order_ += name.front();
        const int round = rounds_[name]++;
        const double drift = round < 2 ? 100 : round;  // all of a round are equally slow
        taken_ = milliseconds_.at(name) * drift;
      };
    };
    StepFigures figures;
    const Passes passes{pass("leader"), pass("follower"), pass("plain"), pass("copy"),
                        pass("whole")};
    time_in_turns(
        passes, against, repeats,
        [this](const std::function<void()>& one) {
          one();
          return taken_;
        },
        [this](int done, int all) {
          EXPECT_EQ(done, ++calls_);
          all_ = all;
        },
        figures);
    return figures;
  }

  const std::map<std::string, double> milliseconds_{
      {"leader", 3}, {"follower", 5}, {"plain", 2}, {"copy", 7}, {"whole", 4}};
  std::map<std::string, int> rounds_;
  std::string order_;
  double taken_ = 0;
  int calls_ = 0;
  int all_ = 0;
};

TEST_F(Turns, MediansAreOfWhatComesAfterTheWarmUp) {
  const StepFigures figures = timed(Against::kPlain, 3);  // rounds 2, 3 and 4
  EXPECT_EQ(figures.leader_ms, 9);
  EXPECT_EQ(figures.follower_ms, 15);
  EXPECT_EQ(figures.plain_ms, 6);
  EXPECT_EQ(figures.copy_ms, 21);
  EXPECT_EQ(figures.floor_ms, 12);
  EXPECT_EQ(calls_, 5);
  EXPECT_EQ(all_, 5);
}

TEST_F(Turns, RatiosAreOfEachRepeatAndToWhatIsAskedFor) {
  const StepFigures plain = timed(Against::kPlain, 3);
  EXPECT_DOUBLE_EQ(plain.leader_ratio, 1.5);
  EXPECT_DOUBLE_EQ(plain.follower_ratio, 2.5);
  calls_ = 0;
  const StepFigures floor = timed(Against::kFloor, 3);
  EXPECT_DOUBLE_EQ(floor.leader_ratio, 0.75);
  EXPECT_DOUBLE_EQ(floor.follower_ratio, 1.25);
}

TEST_F(Turns, EveryRoundBeginsWithAnother) {
  timed(Against::kPlain, 1);
  EXPECT_EQ(order_, "lfpcwfpcwlpcwlf");
}

}  // namespace
}  // namespace bench
