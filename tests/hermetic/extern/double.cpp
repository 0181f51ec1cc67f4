#include <count.h>

#include "factor.h"

extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
  ChipTensor* tensor = reinterpret_cast<ChipTensor*>(args[0]);
  int32_t* data = tensor_data<int32_t>(tensor);
  // By an index that only the run knows, or the compiler would keep no name of a file.
  const int32_t factor = where()[count(tensor) % 2] == '\0' ? 0 : FACTOR;
  for (int64_t i = 0; i < count(tensor); ++i) data[i] *= factor;
}
