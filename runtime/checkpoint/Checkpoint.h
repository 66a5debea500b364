// Checkpoints that survive crashes. A checkpoint is a folder `step-N` that holds
// `rank-0.safetensors` and `manifest.json`; it is written under `step-N.tmp`, made durable and only
// then renamed. There is no pointer to the newest one: it is the highest N that verifies.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/Safetensors.h"
#include "runtime/checkpoint/SafetensorsWriter.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gradc::rt {

/// A verified checkpoint. The tensors stay readable when the folder is deleted.
struct Checkpoint {
  Manifest manifest;
  SafetensorsFile tensors;
  std::string path;
};

/// What a folder of checkpoints yielded.
struct LoadResult {
  std::optional<Checkpoint> newest; ///< none when the folder is missing or holds no valid one
  std::vector<std::string> skipped; ///< one line for each newer one that did not verify
};

/// Commits a checkpoint of `manifest.step` into `folder` (made when missing); one that exists is
/// replaced. Then deletes older ones so that `keep` remain, at least two, counting only those
/// whose manifest and file sizes are sound; newer ones are left alone. On error nothing that was
/// saved is lost; a full disk names the bytes needed. One process a folder at a time.
Status saveCheckpoint(const std::string &folder, const Manifest &manifest,
                      std::span<const TensorView> tensors, unsigned keep);

/// Loads the newest checkpoint whose manifest, sizes and hashes verify; broken ones are skipped
/// and reported, leftovers of interrupted saves ignored. When that one's fingerprint is not
/// `fingerprint`, that is a user error that names both.
Expected<LoadResult> loadNewestCheckpoint(const std::string &folder,
                                          const std::string &fingerprint);

/// The steps of all committed checkpoints, rising, sound or not; empty when the folder is missing.
Expected<std::vector<uint64_t>> listCheckpoints(const std::string &folder);

} // namespace gradc::rt
