#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "comparison/operations/statement.h"
#include "scalecom/comm/inproc/inproc.h"
#include "scalecom/layout/rates.h"
#include "scalecom/methods/method.h"

namespace comparison::operations {
namespace {

namespace core = scalecom::core;
namespace layout = scalecom::layout;

const std::vector<layout::Tensor> kModel{{"first", {16, 9}},
                                         {"bias", {16}},
                                         {"second", {40, 50}},
                                         {"third", {30, 7, 3}},
                                         {"tiny", {2, 2}}};

std::vector<float> gradient(std::size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(elements);
  for (float& value : values) value = draw(random);
  return values;
}

std::size_t elements() {
  std::int64_t sum = 0;
  for (const layout::Tensor& tensor : kModel) sum += tensor.elements();
  return static_cast<std::size_t>(sum);
}

std::int64_t cost_of(const std::function<void()>& work) {
  const std::int64_t before = done();
  work();
  return done() - before;
}

TEST(Counting, CountsWhatIsDone) {
  const Number a = 3;
  const Number b = -4;
  EXPECT_EQ(cost_of([&] { EXPECT_EQ((a + b).value(), -1); }), 1);
  EXPECT_EQ(cost_of([&] { EXPECT_EQ((a * b - a).value(), -15); }), 2);
  EXPECT_EQ(cost_of([&] { EXPECT_EQ(fma(a, b, a).value(), -9); }), 2);
  EXPECT_EQ(cost_of([&] { EXPECT_TRUE(abs(b) > a); }), 2);
  EXPECT_EQ(cost_of([&] { EXPECT_TRUE(is_finite(a)); }), 1);
  EXPECT_EQ(cost_of([&] { EXPECT_EQ(rounded(core::DType::kBFloat16, Number(1.001F)).value(), 1); }),
            1);
  EXPECT_EQ(cost_of([&] { EXPECT_EQ(rounded(core::DType::kFloat32, a).value(), 3); }), 0);
  EXPECT_EQ(cost_of([&] { EXPECT_EQ(((Bits(6) ^ Bits(3)) >> 2).value(), 1); }), 2);
  EXPECT_EQ(cost_of([&] {
              const Number c = a;
              EXPECT_EQ(c.value(), 3);
            }),
            0);
}

// Otherwise what is counted is another method.
TEST(Statements, GiveTheBitsOfTheirMethods) {
  for (const char* const spec : {"dense",
                                 "half",
                                 "half,values=bf16",
                                 "scalecom,rate=10",
                                 "scalecom,rate=10,beta=1",
                                 "scalecom,rate=7,decay=0.9,values=bf16",
                                 "scalecom,rate=10,select=random",
                                 "scalecom,rate=10,select=chunk:64",
                                 "scalecom,rate=10,select=exact",
                                 "adacomp",
                                 "adacomp,bin=64",
                                 "sketched_sgd,rate=20",
                                 "sketched_sgd,rate=20,rows=4,momentum=0.5",
                                 "weighted,rate=10",
                                 "weighted,rate=7,a=0.3,b=0.7,values=bf16",
                                 "weighted,rate=10,a=3,select=exact",
                                 "weighted,rate=10,b=0.5,select=random",
                                 "topk,rate=10",
                                 "topk,rate=700,first=compressed",
                                 "gtopk,rate=10",
                                 "dgc,rate=20",
                                 "dgc,rate=300,nesterov=on",
                                 "dgc,rate=5,momentum=0,clip=3"}) {
    const auto method = scalecom::methods::make(spec);
    const auto statement = make_statement(spec);
    ASSERT_NE(statement, nullptr) << spec;
    const layout::Layout bucket = layout::make_layout(kModel, method->rate_policy());
    const auto world = scalecom::comm::inproc::make_world(1);
    for (int step = 0; step < 4; ++step) {
      std::vector<float> real = gradient(elements(), static_cast<unsigned>(step));
      std::vector<Number> stated(real.begin(), real.end());
      method->reduce(core::Buffer::of(real.data(), bucket.elements()), bucket, *world.front());
      statement->step(stated, bucket, step);
      for (std::size_t i = 0; i < real.size(); ++i) {
        const float value = stated[i].value();
        ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(real[i]))
            << spec << ", step " << step << ", element " << i << ": " << value << ", " << real[i];
      }
    }
  }
}

// Its sums are taken in another order, and Gram and Schmidt's in another precision.
TEST(Statements, PowerSgdIsTheMethodButForRounding) {
  const auto method = scalecom::methods::make("powersgd,rank=2");
  const auto statement = make_statement("powersgd,rank=2");
  ASSERT_NE(statement, nullptr);
  const layout::Layout bucket = layout::make_layout(kModel, method->rate_policy());
  const auto world = scalecom::comm::inproc::make_world(1);
  for (int step = 0; step < 4; ++step) {
    std::vector<float> real = gradient(elements(), static_cast<unsigned>(step));
    std::vector<Number> stated(real.begin(), real.end());
    method->reduce(core::Buffer::of(real.data(), bucket.elements()), bucket, *world.front());
    statement->step(stated, bucket, step);
    for (std::size_t i = 0; i < real.size(); ++i) {
      ASSERT_NEAR(stated[i].value(), real[i], 1e-4) << "step " << step << ", element " << i;
    }
  }
}

TEST(Statements, AreCountedAnElement) {
  const std::vector<layout::Tensor> model{{"first", {1, 1}}, {"all", {100, 1000}}};
  const std::vector<float> values = gradient(100'001, 1);
  EXPECT_EQ(count("dense", model, values), 2);
  EXPECT_EQ(count("half", model, values), 4);
  // Filter 3, what would be sent 2, finite 1, size 1, comparison 0.99; one in a hundred settles, in
  // 2, and is averaged, in 1.
  EXPECT_NEAR(count("scalecom,rate=100", model, values).value(), 8.02, 0.01);
  // No size and no comparison; a draw of 20 operations a chunk.
  EXPECT_NEAR(count("scalecom,rate=100,select=random", model, values).value(), 6.23, 0.03);
  EXPECT_GT(count("scalecom,rate=100,select=exact", model, values).value(), 8.5);
  // A product and a sum in place of the filter and what would be sent; one in a hundred settles
  // in 1.
  EXPECT_NEAR(count("weighted,rate=100", model, values).value(), 5.01, 0.01);
  // Sum, finite, size; a quickselect compares about twice, and looks both ways where not larger.
  EXPECT_NEAR(count("topk,rate=100", model, values).value(), 3 + 4, 0.5);
  EXPECT_EQ(count("gtopk,rate=100", model, values), count("topk,rate=100", model, values));
  // Momentum 2, sum 1, finite 2; sizes are compared with two thresholds, the first too high; and
  // the sample, one in fifty, is selected from.
  EXPECT_NEAR(count("dgc,rate=1000", model, values).value(), 5 + 2 * 2 + 0.15, 0.05);
  // Nesterov's is one more, and clipping three: squares, their sum, the product.
  EXPECT_NEAR(count("dgc,rate=1000,nesterov=on,clip=5", model, values).value(), 13.15, 0.05);
  // Sum, finite, difference, and three products with each of the factors.
  EXPECT_NEAR(count("powersgd,rank=1", model, values).value(), 3 + 6, 0.5);
  EXPECT_NEAR(count("powersgd,rank=4", model, values).value(), 3 + 24, 5);
  // Two sums, two sizes and their comparisons, finite twice and the mean.
  EXPECT_NEAR(count("adacomp", model, values).value(), 10, 0.5);
  // A sketch's hash is 10 to 13 operations a row, and is taken twice.
  EXPECT_GT(count("sketched_sgd", model, values).value(), 2 * 5 * 10);
}

}  // namespace
}  // namespace comparison::operations
