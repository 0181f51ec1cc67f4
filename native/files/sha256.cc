#include "sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace pypto_native {
namespace {

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const unsigned char* from) noexcept {
  return static_cast<uint32_t>(from[0]) << 24 | static_cast<uint32_t>(from[1]) << 16 |
         static_cast<uint32_t>(from[2]) << 8 | from[3];
}

void compress_portable(uint32_t* state, const unsigned char* data, size_t blocks) noexcept {
  for (; blocks > 0; --blocks, data += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) w[i] = load_big_endian(data + 4 * i);
    for (int i = 16; i < 64; ++i) {
      const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    std::copy_n(state, 8, v);
    for (int i = 0; i < 64; ++i) {
      const uint32_t s1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
      const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
      const uint32_t t1 = v[7] + s1 + choice + kRound[i] + w[i];
      const uint32_t s0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
      const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
      std::copy_backward(v, v + 7, v + 8);
      v[4] += t1;
      v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; ++i) state[i] += v[i];
  }
}

#if defined(__x86_64__)

// The SHA instructions keep the state as (a, b, e, f) and (c, d, g, h). Each round waits for the
// one before it, and a core has room for two such chains: two messages at once take little longer
// than one. kLanes is how many there are.
template <int kLanes>
__attribute__((target("sha,sse4.1"), always_inline)) inline void compress_lanes(
    uint32_t* const* state, const unsigned char* const* from, size_t blocks) noexcept {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i abef[kLanes];
  __m128i cdgh[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    auto* const words = reinterpret_cast<__m128i*>(state[lane]);
    const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
    abef[lane] = _mm_alignr_epi8(cdab, efgh, 8);
    cdgh[lane] = _mm_blend_epi16(efgh, cdab, 0xf0);
  }
  for (size_t block = 0; block < blocks; ++block) {
    __m128i abef_before[kLanes];
    __m128i cdgh_before[kLanes];
    __m128i w[kLanes][4];
    for (int lane = 0; lane < kLanes; ++lane) {
      abef_before[lane] = abef[lane];
      cdgh_before[lane] = cdgh[lane];
      const auto* const words = reinterpret_cast<const __m128i*>(from[lane] + 64 * block);
      for (int i = 0; i < 4; ++i) {
        w[lane][i] = _mm_shuffle_epi8(_mm_loadu_si128(words + i), big_endian);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const __m128i k = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRound + 4 * i));
#pragma GCC unroll 2
      for (int lane = 0; lane < kLanes; ++lane) {
        __m128i* const v = w[lane];
        const __m128i sum = _mm_add_epi32(v[i % 4], k);
        cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sum);
        abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], _mm_shuffle_epi32(sum, 0x0e));
        if (i < 12) {
          __m128i next = _mm_sha256msg1_epu32(v[i % 4], v[(i + 1) % 4]);
          next = _mm_add_epi32(next, _mm_alignr_epi8(v[(i + 3) % 4], v[(i + 2) % 4], 4));
          v[i % 4] = _mm_sha256msg2_epu32(next, v[(i + 3) % 4]);
        }
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      abef[lane] = _mm_add_epi32(abef[lane], abef_before[lane]);
      cdgh[lane] = _mm_add_epi32(cdgh[lane], cdgh_before[lane]);
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const __m128i feba = _mm_shuffle_epi32(abef[lane], 0x1b);
    const __m128i dchg = _mm_shuffle_epi32(cdgh[lane], 0xb1);
    auto* const words = reinterpret_cast<__m128i*>(state[lane]);
    _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
  }
}

__attribute__((target("sha,sse4.1"))) void compress_sha_ni(uint32_t* state,
                                                           const unsigned char* data,
                                                           size_t blocks) noexcept {
  compress_lanes<1>(&state, &data, blocks);
}

__attribute__((target("sha,sse4.1"))) void compress_two_sha_ni(uint32_t* const* state,
                                                               const unsigned char* const* data,
                                                               size_t blocks) noexcept {
  compress_lanes<2>(state, data, blocks);
}

bool has_sha_instructions() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (ebx & (1u << 29)) == 0) return false;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 19)) != 0;
}

#endif

void compress_two_portable(uint32_t* const* state, const unsigned char* const* data,
                           size_t blocks) noexcept {
  for (int lane = 0; lane < 2; ++lane) compress_portable(state[lane], data[lane], blocks);
}

using Compress = void (*)(uint32_t*, const unsigned char*, size_t) noexcept;
using CompressTwo = void (*)(uint32_t* const*, const unsigned char* const*, size_t) noexcept;

#if defined(__x86_64__)
const bool kFast = has_sha_instructions();
const Compress kCompress = kFast ? compress_sha_ni : compress_portable;
const CompressTwo kCompressTwo = kFast ? compress_two_sha_ni : compress_two_portable;
#else
const Compress kCompress = compress_portable;
const CompressTwo kCompressTwo = compress_two_portable;
#endif

constexpr uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

Sha256 digest_of(const uint32_t* state) noexcept {
  Sha256 digest;
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < 4; ++k) {
      digest[4 * i + k] = static_cast<unsigned char>(state[i] >> (24 - 8 * k));
    }
  }
  return digest;
}

// One message on its way: its whole blocks where they are, then its padded end.
struct Lane {
  uint32_t state[8];
  const unsigned char* at;
  size_t blocks;
  unsigned char tail[128];
  size_t tail_blocks;
  Sha256* digest;

  void begin(const Message& message, Sha256* result) noexcept {
    std::copy_n(kInitial, 8, state);
    at = message.data;
    blocks = message.bytes / 64;
    const size_t rest = message.bytes % 64;
    std::memset(tail, 0, sizeof tail);
    if (rest > 0) std::memcpy(tail, message.data + message.bytes - rest, rest);
    tail[rest] = 0x80;
    tail_blocks = rest < 56 ? 1 : 2;
    const uint64_t bits = static_cast<uint64_t>(message.bytes) * 8;
    for (int i = 0; i < 8; ++i) {
      tail[64 * tail_blocks - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
    }
    digest = result;
    if (blocks == 0) enter_tail();
  }

  void enter_tail() noexcept {
    at = tail;
    blocks = tail_blocks;
    tail_blocks = 0;
  }

  // Moves on by `done` blocks; whether the message is complete.
  bool advance(size_t done) noexcept {
    at += 64 * done;
    blocks -= done;
    if (blocks > 0) return false;
    if (tail_blocks > 0) {
      enter_tail();
      return false;
    }
    *digest = digest_of(state);
    return true;
  }
};

}  // namespace

void Sha256Hasher::update(const unsigned char* data, size_t bytes) noexcept {
  if (bytes == 0) return;
  total_bytes_ += bytes;
  if (pending_bytes_ > 0) {
    const size_t taken = std::min(bytes, sizeof pending_ - pending_bytes_);
    std::memcpy(pending_ + pending_bytes_, data, taken);
    pending_bytes_ += taken;
    data += taken;
    bytes -= taken;
    if (pending_bytes_ < sizeof pending_) return;
    kCompress(state_, pending_, 1);
    pending_bytes_ = 0;
  }
  kCompress(state_, data, bytes / 64);
  pending_bytes_ = bytes % 64;
  std::memcpy(pending_, data + bytes - pending_bytes_, pending_bytes_);
}

Sha256 Sha256Hasher::finish() noexcept {
  const uint64_t bits = total_bytes_ * 8;
  unsigned char tail[72] = {0x80};
  const size_t padding = (pending_bytes_ < 56 ? 56 : 120) - pending_bytes_;
  for (int i = 0; i < 8; ++i) tail[padding + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(tail, padding + 8);
  return digest_of(state_);
}

void sha256_messages(const Message* messages, size_t count, Sha256* digests) noexcept {
  Lane lanes[2];
  Lane* busy[2] = {};
  size_t next = 0;
  const auto begin_next = [&](Lane& lane) -> Lane* {
    if (next == count) return nullptr;
    lane.begin(messages[next], &digests[next]);
    ++next;
    return &lane;
  };
  for (int i = 0; i < 2; ++i) busy[i] = begin_next(lanes[i]);
  while (busy[0] != nullptr && busy[1] != nullptr) {
    uint32_t* const states[2] = {busy[0]->state, busy[1]->state};
    const unsigned char* const from[2] = {busy[0]->at, busy[1]->at};
    const size_t together = std::min(busy[0]->blocks, busy[1]->blocks);
    kCompressTwo(states, from, together);
    for (Lane*& lane : busy) {
      if (lane->advance(together)) lane = begin_next(*lane);
    }
  }
  for (Lane* const lane : busy) {
    if (lane == nullptr) continue;
    for (size_t blocks = lane->blocks;; blocks = lane->blocks) {
      kCompress(lane->state, lane->at, blocks);
      if (lane->advance(blocks)) break;
    }
  }
}

}  // namespace pypto_native
