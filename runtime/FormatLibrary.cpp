// The formatting library itself, compiled here once: executables then need no library of it, and
// the other files need not compile it each on its own, which took most of the time they took.
#include <fmt/format-inl.h>

// The templates that the headers declare and leave to this file.
namespace fmt::detail {
template thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template char decimal_point_impl<char>(locale_ref);
template dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;
template void vformat_to(buffer<char> &, string_view, basic_format_args<buffer_context<char>>,
                         locale_ref);
template locale_ref::locale_ref(const std::locale &);
template std::locale locale_ref::get<std::locale>() const;
} // namespace fmt::detail
