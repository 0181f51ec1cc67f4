// The caller's thread while it works without the GIL.
#pragma once

#include <Python.h>

namespace pypto_native {

// Gives the GIL up for as long as it lives. A run's waits come back through signal_raised to look
// at signals; a Python exception they raise stays set in the thread until the run has been drained.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() { take_gil(); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  static bool signal_raised(void* self);

 private:
  void take_gil();

  PyThreadState* thread_;
};

}  // namespace pypto_native
