// pypto._native: the simulated chip, its programs, and file hashing, for Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "../files/cpu_level.h"
#include "../files/file_hashing.h"
#include "../files/observation.h"
#include "../files/sha256.h"
#include "../runtime/src/chip.h"
#include "../runtime/src/program.h"
#include "bound_call.h"
#include "python_run.h"
#include "record_dict.h"
#include "slot_binding.h"
#include "without_gil.h"

namespace py = pybind11;

namespace pypto_native {
namespace {

using pypto_rt::Arch;
using pypto_rt::Chip;
using pypto_rt::ChipOptions;
using pypto_rt::ChipTensor;
using pypto_rt::CoreType;
using pypto_rt::DType;
using pypto_rt::KernelFile;
using pypto_rt::Program;
using pypto_rt::RuntimeKind;

constexpr std::pair<const char*, Arch> kArchs[] = {{"a2a3", Arch::A2A3}, {"a5", Arch::A5}};
constexpr std::pair<const char*, Arch> kPlatforms[] = {{"a2a3sim", Arch::A2A3},
                                                       {"a5sim", Arch::A5}};
constexpr std::pair<const char*, CoreType> kCoreNames[] = {{"aic", CoreType::AIC},
                                                           {"aiv", CoreType::AIV}};
constexpr std::pair<const char*, RuntimeKind> kRuntimes[] = {
    {"host_build_graph", RuntimeKind::HostBuildGraph},
    {"tensormap_and_ringbuffer", RuntimeKind::TensormapAndRingbuffer}};
constexpr const char* kRegionNames[] = {"vec_bytes",   "mat_bytes", "left_bytes",
                                        "right_bytes", "acc_bytes", "bias_bytes"};

template <class Table>
auto look_up(const Table& table, const std::string& name, const char* what) {
  std::string known;
  for (const auto& [key, value] : table) {
    if (name == key) return value;
    known += (known.empty() ? "" : ", ") + std::string(key);
  }
  throw py::value_error(std::string(what) + " '" + name + "' is not one of " + known);
}

struct PyChip {
  std::string platform;
  std::shared_ptr<Chip> chip;
};

struct PyProgram {
  std::shared_ptr<const Program> program;  // null once closed

  const Program& open() const {
    if (program == nullptr) throw std::runtime_error("the program is closed");
    return *program;
  }
};

PyChip make_chip(const std::string& platform, int clusters, int64_t task_window, int64_t heap_bytes,
                 bool caller_helps) {
  ChipOptions options;
  options.arch = look_up(kPlatforms, platform, "platform");
  options.clusters = clusters;
  options.task_window = task_window;
  options.heap_bytes = heap_bytes;
  options.caller_helps = caller_helps;
  return {platform, std::make_shared<Chip>(options)};
}

PyProgram load_program(const std::vector<std::tuple<int32_t, std::string, std::string>>& kernels,
                       const std::string& orchestration, const std::string& runtime,
                       int32_t n_tensors, int32_t n_scalars) {
  std::vector<KernelFile> files;
  for (const auto& [func_id, core, path] : kernels) {
    files.push_back({func_id, look_up(kCoreNames, core, "core type"), path});
  }
  const RuntimeKind kind = look_up(kRuntimes, runtime, "runtime");
  const WithoutGil here;
  return {std::make_shared<const Program>(files, orchestration, kind, n_tensors, n_scalars)};
}

ChipTensor tensor_of(uint64_t addr, uint64_t bytes, const std::vector<int64_t>& shape, int dtype) {
  if (dtype < 0 || dtype > 255) throw py::value_error("the tensor's dtype code is unknown");
  return pypto_rt::dense_tensor(addr, bytes, shape.data(), shape.size(), static_cast<DType>(dtype));
}

void check_count(const char* what, size_t got, int32_t expected) {
  if (got != static_cast<size_t>(expected)) {
    throw py::type_error("the program takes " + std::to_string(expected) + " " + what + ", got " +
                         std::to_string(got));
  }
}

using TensorTuple = std::tuple<uint64_t, uint64_t, std::vector<int64_t>, int>;

void run(const PyProgram& self, const PyChip& chip, const std::vector<TensorTuple>& tensors,
         const std::vector<uint64_t>& scalars, pypto_rt::RunRecord* record = nullptr) {
  const std::shared_ptr<const Program> program = self.program;  // close() may come meanwhile
  self.open();
  check_count("tensors", tensors.size(), program->tensor_count());
  check_count("scalars", scalars.size(), program->scalar_count());
  std::vector<ChipTensor> list;
  list.reserve(tensors.size());
  for (const auto& [addr, bytes, shape, dtype] : tensors) {
    list.push_back(tensor_of(addr, bytes, shape, dtype));
  }
  const std::shared_ptr<Chip> target = chip.chip;
  if (!run_program(*program, *target, list.data(), scalars.data(), record)) {
    throw py::error_already_set();
  }
}

py::dict run_recorded(const PyProgram& self, const PyChip& chip,
                      const std::vector<TensorTuple>& tensors, const std::vector<uint64_t>& scalars,
                      bool contents) {
  pypto_rt::RunRecord record(contents);
  run(self, chip, tensors, scalars, &record);
  return record_dict(record);
}

py::object bind_program(
    py::handle type, const PyProgram& self, const PyChip& chip,
    const std::vector<std::tuple<uint64_t, std::vector<int64_t>, int>>& shapes) {
  check_count("tensors", shapes.size(), self.open().tensor_count());
  std::vector<ChipTensor> tensors;
  tensors.reserve(shapes.size());
  for (const auto& [bytes, shape, dtype] : shapes) {
    tensors.push_back(tensor_of(0, bytes, shape, dtype));
  }
  PyObject* call = make_bound_call(type.ptr(), self.program, chip.chip, std::move(tensors));
  if (call == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(call);
}

py::bytes as_bytes(const Sha256& digest) {
  return py::bytes(reinterpret_cast<const char*>(digest.data()), digest.size());
}

py::list sha256_files(std::vector<std::string> paths) {
  FileHashing hashing(std::move(paths));
  const std::vector<Sha256>* digests = nullptr;
  {
    const WithoutGil here;
    digests = &hashing.wait();
  }
  py::list result;
  for (const Sha256& digest : *digests) result.append(as_bytes(digest));
  return result;
}

// The sources of several directories, being listed and hashed.
class PySourceHashing {
 public:
  PySourceHashing(const std::vector<std::string>& roots, const SourceRules& rules)
      : roots_(roots), hashing_([roots, rules] { return list(roots, rules); }) {}

  py::list wait() {
    const std::vector<Sha256>* digests = nullptr;
    {
      const WithoutGil here;
      digests = &hashing_.wait();
    }
    const Listing& files = hashing_.files();
    py::list result;
    size_t next = 0;
    for (size_t i = 0; i < roots_.size(); ++i) {
      std::string names;
      std::string content;
      for (; next < files.ends[i]; ++next) {
        if (!content.empty()) names += '\0';
        names.append(files.paths[next], roots_[i].size() + 1);
        content.append(reinterpret_cast<const char*>((*digests)[next].data()), sizeof(Sha256));
      }
      result.append(py::make_tuple(py::bytes(names), py::bytes(content)));
    }
    return result;
  }

 private:
  // Of values of its own: it may run after this object is gone.
  static Listing list(const std::vector<std::string>& roots, const SourceRules& rules) {
    Listing files;
    for (const std::string& root : roots) {
      for (const std::string& name : list_sources(root, rules)) {
        files.paths.push_back(root + "/" + name);
      }
      files.ends.push_back(files.paths.size());
    }
    return files;
  }

  const std::vector<std::string> roots_;
  FileHashing hashing_;
};

std::unique_ptr<PySourceHashing> hash_sources(const std::vector<std::string>& roots,
                                              std::vector<std::string> suffixes,
                                              std::vector<std::string> skipped_directories) {
  return std::make_unique<PySourceHashing>(
      roots, SourceRules{std::move(suffixes), std::move(skipped_directories)});
}

// As the system has it: most are plain, and some are no text.
std::string path_of(PyObject* text) {
  Py_ssize_t bytes = 0;
  const char* const plain = PyUnicode_AsUTF8AndSize(text, &bytes);
  if (plain != nullptr) return {plain, static_cast<size_t>(bytes)};
  PyErr_Clear();
  // A path has no NUL, but an answer may have.
  const auto encoded = py::reinterpret_steal<py::bytes>(PyUnicode_EncodeFSDefault(text));
  if (!encoded) throw py::error_already_set();
  return std::string(encoded);
}

bool observations_hold(const py::list& observations) {
  struct Observation {
    std::string kind;
    std::string path;
    std::string answer;
  };
  std::vector<Observation> all;
  all.reserve(observations.size());
  for (const py::handle item : observations) {
    const auto parts = py::reinterpret_borrow<py::sequence>(item);
    if (parts.size() != 3) throw py::value_error("an observation has three parts");
    all.push_back({path_of(py::object(parts[0]).ptr()), path_of(py::object(parts[1]).ptr()),
                   path_of(py::object(parts[2]).ptr())});
  }
  const WithoutGil here;
  return std::all_of(all.begin(), all.end(), [](const Observation& one) {
    return still_holds(one.kind, one.path, one.answer);
  });
}

py::dict build_info() {
  py::dict info;
  info["compiler"] = __VERSION__;
  info["kernel_abi"] = pypto_rt::kAbiVersion;
  info["python"] = PY_VERSION;
#ifdef NDEBUG
  info["assertions"] = false;
#else
  info["assertions"] = true;
#endif
  return info;
}

std::map<std::string, std::map<std::string, uint64_t>> on_chip_limits() {
  std::map<std::string, std::map<std::string, uint64_t>> limits;
  for (const auto& [name, arch] : kArchs) {
    const pypto_rt::RegionLimits regions = pypto_rt::limits_of(arch);
    for (int i = 0; i < pypto_rt::kRegionCount; ++i)
      limits[name][kRegionNames[i]] = regions.bytes[i];
  }
  return limits;
}

}  // namespace
}  // namespace pypto_native

PYBIND11_MODULE(_native, m) {
  using namespace pypto_native;
  m.doc() = "The simulated chip, its programs, and file hashing.";

  kernel_fault_type = PyErr_NewExceptionWithDoc(
      "pypto._native.KernelFault",
      "A kernel, or the orchestration, ended a run.\n\n"
      "Attributes: op and message say what went wrong; kernel is the func_id (-1: orchestration "
      "or\n"
      "runtime); unit, line and column the place in the source, pto_line the line of the assembly\n"
      "text (\"\" and 0 where unknown); code the kind of fault.",
      PyExc_RuntimeError, nullptr);
  if (kernel_fault_type == nullptr) throw py::error_already_set();
  m.attr("KernelFault") = py::handle(kernel_fault_type);
  py::register_exception<pypto_rt::LoadError>(m, "LoadError", PyExc_ImportError);
  py::register_exception_translator([](std::exception_ptr error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::system_error& system) {
      const py::object value = py::reinterpret_borrow<py::object>(PyExc_OSError)(
          system.code().value(), system.code().message(),
          std::string(system.what()).substr(0, std::string(system.what()).rfind(": ")));
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
    }
  });
  py::object bound_call_type = py::reinterpret_steal<py::object>(make_bound_call_type());
  if (!bound_call_type) throw py::error_already_set();
  m.attr("BoundCall") = bound_call_type;

  m.def("build_info", &build_info, "How this extension was built.");
  m.def("on_chip_limits", &on_chip_limits,
        "Bytes of on-chip memory: architecture -> region -> bytes.");
  m.def("sha256_files", &sha256_files, py::arg("paths"),
        "SHA-256 digests of the files' contents, in order, computed without the GIL. OSError.");
  py::class_<PySourceHashing>(m, "SourceHashing", "Sources of directories, being hashed.")
      .def("wait", &PySourceHashing::wait,
           "For each directory its files, sorted: their relative names with a NUL between each "
           "two,\n"
           "and their SHA-256 digests. OSError.");
  m.def("hash_sources", &hash_sources, py::arg("roots"), py::arg("suffixes"),
        py::arg("skipped_directories"),
        "Lists the files below `roots` that have one of the suffixes, and begins to hash them.\n"
        "Names without a dot are taken for directories, links to them too.");
  m.def("x86_level", &x86_level,
        "The processor's level by pypto.runtime.cpu_level; None on another machine.");
  m.def(
      "observations_hold", &observations_hold, py::arg("observations"),
      "Whether every (kind, path, answer) is as it was; see pypto_toolchains.disk. False too for\n"
      "native files of an uncommon form.");
  define_slot_reader(m);

  py::class_<PyChip>(m, "Chip",
                     "A simulated chip. Its threads start when first needed, in any process.")
      .def(py::init(&make_chip), py::arg("platform"), py::kw_only(), py::arg("clusters") = 2,
           py::arg("task_window") = 16384, py::arg("heap_bytes") = int64_t{1} << 30,
           py::arg("caller_helps") = true)
      .def_property_readonly("platform", [](const PyChip& self) { return self.platform; })
      .def_property_readonly("clusters",
                             [](const PyChip& self) { return self.chip->options().clusters; })
      .def_property_readonly("closed", [](const PyChip& self) { return self.chip->closed(); })
      .def(
          "close",
          [](const PyChip& self) {
            const WithoutGil here;
            self.chip->close();
          },
          "Ends the chip's threads; later runs are refused. Idempotent.");

  py::class_<PyProgram>(m, "Program", "Kernels and an orchestration, loaded.")
      .def(
          "run",
          [](const PyProgram& self, const PyChip& chip, const std::vector<TensorTuple>& tensors,
             const std::vector<uint64_t>& scalars) { run(self, chip, tensors, scalars); },
          py::arg("chip"), py::arg("tensors"), py::arg("scalars"),
          "Runs to the end. tensors: (address, bytes, shape, dtype code); scalars: their 64 bits.\n"
          "KernelFault; KeyboardInterrupt ends the run early.")
      .def("run_recorded", &run_recorded, py::arg("chip"), py::arg("tensors"), py::arg("scalars"),
           py::kw_only(), py::arg("contents"),
           "As run, and gives what the run did; with the contents of the tasks' tensors if asked.")
      .def(
          "bind",
          [bound_call_type](
              const PyProgram& self, const PyChip& chip,
              const std::vector<std::tuple<uint64_t, std::vector<int64_t>, int>>& tensors) {
            return bind_program(bound_call_type, self, chip, tensors);
          },
          py::arg("chip"), py::arg("tensors"),
          "A callable for tensors of these (bytes, shape, dtype code): addresses, then scalars.")
      .def_property_readonly("closed",
                             [](const PyProgram& self) { return self.program == nullptr; })
      .def(
          "close",
          [](PyProgram& self) {
            const WithoutGil here;
            self.program.reset();
          },
          "Unloads the libraries once no run or bound call uses them. Idempotent.");
  m.def(
      "load_program", &load_program, py::arg("kernels"), py::arg("orchestration"),
      py::arg("runtime"), py::arg("n_tensors"), py::arg("n_scalars"),
      "Loads a program. kernels: (func_id, 'aiv' or 'aic', path). The files' paths must never be\n"
      "rewritten: the loader knows libraries by path. LoadError.");
}
