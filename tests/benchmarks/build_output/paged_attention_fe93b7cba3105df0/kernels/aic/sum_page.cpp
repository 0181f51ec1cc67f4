#include "pypto_rt/kernel_abi.h"
#include "pto/pto-inst.hpp"
using namespace pto;

// --- ptoas-generated code ---
static AICORE void sum_page(__gm__ pto::bfloat16_t* v1, __gm__ pto::bfloat16_t* v2, __gm__ float* v3) {
  PTO_AT(9, "", 0, 0);
  pto::Tile<pto::TileType::Mat, pto::bfloat16_t, 16, 64, pto::BLayout::ColMajor, -1, -1, pto::SLayout::RowMajor, 512, pto::PadValue::Null> v4(16, 64);
  pto::TASSIGN(v4, 0);
  PTO_AT(10, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v5(v1, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(11, "", 0, 0);
  pto::Tile<pto::TileType::Mat, pto::bfloat16_t, 64, 64, pto::BLayout::ColMajor, -1, -1, pto::SLayout::RowMajor, 512, pto::PadValue::Null> v6(64, 64);
  pto::TASSIGN(v6, 2048);
  PTO_AT(12, "", 0, 0);
  pto::GlobalTensor<pto::bfloat16_t, pto::Shape<1, 1, 1, 64, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v7(v2, pto::Shape<1, 1, 1, 64, 64>(1, 1, 1, 64, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(13, "", 0, 0);
  pto::Tile<pto::TileType::Left, pto::bfloat16_t, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::RowMajor, 512, pto::PadValue::Null> v8(16, 64);
  pto::TASSIGN(v8, 0);
  PTO_AT(14, "", 0, 0);
  pto::Tile<pto::TileType::Right, pto::bfloat16_t, 64, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::ColMajor, 512, pto::PadValue::Null> v9(64, 64);
  pto::TASSIGN(v9, 0);
  PTO_AT(15, "", 0, 0);
  pto::Tile<pto::TileType::Acc, float, 16, 64, pto::BLayout::ColMajor, -1, -1, pto::SLayout::RowMajor, 1024, pto::PadValue::Null> v10(16, 64);
  pto::TASSIGN(v10, 0);
  PTO_AT(16, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v11(v3, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(17, "examples.paged_attention:sum_page", 7, 11);
  auto v12 = pto::partition_view(v5, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
  PTO_AT(18, "examples.paged_attention:sum_page", 7, 11);
  pto::TLOAD(v4, v12);
  PTO_AT(19, "examples.paged_attention:sum_page", 8, 12);
  auto v13 = pto::partition_view(v7, {0, 0, 0, 0, 0}, {1, 1, 1, 64, 64});
  PTO_AT(20, "examples.paged_attention:sum_page", 8, 12);
  pto::TLOAD(v6, v13);
  PTO_AT(21, "examples.paged_attention:sum_page", 9, 20);
  pto::TMOV(v8, v4);
  PTO_AT(22, "examples.paged_attention:sum_page", 9, 20);
  pto::TMOV(v9, v6);
  PTO_AT(23, "examples.paged_attention:sum_page", 9, 20);
  pto::TMATMUL(v10, v8, v9);
  PTO_AT(24, "examples.paged_attention:sum_page", 9, 11);
  auto v14 = pto::partition_view(v11, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
  PTO_AT(25, "examples.paged_attention:sum_page", 9, 11);
  pto::TSTORE(v14, v10);
}

// --- Kernel entry point ---
extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* t0 = reinterpret_cast<ChipTensor*>(args[0]);
    auto* t1 = reinterpret_cast<ChipTensor*>(args[1]);
    auto* t2 = reinterpret_cast<ChipTensor*>(args[2]);
    sum_page(tensor_data<bfloat16_t>(t0),
             tensor_data<bfloat16_t>(t1),
             tensor_data<float>(t2));
  });
}
