// RUN: gradc-opt %s --stream-events --check-streams | FileCheck %s

// The gradient at 64 is made beside what overwrites its operand at 0 only once it was read; that it
// has been written by then is implied. Of the two that the last one reads, the later is waited for.
// CHECK-LABEL: exec.program @train_step
// CHECK-NEXT: {{.*}} c <<arena, 0,
// CHECK-NEXT: exec.record 0 stream 0
// CHECK-NEXT: exec.wait 0 stream 1
// CHECK-NEXT: {{.*}} c <<arena, 64, {{.*}} stream 1
// CHECK-NEXT: exec.record 0 stream 1
// CHECK-NEXT: {{.*}} c <<arena, 128,
// CHECK-NEXT: exec.wait 0 stream 0
// CHECK-NEXT: {{.*}} c <<arena, 0,
// CHECK-NEXT: {{.*}} c <<arena, 64,
// CHECK-NEXT: exec.record 0 stream 0
// CHECK-NEXT: exec.wait 0 stream 1
// CHECK-NEXT: {{.*}} c <<arena, 192, {{.*}} stream 1
// CHECK-NEXT: exec.record 0 stream 1
// CHECK-NEXT: exec.wait 0 stream 0
// CHECK-NEXT: }

// Each round begins and ends on stream 0. Both events are under way at one time.
// CHECK-LABEL: exec.program @rounds
// CHECK-NEXT: {{.*}} c <<arena, 0,
// CHECK-NEXT: exec.repeat 2 {
// CHECK-NEXT: exec.record 0 stream 0
// CHECK-NEXT: {{.*}} c <<arena, 64,
// CHECK-NEXT: exec.record 1 stream 0
// CHECK-NEXT: exec.wait 0 stream 1
// CHECK-NEXT: {{.*}} c <<arena, 128, {{.*}} stream 1
// CHECK-NEXT: exec.wait 1 stream 1
// CHECK-NEXT: {{.*}} c <<arena, 192, {{.*}} stream 1
// CHECK-NEXT: exec.record 0 stream 1
// CHECK-NEXT: exec.wait 0 stream 0
// CHECK-NEXT: }
// CHECK-NEXT: {{.*}} c <<arena, 192,
// CHECK-NEXT: }

// One stream needs none.
// CHECK-LABEL: exec.program @alone
// CHECK-NOT: exec.record
// CHECK-NOT: exec.wait
module {
  exec.program @train_step {
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16> b <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16> b <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16> b <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 192, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
  }
  exec.program @rounds {
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.repeat 2 {
      exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16>
      exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
      exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 192, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    }
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 192, bytes 64>, f32, rows 4, columns 1, batch 16>
  }
  exec.program @alone {
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
  }
}
