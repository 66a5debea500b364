// See ByteSize.h.
#include "tools/driver/ByteSize.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace gradc {

std::optional<int64_t> parseByteSize(llvm::StringRef text) {
  text = text.trim();
  llvm::StringRef digits =
      text.take_while([](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  double number = 0;
  if (digits.getAsDouble(number))
    return std::nullopt;
  double unit = llvm::StringSwitch<double>(text.drop_front(digits.size()).trim().lower())
                    .Cases({"", "b"}, 1)
                    .Case("kib", 0x1p10)
                    .Case("mib", 0x1p20)
                    .Case("gib", 0x1p30)
                    .Case("tib", 0x1p40)
                    .Case("kb", 1e3)
                    .Case("mb", 1e6)
                    .Case("gb", 1e9)
                    .Case("tb", 1e12)
                    .Default(0);
  double bytes = number * unit;
  constexpr double most = 0x1p60;
  if (!(bytes >= 1) || bytes > most)
    return std::nullopt;
  return static_cast<int64_t>(bytes);
}

std::string formatByteSize(int64_t bytes) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30)
    stream << llvm::format("%.2f GiB", value / 0x1p30);
  else
    stream << llvm::format("%.1f MiB", value / 0x1p20);
  return text;
}

} // namespace gradc
