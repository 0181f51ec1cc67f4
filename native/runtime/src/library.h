// A loaded shared library.
#pragma once

#include <string>

namespace pypto_rt {

// The loader identifies libraries by path: the file at `path` must not be rewritten while, or
// after, it is loaded, or the old code is what a later load gets.
class Library {
 public:
  explicit Library(const std::string& path);  // LoadError
  ~Library();
  Library(Library&& other) noexcept;
  Library& operator=(Library&&) = delete;

  // The address of an exported function; LoadError if there is none.
  void* symbol(const char* name) const;

 private:
  void* handle_;
  std::string path_;
};

}  // namespace pypto_rt
