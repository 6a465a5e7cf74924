#include "scalecom/kernels/pieces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/device.h"

// Pieces against one number at a time, on the device of the test.
namespace scalecom::kernels {
namespace {

using core::DType;

class PiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::scalecom::testing::device().is_cuda()) {
      stream_ = core::Stream::cuda(::scalecom::testing::device());
    }
  }

  template <typename T>
  core::Array<T> place(const std::vector<T>& values) {
    core::Array<T> array(stream_.device(), static_cast<std::int64_t>(values.size()));
    copy(array.data(), values.data(), values.size());
    return array;
  }
  template <typename T>
  std::vector<T> fetch(const core::Array<T>& array) {
    std::vector<T> values(static_cast<std::size_t>(array.size()));
    copy(values.data(), array.data(), values.size());
    return values;
  }

  core::Stream stream_;

 private:
  template <typename T>
  void copy(T* to, const T* from, std::size_t count) {
    if (stream_.device().is_cuda()) {
      core::cuda::copy(to, from, static_cast<std::int64_t>(count * sizeof(T)), stream_);
      core::cuda::synchronize(stream_);
    } else {
      std::memcpy(to, from, count * sizeof(T));
    }
  }
};

// Pieces of a gradient of `elements`, of any length and in another order, with gaps between them.
std::vector<Piece> scattered(std::int64_t elements, std::int64_t* room, std::mt19937& random) {
  std::vector<Piece> pieces;
  for (std::int64_t begin = 0; begin < elements;) {
    const auto count = std::min<std::int64_t>(
        elements - begin, static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 20000 : 50)));
    pieces.push_back({begin, 0, count});
    begin += count;
  }
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  *room = 0;
  for (const std::size_t i : order) {
    pieces[i].in_pieces = *room;
    *room += pieces[i].count + static_cast<std::int64_t>(random() % 3);
  }
  return pieces;
}

TEST_F(PiecesTest, GoApartAndComeTogether) {
  std::mt19937 random(1);
  std::normal_distribution<float> draw;
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    const std::int64_t elements = 50000;
    std::int64_t room = 0;
    const std::vector<Piece> list = scattered(elements, &room, random);
    const Pieces pieces(list, stream_);
    std::vector<std::byte> gradient(static_cast<std::size_t>(elements * core::size_of(type)));
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < elements; ++i) {
      numbers.push_back(core::round_to(type, draw(random)));
      if (type == DType::kFloat32) {
        std::memcpy(gradient.data() + 4 * i, &numbers.back(), 4);
      } else {
        const std::uint16_t bits = core::to_bits16(type, numbers.back());
        std::memcpy(gradient.data() + 2 * i, &bits, 2);
      }
    }
    auto grad = place(gradient);
    auto apart = place(std::vector<float>(static_cast<std::size_t>(room), 77.0F));
    pieces.load(grad.data(), type, 0.25F, apart.data(), stream_);
    std::vector<float> expected(static_cast<std::size_t>(room), 77.0F);
    for (const Piece& piece : list) {
      for (std::int64_t i = 0; i < piece.count; ++i) {
        expected[static_cast<std::size_t>(piece.in_pieces + i)] =
            numbers[static_cast<std::size_t>(piece.in_gradient + i)] * 0.25F;
      }
    }
    EXPECT_EQ(fetch(apart), expected);

    for (float& value : expected) value *= 4;
    auto whole = place(expected);
    auto flag = place(std::vector<elementwise::Flag>{0});
    auto back = place(std::vector<std::byte>(gradient.size()));
    pieces.store(whole.data(), back.data(), type, flag.data(), stream_);
    EXPECT_EQ(fetch(back), gradient);

    flag = place(std::vector<elementwise::Flag>{1});
    pieces.store(whole.data(), back.data(), type, flag.data(), stream_);
    const auto spoilt = fetch(back);
    for (std::int64_t i = 0; i < elements; ++i) {
      float value = 0;
      std::uint16_t bits = 0;
      std::memcpy(type == DType::kFloat32 ? static_cast<void*>(&value) : &bits,
                  spoilt.data() + i * core::size_of(type),
                  static_cast<std::size_t>(core::size_of(type)));
      if (type != DType::kFloat32) value = core::from_bits16(type, bits);
      ASSERT_TRUE(std::isnan(value)) << i;
    }
  }
}

TEST_F(PiecesTest, MarksAreSetAndSpoil) {
  for (const int set : {0, 1}) {
    auto flag = place(std::vector<elementwise::Flag>{set});
    auto numbers = place(std::vector<float>(12, 5.0F));
    mark(flag.data(), numbers.data() + 2, 3, 4, stream_);
    const auto marked = fetch(numbers);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(marked[i], i % 3 == 2 ? static_cast<float>(set) : 5.0F);
    }
    spoil(numbers.data() + 2, numbers.data(), stream_);
    EXPECT_EQ(std::isnan(fetch(numbers)[0]), set == 1);
  }
}

TEST_F(PiecesTest, NoneAtAll) {
  const Pieces pieces({}, stream_);
  pieces.load(nullptr, DType::kFloat32, 1, nullptr, stream_);
  pieces.store(nullptr, nullptr, DType::kFloat32, nullptr, stream_);
}

}  // namespace
}  // namespace scalecom::kernels
