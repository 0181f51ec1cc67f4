#pragma once
inline int64_t count(const ChipTensor* tensor) {
  int64_t all = 1;
  for (int axis = 0; axis < tensor->ndims; ++axis) all *= tensor->shapes[axis];
  // Keeps the name of this file in what is compiled.
  return __FILE__[all % 2] == '\0' ? 0 : all;
}
