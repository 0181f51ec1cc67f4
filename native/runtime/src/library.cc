#include "library.h"

#include <dlfcn.h>

#include <utility>

#include "faults.h"

namespace pypto_rt {

Library::Library(const std::string& path)
    : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)), path_(path) {
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    throw LoadError("cannot load " + path + ": " +
                    (reason != nullptr ? reason : "no reason given"));
  }
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

Library::Library(Library&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

void* Library::symbol(const char* name) const {
  void* address = dlsym(handle_, name);
  if (address == nullptr) throw LoadError(path_ + " does not export " + name);
  return address;
}

}  // namespace pypto_rt
