#include "slot_binding.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../files/slot_reader.h"
#include "without_gil.h"

namespace py = pybind11;

namespace pypto_native {
namespace {

py::object owned(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::object text_of(std::string_view ascii) {
  return owned(PyUnicode_DecodeASCII(ascii.data(), static_cast<Py_ssize_t>(ascii.size()), nullptr));
}

std::string_view view_of(const py::bytes& bytes) {
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

py::bytes bytes_of(std::string_view text) { return py::bytes(text.data(), text.size()); }

// Reads entries whose manifest has the one spelling it knows. Its rules do not change.
class PySlotReader {
 public:
  PySlotReader(py::type record, SlotRules rules)
      : record_(std::move(record)), rules_(std::move(rules)) {
    // Instances are made as tuple.__new__ makes them, of this many items.
    auto* const type = reinterpret_cast<PyTypeObject*>(record_.ptr());
    if (!PyType_IsSubtype(type, &PyTuple_Type) || type->tp_basicsize != PyTuple_Type.tp_basicsize) {
      throw py::type_error("records must be named tuples");
    }
  }

  py::object validate(int slot, const py::bytes& head, const py::bytes& middle) const {
    SlotManifest manifest;
    std::vector<KeptFile> kept;
    bool valid = false;
    {
      const std::string_view before = view_of(head);
      const std::string_view after = view_of(middle);
      const WithoutGil here;
      valid = read_slot_manifest(slot, before, after, rules_, manifest) &&
              check_payload(slot, manifest, rules_, kept);
    }
    if (!valid) return py::none();
    py::dict small;
    for (const KeptFile& file : kept) small[text_of(file.path)] = bytes_of(file.content);
    return py::make_tuple(bytes_of(manifest.spec), records(manifest), small);
  }

  py::object read_file(int slot, const py::bytes& head, const py::bytes& middle,
                       const std::string& name, size_t limit) const {
    SlotManifest manifest;
    std::optional<std::string> content;
    {
      const std::string_view before = view_of(head);
      const std::string_view after = view_of(middle);
      const WithoutGil here;
      if (read_slot_manifest(slot, before, after, rules_, manifest)) {
        for (const InventoryFile& file : manifest.files) {
          if (file.path == name) content = read_payload_file(slot, file, limit);
        }
      }
    }
    if (!content) return py::none();
    return py::make_tuple(bytes_of(manifest.spec), records(manifest), bytes_of(*content));
  }

 private:
  py::object records(const SlotManifest& manifest) const {
    auto* const type = reinterpret_cast<PyTypeObject*>(record_.ptr());
    py::tuple all(manifest.files.size());
    for (size_t i = 0; i < manifest.files.size(); ++i) {
      const InventoryFile& file = manifest.files[i];
      py::object record = owned(type->tp_alloc(type, 4));
      PyTuple_SET_ITEM(record.ptr(), 0, text_of(file.path).release().ptr());
      PyTuple_SET_ITEM(record.ptr(), 1,
                       owned(PyLong_FromUnsignedLongLong(file.size)).release().ptr());
      PyTuple_SET_ITEM(record.ptr(), 2, text_of(file.sha256).release().ptr());
      PyTuple_SET_ITEM(record.ptr(), 3, py::bool_(file.executable).release().ptr());
      all[i] = std::move(record);
    }
    return all;
  }

  const py::type record_;
  const SlotRules rules_;
};

}  // namespace

void define_slot_reader(py::module_& m) {
  py::class_<PySlotReader>(m, "SlotReader", "Reads and validates entries of a store.")
      .def(py::init([](py::type record, std::string manifest_name, std::string signature_name,
                       size_t manifest_limit, size_t path_limit, size_t keep_file,
                       size_t keep_total) {
             return PySlotReader(std::move(record),
                                 {std::move(manifest_name), std::move(signature_name),
                                  manifest_limit, path_limit, keep_file, keep_total});
           }),
           py::kw_only(), py::arg("record"), py::arg("manifest_name"), py::arg("signature_name"),
           py::arg("manifest_limit"), py::arg("path_limit"), py::arg("keep_file"),
           py::arg("keep_total"))
      .def("validate", &PySlotReader::validate, py::arg("slot"), py::arg("head"), py::arg("middle"),
           "(specification's JSON, records, small files) of the open directory `slot` if its\n"
           "manifest is head, canonical plain files, middle and a specification, and its tree is\n"
           "exactly that; None to ask somebody who can say why.")
      .def("read_file", &PySlotReader::read_file, py::arg("slot"), py::arg("head"),
           py::arg("middle"), py::arg("name"), py::arg("limit"),
           "(specification's JSON, records, the bytes of the file `name`) likewise, with no other\n"
           "payload file looked at.");
}

}  // namespace pypto_native
