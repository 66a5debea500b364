// The table of model families.
#include "frontend/models/Model.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace gradc {

std::unique_ptr<Model> readGpt2(ConfigReader &config, DropoutPolicy dropout);
std::unique_ptr<Model> readLlama(ConfigReader &config, DropoutPolicy dropout);
std::unique_ptr<Model> readMistral(ConfigReader &config, DropoutPolicy dropout);
std::unique_ptr<Model> readQwen2(ConfigReader &config, DropoutPolicy dropout);

llvm::ArrayRef<ModelFamily> modelFamilies() {
  static const ModelFamily table[] = {
      {"gpt2", readGpt2},
      {"llama", readLlama},
      {"mistral", readMistral},
      {"qwen2", readQwen2},
  };
  return table;
}

llvm::Expected<std::unique_ptr<Model>> readModel(const ConfigFile &file, DropoutPolicy dropout) {
  ConfigReader typeReader(file, "any model");
  std::string type = typeReader.string("model_type", "");
  if (!typeReader.failed()) {
    for (const ModelFamily &family : modelFamilies()) {
      if (family.modelType != type)
        continue;
      ConfigReader config(file, "model_type " + type);
      config.ignore({"model_type"});
      std::unique_ptr<Model> model = family.read(config, dropout);
      if (llvm::Error error = config.finish())
        return error;
      return model;
    }
    auto names = llvm::map_range(modelFamilies(), [](auto &family) { return family.modelType; });
    std::string known = llvm::join(names, ", ");
    if (typeReader.has("model_type"))
      typeReader.refuse("model_type", "is not implemented; implemented are " + known);
    else
      typeReader.fail("key \"model_type\" is missing; set it to one of " + known);
  }
  return typeReader.error();
}

} // namespace gradc
