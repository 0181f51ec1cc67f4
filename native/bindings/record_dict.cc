#include "record_dict.h"

#include <string>
#include <vector>

namespace py = pybind11;

namespace pypto_native {
namespace {

const char* name_of(pypto_rt::CoreType core) {
  return core == pypto_rt::CoreType::AIC ? "aic" : "aiv";
}

const char* name_of(pypto_rt::ArgDirection direction) {
  switch (direction) {
    case pypto_rt::ArgDirection::Scalar:
      return "Scalar";
    case pypto_rt::ArgDirection::In:
      return "In";
    case pypto_rt::ArgDirection::Out:
      return "Out";
    case pypto_rt::ArgDirection::InOut:
      return "InOut";
    case pypto_rt::ArgDirection::NoDep:
      return "NoDep";
  }
  return "";
}

template <class T>
py::list numbers(const T* first, size_t count) {
  py::list list;
  for (size_t i = 0; i < count; ++i) list.append(first[i]);
  return list;
}

template <class T>
py::list numbers(const std::vector<T>& values) {
  return numbers(values.data(), values.size());
}

py::dict tensor_dict(const pypto_rt::ChipTensor& tensor, pypto_rt::ArgDirection direction) {
  py::dict found;
  found["direction"] = name_of(direction);
  found["dtype"] = static_cast<int>(tensor.dtype);
  found["shape"] = numbers(tensor.shapes, tensor.ndims);
  found["strides"] = numbers(tensor.strides, tensor.ndims);
  found["address"] = tensor.addr;
  found["offset"] = tensor.start_offset;
  return found;
}

py::dict task_dict(const pypto_rt::RecordedTask& task) {
  py::list tensors;
  for (size_t i = 0; i < task.tensors.size(); ++i) {
    tensors.append(tensor_dict(task.tensors[i], task.directions[i]));
  }
  py::list contents;
  for (const pypto_rt::RecordedContents& kept : task.contents) {
    contents.append(py::make_tuple(
        kept.tensor, kept.after,
        py::bytes(reinterpret_cast<const char*>(kept.bytes.data()), kept.bytes.size())));
  }
  py::dict found;
  found["kernels"] = numbers(task.kernels);
  found["blocks"] = task.blocks;
  found["waits_for"] = numbers(task.waits_for);
  found["tensors"] = tensors;
  found["scalars"] = numbers(task.scalars);
  found["dumps"] = task.dumps;
  found["scope"] = task.scope;
  found["submitted_ns"] = task.submitted_ns;
  found["contents"] = contents;
  return found;
}

py::dict span_dict(const pypto_rt::RecordedSpan& span) {
  py::dict found;
  found["task"] = span.task;
  found["kernel"] = span.func_id;
  found["core"] = name_of(span.core) + std::to_string(span.core_index);
  found["first_block"] = span.first_block;
  found["blocks"] = span.blocks;
  found["start_ns"] = span.start_ns;
  found["end_ns"] = span.end_ns;
  found["cpu_ns"] = span.cpu_ns;
  found["instructions"] = span.instructions;
  return found;
}

py::dict scope_dict(const pypto_rt::RecordedScope& scope) {
  py::dict found;
  found["depth"] = scope.depth;
  found["begin_ns"] = scope.begin_ns;
  found["end_ns"] = scope.end_ns;
  found["tasks"] = scope.tasks;
  found["tensors"] = scope.tensors;
  found["bytes"] = scope.bytes;
  return found;
}

}  // namespace

py::dict record_dict(const pypto_rt::RunRecord& record) {
  py::list tasks;
  for (const auto& task : record.tasks) tasks.append(task_dict(task));
  py::list spans;
  for (const auto& span : record.spans) spans.append(span_dict(span));
  py::list scopes;
  for (const auto& scope : record.scopes) scopes.append(scope_dict(scope));
  py::dict found;
  found["tasks"] = tasks;
  found["spans"] = spans;
  found["scopes"] = scopes;
  found["most_tasks"] = record.most_tasks;
  found["most_bytes"] = record.most_bytes;
  found["duration_ns"] = record.duration_ns;
  return found;
}

}  // namespace pypto_native
