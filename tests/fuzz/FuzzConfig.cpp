// Any bytes as a config.json: read as a model or refused in one line, never a crash.
#include "frontend/models/Model.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace gradc;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  llvm::Expected<ConfigFile> file = ConfigFile::parse(text, "fuzz");
  if (!file) {
    if (llvm::StringRef(llvm::toString(file.takeError())).contains('\n'))
      std::abort(); // an error is one line
    return 0;
  }
  for (DropoutPolicy dropout : {DropoutPolicy::asConfigured, DropoutPolicy::off}) {
    llvm::Expected<std::unique_ptr<Model>> model = readModel(*file, dropout);
    if (model) {
      if ((*model)->vocab() < 1 || (*model)->maxPositions() < 1)
        std::abort();
    } else if (llvm::StringRef(llvm::toString(model.takeError())).contains('\n')) {
      std::abort();
    }
  }
  return 0;
}
