// GCC 12 takes the undefined lanes of its own intrinsics for uninitialised variables.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <immintrin.h>

#include "scalecom/kernels/cpu/make_table.h"
#include "scalecom/kernels/cpu/x86.h"

namespace scalecom::kernels::cpu {
namespace {

struct Avx512 {
  static constexpr int kWidth = 16;
  using Floats = __m512;
  using Ints = __m512i;
  using Mask = __mmask16;

  static Floats broadcast(float x) { return _mm512_set1_ps(x); }
  static Ints broadcast(int x) { return _mm512_set1_epi32(x); }
  /// 0, 1, 2, ...
  static Ints numbers() {
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  static Ints bits(Floats x) { return _mm512_castps_si512(x); }
  static Floats floats(Ints x) { return _mm512_castsi512_ps(x); }

  static Floats times(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Ints plus(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  static Ints minus(Ints a, Ints b) { return _mm512_sub_epi32(a, b); }
  /// As unsigned numbers: the smaller, and the upper half of the product.
  static Ints smaller(Ints a, Ints b) { return _mm512_min_epu32(a, b); }
  static Ints upper_product(Ints a, Ints b) {
    const Ints even = _mm512_mul_epu32(a, b);
    const Ints odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));
    return _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), 0xaaaa, odd);
  }
  static Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
  static Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }

  /// The lanes numbered [from, to).
  static Mask lanes(std::int64_t from, std::int64_t to) {
    const std::uint32_t under = to >= kWidth ? 0xffffU : (1U << to) - 1U;
    return static_cast<Mask>(under & ~((1U << from) - 1U));
  }
  static bool any(Mask mask) { return mask != 0; }
  static Mask without(Mask a, Mask b) { return static_cast<Mask>(a & ~b); }
  static Mask greater(Ints a, Ints b) { return _mm512_cmpgt_epi32_mask(a, b); }
  static Mask greater(Ints a, Ints b, Mask among) {
    return _mm512_mask_cmpgt_epi32_mask(among, a, b);
  }
  /// `yes` in the lanes of the mask, `no` elsewhere.
  static Floats select(Mask mask, Floats yes, Floats no) {
    return _mm512_mask_mov_ps(no, mask, yes);
  }
  static Ints select(Mask mask, Ints yes, Ints no) { return _mm512_mask_mov_epi32(no, mask, yes); }
  /// `x` in that lane, if there is one of that number, and 0 elsewhere.
  static Ints only(int lane, int x) {
    return _mm512_maskz_set1_epi32(_mm512_cmpeq_epi32_mask(numbers(), broadcast(lane)), x);
  }

  /// Over all lanes; sets of lanes are bits of a number here.
  static int largest(Ints x) { return _mm512_reduce_max_epi32(x); }
  static std::uint32_t equal(Ints x, int to) { return _mm512_cmpeq_epi32_mask(x, broadcast(to)); }
  /// The lowest, as unsigned numbers, among the lanes given.
  static int lowest(Ints x, std::uint32_t among) {
    return static_cast<int>(_mm512_mask_reduce_min_epu32(static_cast<Mask>(among), x));
  }
  /// The number in the first of the lanes given.
  static int pick(Ints x, std::uint32_t among) {
    return _mm512_cvtsi512_si32(_mm512_maskz_compress_epi32(static_cast<Mask>(among), x));
  }
  static float pick(Floats x, std::uint32_t among) {
    return _mm512_cvtss_f32(_mm512_maskz_compress_ps(static_cast<Mask>(among), x));
  }

  static __m256i to_float16(Floats x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
  static Floats from_float16(__m256i x) { return _mm512_cvtph_ps(x); }
  static __m256i to_bfloat16(Floats x) {
    const Ints upper = _mm512_srli_epi32(bits(x), 16);
    const Ints odd = both(upper, broadcast(1));
    const Ints nearest = _mm512_srli_epi32(plus(bits(x), plus(odd, broadcast(0x7fff))), 16);
    const Mask is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(select(is_nan, either(upper, broadcast(0x7fc0)), nearest));
  }
  static Floats from_bfloat16(__m256i x) {
    return floats(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  static Floats through_float16(Floats x) { return from_float16(to_float16(x)); }
  static Floats through_bfloat16(Floats x) { return from_bfloat16(to_bfloat16(x)); }

  /// With a mask, memory outside its lanes is not touched, and loads give 0 there.
  static Floats load(const float* from) { return _mm512_loadu_ps(from); }
  static Floats load(const float* from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static Floats load(const Float16* from) { return from_float16(load16(from)); }
  static Floats load(const Float16* from, Mask mask) { return from_float16(load16(from, mask)); }
  static Floats load(const BFloat16* from) { return from_bfloat16(load16(from)); }
  static Floats load(const BFloat16* from, Mask mask) { return from_bfloat16(load16(from, mask)); }

  static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
  static void store(float* to, Floats x, Mask mask) { _mm512_mask_storeu_ps(to, mask, x); }
  static void store(Float16* to, Floats x) { store16(to, to_float16(x)); }
  static void store(Float16* to, Floats x, Mask mask) { store16(to, to_float16(x), mask); }
  static void store(BFloat16* to, Floats x) { store16(to, to_bfloat16(x)); }
  static void store(BFloat16* to, Floats x, Mask mask) { store16(to, to_bfloat16(x), mask); }

  /// Stores zeros; without a mask, as many elements as there are lanes.
  static void clear(float* to) { store(to, broadcast(0.0F)); }
  static void clear(float* to, Mask mask) { store(to, broadcast(0.0F), mask); }
  template <typename Element>
  static void clear(Element* to) {
    store16(to, _mm256_setzero_si256());
  }
  template <typename Element>
  static void clear(Element* to, Mask mask) {
    store16(to, _mm256_setzero_si256(), mask);
  }

  /// From and to the boundary of a vector, whatever the elements are; past the caches.
  static Ints load_ints(const void* from) {
    return _mm512_load_si512(static_cast<const __m512i*>(from));
  }
  static void stream(std::uint32_t* to, Ints x) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), x);
  }

  static float number(float x) { return x; }
  static float number(Float16 x) { return _cvtsh_ss(x.bits); }
  static float number(BFloat16 x) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16);
  }
  /// The bits of x as an element of that type.
  static std::uint32_t pattern(const float*, float x) {
    return __builtin_bit_cast(std::uint32_t, x);
  }
  static std::uint32_t pattern(const Float16*, float x) {
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
  }
  static std::uint32_t pattern(const BFloat16*, float x) {
    const __m256i all = to_bfloat16(broadcast(x));
    return static_cast<std::uint16_t>(_mm256_extract_epi16(all, 0));
  }

 private:
  static __m256i load16(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
  }
  static __m256i load16(const void* from, Mask mask) {
    return _mm256_maskz_loadu_epi16(mask, from);
  }
  static void store16(void* to, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
  static void store16(void* to, __m256i x, Mask mask) { _mm256_mask_storeu_epi16(to, mask, x); }
};

}  // namespace

const Table& avx512() {
  static constexpr Table kTable = make_table<Avx512>("avx512");
  return kTable;
}

}  // namespace scalecom::kernels::cpu
