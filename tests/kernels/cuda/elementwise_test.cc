#include "scalecom/kernels/cuda/elementwise.h"

#include "tests/kernels/cuda/device_array.h"
#include "tests/kernels/fixture.h"

namespace scalecom::kernels::testing {
namespace {

using elementwise::Flag;

constexpr std::int64_t kCounts[] = {0, 1, 3, 4, 5, 1023, 100003};

class CudaElementwise : public ::testing::Test {
 protected:
  void SetUp() override {
    if (core::cuda::device_count() == 0) GTEST_SKIP() << "skipped: no CUDA device";
    stream_ = core::Stream::cuda(core::Device::cuda());
  }

  template <typename T>
  DeviceArray<T> on_device(const std::vector<T>& from, std::int64_t shift = 0) {
    DeviceArray<T> array(std::ssize(from), shift, stream_);
    array.write(from);
    return array;
  }

  // Calls body(count, shift) for lengths, and for arrays that vectors can take and that they
  // cannot.
  template <typename Body>
  static void for_each_size(Body body) {
    for (const std::int64_t count : kCounts) {
      for (const std::int64_t shift : {0, 1}) body(count, shift);
    }
  }

  core::Stream stream_;
  core::Stream cpu_;
};

std::vector<float> floats(std::int64_t count, Data data, bool finite = false) {
  std::mt19937 random(7);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = draw(data, random, finite);
  return numbers;
}

// All patterns of 16 bits, then again.
std::vector<std::uint16_t> patterns(std::int64_t count) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i * 7919);
  return bits;
}

// Bit for bit, but for NaNs that an operation made: those need only be NaNs.
::testing::AssertionResult same_numbers(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

TEST_F(CudaElementwise, LoadFp32) {
  for_each_size([&](std::int64_t count, std::int64_t shift) {
    for (const Data data : kAllData) {
      const std::vector<float> in = floats(count, data);
      std::vector<float> expected(in.size());
      auto d_in = on_device(in, shift);
      elementwise::load(in.data(), DType::kFloat32, count, 0.3F, expected.data(), cpu_);
      elementwise::load(d_in.data(), DType::kFloat32, count, 0.3F, d_in.data(), stream_);
      EXPECT_TRUE(same_numbers(d_in.read(), expected));
    }
  });
}

TEST_F(CudaElementwise, LoadOf16Bits) {
  for_each_size([&](std::int64_t count, std::int64_t shift) {
    for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
      const std::vector<std::uint16_t> in = patterns(count);
      std::vector<float> expected(in.size());
      auto d_in = on_device(in, shift);
      DeviceArray<float> out(count, shift, stream_);
      elementwise::load(in.data(), type, count, 3.0F, expected.data(), cpu_);
      elementwise::load(d_in.data(), type, count, 3.0F, out.data(), stream_);
      EXPECT_TRUE(same_numbers(out.read(), expected));
    }
  });
}

TEST_F(CudaElementwise, CheckFinite) {
  for_each_size([&](std::int64_t count, std::int64_t shift) {
    for (const float odd : {0.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
      if (count == 0) continue;
      std::vector<float> in = floats(count, Data::kHuge, true);
      in.back() = odd;
      auto d_in = on_device(in, shift);
      auto flag = on_device(std::vector<Flag>{0});
      elementwise::check_finite(d_in.data(), count, flag.data(), stream_);
      EXPECT_EQ(flag.read()[0], std::isfinite(odd) ? 0 : 1);
    }
  });
}

TEST_F(CudaElementwise, Store) {
  for_each_size([&](std::int64_t count, std::int64_t shift) {
    for (const Data data : kAllData) {
      for (const Flag flag : {0, 1}) {
        const std::vector<float> in = floats(count, data);
        auto d_in = on_device(in, shift);
        auto d_flag = on_device(std::vector<Flag>{flag});
        for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
          std::vector<std::uint16_t> expected(in.size());
          DeviceArray<std::uint16_t> out(count, shift, stream_);
          elementwise::store(in.data(), count, expected.data(), type, &flag, cpu_);
          elementwise::store(d_in.data(), count, out.data(), type, d_flag.data(), stream_);
          EXPECT_TRUE(same(out.read(), expected)) << core::to_string(type);
        }
        std::vector<float> expected(in);
        elementwise::store(expected.data(), count, expected.data(), DType::kFloat32, &flag, cpu_);
        elementwise::store(d_in.data(), count, d_in.data(), DType::kFloat32, d_flag.data(),
                           stream_);
        EXPECT_TRUE(same(d_in.read(), expected));
      }
    }
  });
}

TEST_F(CudaElementwise, NarrowAndWiden) {
  for_each_size([&](std::int64_t count, std::int64_t shift) {
    for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
      for (const Data data : kAllData) {
        const std::vector<float> in = floats(count, data);
        std::vector<std::uint16_t> expected(in.size());
        auto d_in = on_device(in, shift);
        DeviceArray<std::uint16_t> out(count, shift, stream_);
        elementwise::narrow(in.data(), count, type, expected.data(), cpu_);
        elementwise::narrow(d_in.data(), count, type, out.data(), stream_);
        EXPECT_TRUE(same(out.read(), expected)) << core::to_string(type);
      }
      const std::vector<std::uint16_t> bits = patterns(count);
      std::vector<float> expected(bits.size());
      auto d_bits = on_device(bits, shift);
      DeviceArray<float> out(count, shift, stream_);
      elementwise::widen(bits.data(), count, type, expected.data(), cpu_);
      elementwise::widen(d_bits.data(), count, type, out.data(), stream_);
      EXPECT_TRUE(same(out.read(), expected)) << core::to_string(type);
    }
  });
}

TEST_F(CudaElementwise, MeanOfNarrow) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const DType type : {DType::kFloat16, DType::kBFloat16}) {
      for (const Data data : {Data::kNormal, Data::kTies, Data::kHuge, Data::kZero}) {
        constexpr std::int64_t kCount = 5003;
        const std::vector<float> numbers = floats(kCount * ranks, data, true);
        std::vector<std::uint16_t> arrived(numbers.size());
        elementwise::narrow(numbers.data(), kCount * ranks, type, arrived.data(), cpu_);
        std::vector<std::uint16_t> mean(kCount);
        std::vector<float> rounding(kCount);
        auto d_arrived = on_device(arrived);
        DeviceArray<std::uint16_t> d_mean(kCount, 1, stream_);
        DeviceArray<float> d_rounding(kCount, 1, stream_);
        elementwise::mean_of_narrow(arrived.data(), kCount, ranks, type, mean.data(),
                                    rounding.data(), cpu_);
        elementwise::mean_of_narrow(d_arrived.data(), kCount, ranks, type, d_mean.data(),
                                    d_rounding.data(), stream_);
        const std::vector<float> d_read = d_rounding.read();
        EXPECT_TRUE(same_numbers(d_read, rounding));
        const std::vector<std::uint16_t> means = d_mean.read();
        for (std::size_t i = 0; i < mean.size(); ++i) {
          if (std::isnan(rounding[i])) continue;
          ASSERT_EQ(means[i], mean[i]) << i;
        }
      }
    }
  }
}

TEST_F(CudaElementwise, AddQuotientAndScale) {
  for_each_size([&](std::int64_t count, std::int64_t shift) {
    for (const Data data : {Data::kNormal, Data::kSpecial}) {
      std::vector<float> to = floats(count, data, true);
      std::vector<float> from(to.rbegin(), to.rend());
      auto d_to = on_device(to, shift);
      auto d_from = on_device(from, shift);
      elementwise::add_quotient(to.data(), from.data(), count, 0.3F, 0.125F, cpu_);
      elementwise::add_quotient(d_to.data(), d_from.data(), count, 0.3F, 0.125F, stream_);
      EXPECT_TRUE(same_numbers(d_to.read(), to));
      elementwise::scale(to.data(), count, 1.7F, cpu_);
      elementwise::scale(d_to.data(), count, 1.7F, stream_);
      EXPECT_TRUE(same_numbers(d_to.read(), to));
    }
  });
}

}  // namespace
}  // namespace scalecom::kernels::testing
