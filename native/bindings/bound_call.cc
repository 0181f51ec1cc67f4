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

// `tensors` is a copy of the template, so that calls may overlap.
PyObject* call_with(const Binding& binding, PyObject* const* args, pypto_rt::ChipTensor* tensors,
                    uint64_t* scalars) {
  for (size_t i = 0; i < binding.tensors.size(); ++i) {
    if (!read_bits(args[i], tensors[i].addr)) return nullptr;
  }
  for (size_t i = 0; i < binding.scalar_count; ++i) {
    if (!read_bits(args[binding.tensors.size() + i], scalars[i])) return nullptr;
  }
  if (!run_program(*binding.program, *binding.chip, tensors, scalars)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t count_and_flags, PyObject* names) {
  // The call keeps what it uses: the object may go, or be used again, while the GIL is released.
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
  if (binding.tensors.size() <= kInlineTensors && binding.scalar_count <= kInlineScalars) {
    pypto_rt::ChipTensor tensors[kInlineTensors];
    uint64_t scalars[kInlineScalars];
    std::copy(binding.tensors.begin(), binding.tensors.end(), tensors);
    return call_with(binding, args, tensors, scalars);
  }
  try {
    std::vector<pypto_rt::ChipTensor> tensors(binding.tensors);
    std::vector<uint64_t> scalars(binding.scalar_count);
    return call_with(binding, args, tensors.data(), scalars.data());
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
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

PyType_Slot kSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, kMembers},
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
