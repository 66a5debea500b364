// Any bytes as a checkpoint's manifest: refused or read; what is read prints and reads the same.
// The seal keeps random text from getting far, so each input is also tried with a seal of its own.
#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/StrictJson.h"

#include <cstdlib>
#include <span>

using namespace gradc::rt;
using nlohmann::json;

static void tryText(std::string_view text) {
  auto sealed = parseManifest(text, "fuzz");
  if (!sealed)
    return;
  for (const ManifestFile &file : sealed->files)
    if (file.name.find('/') != std::string::npos || file.name.empty())
      std::abort();
  auto again = parseManifest(printManifest(*sealed), "again");
  if (!again || again->manifest.step != sealed->manifest.step ||
      again->manifest.extra != sealed->manifest.extra ||
      again->files.size() != sealed->files.size())
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  tryText(text);
  auto value = parseStrictJson(text, "fuzz");
  if (!value)
    return 0;
  json content = value->is_object() && value->contains("content") ? (*value)["content"] : *value;
  std::string printed = content.dump(-1, ' ', true, json::error_handler_t::replace);
  std::string seal = digestOf(std::as_bytes(std::span(printed))).hash;
  tryText(json{{"content", content}, {"xxh3_128", seal}}.dump());
  return 0;
}
