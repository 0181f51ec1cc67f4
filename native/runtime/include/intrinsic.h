// Where a kernel runs, for kernels that are written in C++: what kernel_entry is given says it.
#ifndef INTRINSIC_H_
#define INTRINSIC_H_

#include "pypto_rt/kernel_abi.h"

// Which block of its task this is, and how many there are.
inline int32_t get_block_idx(const int64_t* args) noexcept {
  return static_cast<int32_t>(pypto_rt::local_context(args)->block_idx);
}

inline int32_t get_block_num(const int64_t* args) noexcept {
  return static_cast<int32_t>(pypto_rt::local_context(args)->block_num);
}

// Which of a task's two AIV cores this is: 0 or 1.
inline int32_t get_sub_block_id(const int64_t* args) noexcept {
  return static_cast<int32_t>(pypto_rt::global_context(args)->sub_block_id);
}

#endif  // INTRINSIC_H_
