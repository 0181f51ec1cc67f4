#include "pypto_rt/kernel_abi.h"
#include "pto/pto-inst.hpp"
using namespace pto;

// --- ptoas-generated code ---
static AICORE void weigh_page(__gm__ float* v1, int64_t v2, __gm__ pto::bfloat16_t* v3, __gm__ float* v4, __gm__ float* v5) {
  PTO_AT(13, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v6(v1, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(14, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Min> v7(16, 64);
  pto::TASSIGN(v7, 4096);
  PTO_AT(15, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v8(16, 64);
  pto::TASSIGN(v8, 4096);
  PTO_AT(16, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v9(16, 64);
  pto::TASSIGN(v9, 0);
  PTO_AT(17, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v10(16, 1);
  pto::TASSIGN(v10, 8192);
  PTO_AT(18, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v11(16, 64);
  pto::TASSIGN(v11, 4096);
  PTO_AT(19, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v12(16, 64);
  pto::TASSIGN(v12, 4096);
  PTO_AT(20, "", 0, 0);
  pto::Tile<pto::TileType::Vec, pto::bfloat16_t, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v13(16, 64);
  pto::TASSIGN(v13, 8256);
  PTO_AT(21, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v14(16, 64);
  pto::TASSIGN(v14, 4096);
  PTO_AT(22, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v15(16, 1);
  pto::TASSIGN(v15, 10304);
  PTO_AT(23, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v16(v3, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(24, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 1>, pto::Stride<1, 1, 1, 1, 1>, pto::Layout::ND> v17(v4, pto::Shape<1, 1, 1, 16, 1>(1, 1, 1, 16, 1), pto::Stride<1, 1, 1, 1, 1>(1, 1, 1, 1, 1));
  PTO_AT(25, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 1>, pto::Stride<1, 1, 1, 1, 1>, pto::Layout::ND> v18(v5, pto::Shape<1, 1, 1, 16, 1>(1, 1, 1, 16, 1), pto::Stride<1, 1, 1, 1, 1>(1, 1, 1, 1, 1));
  PTO_AT(26, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v19(16, v2);
  pto::TASSIGN(v19, 0);
  PTO_AT(27, "examples.paged_attention:weigh_page", 9, 11);
  auto v20 = pto::partition_view(v6, {0, 0, 0, 0, 0}, {1, 1, 1, 16, v2});
  PTO_AT(28, "examples.paged_attention:weigh_page", 9, 11);
  pto::TLOAD(v19, v20);
  PTO_AT(29, "examples.paged_attention:weigh_page", 11, 13);
  pto::TFILLPAD(v7, v19);
  PTO_AT(30, "examples.paged_attention:weigh_page", 12, 13);
  pto::TMULS(v8, v7, 0x1p-3f);
  PTO_AT(31, "examples.paged_attention:weigh_page", 14, 11);
  pto::TROWMAX(v10, v8, v9);
  PTO_AT(32, "examples.paged_attention:weigh_page", 15, 19);
  pto::TROWEXPANDSUB(v11, v8, v10);
  PTO_AT(33, "examples.paged_attention:weigh_page", 15, 12);
  pto::TEXP(v12, v11);
  PTO_AT(34, "examples.paged_attention:weigh_page", 16, 14);
  pto::TCVT(v13, v12, pto::RoundMode::CAST_ROUND);
  PTO_AT(35, "examples.paged_attention:weigh_page", 17, 22);
  pto::TCVT(v14, v13, pto::RoundMode::CAST_ROUND);
  PTO_AT(36, "examples.paged_attention:weigh_page", 17, 11);
  pto::TROWSUM(v15, v14, v9);
  PTO_AT(37, "examples.paged_attention:weigh_page", 18, 14);
  auto v21 = pto::partition_view(v16, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
  PTO_AT(38, "examples.paged_attention:weigh_page", 18, 14);
  pto::TSTORE(v21, v13);
  PTO_AT(39, "examples.paged_attention:weigh_page", 19, 14);
  auto v22 = pto::partition_view(v17, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
  PTO_AT(40, "examples.paged_attention:weigh_page", 19, 14);
  pto::TSTORE(v22, v10);
  PTO_AT(41, "examples.paged_attention:weigh_page", 20, 12);
  auto v23 = pto::partition_view(v18, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
  PTO_AT(42, "examples.paged_attention:weigh_page", 20, 12);
  pto::TSTORE(v23, v15);
}

// --- Kernel entry point ---
extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* t0 = reinterpret_cast<ChipTensor*>(args[0]);
    auto* t1 = reinterpret_cast<ChipTensor*>(args[1]);
    auto* t2 = reinterpret_cast<ChipTensor*>(args[2]);
    auto* t3 = reinterpret_cast<ChipTensor*>(args[3]);
    weigh_page(tensor_data<float>(t0),
               from_u64<int64_t>(static_cast<uint64_t>(args[4])),
               tensor_data<bfloat16_t>(t1),
               tensor_data<float>(t2),
               tensor_data<float>(t3));
  });
}
