// Save, verify, load and prune checkpoint folders.
#include "runtime/checkpoint/Checkpoint.h"

#include "runtime/checkpoint/AtomicFile.h"
#include "runtime/checkpoint/StrictJson.h"
#include "runtime/data/FileError.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>

namespace gradc::rt {

namespace fs = std::filesystem;

static constexpr std::string_view prefix = "step-";
static constexpr std::string_view temporarySuffix = ".tmp";
static constexpr const char *tensorFile = "rank-0.safetensors";
static constexpr const char *manifestFile = "manifest.json";

static std::string stepPath(const std::string &folder, uint64_t step) {
  return fmt::format("{}/{}{}", folder, prefix, step);
}

/// The N of a name `step-N`, without leading zeros.
static std::optional<uint64_t> stepOf(std::string_view name) {
  if (!name.starts_with(prefix))
    return std::nullopt;
  std::string_view digits = name.substr(prefix.size());
  uint64_t step = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || fmt::format("{}", step) != digits)
    return std::nullopt;
  return step;
}

static Expected<std::vector<std::string>> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error), end;
  if (error == std::errc::no_such_file_or_directory)
    return names;
  for (; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error)
    return fileError(folder, "list", error.value());
  return names;
}

Expected<std::vector<uint64_t>> listCheckpoints(const std::string &folder) {
  GRADC_ASSIGN_OR_RETURN(std::vector<std::string> names, namesIn(folder));
  std::vector<uint64_t> steps;
  for (const std::string &name : names)
    if (auto step = stepOf(name))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static Expected<SealedManifest> readManifest(const std::string &folder, uint64_t step) {
  std::string path = fmt::format("{}/{}", stepPath(folder, step), manifestFile);
  GRADC_ASSIGN_OR_RETURN(std::string text, readText(path));
  GRADC_ASSIGN_OR_RETURN(SealedManifest sealed, parseManifest(text, path));
  if (sealed.manifest.step != step)
    return Status::user(
        fmt::format("{}: says step {}; the folder was renamed", path, sealed.manifest.step));
  return sealed;
}

static Status wrongSize(const std::string &path, uint64_t actual, uint64_t expected) {
  return Status::user(
      fmt::format("{}: holds {} bytes, the manifest says {}", path, actual, expected));
}

static Expected<std::string> hashOf(const FileBytes &file) {
  Hasher hasher;
  std::vector<std::byte> part(std::min<uint64_t>(file.size(), 1 << 20));
  for (uint64_t first = 0; first < file.size(); first += part.size()) {
    std::span<std::byte> bytes(part.data(), std::min<uint64_t>(part.size(), file.size() - first));
    GRADC_RETURN_IF_ERROR(file.subspan(first, bytes.size()).read(bytes));
    hasher.update(bytes.data(), bytes.size());
  }
  return hasher.digest().hash;
}

/// Verifies one checkpoint whole: manifest, sizes, hashes and the tensors' header.
static Expected<Checkpoint> verify(const std::string &folder, uint64_t step) {
  GRADC_ASSIGN_OR_RETURN(SealedManifest sealed, readManifest(folder, step));
  Checkpoint checkpoint{sealed.manifest, {}, stepPath(folder, step)};
  bool hasTensors = false;
  for (const ManifestFile &file : sealed.files) {
    std::string path = fmt::format("{}/{}", checkpoint.path, file.name);
    GRADC_ASSIGN_OR_RETURN(InputFile opened, InputFile::open(path));
    FileBytes bytes(std::move(opened));
    if (bytes.size() != file.digest.bytes)
      return wrongSize(path, bytes.size(), file.digest.bytes);
    GRADC_ASSIGN_OR_RETURN(std::string hash, hashOf(bytes));
    if (hash != file.digest.hash)
      return Status::user(fmt::format("{}: its hash does not match the manifest", path));
    if (file.name != tensorFile)
      continue;
    hasTensors = true;
    GRADC_ASSIGN_OR_RETURN(checkpoint.tensors, SafetensorsFile::parse(bytes, path));
  }
  if (!hasTensors)
    return Status::user(fmt::format("{}: the manifest lists no {}", checkpoint.path, tensorFile));
  return checkpoint;
}

Expected<LoadResult> loadNewestCheckpoint(const std::string &folder,
                                          const std::string &fingerprint) {
  GRADC_ASSIGN_OR_RETURN(std::vector<uint64_t> steps, listCheckpoints(folder));
  LoadResult result;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    Expected<Checkpoint> checkpoint = verify(folder, *step);
    if (!checkpoint) {
      // A lack of memory or file handles says nothing about the checkpoint: do not fall back.
      if (checkpoint.status().code() == ExitCode::machineFault)
        return checkpoint.status();
      result.skipped.push_back(checkpoint.status().message());
      continue;
    }
    if (checkpoint->manifest.fingerprint != fingerprint)
      return Status::user(fmt::format("{}: was saved by model {} but this executable is {}; resume "
                                      "with the executable that saved it or use another folder",
                                      checkpoint->path, printable(checkpoint->manifest.fingerprint),
                                      printable(fingerprint)));
    result.newest.emplace(std::move(*checkpoint));
    break;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Saving
//===----------------------------------------------------------------------===//

/// Removes what a path holds; what cannot be removed only costs space, and is tried again later.
static void discard(const std::string &path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

static Status writeInto(const std::string &folder, const Manifest &manifest,
                        std::span<const TensorView> tensors) {
  GRADC_ASSIGN_OR_RETURN(FileDigest digest, writeSafetensors(folder + "/" + tensorFile, tensors));
  std::string text = printManifest({manifest, {{tensorFile, digest}}});
  GRADC_ASSIGN_OR_RETURN(AtomicFile file,
                         AtomicFile::create(folder + "/" + manifestFile, text.size()));
  GRADC_RETURN_IF_ERROR(file.write(text.data(), text.size()));
  return file.commit().status();
}

/// Puts the finished `temporary` at `final`. An existing checkpoint is exchanged with it in one
/// step, and what was there is then at `temporary`.
static Status publish(const std::string &temporary, const std::string &final) {
  std::error_code ignored;
  if (!fs::exists(final, ignored)) {
    if (::rename(temporary.c_str(), final.c_str()) == 0)
      return {};
    return fileError(final, "create", errno);
  }
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0)
    return {};
  if (errno != EINVAL && errno != ENOSYS)
    return fileError(final, "replace", errno);
  // A file system without exchange: between the two renames this step has no checkpoint under its
  // name, and a crash there falls back to the one before it.
  std::string old = fmt::format("{}.old{}", final, temporarySuffix);
  discard(old);
  if (::rename(final.c_str(), old.c_str()) < 0)
    return fileError(final, "replace", errno);
  if (::rename(temporary.c_str(), final.c_str()) == 0)
    return {};
  int error = errno;
  ::rename(old.c_str(), final.c_str());
  return fileError(final, "replace", error);
}

/// A cheap look, without hashes: is this checkpoint worth counting as one that is kept?
static bool looksSound(const std::string &folder, uint64_t step) {
  Expected<SealedManifest> sealed = readManifest(folder, step);
  if (!sealed)
    return false;
  return std::all_of(sealed->files.begin(), sealed->files.end(), [&](const ManifestFile &file) {
    std::error_code error;
    uint64_t size = fs::file_size(fmt::format("{}/{}", stepPath(folder, step), file.name), error);
    return !error && size == file.digest.bytes;
  });
}

/// Deletes checkpoints older than the newest `keep` sound ones up to `step`, and leftovers.
static Status prune(const std::string &folder, uint64_t step, unsigned keep) {
  GRADC_ASSIGN_OR_RETURN(std::vector<uint64_t> steps, listCheckpoints(folder));
  unsigned kept = 0;
  for (auto each = steps.rbegin(); each != steps.rend(); ++each) {
    if (*each > step)
      continue;
    if (kept < std::max(keep, 2u)) {
      kept += looksSound(folder, *each);
      continue;
    }
    // Renamed first, so that a kill during the removal leaves no half of a checkpoint.
    std::string path = stepPath(folder, *each);
    std::string doomed = path + std::string(temporarySuffix);
    discard(doomed);
    if (::rename(path.c_str(), doomed.c_str()) < 0)
      return fileError(path, "delete", errno);
  }
  GRADC_ASSIGN_OR_RETURN(std::vector<std::string> names, namesIn(folder));
  for (const std::string &name : names)
    if (name.starts_with(prefix) && name.ends_with(temporarySuffix))
      discard(fmt::format("{}/{}", folder, name));
  return {};
}

Status saveCheckpoint(const std::string &folder, const Manifest &manifest,
                      std::span<const TensorView> tensors, unsigned keep) {
  std::string final = stepPath(folder, manifest.step);
  std::string temporary = final + std::string(temporarySuffix);
  std::error_code error;
  bool isNew = fs::create_directories(folder, error);
  if (error)
    return fileError(folder, "create the folder", error.value());
  if (isNew)
    GRADC_RETURN_IF_ERROR(syncFolder(folder + "/.."));
  discard(temporary);
  fs::create_directory(temporary, error);
  if (error)
    return fileError(temporary, "create the folder", error.value());

  Status written = writeInto(temporary, manifest, tensors);
  if (written.ok())
    written = publish(temporary, final);
  if (!written.ok()) {
    discard(temporary);
    return written;
  }
  GRADC_RETURN_IF_ERROR(syncFolder(folder));
  return prune(folder, manifest.step, keep);
}

} // namespace gradc::rt
