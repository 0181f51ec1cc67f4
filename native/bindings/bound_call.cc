#include "bound_call.h"

#include <structmember.h>

#include <algorithm>
#include <new>

#include "python_run.h"

namespace pypto_native {
namespace {

struct Binding {
  std::shared_ptr<const pypto_rt::Program> program;
  std::shared_ptr<pypto_rt::Chip> chip;
  std::vector<pypto_rt::ChipTensor> tensors;  // addr is the caller's to give
  size_t scalar_count;
};

// A Python object; members after `vectorcall` are ours to construct and destroy.
struct BoundCall {
  PyObject_HEAD vectorcallfunc vectorcall;
  Binding* binding;
};

bool read_bits(PyObject* value, uint64_t& bits) {
  bits = PyLong_AsUnsignedLongLong(value);
  return bits != static_cast<uint64_t>(-1) || PyErr_Occurred() == nullptr;
}

constexpr size_t kInlineTensors = 8;
constexpr size_t kInlineScalars = 16;

// What a call passes on: a copy of the binding's tensors, so that calls may overlap, and scalars.
class Arguments {
 public:
  explicit Arguments(const Binding& binding) {
    const size_t count = binding.tensors.size();
    if (count > kInlineTensors || binding.scalar_count > kInlineScalars) {
      more_tensors_.resize(count);
      more_scalars_.resize(binding.scalar_count);
      tensors_ = more_tensors_.data();
      scalars_ = more_scalars_.data();
    }
    std::copy(binding.tensors.begin(), binding.tensors.end(), tensors_);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  pypto_rt::ChipTensor* tensors() { return tensors_; }
  uint64_t* scalars() { return scalars_; }

 private:
  pypto_rt::ChipTensor few_tensors_[kInlineTensors];
  uint64_t few_scalars_[kInlineScalars];
  std::vector<pypto_rt::ChipTensor> more_tensors_;
  std::vector<uint64_t> more_scalars_;
  pypto_rt::ChipTensor* tensors_ = few_tensors_;
  uint64_t* scalars_ = few_scalars_;
};

bool read_scalars(PyObject* const* args, const Binding& binding, uint64_t* scalars) {
  for (size_t i = 0; i < binding.scalar_count; ++i) {
    if (!read_bits(args[i], scalars[i])) return false;
  }
  return true;
}

// Names of what is asked of a tensor, made once with the type.
PyObject* const* tensor_names() {
  static PyObject* const names[] = {
      PyUnicode_InternFromString("is_contiguous"), PyUnicode_InternFromString("is_cpu"),
      PyUnicode_InternFromString("data_ptr"),      PyUnicode_InternFromString("untyped_storage"),
      PyUnicode_InternFromString("nbytes"),        PyUnicode_InternFromString("is_neg"),
  };
  return names;
}

enum class Address { kFound, kNone, kError };

// What a method without arguments says, as an unsigned number; false with an exception set.
bool ask_number(PyObject* object, PyObject* name, uint64_t& number) {
  PyObject* const value = PyObject_CallMethodNoArgs(object, name);
  if (value == nullptr) return false;
  const bool read = read_bits(value, number);
  Py_DECREF(value);
  return read;
}

// Whether the tensor is dense, in this memory and read as it lies there; where it begins, and where
// its storage does and how long that is. False with or without an exception.
bool describe(PyObject* tensor, uint64_t& address, uint64_t& begin, uint64_t& length) {
  PyObject* const* const names = tensor_names();
  PyObject* const dense = PyObject_CallMethodNoArgs(tensor, names[0]);
  Py_XDECREF(dense);
  if (dense != Py_True) return false;
  PyObject* const here = PyObject_GetAttr(tensor, names[1]);
  Py_XDECREF(here);
  if (here != Py_True) return false;
  PyObject* const negated = PyObject_CallMethodNoArgs(tensor, names[5]);
  Py_XDECREF(negated);
  if (negated != Py_False || !ask_number(tensor, names[2], address)) return false;
  PyObject* const storage = PyObject_CallMethodNoArgs(tensor, names[3]);
  if (storage == nullptr) return false;
  const bool told = ask_number(storage, names[2], begin) && ask_number(storage, names[4], length);
  Py_DECREF(storage);
  return told;
}

// The address of a dense tensor of `bytes` in this memory; kNone for any other object, and for one
// whose storage became too short after the shapes were bound.
Address address_of(PyObject* tensor, uint64_t bytes, uint64_t& address) {
  uint64_t begin = 0;
  uint64_t length = 0;
  if (describe(tensor, address, begin, length)) {
    const bool inside = address >= begin && length >= bytes && address - begin <= length - bytes;
    return inside || bytes == 0 ? Address::kFound : Address::kNone;
  }
  if (PyErr_Occurred() == nullptr) return Address::kNone;
  // No tensor, or one without memory. Anything else (Ctrl-C) is the caller's to see.
  if (!PyErr_ExceptionMatches(PyExc_AttributeError) &&
      !PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_TypeError)) {
    return Address::kError;
  }
  PyErr_Clear();
  return Address::kNone;
}

PyObject* run_tensors(PyObject* self, PyObject* const* args, Py_ssize_t count) try {
  const Binding& binding = *reinterpret_cast<BoundCall*>(self)->binding;
  if (count < 1 || static_cast<size_t>(count - 1) != binding.scalar_count ||
      !PyTuple_Check(args[0]) ||
      static_cast<size_t>(PyTuple_GET_SIZE(args[0])) != binding.tensors.size()) {
    PyErr_Format(PyExc_TypeError, "run_tensors takes a tuple of %zu tensors and %zu scalars",
                 binding.tensors.size(), binding.scalar_count);
    return nullptr;
  }
  Arguments arguments(binding);
  for (size_t i = 0; i < binding.tensors.size(); ++i) {
    PyObject* const tensor = PyTuple_GET_ITEM(args[0], static_cast<Py_ssize_t>(i));
    const Address found = address_of(tensor, binding.tensors[i].size, arguments.tensors()[i].addr);
    if (found == Address::kError) return nullptr;
    if (found == Address::kNone) Py_RETURN_FALSE;
  }
  if (!read_scalars(args + 1, binding, arguments.scalars())) return nullptr;
  if (!run_program(*binding.program, *binding.chip, arguments.tensors(), arguments.scalars())) {
    return nullptr;
  }
  Py_RETURN_TRUE;
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

PyObject* call(PyObject* self, PyObject* const* args, size_t count_and_flags, PyObject* names) try {
  const Binding& binding = *reinterpret_cast<BoundCall*>(self)->binding;
  const auto count = static_cast<size_t>(PyVectorcall_NARGS(count_and_flags));
  const size_t expected = binding.tensors.size() + binding.scalar_count;
  if (names != nullptr && PyTuple_GET_SIZE(names) != 0) {
    PyErr_SetString(PyExc_TypeError, "a bound call takes no keyword arguments");
    return nullptr;
  }
  if (count != expected) {
    PyErr_Format(PyExc_TypeError, "the bound call takes %zu arguments (%zu were given)", expected,
                 count);
    return nullptr;
  }
  Arguments arguments(binding);
  for (size_t i = 0; i < binding.tensors.size(); ++i) {
    if (!read_bits(args[i], arguments.tensors()[i].addr)) return nullptr;
  }
  if (!read_scalars(args + binding.tensors.size(), binding, arguments.scalars())) return nullptr;
  if (!run_program(*binding.program, *binding.chip, arguments.tensors(), arguments.scalars())) {
    return nullptr;
  }
  Py_RETURN_NONE;
} catch (const std::bad_alloc&) {
  return PyErr_NoMemory();
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<BoundCall*>(self)->binding;
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundCall, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyMethodDef kMethods[] = {
    {"run_tensors", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(run_tensors)),
     METH_FASTCALL,
     "Run with a tuple of torch tensors of the bound shapes, then the scalars' bits.\n\n"
     "False, and nothing has run, unless each is dense, in this memory and has some."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, kMembers},
    {Py_tp_methods, kMethods},
    {Py_tp_doc, const_cast<char*>("A program bound to a chip and to the shapes of its tensors.\n\n"
                                  "Call it with one address for each tensor, then the 64 bits of "
                                  "each scalar as an int.")},
    {0, nullptr},
};

PyType_Spec kSpec = {
    "pypto._native.BoundCall",
    sizeof(BoundCall),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    kSlots,
};

}  // namespace

PyObject* make_bound_call_type() { return PyType_FromSpec(&kSpec); }

PyObject* make_bound_call(PyObject* type, std::shared_ptr<const pypto_rt::Program> program,
                          std::shared_ptr<pypto_rt::Chip> chip,
                          std::vector<pypto_rt::ChipTensor> tensors) {
  auto* object = PyObject_New(BoundCall, reinterpret_cast<PyTypeObject*>(type));
  if (object == nullptr) return nullptr;
  object->vectorcall = call;
  const auto scalars = static_cast<size_t>(program->scalar_count());
  object->binding = new Binding{std::move(program), std::move(chip), std::move(tensors), scalars};
  return reinterpret_cast<PyObject*>(object);
}

}  // namespace pypto_native
