// Machine: async copies. A copy takes effect when it is waited for and no sooner, so that a kernel
// which reads too early gets what was there before.
#include "runtime/emulator/Functions.h"
#include "runtime/emulator/Machine.h"

#include <cstring>

#include <fmt/format.h>

namespace gradc::rt::emulator {

void Machine::copyAsync(std::byte *destination, const std::byte *source, int64_t sourceBytes,
                        const GradcSite &site) {
  checkAlignment(destination, site);
  if (sourceBytes < 0 || sourceBytes > site.bytes)
    fail([&] {
      return fmt::format("copies {} of {} bytes: {}; the size of the source must be in that range",
                         sourceBytes, site.bytes, site.text);
    });
  if (sourceBytes > 0) {
    checkAlignment(source, site);
    accessGlobal(source, sourceBytes, Access::read, site);
  }
  accessShared(destination, site.bytes, Access::issueCopy, site);
  current_->copies.push_back({destination, source, sourceBytes, current_->committedGroups, &site});
}

void Machine::waitCopies(int64_t groupsInFlight) {
  std::vector<AsyncCopy> &copies = current_->copies;
  std::size_t done = 0;
  for (; done < copies.size(); ++done) {
    const AsyncCopy &copy = copies[done];
    if (copy.group >= current_->committedGroups - groupsInFlight)
      break;
    accessShared(copy.destination, copy.site->bytes, Access::finishCopy, *copy.site);
    if (copy.sourceBytes > 0)
      std::memcpy(copy.destination, copy.source, std::size_t(copy.sourceBytes));
    std::memset(copy.destination + copy.sourceBytes, 0,
                std::size_t(copy.site->bytes - copy.sourceBytes));
  }
  copies.erase(copies.begin(), copies.begin() + std::ptrdiff_t(done));
}

extern "C" {

void gradc_emulated_copy_async(P destination, P source, I sourceBytes, S site) {
  machine->copyAsync(static_cast<std::byte *>(destination), static_cast<std::byte *>(source),
                     sourceBytes, *site);
}
void gradc_emulated_commit_copies() { machine->commitCopies(); }
void gradc_emulated_wait_copies(I groupsInFlight) { machine->waitCopies(groupsInFlight); }
void gradc_emulated_wait_all_copies() {
  machine->commitCopies();
  machine->waitCopies(0);
}

} // extern "C"

} // namespace gradc::rt::emulator
