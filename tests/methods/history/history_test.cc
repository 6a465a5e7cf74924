#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "scalecom/core/text.h"
#include "tests/comm/world.h"
#include "tests/methods/history/ledger.h"
#include "tests/methods/history/player.h"

// Nothing is lost: random lives of every method with error feedback, over every communicator. A
// life that ends badly is made as short as it can be before it is shown. SCALECOM_TEST_ACTIONS and
// SCALECOM_TEST_SEED are for longer and other lives.
namespace scalecom::methods {
namespace {

namespace worlds = comm::testing;
using testing::History;

int number_from(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::stoi(text) : otherwise;
}

/// Where all processes of a test find each other's files.
std::string shared_folder() {
  const char* const job = std::getenv("OMPI_MCA_ess_base_jobid");
  return core::concat(::testing::TempDir(), "/scalecom-history-",
                      job != nullptr ? job : std::to_string(getpid()));
}

testing::Toll toll_of(const worlds::World& world) {
  return world.backend == "inproc" ? testing::Toll::kRank : testing::Toll::kJob;
}

/// What was lost in a life, or "".
std::string loss_in(const worlds::World& world, const std::string& spec, const History& history) {
  std::string loss;
  try {
    worlds::run(world, [&](comm::Communicator& ranks) {
      testing::play(spec, history, toll_of(world), shared_folder(), ranks);
    });
  } catch (const testing::Lost& lost) {
    loss = lost.what();
  }
  std::error_code ignored;  // every process of a test does this
  std::filesystem::remove_all(shared_folder(), ignored);
  return loss;
}

std::string story_of(const History& history) {
  std::ostringstream out;
  for (const testing::Action& action : history) out << "\n  " << action;
  return out.str();
}

class Histories : public ::testing::TestWithParam<std::tuple<std::string, worlds::World>> {};

TEST_P(Histories, NothingIsLost) {
  const std::string& spec = std::get<0>(GetParam());
  const worlds::World& world = std::get<1>(GetParam());
  if (spec.ends_with("groups=2") && world.size < 2) GTEST_SKIP() << "one rank is no group of two";
  const auto seed = static_cast<std::uint32_t>(number_from("SCALECOM_TEST_SEED", 1));
  const History history = testing::draw_history(seed, number_from("SCALECOM_TEST_ACTIONS", 60));
  const std::string loss = loss_in(world, spec, history);
  if (loss.empty()) return;
  const History shortest = testing::shortest(
      history, [&](const History& part) { return !loss_in(world, spec, part).empty(); });
  FAIL() << spec << ": " << loss
         << "\nthe shortest life that loses something:" << story_of(shortest) << "\n"
         << loss_in(world, spec, shortest);
}

std::string name_of(const ::testing::TestParamInfo<Histories::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + worlds::name(std::get<1>(info.param));
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    All, Histories,
    ::testing::Combine(
        ::testing::Values(
            "scalecom,rate=10,beta=0.1,check=conserve", "scalecom,rate=10,beta=1,warmup=3",
            "scalecom,rate=20,beta=0.5,leaders=sharded",
            "scalecom,rate=7,select=chunk:50,values=bf16,beta=0.3", "scalecom,rate=10,select=exact",
            "scalecom,rate=10,select=random,beta=0.1", "scalecom,rate=10,beta=0.1,groups=2",
            "weighted,rate=10,a=1,b=1", "topk,rate=10,warmup=3",
            "scalecom,rate=20,leaders=sharded,groups=2", "dgc,rate=10,momentum=0,warmup=4",
            "scalecom,rate=10,beta=0.3,warmup=20,groups=2", "gtopk,rate=10", "powersgd,rank=2",
            "adacomp", "sketched_sgd,rate=20,momentum=0"),
        ::testing::ValuesIn(worlds::worlds({1, 2, 5}, {}))),
    name_of);

// The lives above are not spared.
TEST(Histories, RanksAreLost) {
  const worlds::World world = worlds::worlds({3}, {}).front();
  using Kind = testing::Action::Kind;
  History history{{Kind::kStep, 1}, {Kind::kSave, 2}, {Kind::kStep, 3}};
  for (std::uint32_t seed = 4; seed < 9; ++seed) history.push_back({Kind::kFault, seed});
  worlds::run(world, [&](comm::Communicator& ranks) {
    EXPECT_GE(
        testing::play("scalecom,rate=10,beta=0.1", history, toll_of(world), shared_folder(), ranks),
        2);
  });
}

// The books find a method that loses something on purpose, and what is shown is short.
TEST(Histories, AMethodThatForgetsIsFoundOut) {
  if (worlds::worlds({3}, {}).front().backend != "inproc") GTEST_SKIP() << "once is enough";
  const worlds::World world{"inproc", 3};
  const std::string forgetful = "weighted,rate=10,a=1,b=0.9";
  const auto loses = [&](const History& part) { return !loss_in(world, forgetful, part).empty(); };
  const History history = testing::draw_history(3, 40);
  ASSERT_TRUE(loses(history));
  const History shortest = testing::shortest(history, loses);
  EXPECT_TRUE(loses(shortest));
  EXPECT_LE(shortest.size(), 2U) << story_of(shortest);
}

}  // namespace
}  // namespace scalecom::methods

int main(int argc, char** argv) {
  return scalecom::comm::testing::run_all_tests(argc, argv);
}
