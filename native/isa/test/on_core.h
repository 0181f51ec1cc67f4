// Runs instructions on a simulated core, and compares what they leave with a reference.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "../../runtime/src/core_pool.h"
#include "pto/pto-inst.hpp"

namespace pto::test {

inline int failures = 0;

inline void fail(const char* file, int line, const std::string& what) {
  if (++failures <= 50) std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

inline int result() {
  if (failures != 0) std::fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) ::pto::test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)

// One core with this memory, for as long as the test program runs.
inline pypto_rt::Core& test_core() {
  static pypto_rt::ChipOptions options;
  static pypto_rt::Core core(options, pypto_rt::CoreType::AIV, 0);
  return core;
}

// Calls body() on the core's stack under guard_kernel. `tensors` confine global memory; none given:
// not confined. Returns the fault, whose code is None if there was none.
template <class Body>
pypto_rt::FaultRecord on_core(Body body, const std::vector<ChipTensor>* tensors = nullptr) {
  pypto_rt::Core& core = test_core();
  struct Call {
    Body* body;
    int64_t args[pypto_rt::kKernelArgSlots] = {};
  } call{&body};
  pypto_rt::LocalContext local{0, 1, &core.context, nullptr};
  call.args[pypto_rt::kLocalContextSlot] = reinterpret_cast<int64_t>(&local);
  std::vector<const ChipTensor*> list;
  if (tensors != nullptr) {
    for (const ChipTensor& tensor : *tensors) list.push_back(&tensor);
  }
  core.context.tensors = list.data();
  core.context.tensor_count = tensors == nullptr ? -1 : static_cast<int32_t>(list.size());
  core.context.poll = nullptr;
  core.fault = {};
  core.stack.run(
      [](void* argument) noexcept {
        auto* c = static_cast<Call*>(argument);
        pypto_rt::guard_kernel(c->args, [&] { (*c->body)(); });
      },
      &call);
  return core.fault;
}

#define CHECK_RUNS(...)                                                              \
  do {                                                                               \
    const auto fault_ = ::pto::test::on_core(__VA_ARGS__);                           \
    if (fault_.code != pypto_rt::FaultCode::None) {                                  \
      ::pto::test::fail(__FILE__, __LINE__,                                          \
                        std::string("fault: ") + fault_.op + ": " + fault_.message); \
    }                                                                                \
  } while (false)

#define CHECK_FAULTS(expected_code, expected_op, part, ...)                                \
  do {                                                                                     \
    const auto fault_ = ::pto::test::on_core(__VA_ARGS__);                                 \
    if (fault_.code != pypto_rt::FaultCode::expected_code ||                               \
        std::string(fault_.op) != expected_op ||                                           \
        std::string(fault_.message).find(part) == std::string::npos) {                     \
      ::pto::test::fail(__FILE__, __LINE__,                                                \
                        std::string("wrong fault: ") + fault_.op + ": " + fault_.message); \
    }                                                                                      \
  } while (false)

// A small generator whose sequence is part of the test.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }
  // Small magnitudes with a sign for floats; every value for integers.
  template <class T>
  T value() {
    if constexpr (sim::is_float<T>) {
      return static_cast<T>((static_cast<float>(next() % 20001) - 10000.0f) / 1000.0f);
    } else {
      return static_cast<T>(static_cast<uint64_t>(next()) << 32 | next());
    }
  }

 private:
  uint64_t state_;
};

template <class T>
double number(T value) {
  if constexpr (sim::is_float<T>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// A tile's elements as the test sees them: all of them, by (row, column).
template <class TileT>
class Image {
 public:
  using T = typename TileT::DType;
  explicit Image(uint64_t seed) : elements_(static_cast<size_t>(TileT::Rows * TileT::Cols)) {
    Random random(seed);
    for (T& element : elements_) element = random.value<T>();
  }
  T& at(int64_t r, int64_t c) { return elements_[static_cast<size_t>(r * TileT::Cols + c)]; }

  void put(const TileT& tile) {
    for (int64_t r = 0; r < TileT::Rows; ++r) {
      for (int64_t c = 0; c < TileT::Cols; ++c) *address(tile, r, c) = at(r, c);
    }
  }
  void get(const TileT& tile) {
    for (int64_t r = 0; r < TileT::Rows; ++r) {
      for (int64_t c = 0; c < TileT::Cols; ++c) at(r, c) = *address(tile, r, c);
    }
  }

 private:
  static T* address(const TileT& tile, int64_t r, int64_t c) {
    return tile.data() + r * TileT::RowStride + c * TileT::ColStride;
  }
  std::vector<T> elements_;
};

template <class T, int R, int C>
using Rows = Tile<TileType::Vec, T, R, C, BLayout::RowMajor, -1, -1>;
template <class T, int R, int C>
using Columns = Tile<TileType::Vec, T, R, C, BLayout::ColMajor, -1, -1>;

// Places that do not overlap for tiles of up to 32 KiB.
inline constexpr uint64_t kSlot = 32768;

// Calls f.operator()<T>() for every element type.
template <class F>
void for_types(F f) {
  f.template operator()<float>();
  f.template operator()<half>();
  f.template operator()<bfloat16_t>();
  f.template operator()<int32_t>();
  f.template operator()<int16_t>();
  f.template operator()<int8_t>();
  f.template operator()<uint8_t>();
  f.template operator()<int64_t>();
}

}  // namespace pto::test
