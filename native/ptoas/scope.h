// Which names are visible, and the values they stand for.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ast.h"

namespace ptoas {

// Names enter with a block and leave with it. A name may be defined again after it left, never
// while it is visible.
class Scope {
 public:
  void open() { marks_.push_back(order_.size()); }

  void close() {
    while (order_.size() > marks_.back()) {
      visible_.erase(order_.back());
      order_.pop_back();
    }
    marks_.pop_back();
  }

  // False if the name is visible already.
  bool define(const std::string& name, ValueId value) {
    if (!visible_.emplace(name, value).second) return false;
    order_.push_back(name);
    return true;
  }

  // kUnresolved if no such name is visible.
  ValueId find(std::string_view name) const {
    const auto found = visible_.find(std::string(name));
    return found == visible_.end() ? kUnresolved : found->second;
  }

 private:
  std::unordered_map<std::string, ValueId> visible_;
  std::vector<std::string> order_;
  std::vector<std::size_t> marks_;
};

}  // namespace ptoas
