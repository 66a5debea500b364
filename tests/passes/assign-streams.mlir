// RUN: gradc-opt %s --assign-streams --verify-values | FileCheck %s
// RUN: gradc-opt %s --assign-streams --memory-plan --stream-events --check-streams --target=cuda:sm_90 | FileCheck %s --check-prefix PLAN

// The first two gradients of weights may wait: nothing of the next four products needs them, nor
// does the sum of both, which waits with them. The third is needed too soon.
// CHECK-LABEL: func.func @train_step
// CHECK: %[[D0:.*]] = nn.matmul %arg0, %arg1 : {{.*}}
// CHECK-NEXT: %[[W0:.*]] = nn.matmul %[[D0]], %arg0 transpose_lhs {nn.stream = 1 : i64}
// CHECK-NEXT: %[[D1:.*]] = nn.matmul %[[D0]], %arg1 :
// CHECK-NEXT: %[[W1:.*]] = nn.matmul %[[D1]], %arg0 transpose_lhs acc %[[W0]] : tensor<64x64xf32> {nn.stream = 1 : i64}
// CHECK-NEXT: %{{[0-9]+}} = nn.matmul %[[D1]], %arg1 :
// CHECK-NEXT: %{{[0-9]+}} = nn.matmul %{{[0-9]+}}, %arg1 :
// CHECK-NEXT: %{{[0-9]+}} = nn.matmul %{{[0-9]+}}, %arg1 :
// CHECK-NEXT: %{{[0-9]+}} = nn.matmul %{{[0-9]+}}, %arg0 transpose_lhs :
// CHECK-NEXT: %{{[0-9]+}} = nn.matmul %{{[0-9]+}}, %arg1 :

// Stream 1 works in one place while it has something to do. Then the last product of stream 0 works
// there, and waits: not for a value, but for memory. That all is over at the end is implied.
// PLAN: arena_bytes = 67191296
// PLAN-SAME: one_stream_arena_bytes = 33603840
// PLAN-SAME: workspace_bytes = 67109376
// PLAN: exec.program @train_step
// PLAN-NEXT: {{.*}} c <<arena, [[D0:[0-9]+]],
// PLAN-NEXT: exec.record 0 stream 0
// PLAN-NEXT: exec.wait 0 stream 1
// PLAN-NEXT: {{.*}} a <<arena, [[D0]], {{.*}} workspace <arena, [[SIDE:[0-9]+]], bytes 33554688> bytes 33554688 stream 1
// PLAN-NEXT: {{.*}} c <<arena, [[D1:[0-9]+]], {{.*}} workspace <arena, [[MAIN:[0-9]+]], bytes 33554688> bytes 33554688{{$}}
// PLAN-NEXT: exec.record 0 stream 0
// PLAN-NEXT: exec.launch {{.*}} stream 1
// PLAN-NEXT: exec.wait 0 stream 1
// PLAN-NEXT: {{.*}} a <<arena, [[D1]], {{.*}} workspace <arena, [[SIDE]], bytes 33554688> bytes 33554688 stream 1
// PLAN-NEXT: exec.record 0 stream 1
// PLAN-COUNT-4: workspace <arena, [[MAIN]], bytes 33554688> bytes 33554688{{$}}
// PLAN-NEXT: exec.wait 0 stream 0
// PLAN-NEXT: {{.*}} workspace <arena, [[SIDE]], bytes 33554688> bytes 33554688{{$}}
// PLAN-NEXT: }
module {
  func.func @train_step(%x: tensor<64x64xf32> {nn.slot = {role = "input", name = "x"}},
                        %w: tensor<64x64xf32> {nn.slot = {role = "input", name = "w"}})
      -> (tensor<64x64xf32> {nn.slot = {role = "output", name = "g"}},
          tensor<64x64xf32> {nn.slot = {role = "output", name = "h"}},
          tensor<64x64xf32> {nn.slot = {role = "output", name = "y"}}) {
    %d0 = nn.matmul %x, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %g0 = nn.matmul %d0, %x transpose_lhs : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %d1 = nn.matmul %d0, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %g1 = nn.matmul %d1, %x transpose_lhs acc %g0 : tensor<64x64xf32> : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %d2 = nn.matmul %d1, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %d3 = nn.matmul %d2, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %d4 = nn.matmul %d3, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %h = nn.matmul %d4, %x transpose_lhs : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    %y = nn.matmul %d4, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    return %g1, %h, %y : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  }
}
