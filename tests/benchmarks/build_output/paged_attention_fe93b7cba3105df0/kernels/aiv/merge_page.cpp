#include "pypto_rt/kernel_abi.h"
#include "pto/pto-inst.hpp"
using namespace pto;

// --- ptoas-generated code ---
static AICORE void merge_page(__gm__ float* v1, __gm__ float* v2, __gm__ float* v3, __gm__ float* v4, __gm__ float* v5, __gm__ float* v6, __gm__ float* v7, bool v8, bool v9) {
  PTO_AT(14, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v10(16, 1);
  pto::TASSIGN(v10, 0);
  PTO_AT(15, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 1>, pto::Stride<1, 1, 1, 1, 1>, pto::Layout::ND> v11(v1, pto::Shape<1, 1, 1, 16, 1>(1, 1, 1, 16, 1), pto::Stride<1, 1, 1, 1, 1>(1, 1, 1, 1, 1));
  PTO_AT(16, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v12(16, 1);
  pto::TASSIGN(v12, 64);
  PTO_AT(17, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 1>, pto::Stride<1, 1, 1, 1, 1>, pto::Layout::ND> v13(v2, pto::Shape<1, 1, 1, 16, 1>(1, 1, 1, 16, 1), pto::Stride<1, 1, 1, 1, 1>(1, 1, 1, 1, 1));
  PTO_AT(18, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v14(16, 64);
  pto::TASSIGN(v14, 128);
  PTO_AT(19, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v15(v3, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(20, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 1>, pto::Stride<1, 1, 1, 1, 1>, pto::Layout::ND> v16(v4, pto::Shape<1, 1, 1, 16, 1>(1, 1, 1, 16, 1), pto::Stride<1, 1, 1, 1, 1>(1, 1, 1, 1, 1));
  PTO_AT(21, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 1>, pto::Stride<1, 1, 1, 1, 1>, pto::Layout::ND> v17(v5, pto::Shape<1, 1, 1, 16, 1>(1, 1, 1, 16, 1), pto::Stride<1, 1, 1, 1, 1>(1, 1, 1, 1, 1));
  PTO_AT(22, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v18(v6, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(23, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v19(16, 64);
  pto::TASSIGN(v19, 4224);
  PTO_AT(24, "", 0, 0);
  pto::GlobalTensor<float, pto::Shape<1, 1, 1, 16, 64>, pto::Stride<1, 1, 1, 64, 1>, pto::Layout::ND> v20(v7, pto::Shape<1, 1, 1, 16, 64>(1, 1, 1, 16, 64), pto::Stride<1, 1, 1, 64, 1>(1, 1, 1, 64, 1));
  PTO_AT(25, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v21(16, 1);
  pto::TASSIGN(v21, 4224);
  PTO_AT(26, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v22(16, 1);
  pto::TASSIGN(v22, 4288);
  PTO_AT(27, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v23(16, 1);
  pto::TASSIGN(v23, 4224);
  PTO_AT(28, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v24(16, 1);
  pto::TASSIGN(v24, 4224);
  PTO_AT(29, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v25(16, 1);
  pto::TASSIGN(v25, 0);
  PTO_AT(30, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v26(16, 1);
  pto::TASSIGN(v26, 0);
  PTO_AT(31, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v27(16, 1);
  pto::TASSIGN(v27, 4352);
  PTO_AT(32, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v28(16, 1);
  pto::TASSIGN(v28, 4352);
  PTO_AT(33, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v29(16, 1);
  pto::TASSIGN(v29, 64);
  PTO_AT(34, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 1, pto::BLayout::ColMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v30(16, 1);
  pto::TASSIGN(v30, 4352);
  PTO_AT(35, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v31(16, 64);
  pto::TASSIGN(v31, 4416);
  PTO_AT(36, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v32(16, 64);
  pto::TASSIGN(v32, 4416);
  PTO_AT(37, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v33(16, 64);
  pto::TASSIGN(v33, 128);
  PTO_AT(38, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v34(16, 64);
  pto::TASSIGN(v34, 4416);
  PTO_AT(39, "", 0, 0);
  pto::Tile<pto::TileType::Vec, float, 16, 64, pto::BLayout::RowMajor, -1, -1, pto::SLayout::NoneBox, 512, pto::PadValue::Null> v35(16, 64);
  pto::TASSIGN(v35, 4416);
  PTO_AT(40, "examples.paged_attention:merge_page", 13, 11);
  auto v36 = pto::partition_view(v11, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
  PTO_AT(41, "examples.paged_attention:merge_page", 13, 11);
  pto::TLOAD(v10, v36);
  PTO_AT(42, "examples.paged_attention:merge_page", 14, 13);
  auto v37 = pto::partition_view(v13, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
  PTO_AT(43, "examples.paged_attention:merge_page", 14, 13);
  pto::TLOAD(v12, v37);
  PTO_AT(44, "examples.paged_attention:merge_page", 15, 13);
  auto v38 = pto::partition_view(v15, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
  PTO_AT(45, "examples.paged_attention:merge_page", 15, 13);
  pto::TLOAD(v14, v38);
  if (v8) {
    PTO_AT(47, "examples.paged_attention:merge_page", 17, 18);
    auto v39 = pto::partition_view(v16, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
    PTO_AT(48, "examples.paged_attention:merge_page", 17, 18);
    pto::TSTORE(v39, v10);
    PTO_AT(49, "examples.paged_attention:merge_page", 18, 16);
    auto v40 = pto::partition_view(v17, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
    PTO_AT(50, "examples.paged_attention:merge_page", 18, 16);
    pto::TSTORE(v40, v12);
    PTO_AT(51, "examples.paged_attention:merge_page", 19, 15);
    auto v41 = pto::partition_view(v18, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
    PTO_AT(52, "examples.paged_attention:merge_page", 19, 15);
    pto::TSTORE(v41, v14);
    if (v9) {
      PTO_AT(54, "examples.paged_attention:merge_page", 21, 27);
      pto::TROWEXPANDDIV(v19, v14, v12);
      PTO_AT(55, "examples.paged_attention:merge_page", 21, 18);
      auto v42 = pto::partition_view(v20, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
      PTO_AT(56, "examples.paged_attention:merge_page", 21, 18);
      pto::TSTORE(v42, v19);
    }
  } else {
    PTO_AT(59, "examples.paged_attention:merge_page", 23, 17);
    auto v43 = pto::partition_view(v16, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
    PTO_AT(60, "examples.paged_attention:merge_page", 23, 17);
    pto::TLOAD(v21, v43);
    PTO_AT(61, "examples.paged_attention:merge_page", 24, 14);
    pto::TMAX(v22, v21, v10);
    PTO_AT(62, "examples.paged_attention:merge_page", 25, 26);
    pto::TSUB(v23, v21, v22);
    PTO_AT(63, "examples.paged_attention:merge_page", 25, 19);
    pto::TEXP(v24, v23);
    PTO_AT(64, "examples.paged_attention:merge_page", 25, 55);
    pto::TSUB(v25, v10, v22);
    PTO_AT(65, "examples.paged_attention:merge_page", 25, 48);
    pto::TEXP(v26, v25);
    PTO_AT(66, "examples.paged_attention:merge_page", 26, 32);
    auto v44 = pto::partition_view(v17, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
    PTO_AT(67, "examples.paged_attention:merge_page", 26, 32);
    pto::TLOAD(v27, v44);
    PTO_AT(68, "examples.paged_attention:merge_page", 26, 25);
    pto::TMUL(v28, v27, v24);
    PTO_AT(69, "examples.paged_attention:merge_page", 26, 74);
    pto::TMUL(v29, v12, v26);
    PTO_AT(70, "examples.paged_attention:merge_page", 26, 18);
    pto::TADD(v30, v28, v29);
    PTO_AT(71, "examples.paged_attention:merge_page", 28, 30);
    auto v45 = pto::partition_view(v18, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
    PTO_AT(72, "examples.paged_attention:merge_page", 28, 30);
    pto::TLOAD(v31, v45);
    PTO_AT(73, "examples.paged_attention:merge_page", 28, 12);
    pto::TROWEXPANDMUL(v32, v31, v24);
    PTO_AT(74, "examples.paged_attention:merge_page", 29, 12);
    pto::TROWEXPANDMUL(v33, v14, v26);
    PTO_AT(75, "examples.paged_attention:merge_page", 27, 17);
    pto::TADD(v34, v32, v33);
    PTO_AT(76, "examples.paged_attention:merge_page", 31, 18);
    auto v46 = pto::partition_view(v16, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
    PTO_AT(77, "examples.paged_attention:merge_page", 31, 18);
    pto::TSTORE(v46, v22);
    PTO_AT(78, "examples.paged_attention:merge_page", 32, 16);
    auto v47 = pto::partition_view(v17, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 1});
    PTO_AT(79, "examples.paged_attention:merge_page", 32, 16);
    pto::TSTORE(v47, v30);
    PTO_AT(80, "examples.paged_attention:merge_page", 33, 15);
    auto v48 = pto::partition_view(v18, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
    PTO_AT(81, "examples.paged_attention:merge_page", 33, 15);
    pto::TSTORE(v48, v34);
    if (v9) {
      PTO_AT(83, "examples.paged_attention:merge_page", 35, 27);
      pto::TROWEXPANDDIV(v35, v34, v30);
      PTO_AT(84, "examples.paged_attention:merge_page", 35, 18);
      auto v49 = pto::partition_view(v20, {0, 0, 0, 0, 0}, {1, 1, 1, 16, 64});
      PTO_AT(85, "examples.paged_attention:merge_page", 35, 18);
      pto::TSTORE(v49, v35);
    }
  }
}

// --- Kernel entry point ---
extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args) {
  pypto_rt::guard_kernel(args, [&] {
    auto* t0 = reinterpret_cast<ChipTensor*>(args[0]);
    auto* t1 = reinterpret_cast<ChipTensor*>(args[1]);
    auto* t2 = reinterpret_cast<ChipTensor*>(args[2]);
    auto* t3 = reinterpret_cast<ChipTensor*>(args[3]);
    auto* t4 = reinterpret_cast<ChipTensor*>(args[4]);
    auto* t5 = reinterpret_cast<ChipTensor*>(args[5]);
    auto* t6 = reinterpret_cast<ChipTensor*>(args[6]);
    merge_page(tensor_data<float>(t0),
               tensor_data<float>(t1),
               tensor_data<float>(t2),
               tensor_data<float>(t3),
               tensor_data<float>(t4),
               tensor_data<float>(t5),
               tensor_data<float>(t6),
               from_u64<bool>(static_cast<uint64_t>(args[7])),
               from_u64<bool>(static_cast<uint64_t>(args[8])));
  });
}
