#include <immintrin.h>

#include "scalecom/kernels/cpu/make_table.h"
#include "scalecom/kernels/cpu/x86.h"

namespace scalecom::kernels::cpu {
namespace {

/// As Avx512, where every function is described. Masks are vectors of ones and zeros.
struct Avx2 {
  static constexpr int kWidth = 8;
  using Floats = __m256;
  using Ints = __m256i;
  struct Mask {
    __m256i lanes;
  };

  static Floats broadcast(float x) { return _mm256_set1_ps(x); }
  static Ints broadcast(int x) { return _mm256_set1_epi32(x); }
  static Ints numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static Ints bits(Floats x) { return _mm256_castps_si256(x); }
  static Floats floats(Ints x) { return _mm256_castsi256_ps(x); }

  static Floats times(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Ints plus(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  static Ints minus(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  static Ints smaller(Ints a, Ints b) { return _mm256_min_epu32(a, b); }
  static Ints upper_product(Ints a, Ints b) {
    const Ints even = _mm256_mul_epu32(a, b);
    const Ints odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
    return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  }
  static Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
  static Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }

  static Mask lanes(std::int64_t from, std::int64_t to) {
    const int end = to >= kWidth ? kWidth : static_cast<int>(to);
    const Ints under = _mm256_cmpgt_epi32(broadcast(end), numbers());
    const Ints below = _mm256_cmpgt_epi32(broadcast(static_cast<int>(from)), numbers());
    return {_mm256_andnot_si256(below, under)};
  }
  static bool any(Mask mask) { return _mm256_testz_si256(mask.lanes, mask.lanes) == 0; }
  static Mask without(Mask a, Mask b) { return {_mm256_andnot_si256(b.lanes, a.lanes)}; }
  static Mask greater(Ints a, Ints b) { return {_mm256_cmpgt_epi32(a, b)}; }
  static Mask greater(Ints a, Ints b, Mask among) {
    return {both(_mm256_cmpgt_epi32(a, b), among.lanes)};
  }
  static Floats select(Mask mask, Floats yes, Floats no) {
    return _mm256_blendv_ps(no, yes, floats(mask.lanes));
  }
  static Ints select(Mask mask, Ints yes, Ints no) {
    return bits(select(mask, floats(yes), floats(no)));
  }
  static Ints only(int lane, int x) {
    return both(_mm256_cmpeq_epi32(numbers(), broadcast(lane)), broadcast(x));
  }

  static int largest(Ints x) {
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return _mm_cvtsi128_si32(most);
  }
  static std::uint32_t equal(Ints x, int to) {
    return set_of(_mm256_cmpeq_epi32(x, broadcast(to)));
  }
  static int lowest(Ints x, std::uint32_t among) {
    const Ints bit = _mm256_sllv_epi32(broadcast(1), numbers());
    const Ints outside =
        _mm256_cmpeq_epi32(both(broadcast(static_cast<int>(among)), bit), broadcast(0));
    const Ints inside = either(x, outside);
    __m128i least =
        _mm_min_epu32(_mm256_castsi256_si128(inside), _mm256_extracti128_si256(inside, 1));
    least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0x4e));
    least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0xb1));
    return _mm_cvtsi128_si32(least);
  }
  static int pick(Ints x, std::uint32_t among) {
    const Ints lane = broadcast(__builtin_ctz(among));
    return _mm256_cvtsi256_si32(_mm256_permutevar8x32_epi32(x, lane));
  }
  static float pick(Floats x, std::uint32_t among) {
    const Ints lane = broadcast(__builtin_ctz(among));
    return _mm256_cvtss_f32(_mm256_permutevar8x32_ps(x, lane));
  }

  static __m128i to_float16(Floats x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
  static Floats from_float16(__m128i x) { return _mm256_cvtph_ps(x); }
  static __m128i to_bfloat16(Floats x) {
    const Ints upper = _mm256_srli_epi32(bits(x), 16);
    const Ints odd = both(upper, broadcast(1));
    const Ints nearest = _mm256_srli_epi32(plus(bits(x), plus(odd, broadcast(0x7fff))), 16);
    const Mask is_nan{bits(_mm256_cmp_ps(x, x, _CMP_UNORD_Q))};
    const Ints words = select(is_nan, either(upper, broadcast(0x7fc0)), nearest);
    return _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }
  static Floats from_bfloat16(__m128i x) {
    return floats(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static Floats through_float16(Floats x) { return from_float16(to_float16(x)); }
  static Floats through_bfloat16(Floats x) { return from_bfloat16(to_bfloat16(x)); }

  static Floats load(const float* from) { return _mm256_loadu_ps(from); }
  static Floats load(const float* from, Mask mask) { return _mm256_maskload_ps(from, mask.lanes); }
  static Floats load(const Float16* from) { return from_float16(load16(from)); }
  static Floats load(const Float16* from, Mask mask) { return from_float16(load16(from, mask)); }
  static Floats load(const BFloat16* from) { return from_bfloat16(load16(from)); }
  static Floats load(const BFloat16* from, Mask mask) { return from_bfloat16(load16(from, mask)); }

  static void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
  static void store(float* to, Floats x, Mask mask) { _mm256_maskstore_ps(to, mask.lanes, x); }
  static void store(Float16* to, Floats x) { store16(to, to_float16(x)); }
  static void store(Float16* to, Floats x, Mask mask) { store16(to, to_float16(x), mask); }
  static void store(BFloat16* to, Floats x) { store16(to, to_bfloat16(x)); }
  static void store(BFloat16* to, Floats x, Mask mask) { store16(to, to_bfloat16(x), mask); }

  static void clear(float* to) { store(to, broadcast(0.0F)); }
  static void clear(float* to, Mask mask) { store(to, broadcast(0.0F), mask); }
  template <typename Element>
  static void clear(Element* to) {
    store16(to, _mm_setzero_si128());
  }
  template <typename Element>
  static void clear(Element* to, Mask mask) {
    store16(to, _mm_setzero_si128(), mask);
  }

  static Ints load_ints(const void* from) {
    return _mm256_load_si256(static_cast<const __m256i*>(from));
  }
  static void stream(std::uint32_t* to, Ints x) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), x);
  }

  static float number(float x) { return x; }
  static float number(Float16 x) { return _cvtsh_ss(x.bits); }
  static float number(BFloat16 x) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
  }
  static std::uint32_t pattern(const float*, float x) {
    return __builtin_bit_cast(std::uint32_t, x);
  }
  static std::uint32_t pattern(const Float16*, float x) {
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
  }
  static std::uint32_t pattern(const BFloat16*, float x) {
    return static_cast<std::uint16_t>(_mm_extract_epi16(to_bfloat16(broadcast(x)), 0));
  }

 private:
  static std::uint32_t set_of(Ints mask) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(floats(mask)));
  }
  static __m128i load16(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  }
  static void store16(void* to, __m128i x) { _mm_storeu_si128(static_cast<__m128i*>(to), x); }
  // The instruction set masks no 16-bit lanes: one by one, at the ends of ranges only.
  template <typename Element>
  static __m128i load16(const Element* from, Mask mask) {
    alignas(16) Element all[kWidth] = {};
    const std::uint32_t set = set_of(mask.lanes);
    for (int k = 0; k < kWidth; ++k) {
      if ((set >> k & 1U) != 0) all[k] = from[k];
    }
    return load16(static_cast<const void*>(all));
  }
  template <typename Element>
  static void store16(Element* to, __m128i x, Mask mask) {
    alignas(16) Element all[kWidth];
    store16(static_cast<void*>(all), x);
    const std::uint32_t set = set_of(mask.lanes);
    for (int k = 0; k < kWidth; ++k) {
      if ((set >> k & 1U) != 0) to[k] = all[k];
    }
  }
};

}  // namespace

const Table& avx2() {
  static constexpr Table kTable = make_table<Avx2>("avx2");
  return kTable;
}

}  // namespace scalecom::kernels::cpu
