#include "python_run.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

#include "without_gil.h"

namespace pypto_native {

PyObject* kernel_fault_type = nullptr;

namespace {

// Steals `value`.
bool set_attribute(PyObject* object, const char* name, PyObject* value) {
  const bool done = value != nullptr && PyObject_SetAttrString(object, name, value) == 0;
  Py_XDECREF(value);
  return done;
}

PyObject* text(const std::string& value) {
  return PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "replace");
}

void raise_fault(const pypto_rt::KernelFault& fault) {
  const pypto_rt::FaultReport& report = fault.report();
  PyObject* message = text(fault.what());
  if (message == nullptr) return;
  PyObject* error = PyObject_CallOneArg(kernel_fault_type, message);
  Py_DECREF(message);
  if (error == nullptr) return;
  if (set_attribute(error, "op", text(report.op)) &&
      set_attribute(error, "message", text(report.message)) &&
      set_attribute(error, "kernel", PyLong_FromLong(report.func_id)) &&
      set_attribute(error, "unit", text(report.unit)) &&
      set_attribute(error, "line", PyLong_FromLong(report.line)) &&
      set_attribute(error, "column", PyLong_FromLong(report.column)) &&
      set_attribute(error, "pto_line", PyLong_FromLong(report.pto_line)) &&
      set_attribute(error, "code", PyLong_FromLong(static_cast<long>(report.code)))) {
    PyErr_SetObject(kernel_fault_type, error);
  }
  Py_DECREF(error);
}

}  // namespace

bool run_program(const pypto_rt::Program& program, pypto_rt::Chip& chip,
                 const pypto_rt::ChipTensor* tensors, const uint64_t* scalars,
                 pypto_rt::RunRecord* record) {
  for (int32_t i = 0; i < program.tensor_count(); ++i) {
    if (tensors[i].addr == 0 && tensors[i].extent != 0) {
      PyErr_Format(PyExc_ValueError, "tensor %d has elements but no memory", i);
      return false;
    }
  }
  std::exception_ptr failure;
  {
    WithoutGil here;
    try {
      const auto cores = chip.cores();
      program.run(*cores, tensors, scalars, {WithoutGil::signal_raised, &here}, record);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (!failure) return true;
  try {
    std::rethrow_exception(failure);
  } catch (const pypto_rt::KernelFault& fault) {
    raise_fault(fault);
  } catch (const pypto_rt::Interrupted&) {
    // The signal's exception is set.
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return false;
}

}  // namespace pypto_native
