// The assembler, played by scripts: what it does wrong is the machine's fault, in one line.
#include "codegen/MachineFault.h"
#include "codegen/gpu/Cubin.h"
#include "tests/runtime/DataFileLimit.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/FileSystem.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace gradc::codegen::gpu {
namespace {

const std::string ptx = ".version 8.0\n.visible .entry add(\n)\n.visible .entry add_1(\n)\n";

class GpuCubin : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("gradc-cubin", path));
    folder = path.str().str();
    temporary = folder + "/temporary";
    std::filesystem::create_directory(temporary);
    const char *before = std::getenv("TMPDIR");
    outside = before ? before : "";
    setenv("TMPDIR", temporary.c_str(), 1);
  }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(temporary));
    outside.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", outside.c_str(), 1);
    std::filesystem::remove_all(folder);
  }

  std::string write(const std::string &name, const std::string &content) const {
    std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  llvm::Expected<Cubin> assembled(const std::string &script, unsigned seconds = 60) const {
    return assemblePtx(ptx, GpuTarget{80}, write("ptxas", script), seconds);
  }
  /// A script whose fifth argument, the image, is what the shell `command` makes.
  llvm::Expected<Cubin> shell(const std::string &command, unsigned seconds = 60) const {
    return assembled("#!/bin/sh\n" + command + "\n", seconds);
  }
  /// The image as an assembler would leave it.
  std::string image(const std::string &names) const {
    std::string bytes(64, '\0');
    bytes.replace(0, 4, llvm::ELF::ElfMagic);
    bytes[18] = char(llvm::ELF::EM_CUDA);
    return bytes + names;
  }
  llvm::Expected<Cubin> copied(const std::string &content) const {
    return shell("cat " + write("image", content) + " > \"$5\"");
  }

  void expectFault(llvm::Expected<Cubin> cubin, const std::string &what) {
    ASSERT_FALSE(static_cast<bool>(cubin)) << what;
    llvm::Error error = cubin.takeError();
    EXPECT_TRUE(error.isA<MachineFault>());
    std::string said = llvm::toString(std::move(error));
    EXPECT_NE(said.find(what), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    EXPECT_NE(said.find("; set "), std::string::npos) << said;
  }

  std::string folder, temporary, outside;
};

TEST_F(GpuCubin, IsBelievedWhereItHasEveryKernel) {
  const std::string names("\0add\0.text.add_1\0", 17);
  auto cubin = copied(image(names));
  ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
  EXPECT_EQ(cubin->image, image(names));
}

TEST_F(GpuCubin, AnImageThatIsNone) {
  expectFault(shell("true"), "what it wrote is no ELF file");
  expectFault(copied("rubbish"), "what it wrote is no ELF file");
  expectFault(copied(image("").substr(0, 40)), "what it wrote is no ELF file");
  expectFault(shell("cp /bin/sh \"$5\""), "what it wrote is no code of a GPU");
  expectFault(copied(image("")), "what it wrote has no kernel add;");
  expectFault(copied(image(std::string("add\0add_10\0", 11))),
              "what it wrote has no kernel add_1;");
  expectFault(shell("rm \"$5\""), "what it wrote is gone");
}

TEST_F(GpuCubin, AnAssemblerThatFails) {
  expectFault(shell("echo 'ptxas info: 1'; echo 'line 3; error : bad' >&2; echo; exit 255"),
              "ptxas does not assemble the kernels: exit code 255: line 3; error : bad; set");
  expectFault(shell("exit 3"), "exit code 3: it says nothing");
  expectFault(shell("kill -9 $$"), "does not assemble the kernels: ");
  expectFault(assembled("\1\2"), "does not assemble the kernels: ");
  expectFault(shell("exec sleep 30", 1), "it did not end within 1 seconds");
}

TEST_F(GpuCubin, ADiskThatDoesNotDo) {
  setenv("TMPDIR", "/nonexistent", 1);
  expectFault(shell("true"), "/nonexistent: cannot be used for a GPU's kernels: No such file");
  setenv("TMPDIR", temporary.c_str(), 1);
  std::string ptxas = write("ptxas", "#!/bin/sh\n");
  rt::FileSizeLimit limit(100);
  expectFault(assemblePtx(std::string(1 << 20, ' '), GpuTarget{80}, ptxas),
              temporary + "/kernels-");
}

} // namespace
} // namespace gradc::codegen::gpu
