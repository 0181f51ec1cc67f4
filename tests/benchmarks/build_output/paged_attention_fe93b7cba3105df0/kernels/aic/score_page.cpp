#include "pypto_rt/kernel_abi.h"
#include "pto/pto-inst.hpp"
using namespace pto;

// --- ptoas-generated code ---
static AICORE void score_page(__gm__ pto::bfloat16_t* v1, __gm__ pto::bfloat16_t* v2, __gm__ float* v3, __gm__ pto::bfloat16_t* v4) {
  PTO_AT(11, "", 0, 0);
  pto::Tile<pto::TileType::Vec, pto::bfloat16_t, 64, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v5(64, 64);
  pto::TASSIGN(v5, 0);
  PTO_AT(12, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v6(v2, pto::Shape<1, 1, 1, 64, 64>(1, 1, 1, 64, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(13, "", 0, 0);
  pto::Tile<pto::TileType::Vec, pto::bfloat16_t, 64, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v7(64, 64);
  pto::TASSIGN(v7, 8192);
  PTO_AT(14, "", 0, 0);
  pto::Tile<pto::TileType::Vec, pto::bfloat16_t, 64, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v8(64, 64);
  pto::TASSIGN(v8, 16384);
  PTO_AT(15, "", 0, 0);
  pto::Tile<pto::TileType::Mat, pto::bfloat16_t, 16, 64, pto::BLayout::ColMajor, -1, -1, pto::SLayout::RowMajor, 512, pto::PadValue::Null> v9(16, 64);
  pto::TASSIGN(v9, 0);
  PTO_AT(16, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v10(v1, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(17, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v11(v4, pto::Shape<1, 1, 1, 64, 64>(1, 1, 1, 64, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(18, "", 0, 0);
  pto::Tile<pto::TileType::Mat, pto::bfloat16_t, 64, 64, pto::BLayout::ColMajor, -1, -1, pto::SLayout::RowMajor, 512, pto::PadValue::Null> v12(64, 64);
  pto::TASSIGN(v12, 2048);
  PTO_AT(19, "", 0, 0);
  pto::Tile<pto::TileType::Left, pto::bfloat16_t, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::RowMajor, 512, pto::PadValue::Null> v13(16, 64);
  pto::TASSIGN(v13, 0);
  PTO_AT(20, "", 0, 0);
  pto::Tile<pto::TileType::Right, pto::bfloat16_t, 64, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::ColMajor, 512, pto::PadValue::Null> v14(64, 64);
  pto::TASSIGN(v14, 0);
  PTO_AT(21, "", 0, 0);
  pto::Tile<pto::TileType::Acc, float, 16, 64, pto::BLayout::ColMajor, -1, -1, pto::SLayout::RowMajor, 1024, pto::PadValue::Null> v15(16, 64);
  pto::TASSIGN(v15, 0);
  PTO_AT(22, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v16(v3, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(23, "examples.paged_attention:score_page", 7, 16);
  auto v17 = pto::partition_view(v6, {0, 0, 0, 0, 0}, {1, 1, 1, 64, 64});
  PTO_AT(24, "examples.paged_attention:score_page", 7, 16);
  pto::TLOAD(v5, v17);
  PTO_AT(25, "examples.paged_attention:score_page", 7, 16);
  pto::TTRANS(v8, v5, v7);
  PTO_AT(26, "examples.paged_attention:score_page", 7, 16);
  auto v18 = pto::partition_view(v10, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
  PTO_AT(27, "examples.paged_attention:score_page", 7, 16);
  pto::TLOAD(v9, v18);
  PTO_AT(28, "examples.paged_attention:score_page", 7, 16);
  auto v19 = pto::partition_view(v11, {0, 0, 0, 0, 0}, {1, 1, 1, 64, 64});
  PTO_AT(29, "examples.paged_attention:score_page", 7, 16);
  pto::TSTORE(v19, v8);
  PTO_AT(30, "examples.paged_attention:score_page", 7, 16);
  auto v20 = pto::partition_view(v11, {0, 0, 0, 0, 0}, {1, 1, 1, 64, 64});
  PTO_AT(31, "examples.paged_attention:score_page", 7, 16);
  pto::TLOAD(v12, v20);
  PTO_AT(32, "examples.paged_attention:score_page", 7, 16);
  pto::TMOV(v13, v9);
  PTO_AT(33, "examples.paged_attention:score_page", 7, 16);
  pto::TMOV(v14, v12);
  PTO_AT(34, "examples.paged_attention:score_page", 7, 16);
  pto::TMATMUL(v15, v13, v14);
  PTO_AT(35, "examples.paged_attention:score_page", 7, 4);
  auto v21 = pto::partition_view(v16, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
  PTO_AT(36, "examples.paged_attention:score_page", 7, 4);
  pto::TSTORE(v21, v15);
}

// --- Kernel entry point ---
extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* t0 = reinterpret_cast<ChipTensor*>(args[0]);
    auto* t1 = reinterpret_cast<ChipTensor*>(args[1]);
    auto* t2 = reinterpret_cast<ChipTensor*>(args[2]);
    auto* t3 = reinterpret_cast<ChipTensor*>(args[3]);
    score_page(tensor_data<bfloat16_t>(t0),
               tensor_data<bfloat16_t>(t1),
               tensor_data<float>(t2),
               tensor_data<bfloat16_t>(t3));
  });
}
