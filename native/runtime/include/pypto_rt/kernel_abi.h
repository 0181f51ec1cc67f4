// The binary interface between the simulated chip and a kernel library.
//
// A kernel library exports one function, kernel_entry(int64_t* args):
//   args[0..T)    ChipTensor*, one per tensor parameter
//   args[T..T+S)  scalars, each the bits of its value in the low bytes of 64
//   args[48]      LocalContext*, args[49] GlobalContext*
// This header is compiled into every kernel, so it includes nothing that is not free. A kernel
// library needs no other library: the few C functions that compilers call (memcpy, memset) come
// from the process, and faults leave a kernel without C++ exceptions.
#ifndef PYPTO_RT_KERNEL_ABI_H_
#define PYPTO_RT_KERNEL_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifndef __gm__
#define __gm__
#endif
#ifndef __aicore__
#define __aicore__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef AICORE
#define AICORE
#endif

#define PYPTO_KERNEL_EXPORT __attribute__((visibility("default")))

namespace pypto_rt {

// A library that was built for another version is refused when it is loaded. Raise it with every
// change of what this header, pto_orchestration_api.h or the operations called through them mean.
//   1  kernel_entry, tensors, scalars, one core for each task
//   2  the orchestration's context names the statement that is executed
//   3  a task runs on up to three cores (submit takes MixedKernels); sub_block_id
//   4  tasks in blocks, tensors to dump, manual scopes
//   5  single elements are read and written by the orchestration, which waits for tasks
//   6  a tensor may have a copy for each core, of which a kernel finds its own
//   7  a core has a bias table
inline constexpr uint32_t kAbiVersion = 7;
inline constexpr int kMaxKernelTensors = 32;
inline constexpr int kMaxKernelScalars = 16;
inline constexpr int kLocalContextSlot = 48;
inline constexpr int kGlobalContextSlot = 49;
inline constexpr int kKernelArgSlots = 50;
inline constexpr int kMaxDims = 5;

enum class DType : uint8_t {
  FP32 = 0,
  FP16 = 1,
  INT32 = 2,
  INT16 = 3,
  INT8 = 4,
  UINT8 = 5,
  BF16 = 6,
  INT64 = 7,
  BOOL = 8,
  UINT16 = 9,
  UINT32 = 10,
  UINT64 = 11,
};

constexpr uint32_t dtype_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::FP32:
    case DType::INT32:
    case DType::UINT32:
      return 4;
    case DType::FP16:
    case DType::INT16:
    case DType::BF16:
    case DType::UINT16:
      return 2;
    case DType::INT8:
    case DType::UINT8:
    case DType::BOOL:
      return 1;
    case DType::INT64:
    case DType::UINT64:
      return 8;
  }
  return 0;
}

// A tensor, or a strided window of one, in global memory. `addr`/`size` name the whole buffer in
// bytes; `start_offset`, `shapes` and `strides` (elements) name the window inside it. Of a tensor
// of which every core has a copy, a kernel sees its own core's.
struct alignas(64) ChipTensor {
  uint64_t addr;
  uint64_t size;
  int64_t owner_task_id;
  int64_t start_offset;
  int32_t version;
  uint8_t ndims;
  DType dtype;
  uint8_t manual_dep;
  uint8_t is_contiguous;
  uint32_t address_space;
  uint32_t shapes[kMaxDims];
  int64_t extent;  // elements from the first of the window to its last, inclusive
  int64_t strides[kMaxDims];
  uint64_t core_bytes;  // from one core's copy to the next; 0: all cores share the only one
  uint64_t reserved;

  // A window of this window: `shape` and `offset` have ndims entries. Out of range is fatal to the
  // run. Defined for orchestration code only.
  ChipTensor view(const int64_t* shape, const int64_t* offset) const;
  // The same elements without an axis, which must have one element.
  ChipTensor without_axis(uint32_t axis) const;
  // The same elements under another shape; the window must be contiguous.
  ChipTensor reshape(const uint32_t* shape, uint32_t dims) const;
};
static_assert(sizeof(ChipTensor) == 128, "ChipTensor is 128 bytes by contract");

enum class FaultCode : int32_t {
  None = 0,
  GlobalBounds = 1,  // access outside a tensor or a view
  OnChipBounds = 2,  // tile outside its on-chip region, or without an address
  Shape = 3,         // shapes or valid regions that do not fit together
  Value = 4,         // a value the operation is not defined for
  Abi = 5,           // the kernel was called in a way it was not built for
  Cancelled = 6,     // another fault, or the caller, ended the run
  Exception = 7,     // the orchestration threw a C++ exception
};

// What went wrong first in a kernel, in a form that can cross library boundaries.
struct FaultRecord {
  FaultCode code;
  int32_t line;      // in the user's unit, relative to its `def`; 0 if unknown
  int32_t column;    // 0 if unknown
  int32_t pto_line;  // in the .pto text; 0 if unknown
  char op[32];
  char message[256];
  char unit[128];
};

// Where the instruction being executed came from. Kernels point at constants of this type.
struct SourcePosition {
  const char* unit;
  int32_t pto_line;
  int32_t line;
  int32_t column;
};

enum class Region : uint32_t { Vec = 0, Mat = 1, Left = 2, Right = 3, Acc = 4, Bias = 5 };
inline constexpr int kRegionCount = 6;

struct OnChipRegion {
  unsigned char* base;
  uint64_t bytes;
};

enum class Arch : uint32_t { A2A3 = 1, A5 = 2 };

// One simulated core: its on-chip memory, where it is, and its fault.
struct CoreContext {
  uint32_t abi_version;
  Arch arch;
  OnChipRegion regions[kRegionCount];
  OnChipRegion scratch;  // no part of the modelled chip; instructions stage operands here
  FaultRecord* fault;
  void** escape;  // where a fault leaves the kernel to; see guard_kernel
  const SourcePosition* position;
  const ChipTensor* const* tensors;  // the task's tensors; accesses are confined to their buffers
  int32_t tensor_count;              // negative: unknown, no confinement
  uint32_t cancelled;                // set, atomically, when the run has ended early
  uint32_t poll_credit;              // instructions until the next poll
  void (*poll)(CoreContext* core);   // sees to signals when the caller's own thread is the core
};

struct LocalContext {
  uint32_t block_idx;
  uint32_t block_num;
  CoreContext* core;
  void* reserved;
};

struct GlobalContext {
  uint32_t sub_block_id;  // which of a task's two AIV cores this is, 0 or 1
  uint32_t reserved;
};

// How an instruction finds its core: kernels may not have thread_local or mutable static data (both
// would keep a library from being unloaded or be shared between cores), and instructions take no
// context argument. Every core therefore runs on a stack that is aligned to its own size, and the
// first bytes of that block, below the guard page, hold this header.
inline constexpr uintptr_t kCoreStackBytes = uintptr_t{8} << 20;

struct CoreStackHeader {
  CoreContext* core;
  void* orchestration;  // pypto_rt::OrchestrationContext* on an orchestrator's stack
};

__attribute__((always_inline)) inline CoreStackHeader* current_stack_header() noexcept {
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return reinterpret_cast<CoreStackHeader*>(frame & ~(kCoreStackBytes - 1));
}

__attribute__((always_inline)) inline CoreContext* current_core() noexcept {
  return current_stack_header()->core;
}

inline void copy_text(char* to, size_t capacity, const char* from) noexcept {
  size_t i = 0;
  for (; from[i] != 0 && i + 1 < capacity; ++i) to[i] = from[i];
  to[i] = 0;
}

// How a fault leaves a kernel. The compiler's own pair costs five words and no library. Clang does
// not have it for every processor; there the C library's serves, of which `_setjmp` keeps no signal
// mask. Marking is a macro, because the frame that marks must be there when a fault comes back.
#if defined(__clang__) && !defined(__x86_64__)
inline constexpr size_t kEscapeWords = 64;  // no jmp_buf has more
int mark_escape(void** escape) noexcept __asm__("_setjmp") __attribute__((returns_twice));
[[noreturn]] void leave_by(void** escape, int value) noexcept __asm__("longjmp");
#define PYPTO_MARK_ESCAPE(escape) ::pypto_rt::mark_escape(escape)
#define PYPTO_LEAVE_BY(escape) ::pypto_rt::leave_by(escape, 1)
#else
inline constexpr size_t kEscapeWords = 5;
#define PYPTO_MARK_ESCAPE(escape) __builtin_setjmp(escape)
#define PYPTO_LEAVE_BY(escape) __builtin_longjmp(escape, 1)
#endif

// Fills the core's record and leaves the kernel.
[[noreturn]] __attribute__((noinline, cold)) inline void raise_fault(CoreContext* core,
                                                                     FaultCode code, const char* op,
                                                                     const char* message) noexcept {
  FaultRecord* record = core->fault;
  record->code = code;
  copy_text(record->op, sizeof record->op, op);
  copy_text(record->message, sizeof record->message, message);
  record->line = record->column = record->pto_line = 0;
  record->unit[0] = 0;
  if (const SourcePosition* at = core->position) {
    record->line = at->line;
    record->column = at->column;
    record->pto_line = at->pto_line;
    copy_text(record->unit, sizeof record->unit, at->unit);
  }
  PYPTO_LEAVE_BY(core->escape);
}

template <class T>
inline T* tensor_data(const ChipTensor* tensor) noexcept {
  return reinterpret_cast<T*>(tensor->addr) + tensor->start_offset;
}

template <class T>
inline T from_u64(uint64_t bits) noexcept {
  static_assert(sizeof(T) <= sizeof bits);
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
inline uint64_t to_u64(T value) noexcept {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

inline LocalContext* local_context(const int64_t* args) noexcept {
  return reinterpret_cast<LocalContext*>(args[kLocalContextSlot]);
}

inline GlobalContext* global_context(const int64_t* args) noexcept {
  return reinterpret_cast<GlobalContext*>(args[kGlobalContextSlot]);
}

// Runs a kernel's body on the core that `args` names. A fault inside it ends here, with the core's
// record filled. Nothing is unwound on the way: a body may not rely on destructors.
template <class Body>
inline void guard_kernel(const int64_t* args, Body&& body) {
  CoreContext* core = local_context(args)->core;
  void* escape[kEscapeWords];
  core->position = nullptr;
  core->escape = escape;
  if (PYPTO_MARK_ESCAPE(escape) == 0) {
    if (core->abi_version != kAbiVersion) {
      raise_fault(core, FaultCode::Abi, "kernel_entry",
                  "the kernel was compiled for another runtime version; compile it again");
    }
#ifdef PTO_SIM_ARCH_ID
    if (core->arch != static_cast<Arch>(PTO_SIM_ARCH_ID)) {
      raise_fault(core, FaultCode::Abi, "kernel_entry",
                  "the kernel was compiled for another architecture than this chip's");
    }
#endif
    body();
  }
}

}  // namespace pypto_rt

// Generated code uses these unqualified.
using pypto_rt::ChipTensor;
using pypto_rt::from_u64;
using pypto_rt::tensor_data;
using pypto_rt::to_u64;

extern "C" PYPTO_KERNEL_EXPORT void kernel_entry(__gm__ int64_t* args);

#endif  // PYPTO_RT_KERNEL_ABI_H_
