// Session: checks that an executable may run here, and moves data in and out of its slots.
#include "runtime/Session.h"

#include <cstring>

#include <fmt/format.h>

#include "runtime/CpuFeatures.h"

namespace gradc::rt {
namespace {

/// Damage of the metadata that leaves it JSON with every field.
Status noSlot(std::string_view name) {
  return Status::machine(fmt::format(
      "the executable's metadata is damaged, it has no slot {}; compile it again", name));
}

} // namespace

std::string checkpointName(const Slot &slot) {
  if (slot.role == SlotRole::optimizer)
    return fmt::format("optimizer.{}/{}", slot.optimizerSlot, slot.name);
  return slot.name;
}

Expected<std::unique_ptr<Session>> Session::open(const GradcExecutable &executable,
                                                 Metadata metadata, int threads) {
  if (executable.abiVersion != GRADC_ABI_VERSION)
    return Status::defect(fmt::format("the program was compiled for ABI {} and linked with a "
                                      "runtime of ABI {}; compile it again",
                                      executable.abiVersion, GRADC_ABI_VERSION));
  GRADC_RETURN_IF_ERROR(checkCpuFeatures(metadata.cpuFeatures));
  GRADC_ASSIGN_OR_RETURN(auto pool, ThreadPool::create(threads));
  GRADC_ASSIGN_OR_RETURN(auto device, executable.device->create(executable, *pool));
  GRADC_RETURN_IF_ERROR(device->allocate(
      {metadata.stateBytes, metadata.arenaBytes, executable.constants, executable.constantBytes}));
  return std::unique_ptr<Session>(
      new Session(executable, std::move(metadata), std::move(pool), std::move(device)));
}

bool Session::hasProgram(std::string_view name) const {
  for (int64_t i = 0; i < executable_.programCount; ++i)
    if (executable_.programs[i].name == name)
      return true;
  return false;
}

Status Session::run(std::string_view name) {
  for (int64_t i = 0; i < executable_.programCount; ++i)
    if (executable_.programs[i].name == name) {
      device_->forgetArena();
      return device_->run(executable_.programs[i], observer_);
    }
  return Status::user(
      fmt::format("this executable has no program {}; compile the model with it", name));
}

Status Session::write(std::string_view name, const void *data, int64_t bytes) {
  const Slot *slot = metadata_.find(name);
  if (!slot || slot->bytes != bytes)
    return noSlot(fmt::format("{} of {} bytes", name, bytes));
  return device_->write(GRADC_STATE, slot->offset, data, bytes);
}

Status Session::read(std::string_view name, void *data, int64_t bytes) {
  const Slot *slot = metadata_.find(name);
  if (!slot || slot->bytes != bytes)
    return noSlot(fmt::format("{} of {} bytes", name, bytes));
  return device_->read(GRADC_STATE, slot->offset, data, bytes);
}

Status Session::writeScalar(std::string_view name, double value) {
  if (!metadata_.find(name))
    return Status();
  float narrowed = float(value);
  return write(name, &narrowed, sizeof(narrowed));
}

Expected<double> Session::readScalar(std::string_view name) {
  const Slot *slot = metadata_.find(name);
  if (slot && slot->type == SlotType::i32) {
    int32_t integer = 0;
    GRADC_RETURN_IF_ERROR(read(name, &integer, sizeof(integer)));
    return double(integer);
  }
  float value = 0;
  GRADC_RETURN_IF_ERROR(read(name, &value, sizeof(value)));
  return double(value);
}

Status Session::accessFloats(const Slot &slot, Access mode,
                             const std::function<Status(float *)> &use) {
  return device_->access(GRADC_STATE, slot.offset, slot.bytes, mode,
                         [&](std::byte *bytes) { return use(reinterpret_cast<float *>(bytes)); });
}

Status Session::readGradient(const Slot &slot, const std::function<Status(const float *)> &use) {
  return device_->access(GRADC_ARENA, slot.offset, slot.bytes, Access::read, [&](std::byte *bytes) {
    return use(reinterpret_cast<const float *>(bytes));
  });
}

Status Session::clearOptimizer() {
  for (const Slot &slot : metadata_.state)
    if (slot.role == SlotRole::optimizer)
      GRADC_RETURN_IF_ERROR(accessFloats(slot, Access::write, [&](float *values) {
        std::memset(values, 0, std::size_t(slot.bytes));
        return Status();
      }));
  return Status();
}

Status Session::initialiseParameters(InitKind kind, uint64_t seed) {
  for (const Slot &slot : metadata_.state)
    if (slot.role == SlotRole::parameter)
      GRADC_RETURN_IF_ERROR(accessFloats(slot, Access::write, [&](float *values) {
        initialise(slot, kind, seed, values, pool());
        return Status();
      }));
  GRADC_RETURN_IF_ERROR(clearOptimizer());
  return refreshLowParameters();
}

Status Session::refreshLowParameters() {
  return hasProgram("low_parameters") ? run("low_parameters") : Status();
}

std::vector<TensorView> Session::parameterViews(bool withOptimizer) {
  std::vector<TensorView> views;
  for (const Slot &slot : metadata_.state)
    if (slot.role == SlotRole::parameter || (withOptimizer && slot.role == SlotRole::optimizer))
      views.push_back({checkpointName(slot), FileDtype::f32, slot.shape,
                       TensorBytes::Lend([this, &slot](const TensorBytes::Use &use) {
                         return accessFloats(slot, Access::read, use);
                       })});
  return views;
}

std::vector<TensorView> Session::gradientViews() {
  std::vector<TensorView> views;
  for (const Slot &slot : metadata_.gradients)
    views.push_back({slot.name, FileDtype::f32, slot.shape,
                     TensorBytes::Lend([this, &slot](const TensorBytes::Use &use) {
                       return readGradient(slot, use);
                     })});
  return views;
}

} // namespace gradc::rt
