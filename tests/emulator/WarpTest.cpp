// Shuffles, votes, matches and reductions of a warp.
#include "tests/emulator/LoadedModule.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

namespace gradc {
namespace {

uint32_t value(uint32_t lane) { return lane * 2654435761u >> 7; }

/// What the instructions in `body` leave in %r (i32), a lane each, of %x = in[lane] = value(lane).
std::string warpKernel(const std::string &body) {
  return R"(
define ptx_kernel void @warp(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %extent) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %p = getelementptr i32, ptr addrspace(1) %in, i32 %lane
  %x = load i32, ptr addrspace(1) %p, align 4
  %bit = and i32 %x, 1
  %odd = icmp eq i32 %bit, 1
)" + body +
         R"(
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %lane
  store i32 %r, ptr addrspace(1) %o, align 4
  ret void
}
)";
}

rt::Status run(const std::string &body, std::vector<uint32_t> &out,
               uint32_t (*input)(uint32_t) = value) {
  LoadedModule module(warpKernel(body));
  std::vector<uint32_t> in;
  for (uint32_t lane = 0; lane < 32; ++lane)
    in.push_back(input(lane));
  out.assign(32, 0xdddddddd);
  return Launch(module, "warp", 1, 32).reads(in).writes(out).run();
}

void expectLanes(const std::string &body, const std::function<uint32_t(uint32_t)> &expected,
                 uint32_t (*input)(uint32_t) = value) {
  SCOPED_TRACE(body);
  std::vector<uint32_t> out;
  expectOk(run(body, out, input));
  for (uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], expected(lane)) << lane;
}

std::string shuffle(const std::string &kind, const std::string &distance, int clamp,
                    const std::string &mask = "-1") {
  return "%r = call i32 @llvm.nvvm.shfl.sync." + kind + ".i32(i32 " + mask + ", i32 %x, i32 " +
         distance + ", i32 " + std::to_string(clamp) + ")";
}

TEST(EmulatorWarp, Shuffles) {
  expectLanes(shuffle("bfly", "5", 31), [](uint32_t lane) { return value(lane ^ 5); });
  expectLanes(shuffle("down", "3", 31),
              [](uint32_t lane) { return value(lane + 3 < 32 ? lane + 3 : lane); });
  expectLanes(shuffle("up", "3", 0),
              [](uint32_t lane) { return value(lane >= 3 ? lane - 3 : lane); });
  expectLanes(shuffle("idx", "9", 31), [](uint32_t) { return value(9); });
}

TEST(EmulatorWarp, ShufflesInSegmentsOfEight) {
  constexpr int segment = 24 << 8; // lanes that agree in the bits of 24
  expectLanes(shuffle("idx", "%lane", segment | 31), [](uint32_t lane) { return value(lane); });
  expectLanes(shuffle("idx", "2", segment | 31),
              [](uint32_t lane) { return value((lane & 24) | 2); });
  expectLanes(shuffle("down", "3", segment | 31),
              [](uint32_t lane) { return value(lane % 8 + 3 < 8 ? lane + 3 : lane); });
  expectLanes(shuffle("up", "3", segment),
              [](uint32_t lane) { return value(lane % 8 >= 3 ? lane - 3 : lane); });
}

TEST(EmulatorWarp, ShuffleSaysWhoIsInRange) {
  expectLanes(
      R"(%both = call {i32, i1} @llvm.nvvm.shfl.sync.down.i32p(i32 -1, i32 %x, i32 4, i32 31)
  %isIn = extractvalue {i32, i1} %both, 1
  %r = zext i1 %isIn to i32)",
      [](uint32_t lane) { return lane + 4 < 32; });
}

TEST(EmulatorWarp, ShufflesFloats) {
  expectLanes(R"(%f = bitcast i32 %x to float
  %g = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %f, i32 16, i32 31)
  %r = bitcast float %g to i32)",
              [](uint32_t lane) { return value(lane ^ 16); });
}

/// Halves of the warp that do one thing each, at the same time.
std::string halves(const std::string &first, const std::string &second) {
  return R"(%isFirst = icmp ult i32 %lane, 16
  br i1 %isFirst, label %first, label %second
first:
  %a = )" +
         first + R"(
  br label %join
second:
  %b = )" +
         second + R"(
  br label %join
join:
  %r = phi i32 [ %a, %first ], [ %b, %second ])";
}

TEST(EmulatorWarp, HalvesApart) {
  std::string exchange = "call i32 @llvm.nvvm.shfl.sync.bfly.i32(";
  expectLanes(halves(exchange + "i32 65535, i32 %x, i32 1, i32 31)",
                     exchange + "i32 -65536, i32 %x, i32 2, i32 31)"),
              [](uint32_t lane) { return value(lane ^ (lane < 16 ? 1 : 2)); });
}

TEST(EmulatorWarp, Divergence) {
  std::string exchange = "call i32 @llvm.nvvm.shfl.sync.bfly.i32(";
  std::vector<uint32_t> out;
  expectReport(run(halves(exchange + "i32 -1, i32 %x, i32 1, i32 31)",
                          exchange + "i32 -1, i32 %x, i32 2, i32 31)"),
                   out),
               {"block 0, thread 16 ", "divergent: this lane is at `%b = call",
                "others of the warp are at `%a = call"});
  expectReport(
      run(halves(exchange + "i32 65535, i32 %x, i32 16, i32 31)",
                 exchange + "i32 -65536, i32 %x, i32 2, i32 31)"),
          out),
      {"divergent: lane 0 reads a register of lane 16, which is not in the mask 0x0000ffff",
       "%a = call"});
}

uint32_t odds() {
  uint32_t result = 0;
  for (uint32_t lane = 0; lane < 32; ++lane)
    result |= (value(lane) & 1) << lane;
  return result;
}

TEST(EmulatorWarp, Votes) {
  auto vote = [](const std::string &kind) {
    return "%v = call i1 @llvm.nvvm.vote." + kind +
           ".sync(i32 -1, i1 %odd)\n  %r = zext i1 %v to i32";
  };
  expectLanes("%r = call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %odd)",
              [](uint32_t) { return odds(); });
  expectLanes(vote("any"), [](uint32_t) { return 1; });
  expectLanes(vote("all"), [](uint32_t) { return 0; });
  expectLanes(vote("uni"), [](uint32_t) { return 0; });
  auto allOdd = [](uint32_t lane) { return 2 * lane + 1; };
  expectLanes(vote("all"), [](uint32_t) { return 1; }, allOdd);
  expectLanes(vote("uni"), [](uint32_t) { return 1; }, allOdd);
  auto allEven = [](uint32_t lane) { return 2 * lane; };
  expectLanes(vote("any"), [](uint32_t) { return 0; }, allEven);
  expectLanes(vote("uni"), [](uint32_t) { return 1; }, allEven);
}

TEST(EmulatorWarp, Matches) {
  auto thirds = [](uint32_t lane) { return lane % 3; };
  expectLanes(
      "%r = call i32 @llvm.nvvm.match.any.sync.i32(i32 -1, i32 %x)",
      [](uint32_t lane) {
        uint32_t equal = 0;
        for (uint32_t other = lane % 3; other < 32; other += 3)
          equal |= 1u << other;
        return equal;
      },
      thirds);
  auto all = [](const std::string &part, const std::string &convert) {
    return "%m = call {i32, i1} @llvm.nvvm.match.all.sync.i32p(i32 -1, i32 %x)\n  %e = "
           "extractvalue "
           "{i32, i1} %m, " +
           part + "\n  %r = " + convert;
  };
  auto same = [](uint32_t) { return 7u; };
  expectLanes(all("0", "add i32 %e, 0"), [](uint32_t) { return 0; }, thirds);
  expectLanes(all("0", "add i32 %e, 0"), [](uint32_t) { return ~0u; }, same);
  expectLanes(all("1", "zext i1 %e to i32"), [](uint32_t) { return 1; }, same);
}

TEST(EmulatorWarp, Reductions) {
  uint32_t sum = 0, most = 0, least = ~0u, all = ~0u, any = 0, parity = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t x = value(lane);
    sum += x;
    most = std::max(most, x);
    least = std::min(least, x);
    all &= x;
    any |= x;
    parity ^= x;
  }
  auto expect = [&](const std::string &kind, uint32_t expected) {
    expectLanes("%r = call i32 @llvm.nvvm.redux.sync." + kind + "(i32 %x, i32 -1)",
                [&](uint32_t) { return expected; });
  };
  expect("add", sum);
  expect("umax", most);
  expect("umin", least);
  expect("max", most); // none is negative as a signed number
  expect("min", least);
  expect("and", all);
  expect("or", any);
  expect("xor", parity);
  auto negative = [](uint32_t lane) { return 5 - lane; };
  expectLanes(
      "%r = call i32 @llvm.nvvm.redux.sync.min(i32 %x, i32 -1)",
      [](uint32_t) { return static_cast<uint32_t>(-26); }, negative);
  expectLanes(
      "%r = call i32 @llvm.nvvm.redux.sync.max(i32 %x, i32 -1)", [](uint32_t) { return 5; },
      negative);
}

} // namespace
} // namespace gradc
