extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args) {
#ifdef __DAV_CUBE__
  tensor_data<float>(reinterpret_cast<ChipTensor*>(args[0]))[0] += 1.0f;
#endif
}
