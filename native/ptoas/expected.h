// The outcome of a step that can fail: a value, or the reason there is none.
#pragma once

#include <utility>
#include <variant>

namespace ptoas {

template <class E>
struct Unexpected {
  E error;
};

template <class E>
Unexpected(E) -> Unexpected<E>;

// C++20 has no std::expected. This is the small part of it that the assembler needs; nothing here
// throws, and reading the wrong side is a bug in the caller (std::get terminates under noexcept).
template <class T, class E>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Expected(Unexpected<E> failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  explicit operator bool() const noexcept { return state_.index() == 0; }
  T& operator*() & noexcept { return *std::get_if<0>(&state_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&state_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }
  E& error() noexcept { return *std::get_if<1>(&state_); }
  const E& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, E> state_;
};

}  // namespace ptoas
