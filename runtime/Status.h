// Status and Expected: how the runtime reports errors. Nothing in the runtime throws across its own
// functions or aborts on a user's input; a failed call returns a Status that names what failed,
// where, and how to mend it, together with the exit code that the executable should end with.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace gradc::rt {

/// Process exit codes, fixed by the command line's contract.
enum class ExitCode : int {
  done = 0,
  userError = 1,    ///< the user's input was wrong
  machineFault = 2, ///< disk, memory, device or peer failed
  defect = 70,      ///< a defect of gradc itself
};

/// Success, or an error with one line of text. Cheap to move; never holds a newline.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status user(std::string message) { return {ExitCode::userError, std::move(message)}; }
  static Status machine(std::string message) {
    return {ExitCode::machineFault, std::move(message)};
  }
  static Status defect(std::string message) { return {ExitCode::defect, std::move(message)}; }

  /// The same error, with `what: ` before its text; success stays success.
  Status during(const std::string &what) const {
    return ok() ? Status() : Status(code_, what + ": " + message_);
  }

  bool ok() const { return code_ == ExitCode::done; }
  explicit operator bool() const { return ok(); }
  ExitCode code() const { return code_; }
  const std::string &message() const { return message_; }

private:
  Status(ExitCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ExitCode code_ = ExitCode::done;
  std::string message_;
};

/// A value, or the Status that says why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage_(std::in_place_index<0>, std::move(value)) {}
  Expected(Status status) : storage_(std::in_place_index<1>, std::move(status)) {}

  bool ok() const { return storage_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T &operator*() { return std::get<0>(storage_); }
  const T &operator*() const { return std::get<0>(storage_); }
  T *operator->() { return &std::get<0>(storage_); }
  const T *operator->() const { return &std::get<0>(storage_); }
  /// The error; success when a value is held.
  Status status() const { return ok() ? Status() : std::get<1>(storage_); }

private:
  std::variant<T, Status> storage_;
};

} // namespace gradc::rt

/// Returns the Status of a failed call from the enclosing function.
#define GRADC_RETURN_IF_ERROR(expression)                                                          \
  do {                                                                                             \
    if (auto statusOfCall = (expression); !statusOfCall.ok())                                      \
      return statusOfCall;                                                                         \
  } while (false)

#define GRADC_CONCAT_INNER(a, b) a##b
#define GRADC_CONCAT(a, b) GRADC_CONCAT_INNER(a, b)
#define GRADC_ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression)                            \
  auto temporary = (expression);                                                                   \
  if (!temporary.ok())                                                                             \
    return temporary.status();                                                                     \
  declaration = std::move(*temporary)
/// Declares or assigns the value of a successful call; returns its Status otherwise.
#define GRADC_ASSIGN_OR_RETURN(declaration, expression)                                            \
  GRADC_ASSIGN_OR_RETURN_IMPL(GRADC_CONCAT(expectedAt, __LINE__), declaration, expression)
