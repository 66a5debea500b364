// RUN: gradc-opt %s --check-streams -split-input-file -verify-diagnostics

// Read before it is written.
module {
  // expected-error @below {{streams are not ordered: command 1 of stream 0 (exec.gemm) and command 1 of stream 1 (exec.gemm) use bytes 0 to 64 of the arena, and nothing orders them}}
  exec.program @train_step {
    exec.record 0 stream 0
    exec.wait 0 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    exec.record 0 stream 1
    exec.wait 0 stream 0
  }
}

// -----

// Overwritten before it is read.
module {
  // expected-error @below {{streams are not ordered: command 1 of stream 1 (exec.gemm) and command 1 of stream 0 (exec.gemm) use bytes 0 to 64 of the arena, and nothing orders them}}
  exec.program @train_step {
    exec.record 0 stream 0
    exec.wait 0 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.record 0 stream 1
    exec.wait 0 stream 0
  }
}

// -----

// Two results in one place.
module {
  // expected-error @below {{streams are not ordered: command 1 of stream 0 (exec.gemm) and command 1 of stream 1 (exec.gemm) use bytes 0 to 64 of the arena, and nothing orders them}}
  exec.program @train_step {
    exec.record 0 stream 0
    exec.wait 0 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    exec.record 0 stream 1
    exec.wait 0 stream 0
  }
}

// -----

// An event that was recorded too early.
module {
  // expected-error @below {{streams are not ordered: command 2 of stream 0 (exec.gemm) and command 1 of stream 1 (exec.gemm) use bytes 0 to 64 of the arena, and nothing orders them}}
  exec.program @train_step {
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 128, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.record 0 stream 0
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
    exec.wait 0 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    exec.record 0 stream 1
    exec.wait 0 stream 0
  }
}

// -----

// The next round overwrites what this one reads.
module {
  // expected-error @below {{streams are not ordered: command 1 of stream 1 (exec.gemm) and command 2 of stream 0 (exec.gemm) use bytes 0 to 64 of the arena, and nothing orders them}}
  exec.program @train_step {
    exec.repeat 3 {
      exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
      exec.record 0 stream 0
      exec.wait 0 stream 1
      exec.gemm m 4 n 4 k 4 batch 1 a <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    }
    exec.record 0 stream 1
    exec.wait 0 stream 0
  }
}

// -----

module {
  // expected-error @below {{streams are not ordered: command 1 of stream 1 (exec.gemm) does not wait for the program's begin}}
  exec.program @train_step {
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
    exec.record 0 stream 1
    exec.wait 0 stream 0
  }
}

// -----

module {
  // expected-error @below {{streams are not ordered: stream 0 ends and does not wait for the end of stream 1}}
  exec.program @train_step {
    exec.record 0 stream 0
    exec.wait 0 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> stream 1
  }
}

// -----

module {
  // expected-error @below {{streams are not ordered: event 3 is waited for and was not recorded}}
  exec.program @train_step {
    exec.wait 3 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16>
  }
}

// -----

// What both only read orders nothing: a bias that is added.
module {
  exec.program @train_step {
    exec.record 0 stream 0
    exec.wait 0 stream 1
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 0, bytes 64>, f32, rows 4, columns 1, batch 16> epilogue <bias bias <<state, 128, bytes 16>, f32, rows 4, columns 1, batch 4>>
    exec.gemm m 4 n 4 k 4 batch 1 a <<state, 0, bytes 64>, f32, rows 4, columns 1, batch 16> b <<state, 64, bytes 64>, f32, rows 4, columns 1, batch 16> c <<arena, 64, bytes 64>, f32, rows 4, columns 1, batch 16> epilogue <bias bias <<state, 128, bytes 16>, f32, rows 4, columns 1, batch 4>> stream 1
    exec.record 1 stream 1
    exec.wait 1 stream 0
  }
}
