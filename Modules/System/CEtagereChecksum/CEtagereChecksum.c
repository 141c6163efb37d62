#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "CEtagereChecksum.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#define CCHECKSUM_SSE42 1
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#define CCHECKSUM_ARM 1
#elif defined(__aarch64__) && defined(__APPLE__)
// The oldest processor of tvOS (A8) lacks the instruction, so the compiler does not assume it. The kernel reports it.
#define CCHECKSUM_ARM 1
#define CCHECKSUM_ARM_ENABLES 1
#define CCHECKSUM_ARM_ASKS_SYSCTL 1
#include <sys/sysctl.h>
#elif defined(__aarch64__) && defined(__linux__) && defined(__clang__)
// The oldest processors of the architecture lack the instruction, so compilers do not assume it. The kernel reports it.
#define CCHECKSUM_ARM 1
#define CCHECKSUM_ARM_ENABLES 1
#define CCHECKSUM_ARM_ASKS 1
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

// The polynomial 0x1EDC6F41 with its bits reversed.
#define POLYNOMIAL 0x82F63B78u

// The lengths of three parallel lanes. The instruction takes three cycles but can start in every cycle, so a single
// lane would use a third of the throughput.
// Powers of two, because the operator that moves a CRC across a lane is computed by repeated squaring.
#define LONG_SHIFT 12
#define LONG_LANE ((size_t)1 << LONG_SHIFT)
#define SHORT_SHIFT 8
#define SHORT_LANE ((size_t)1 << SHORT_SHIFT)

static uint32_t slices[8][256];
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

#if defined(CCHECKSUM_SSE42) || defined(CCHECKSUM_ARM)
static uint32_t long_move[4][256];
static uint32_t short_move[4][256];
static bool has_instruction;
#if defined(CCHECKSUM_SSE42)
static bool has_wide_multiplication;
#endif

static uint32_t apply(const uint32_t operator[32], uint32_t value) {
  uint32_t sum = 0;
  for (int bit = 0; value != 0; bit++, value >>= 1) {
    if (value & 1) sum ^= operator[bit];
  }
  return sum;
}

// Fills `move` with the effect of 2^`shift` zero bytes on each byte of a CRC. It is a linear map: the map of one zero
// byte, squared `shift` times.
static void make_move(uint32_t move[4][256], int shift) {
  uint32_t operator[32], square[32];
  for (int bit = 0; bit < 32; bit++) {
    uint32_t value = (uint32_t)1 << bit;
    operator[bit] = slices[0][value & 0xff] ^ (value >> 8);
  }
  for (int step = 0; step < shift; step++) {
    for (int bit = 0; bit < 32; bit++) square[bit] = apply(operator, operator[bit]);
    memcpy(operator, square, sizeof square);
  }
  for (int part = 0; part < 4; part++) {
    for (uint32_t byte = 0; byte < 256; byte++) move[part][byte] = apply(operator, byte << (8 * part));
  }
}

static inline uint32_t across(const uint32_t move[4][256], uint32_t crc) {
  return move[0][crc & 0xff] ^ move[1][(crc >> 8) & 0xff] ^ move[2][(crc >> 16) & 0xff] ^ move[3][crc >> 24];
}
#endif

#if defined(CCHECKSUM_SSE42)
// The multipliers that move 16 bytes ahead by a number of bytes: one for the first half, and one for the second.
static uint64_t fold_by_256[2], fold_by_64[2], fold_by_16[2];

// Returns x to the power of `exponent`, modulo the polynomial, with its bits reversed.
static uint64_t power(int exponent) {
  uint32_t value = 0x80000000u;
  while (exponent-- > 0) value = value & 1 ? (value >> 1) ^ POLYNOMIAL : value >> 1;
  return value;
}

// The product of two bit-reversed numbers is shifted by one bit, so the power is reduced by one.
static void make_fold(uint64_t fold[2], int bytes) {
  fold[0] = power(8 * bytes + 32 - 1);
  fold[1] = power(8 * bytes - 32 - 1);
}
#endif

static void prepare(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
    slices[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; byte++) {
    for (int slice = 1; slice < 8; slice++) {
      uint32_t before = slices[slice - 1][byte];
      slices[slice][byte] = slices[0][before & 0xff] ^ (before >> 8);
    }
  }
#if defined(CCHECKSUM_SSE42) || defined(CCHECKSUM_ARM)
  make_move(long_move, LONG_SHIFT);
  make_move(short_move, SHORT_SHIFT);
#endif
#if defined(CCHECKSUM_SSE42)
  __builtin_cpu_init();
  has_instruction = __builtin_cpu_supports("sse4.2");
  has_wide_multiplication = has_instruction && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
  make_fold(fold_by_256, 256);
  make_fold(fold_by_64, 64);
  make_fold(fold_by_16, 16);
#elif defined(CCHECKSUM_ARM_ASKS)
  has_instruction = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#elif defined(CCHECKSUM_ARM_ASKS_SYSCTL)
  int answer = 0;
  size_t size = sizeof answer;
  has_instruction = sysctlbyname("hw.optional.armv8_crc32", &answer, &size, NULL, 0) == 0 && answer != 0;
#elif defined(CCHECKSUM_ARM)
  has_instruction = true;
#endif
}

uint32_t cchecksum_crc32c_portable(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&prepared, prepare);
  const unsigned char *next = bytes;
  crc = ~crc;
  while (count >= 8) {
    // Byte by byte, so that the result does not depend on the byte order. Compilers merge this into one load.
    uint32_t low = crc ^ ((uint32_t)next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16 | (uint32_t)next[3] << 24);
    crc = slices[7][low & 0xff] ^ slices[6][(low >> 8) & 0xff] ^ slices[5][(low >> 16) & 0xff] ^ slices[4][low >> 24] ^
          slices[3][next[4]] ^ slices[2][next[5]] ^ slices[1][next[6]] ^ slices[0][next[7]];
    next += 8;
    count -= 8;
  }
  while (count-- > 0) crc = slices[0][(crc ^ *next++) & 0xff] ^ (crc >> 8);
  return ~crc;
}

#if defined(CCHECKSUM_SSE42) || defined(CCHECKSUM_ARM)

#if defined(CCHECKSUM_SSE42)
#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define STEP8(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define STEP1(crc, byte) _mm_crc32_u8((crc), (byte))
#else
#if defined(CCHECKSUM_ARM_ENABLES)
#define WITH_INSTRUCTION __attribute__((target("crc")))
#else
#define WITH_INSTRUCTION
#endif
#define STEP8(crc, word) __builtin_arm_crc32cd((crc), (word))
#define STEP1(crc, byte) __builtin_arm_crc32cb((crc), (byte))
#endif

static inline uint64_t word_at(const unsigned char *place) {
  uint64_t word;
  memcpy(&word, place, sizeof word);
  return word;
}

// Processes one round of three lanes of `lane` bytes each. The CRCs of the earlier lanes are moved across the later
// ones and combined.
#define THREE_LANES(lane, move)                                    \
  while (count >= 3 * (lane)) {                                    \
    uint32_t second = 0, third = 0;                                \
    const unsigned char *end = next + (lane);                      \
    do {                                                           \
      crc = STEP8(crc, word_at(next));                             \
      second = STEP8(second, word_at(next + (lane)));              \
      third = STEP8(third, word_at(next + 2 * (lane)));            \
      next += 8;                                                   \
    } while (next < end);                                          \
    crc = across(move, crc) ^ second;                              \
    crc = across(move, crc) ^ third;                               \
    next += 2 * (lane);                                            \
    count -= 3 * (lane);                                           \
  }

WITH_INSTRUCTION
static uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t count) {
  const unsigned char *next = bytes;
  crc = ~crc;
  THREE_LANES(LONG_LANE, long_move)
  THREE_LANES(SHORT_LANE, short_move)
  while (count >= 8) {
    crc = STEP8(crc, word_at(next));
    next += 8;
    count -= 8;
  }
  while (count-- > 0) crc = STEP1(crc, *next++);
  return ~crc;
}

#if defined(CCHECKSUM_SSE42)
#define WITH_WIDE_MULTIPLICATION __attribute__((target("sse4.2,pclmul,avx512f,avx512vl,vpclmulqdq")))

WITH_WIDE_MULTIPLICATION
static inline __m512i fold(__m512i sum, __m512i factors, __m512i next) {
  // 0x96: the exclusive or of all three operands.
  return _mm512_ternarylogic_epi64(
      _mm512_clmulepi64_epi128(sum, factors, 0x00), _mm512_clmulepi64_epi128(sum, factors, 0x11), next, 0x96);
}

WITH_WIDE_MULTIPLICATION
static inline __m128i fold_narrow(__m128i sum, __m128i factors, __m128i next) {
  return _mm_ternarylogic_epi64(
      _mm_clmulepi64_si128(sum, factors, 0x00), _mm_clmulepi64_si128(sum, factors, 0x11), next, 0x96);
}

WITH_WIDE_MULTIPLICATION
static inline __m512i factors(const uint64_t fold[2]) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold));
}

// Processes all complete blocks of 256 bytes, at least one. Each block is multiplied ahead and added to the next (Gopal
// and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"). The CRC instruction reduces
// the remainder. This is three times as fast as the instruction alone.
WITH_WIDE_MULTIPLICATION
static uint32_t crc32c_wide(uint32_t crc, const unsigned char *next, size_t count) {
  const __m512i by_256 = factors(fold_by_256), by_64 = factors(fold_by_64);
  const __m128i by_16 = _mm_loadu_si128((const __m128i *)fold_by_16);
  __m512i a = _mm512_xor_si512(_mm512_loadu_si512(next), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
  __m512i b = _mm512_loadu_si512(next + 64), c = _mm512_loadu_si512(next + 128), d = _mm512_loadu_si512(next + 192);
  while (count >= 512) {
    next += 256;
    count -= 256;
    a = fold(a, by_256, _mm512_loadu_si512(next));
    b = fold(b, by_256, _mm512_loadu_si512(next + 64));
    c = fold(c, by_256, _mm512_loadu_si512(next + 128));
    d = fold(d, by_256, _mm512_loadu_si512(next + 192));
  }
  a = fold(fold(fold(a, by_64, b), by_64, c), by_64, d);
  __m128i sum = fold_narrow(_mm512_extracti32x4_epi32(a, 0), by_16, _mm512_extracti32x4_epi32(a, 1));
  sum = fold_narrow(sum, by_16, _mm512_extracti32x4_epi32(a, 2));
  sum = fold_narrow(sum, by_16, _mm512_extracti32x4_epi32(a, 3));
  crc = STEP8(0, (uint64_t)_mm_extract_epi64(sum, 0));
  return ~STEP8(crc, (uint64_t)_mm_extract_epi64(sum, 1));
}
#endif

uint32_t cchecksum_crc32c_instruction(uint32_t crc, const void *bytes, size_t count) {
  pthread_once(&prepared, prepare);
  return has_instruction ? crc32c_instruction(crc, bytes, count) : cchecksum_crc32c_portable(crc, bytes, count);
}

uint32_t cchecksum_crc32c(uint32_t crc, const void *bytes, size_t count) {
#if defined(CCHECKSUM_SSE42)
  pthread_once(&prepared, prepare);
  if (has_wide_multiplication && count >= 256) {
    size_t wide = count & ~(size_t)255;
    crc = crc32c_wide(crc, bytes, wide);
    bytes = (const unsigned char *)bytes + wide;
    count -= wide;
  }
#endif
  return cchecksum_crc32c_instruction(crc, bytes, count);
}

bool cchecksum_uses_hardware(void) {
  pthread_once(&prepared, prepare);
  return has_instruction;
}

#else

uint32_t cchecksum_crc32c_instruction(uint32_t crc, const void *bytes, size_t count) {
  return cchecksum_crc32c_portable(crc, bytes, count);
}

uint32_t cchecksum_crc32c(uint32_t crc, const void *bytes, size_t count) {
  return cchecksum_crc32c_portable(crc, bytes, count);
}

bool cchecksum_uses_hardware(void) { return false; }

#endif

// The C library does not declare openat2.
#if defined(__linux__)
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#endif
#endif

#include <fcntl.h>

int cchecksum_no_access_time(void) {
#if defined(O_NOATIME)
  return O_NOATIME;
#else
  return 0;
#endif
}

#if defined(__linux__) && defined(SYS_openat2) && defined(RESOLVE_CACHED) && defined(RWF_NOWAIT)

int cchecksum_open_cached(int folder, const char *path) {
  struct open_how how;
  memset(&how, 0, sizeof how);
  how.flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (unsigned)cchecksum_no_access_time();
  how.resolve = RESOLVE_CACHED;
  int file = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
  if (file >= 0 || errno != EPERM || cchecksum_no_access_time() == 0) return file;
  how.flags &= ~(unsigned)cchecksum_no_access_time();
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

ptrdiff_t cchecksum_read_cached(int file, void *bytes, size_t count, int64_t offset) {
  struct iovec part = {.iov_base = bytes, .iov_len = count};
  return preadv2(file, &part, 1, (off_t)offset, RWF_NOWAIT);
}
#else
int cchecksum_open_cached(int folder, const char *path) {
  (void)folder;
  (void)path;
  errno = ENOSYS;
  return -1;
}

ptrdiff_t cchecksum_read_cached(int file, void *bytes, size_t count, int64_t offset) {
  (void)file;
  (void)bytes;
  (void)count;
  (void)offset;
  errno = ENOSYS;
  return -1;
}
#endif
