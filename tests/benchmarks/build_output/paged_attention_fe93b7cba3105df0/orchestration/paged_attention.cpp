#include "pypto_rt/pto_orchestration_api.h"

namespace {

// Rounds towards minus infinity, as Python does.
template <class T>
T floor_div(T a, T b) {
  if (b == 0) {
    rt_report_fatal("integer division by zero");
    return 0;
  }
  if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Arithmetic modulo 2^64, then the type's own width: signed overflow has a meaning here.
template <class T>
T wrapped(uint64_t value) {
  return static_cast<T>(value);
}

}  // namespace

extern "C" PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs&) {
  return PTO2OrchestrationConfig{.expected_arg_count = 6};
}

extern "C" void aicpu_orchestration_entry(const ChipTaskArgs& orch_args) {
  const ChipTensor& ext_query = orch_args.tensor(0).ref();
  const ChipTensor& ext_keys = orch_args.tensor(1).ref();
  const ChipTensor& ext_values = orch_args.tensor(2).ref();
  const ChipTensor& ext_block_table = orch_args.tensor(3).ref();
  const ChipTensor& ext_lengths = orch_args.tensor(4).ref();
  const ChipTensor& ext_out = orch_args.tensor(5).ref();
  PTO2_SCOPE() {
    const int64_t s_dim = static_cast<int64_t>(ext_lengths.shapes[0]);
    const int64_t s_dim_0 = static_cast<int64_t>(ext_block_table.shapes[0]);
    PTO2_AT("examples.paged_attention:paged_attention", 11, 12);
    const int64_t s_width = floor_div<int64_t>(s_dim_0, s_dim);
    for (int64_t s_b = int64_t{0}; s_b < s_dim && !rt_is_fatal(); s_b += int64_t{1}) {
      PTO2_SCOPE() {
        PTO2_AT("examples.paged_attention:paged_attention", 13, 17);
        const int32_t s_length = get_tensor_data<int32_t>(ext_lengths, {s_b});
        const int32_t s_add = wrapped<int32_t>(static_cast<uint64_t>(s_length) + static_cast<uint64_t>(int32_t{64}));
        const int32_t s_sub = wrapped<int32_t>(static_cast<uint64_t>(s_add) - static_cast<uint64_t>(int32_t{1}));
        PTO2_AT("examples.paged_attention:paged_attention", 14, 16);
        const int32_t s_pages = floor_div<int32_t>(s_sub, int32_t{64});
        const int64_t s_mul = wrapped<int64_t>(static_cast<uint64_t>(s_b) * static_cast<uint64_t>(int64_t{16}));
        PTO2_AT("examples.paged_attention:paged_attention", 15, 18);
        const int64_t t_queries_shape[] = {16, 64};
        const int64_t t_queries_offset[] = {s_mul, int64_t{0}};
        const ChipTensor t_queries = ext_query.view(t_queries_shape, t_queries_offset);
        const int64_t s_mul_0 = wrapped<int64_t>(static_cast<uint64_t>(s_b) * static_cast<uint64_t>(int64_t{16}));
        PTO2_AT("examples.paged_attention:paged_attention", 16, 18);
        const int64_t t_results_shape[] = {16, 64};
        const int64_t t_results_offset[] = {s_mul_0, int64_t{0}};
        const ChipTensor t_results = ext_out.view(t_results_shape, t_results_offset);
        PTO2_AT("examples.paged_attention:paged_attention", 17, 18);
        const uint32_t t_largest_shape[] = {16, 1};
        const auto t_largest_memory = alloc_tensors(TensorCreateInfo(t_largest_shape, 2, DType::FP32));
        const ChipTensor& t_largest = t_largest_memory.get_ref(0);
        PTO2_AT("examples.paged_attention:paged_attention", 18, 16);
        const uint32_t t_total_shape[] = {16, 1};
        const auto t_total_memory = alloc_tensors(TensorCreateInfo(t_total_shape, 2, DType::FP32));
        const ChipTensor& t_total = t_total_memory.get_ref(0);
        PTO2_AT("examples.paged_attention:paged_attention", 19, 15);
        const uint32_t t_sums_shape[] = {16, 64};
        const auto t_sums_memory = alloc_tensors(TensorCreateInfo(t_sums_shape, 2, DType::FP32));
        const ChipTensor& t_sums = t_sums_memory.get_ref(0);
        const int64_t s_pages_0 = static_cast<int64_t>(s_pages);
        for (int64_t s_p = int64_t{0}; s_p < s_pages_0 && !rt_is_fatal(); s_p += int64_t{1}) {
          PTO2_SCOPE() {
            const int64_t s_mul_1 = wrapped<int64_t>(static_cast<uint64_t>(s_b) * static_cast<uint64_t>(s_width));
            const int64_t s_add_0 = wrapped<int64_t>(static_cast<uint64_t>(s_mul_1) + static_cast<uint64_t>(s_p));
            PTO2_AT("examples.paged_attention:paged_attention", 21, 19);
            const int32_t s_page = get_tensor_data<int32_t>(ext_block_table, {s_add_0});
            const int64_t s_mul_2 = wrapped<int64_t>(static_cast<uint64_t>(s_p) * static_cast<uint64_t>(int64_t{64}));
            const int64_t s_length_0 = static_cast<int64_t>(s_length);
            const int64_t s_sub_0 = wrapped<int64_t>(static_cast<uint64_t>(s_length_0) - static_cast<uint64_t>(s_mul_2));
            const int64_t s_count = s_sub_0 < int64_t{64} ? s_sub_0 : int64_t{64};
            PTO2_AT("examples.paged_attention:paged_attention", 23, 21);
            const uint32_t t_scores_shape[] = {16, 64};
            const auto t_scores_memory = alloc_tensors(TensorCreateInfo(t_scores_shape, 2, DType::FP32));
            const ChipTensor& t_scores = t_scores_memory.get_ref(0);
            const int32_t s_mul_3 = wrapped<int32_t>(static_cast<uint64_t>(s_page) * static_cast<uint64_t>(int32_t{64}));
            const int64_t s_mul_4 = static_cast<int64_t>(s_mul_3);
            PTO2_AT("examples.paged_attention:paged_attention", 24, 41);
            const int64_t t_view_shape[] = {64, 64};
            const int64_t t_view_offset[] = {s_mul_4, int64_t{0}};
            const ChipTensor t_view = ext_keys.view(t_view_shape, t_view_offset);
            PTO2_AT("examples.paged_attention:paged_attention", 24, 21);
            const uint32_t t_transpose_shape[] = {64, 64};
            const auto t_transpose_memory = alloc_tensors(TensorCreateInfo(t_transpose_shape, 2, DType::BF16));
            const ChipTensor& t_transpose = t_transpose_memory.get_ref(0);
            PTO2_AT("examples.paged_attention:paged_attention", 24, 21);
            CoreTaskArgs params_t0;
            params_t0.add_input(t_queries);
            params_t0.add_input(t_view);
            params_t0.add_output(t_scores);
            params_t0.add_inout(t_transpose);
            rt_submit_aic_task(0, params_t0);
            PTO2_AT("examples.paged_attention:paged_attention", 25, 22);
            const uint32_t t_weights_shape[] = {16, 64};
            const auto t_weights_memory = alloc_tensors(TensorCreateInfo(t_weights_shape, 2, DType::BF16));
            const ChipTensor& t_weights = t_weights_memory.get_ref(0);
            PTO2_AT("examples.paged_attention:paged_attention", 26, 27);
            const uint32_t t_page_largest_shape[] = {16, 1};
            const auto t_page_largest_memory = alloc_tensors(TensorCreateInfo(t_page_largest_shape, 2, DType::FP32));
            const ChipTensor& t_page_largest = t_page_largest_memory.get_ref(0);
            PTO2_AT("examples.paged_attention:paged_attention", 27, 25);
            const uint32_t t_page_total_shape[] = {16, 1};
            const auto t_page_total_memory = alloc_tensors(TensorCreateInfo(t_page_total_shape, 2, DType::FP32));
            const ChipTensor& t_page_total = t_page_total_memory.get_ref(0);
            PTO2_AT("examples.paged_attention:paged_attention", 28, 48);
            CoreTaskArgs params_t1;
            params_t1.add_input(t_scores);
            params_t1.add_output(t_weights);
            params_t1.add_output(t_page_largest);
            params_t1.add_output(t_page_total);
            params_t1.add_scalar(s_count);
            rt_submit_aiv_task(1, params_t1);
            PTO2_AT("examples.paged_attention:paged_attention", 31, 23);
            const uint32_t t_page_sum_shape[] = {16, 64};
            const auto t_page_sum_memory = alloc_tensors(TensorCreateInfo(t_page_sum_shape, 2, DType::FP32));
            const ChipTensor& t_page_sum = t_page_sum_memory.get_ref(0);
            const int32_t s_mul_5 = wrapped<int32_t>(static_cast<uint64_t>(s_page) * static_cast<uint64_t>(int32_t{64}));
            const int64_t s_mul_6 = static_cast<int64_t>(s_mul_5);
            PTO2_AT("examples.paged_attention:paged_attention", 32, 41);
            const int64_t t_view_0_shape[] = {64, 64};
            const int64_t t_view_0_offset[] = {s_mul_6, int64_t{0}};
            const ChipTensor t_view_0 = ext_values.view(t_view_0_shape, t_view_0_offset);
            PTO2_AT("examples.paged_attention:paged_attention", 32, 23);
            CoreTaskArgs params_t2;
            params_t2.add_input(t_weights);
            params_t2.add_input(t_view_0);
            params_t2.add_output(t_page_sum);
            rt_submit_aic_task(2, params_t2);
            const bool s_eq = s_p == int64_t{0};
            const int32_t s_sub_1 = wrapped<int32_t>(static_cast<uint64_t>(s_pages) - static_cast<uint64_t>(int32_t{1}));
            const int64_t s_sub_2 = static_cast<int64_t>(s_sub_1);
            const bool s_eq_0 = s_p == s_sub_2;
            PTO2_AT("examples.paged_attention:paged_attention", 33, 44);
            CoreTaskArgs params_t3;
            params_t3.add_input(t_page_largest);
            params_t3.add_input(t_page_total);
            params_t3.add_input(t_page_sum);
            params_t3.add_inout(t_largest);
            params_t3.add_inout(t_total);
            params_t3.add_inout(t_sums);
            params_t3.add_output(t_results);
            params_t3.add_scalar(s_eq);
            params_t3.add_scalar(s_eq_0);
            rt_submit_aiv_task(3, params_t3);
          }
        }
      }
    }
  }
}
