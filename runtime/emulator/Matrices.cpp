// Warp-wide operations on matrices: ldmatrix and mma.sync, with the fragments as PTX lays them out.
//
// mma adds the products of a row and a column one after another in f32, from k = 0, to a sum that
// starts at zero, and that sum to C. A GPU's order and rounding within one instruction are its own:
// the two agree within what f32 sums of any order do.
#include "runtime/emulator/Functions.h"
#include "runtime/emulator/Machine.h"
#include "runtime/emulator/Numbers.h"

#include <bit>
#include <cstring>

namespace gradc::rt::emulator {
namespace {

void loadMatrices(const GradcLanes &lanes, int count, bool transposed) {
  const GradcSite &site = *machine->current().waiting;
  for (int matrix = 0; matrix < count; ++matrix) {
    uint16_t elements[8][8];
    for (int row = 0; row < 8; ++row) {
      const std::byte *address;
      std::memcpy(static_cast<void *>(&address), lanes.operands[matrix * 8 + row], sizeof(address));
      machine->checkAlignment(address, site);
      machine->readSharedAsWarp(address, sizeof(elements[row]), site);
      std::memcpy(elements[row], address, sizeof(elements[row]));
    }
    for (int lane = 0; lane < 32; ++lane) {
      int row = lane / 4, column = lane % 4 * 2;
      uint32_t low = transposed ? elements[column][row] : elements[row][column];
      uint32_t high = transposed ? elements[column + 1][row] : elements[row][column + 1];
      lanes.results[lane][matrix] = low | high << 16;
    }
  }
}

float fromTf32(uint32_t word) { return std::bit_cast<float>(word & ~uint32_t(0x1fff)); }
float fromBf16Half(uint32_t half) { return fromBf16(uint16_t(half)); }
float fromF16Half(uint32_t half) { return fromF16(uint16_t(half)); }
float fromE4m3Byte(uint32_t byte) { return fromE4m3(uint8_t(byte)); }
float fromE5m2Byte(uint32_t byte) { return fromE5m2(uint8_t(byte)); }

/// D[16, 8] = A[16, K] B[K, 8] + C, with PerWord elements of A and B in a word. Lane l holds, with
/// g = l / 4 and q = l % 4, of A words (row g + 8 (i % 2), columns PerWord (q + 4 (i / 2)) and on),
/// of B words (rows PerWord (q + 4 i) and on, column g), of C (row g + 8 (i / 2), column 2q + i %
/// 2).
template <int K, int PerWord, typename DecodeA, typename DecodeB>
void multiply(const GradcLanes &lanes, DecodeA decodeA, DecodeB decodeB) {
  constexpr int words = K / PerWord; // of a row of A
  constexpr int aWords = words / 2, bWords = words / 4, bits = 32 / PerWord;
  float a[16][K], b[K][8];
  for (int lane = 0; lane < 32; ++lane) {
    int g = lane / 4, q = lane % 4;
    const uint32_t *operands = lanes.operands[lane];
    for (int i = 0; i < aWords; ++i)
      for (int e = 0; e < PerWord; ++e)
        a[g + 8 * (i % 2)][PerWord * (q + 4 * (i / 2)) + e] = decodeA(operands[i] >> (bits * e));
    for (int i = 0; i < bWords; ++i)
      for (int e = 0; e < PerWord; ++e)
        b[PerWord * (q + 4 * i) + e][g] = decodeB(operands[aWords + i] >> (bits * e));
  }
  float sums[16][8];
  for (int row = 0; row < 16; ++row) {
    float sum[8] = {};
    for (int k = 0; k < K; ++k)
      for (int column = 0; column < 8; ++column)
        sum[column] += a[row][k] * b[k][column];
    std::memcpy(sums[row], sum, sizeof(sum));
  }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      auto c = std::bit_cast<float>(lanes.operands[lane][aWords + bWords + i]);
      float sum = sums[lane / 4 + 8 * (i / 2)][lane % 4 * 2 + i % 2];
      lanes.results[lane][i] = std::bit_cast<uint32_t>(c + sum);
    }
}

} // namespace

extern "C" {

void gradc_emulated_load_matrix_x1(const GradcLanes *lanes) { loadMatrices(*lanes, 1, false); }
void gradc_emulated_load_matrix_x2(const GradcLanes *lanes) { loadMatrices(*lanes, 2, false); }
void gradc_emulated_load_matrix_x4(const GradcLanes *lanes) { loadMatrices(*lanes, 4, false); }
void gradc_emulated_load_matrix_x1_transposed(const GradcLanes *lanes) {
  loadMatrices(*lanes, 1, true);
}
void gradc_emulated_load_matrix_x2_transposed(const GradcLanes *lanes) {
  loadMatrices(*lanes, 2, true);
}
void gradc_emulated_load_matrix_x4_transposed(const GradcLanes *lanes) {
  loadMatrices(*lanes, 4, true);
}

void gradc_emulated_mma_m16n8k8_bf16(const GradcLanes *lanes) {
  multiply<8, 2>(*lanes, fromBf16Half, fromBf16Half);
}
void gradc_emulated_mma_m16n8k8_f16(const GradcLanes *lanes) {
  multiply<8, 2>(*lanes, fromF16Half, fromF16Half);
}
void gradc_emulated_mma_m16n8k16_bf16(const GradcLanes *lanes) {
  multiply<16, 2>(*lanes, fromBf16Half, fromBf16Half);
}
void gradc_emulated_mma_m16n8k16_f16(const GradcLanes *lanes) {
  multiply<16, 2>(*lanes, fromF16Half, fromF16Half);
}
void gradc_emulated_mma_m16n8k4_tf32(const GradcLanes *lanes) {
  multiply<4, 1>(*lanes, fromTf32, fromTf32);
}
void gradc_emulated_mma_m16n8k8_tf32(const GradcLanes *lanes) {
  multiply<8, 1>(*lanes, fromTf32, fromTf32);
}
void gradc_emulated_mma_m16n8k32_e4m3(const GradcLanes *lanes) {
  multiply<32, 4>(*lanes, fromE4m3Byte, fromE4m3Byte);
}
void gradc_emulated_mma_m16n8k32_e5m2(const GradcLanes *lanes) {
  multiply<32, 4>(*lanes, fromE5m2Byte, fromE5m2Byte);
}
void gradc_emulated_mma_m16n8k32_e4m3_e5m2(const GradcLanes *lanes) {
  multiply<32, 4>(*lanes, fromE4m3Byte, fromE5m2Byte);
}
void gradc_emulated_mma_m16n8k32_e5m2_e4m3(const GradcLanes *lanes) {
  multiply<32, 4>(*lanes, fromE5m2Byte, fromE4m3Byte);
}

} // extern "C"

} // namespace gradc::rt::emulator
