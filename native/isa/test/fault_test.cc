// What must not happen does not: accesses outside memory, operands that do not fit, and the record
// each leaves behind.
#include "on_core.h"

using namespace pto;
using namespace pto::test;

namespace {

using Small = Rows<float, 16, 16>;

void on_chip_bounds() {
  constexpr int64_t kVec = 192 * 1024;
  CHECK_RUNS([] {
    Small tile(16, 16);
    TASSIGN(tile, static_cast<uint64_t>(kVec - Small::Bytes));
  });
  CHECK_FAULTS(OnChipBounds, "TASSIGN", "1024 bytes at offset 195588 does not fit the 196608", [] {
    Small tile(16, 16);
    TASSIGN(tile, static_cast<uint64_t>(kVec - Small::Bytes + 4));
  });
  CHECK_FAULTS(OnChipBounds, "TASSIGN", "does not fit", [] {
    Small tile(16, 16);
    TASSIGN(tile, static_cast<uint64_t>(-64));
  });
  CHECK_FAULTS(OnChipBounds, "TASSIGN", "not aligned", [] {
    Small tile(16, 16);
    TASSIGN(tile, 2);
  });
  CHECK_FAULTS(OnChipBounds, "TASSIGN", "of Acc", [] {
    Tile<TileType::Acc, float, 256, 256> tile;
    TASSIGN(tile, 0);
  });
  CHECK_FAULTS(OnChipBounds, "TADD", "no address", [] {
    Small a(16, 16);
    Small b(16, 16);
    TASSIGN(a, 0);
    TADD(a, a, b);
  });
  CHECK_FAULTS(OnChipBounds, "GetValue", "element [16, 0] of a tile of [16, 16]", [] {
    Small a(16, 16);
    TASSIGN(a, 0);
    a.GetValue(16, 0);
  });
  // An address inside the region, as data() gives, places a tile too.
  CHECK_RUNS([] {
    Small a(16, 16);
    Small b(16, 16);
    TASSIGN(a, 64);
    TASSIGN(b, reinterpret_cast<uint64_t>(a.data()));
    if (a.data() != b.data()) sim::fault_value("test", "elsewhere");
  });
}

void shapes_must_fit() {
  CHECK_FAULTS(Shape, "SetValidShape", "[17, 16] does not fit a tile of [16, 16]",
               [] { Small tile(17, 16); });
  CHECK_FAULTS(Shape, "SetValidShape", "[-1, 16]", [] {
    Small tile(1, 16);
    tile.SetValidShape(-1, 16);
  });
  CHECK_FAULTS(Shape, "TADD", "second source is [16, 15] where [16, 16]", [] {
    Small a(16, 16);
    Small b(16, 15);
    TASSIGN(a, 0);
    TASSIGN(b, kSlot);
    TADD(a, a, b);
  });
  CHECK_FAULTS(Shape, "TROWEXPANDSUB", "per-row source", [] {
    Small a(16, 16);
    Columns<float, 16, 1> b(15, 1);
    TASSIGN(a, 0);
    TASSIGN(b, kSlot);
    TROWEXPANDSUB(a, a, b);
  });
  CHECK_FAULTS(Shape, "TRESHAPE", "the source", [] {
    Small a(16, 16);
    Rows<float, 1, 256> b(1, 255);
    TASSIGN(a, 0);
    TASSIGN(b, kSlot);
    TRESHAPE(b, a);
  });
  CHECK_FAULTS(Shape, "TMATMUL", "right operand is [15, 16] where [16, 16]", [] {
    Tile<TileType::Left, float, 16, 16, BLayout::RowMajor, -1, -1, SLayout::RowMajor> a(16, 16);
    Tile<TileType::Right, float, 16, 16, BLayout::RowMajor, -1, -1, SLayout::ColMajor> b(15, 16);
    Tile<TileType::Acc, float, 16, 16, BLayout::ColMajor, -1, -1, SLayout::RowMajor> c(16, 16);
    TASSIGN(a, 0);
    TASSIGN(b, 0);
    TASSIGN(c, 0);
    // Matched by a's columns against b's rows.
    TMATMUL(c, a, b);
  });
}

void scalar_powers() {
  CHECK_FAULTS(Value, "ipowi", "negative exponent -1", [] { scalar::ipowi<int32_t>(2, -1); });
  CHECK_RUNS([] {
    const bool right = scalar::ipowi<int32_t>(-3, 5) == -243 && scalar::ipowi<int64_t>(0, 0) == 1 &&
                       scalar::ipowi<int8_t>(2, 7) == -128 &&  // wraps
                       scalar::ipowi<uint8_t>(255, 2) == 1 && scalar::ipowi<int32_t>(2, 40) == 0;
    if (!right) sim::fault_value("test", "another power");
  });
}

void global_bounds() {
  std::vector<float> data(64 * 32);
  const auto view = [&] {
    return GlobalTensor<float>(data.data(), Shape<>(1, 1, 1, 64, 32), Stride<>(0, 0, 0, 32, 1));
  };
  CHECK_RUNS([&] { partition_view(view(), {0, 0, 0, 48, 16}, {1, 1, 1, 16, 16}); });
  CHECK_FAULTS(GlobalBounds, "partition_view",
               "offset 49 and size 16 reach outside dimension -2 of extent 64",
               [&] { partition_view(view(), {0, 0, 0, 49, 16}, {1, 1, 1, 16, 16}); });
  CHECK_FAULTS(GlobalBounds, "partition_view", "offset -1 and size 16",
               [&] { partition_view(view(), {0, 0, 0, 0, -1}, {1, 1, 1, 16, 16}); });
  CHECK_FAULTS(GlobalBounds, "partition_view", "size -3",
               [&] { partition_view(view(), {0, 0, 0, 0, 0}, {1, 1, 1, 16, -3}); });
  CHECK_FAULTS(GlobalBounds, "GetValue", "index 64 is outside dimension -2 of extent 64",
               [&] { view().GetValue({0, 0, 0, 64, 0}); });
  CHECK_FAULTS(GlobalBounds, "SetValue", "index -1 is outside dimension -1 of extent 32",
               [&] { view().SetValue({0, 0, 0, 0, -1}, 1.0f); });
  CHECK_RUNS([&] {
    view().SetValue({0, 0, 0, 63, 31}, 2.5f);
    if (view().GetValue({0, 0, 0, 63, 31}) != 2.5f) sim::fault_value("test", "elsewhere");
  });
  CHECK(data.back() == 2.5f);
  CHECK_FAULTS(GlobalBounds, "partition_view", "reach outside",
               [&] { partition_view(view(), {0, 0, 0, INT64_MAX, 0}, {1, 1, 1, 16, 1}); });
  CHECK_FAULTS(Shape, "TLOAD", "the global window is [8, 16] where [16, 16]", [&] {
    Small tile(16, 16);
    TASSIGN(tile, 0);
    TLOAD(tile, partition_view(view(), {0, 0, 0, 0, 0}, {1, 1, 1, 8, 16}));
  });
}

void views_are_confined_to_the_task() {
  std::vector<float> data(64 * 32);
  ChipTensor tensor{};
  tensor.addr = reinterpret_cast<uint64_t>(data.data());
  tensor.size = data.size() * sizeof(float);
  const std::vector<ChipTensor> tensors{tensor};
  const auto view = [&](float* at, int64_t rows, int64_t stride) {
    return
        [=] { GlobalTensor<float>(at, Shape<>(1, 1, 1, rows, 32), Stride<>(0, 0, 0, stride, 1)); };
  };
  CHECK_RUNS(view(data.data(), 64, 32), &tensors);
  CHECK_RUNS(view(data.data() + 32, 63, 32), &tensors);
  CHECK_RUNS(view(nullptr, 0, 32), &tensors);
  CHECK_FAULTS(GlobalBounds, "make_tensor_view", "reaches outside", view(data.data(), 65, 32),
               &tensors);
  CHECK_FAULTS(GlobalBounds, "make_tensor_view", "reaches outside", view(data.data() + 33, 63, 32),
               &tensors);
  CHECK_FAULTS(GlobalBounds, "make_tensor_view", "reaches outside", view(data.data() - 1, 1, 32),
               &tensors);
  CHECK_FAULTS(GlobalBounds, "make_tensor_view", "extent -1", view(data.data(), -1, 32), &tensors);
  CHECK_FAULTS(GlobalBounds, "make_tensor_view", "stride -32", view(data.data(), 2, -32), &tensors);
  CHECK_FAULTS(GlobalBounds, "make_tensor_view", "extent 3000000000",
               view(data.data(), 3000000000, INT64_MAX / 4), &tensors);
}

void the_record_names_the_place() {
  const auto fault = on_core([] {
    PTO_AT(17, "kernels:softmax", 4, 9);
    Small tile(16, 16);
    TASSIGN(tile, 1u << 30);
  });
  CHECK(fault.code == pypto_rt::FaultCode::OnChipBounds);
  CHECK(fault.pto_line == 17);
  CHECK(fault.line == 4);
  CHECK(fault.column == 9);
  CHECK(std::string(fault.unit) == "kernels:softmax");
  // Nothing of it is left for the next kernel.
  const auto next = on_core([] { Small tile(17, 16); });
  CHECK(next.pto_line == 0);
  CHECK(std::string(next.unit).empty());
}

void cancelled_between_instructions() {
  int ran = 0;
  const auto fault = on_core([&] {
    for (int i = 0; i < 10; ++i) {
      PTO_AT(1, "", 0, 0);
      if (++ran == 3) __atomic_store_n(&test_core().context.cancelled, 1, __ATOMIC_RELAXED);
    }
  });
  __atomic_store_n(&test_core().context.cancelled, 0, __ATOMIC_RELAXED);
  CHECK(ran == 3);
  CHECK(fault.code == pypto_rt::FaultCode::Cancelled);
}

void other_abi_is_refused() {
  test_core().context.abi_version = 99;
  CHECK_FAULTS(Abi, "kernel_entry", "another runtime version", [] {});
  test_core().context.abi_version = pypto_rt::kAbiVersion;
}

void long_texts_are_cut() {
  const std::string unit(500, 'u');
  const pypto_rt::SourcePosition position{unit.c_str(), 1, 2, 3};
  const auto fault = on_core([&] {
    sim::enter(&position);
    sim::fault_value(unit.c_str(), unit.c_str());
  });
  CHECK(std::string(fault.unit).size() == sizeof fault.unit - 1);
  CHECK(std::string(fault.op).size() == sizeof fault.op - 1);
  CHECK(std::string(fault.message).size() == sizeof fault.message - 1);
}

}  // namespace

int main() {
  on_chip_bounds();
  shapes_must_fit();
  scalar_powers();
  global_bounds();
  views_are_confined_to_the_task();
  the_record_names_the_place();
  cancelled_between_instructions();
  other_abi_is_refused();
  long_texts_are_cut();
  return result();
}
