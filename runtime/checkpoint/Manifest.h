// `manifest.json`: what a checkpoint says about itself, and the seal by which it is believed.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Hash.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace gradc::rt {

/// The state of a run beside its tensors.
struct Manifest {
  uint64_t step = 0;       ///< optimizer steps done
  std::string fingerprint; ///< identifies the model and step program; must match to resume
  uint64_t dataCursor = 0; ///< microbatches consumed
  uint64_t rngSeed = 0;
  nlohmann::json extra = nlohmann::json::object(); ///< anything else, kept as it is
};

/// A file of the checkpoint, by its name inside the checkpoint's folder.
struct ManifestFile {
  std::string name;
  FileDigest digest;
};

/// A manifest with the files it vouches for.
struct SealedManifest {
  Manifest manifest;
  std::vector<ManifestFile> files;
};

/// JSON text that carries a hash of itself.
std::string printManifest(const SealedManifest &sealed);

/// Refuses text that is not such a manifest, is damaged, or names files outside its folder. `what`
/// begins each error.
Expected<SealedManifest> parseManifest(std::string_view text, std::string_view what);

} // namespace gradc::rt
