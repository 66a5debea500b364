// RUN: gradc-opt %s -split-input-file -verify-diagnostics

func.func @no_batch(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a positive batch, got: 0}}
  %o, %lse = nn.attention %q, %k, %v batch 0 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @negative_heads(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a positive number of heads, got: -4}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads -4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @no_kv_heads(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a positive number of key-value heads, got: 0}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 0 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @negative_scale(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a positive scale, got: -2.500000e-01}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale -0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @negative_window(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected a window of 0 (none) or more, got: -1}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window -1 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @window_without_causal(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected causal with a window: it bounds what lies before a query}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 window 3 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @groups(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected heads divisible by the number of key-value heads, 3, got: 4}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 3 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @tokens(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected tokens divisible by the batch, 3, got: 16}}
  %o, %lse = nn.attention %q, %k, %v batch 3 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @head_dim(%q: tensor<16x63xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected columns of query divisible by the number of heads, 4, got: 63}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x63xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @rank(%q: tensor<2x8x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected query of rank 2, got: 3}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<2x8x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @key_columns(%q: tensor<16x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected key of shape 16x32, got: 16x64}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @value_tokens(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<8x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected value of shape 16x32, got: 8x32}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<8x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @key_element_type(%q: tensor<16x64xf32>, %k: tensor<16x32xbf16>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected key to have the element type of query, 'f32', got: 'bf16'}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xbf16>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @value_element_type(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xbf16>) {
  // expected-error@+1 {{'nn.attention' op expected value to have the element type of query, 'f32', got: 'bf16'}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xbf16> -> tensor<16x64xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @lse(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected lse of shape 2x4x8, got: 16x4}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x64xf32>, tensor<16x4xf32>
  return
}

// -----

func.func @result(%q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>) {
  // expected-error@+1 {{'nn.attention' op expected result to have the type of query, 'tensor<16x64xf32>', got: 'tensor<16x32xf32>'}}
  %o, %lse = nn.attention %q, %k, %v batch 2 heads 4 kv_heads 2 scale 0.25 causal window 0 : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32> -> tensor<16x32xf32>, tensor<2x4x8xf32>
  return
}

// -----

func.func @grad_key(%g: tensor<16x64xf32>, %q: tensor<16x64xf32>, %k: tensor<16x64xf32>, %v: tensor<16x32xf32>, %o: tensor<16x64xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected key of shape 16x32, got: 16x64}}
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g batch 2 heads 4 kv_heads 2 scale 0.25 : (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x64xf32>, tensor<2x4x8xf32>, tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
  return
}

// -----

func.func @grad_gradient(%g: tensor<16x32xf32>, %q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>, %o: tensor<16x64xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected gradient to have the type of query, 'tensor<16x64xf32>', got: 'tensor<16x32xf32>'}}
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g batch 2 heads 4 kv_heads 2 scale 0.25 : (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x64xf32>, tensor<2x4x8xf32>, tensor<16x32xf32>) -> (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
  return
}

// -----

func.func @grad_output(%g: tensor<16x64xf32>, %q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>, %o: tensor<16x32xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected output to have the type of query, 'tensor<16x64xf32>', got: 'tensor<16x32xf32>'}}
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g batch 2 heads 4 kv_heads 2 scale 0.25 : (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<2x4x8xf32>, tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
  return
}

// -----

func.func @grad_query_gradient(%g: tensor<16x64xf32>, %q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>, %o: tensor<16x64xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected query gradient of shape 16x64, got: 16x32}}
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g batch 2 heads 4 kv_heads 2 scale 0.25 : (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x64xf32>, tensor<2x4x8xf32>, tensor<16x64xf32>) -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>)
  return
}

// -----

func.func @grad_key_gradient(%g: tensor<16x64xf32>, %q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>, %o: tensor<16x64xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected key gradient of shape 16x32, got: 16x64}}
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g batch 2 heads 4 kv_heads 2 scale 0.25 : (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x64xf32>, tensor<2x4x8xf32>, tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x32xf32>)
  return
}

// -----

func.func @grad_value_gradient(%g: tensor<16x64xf32>, %q: tensor<16x64xf32>, %k: tensor<16x32xf32>, %v: tensor<16x32xf32>, %o: tensor<16x64xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected value gradient of shape 16x32, got: 16x64}}
  %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %g batch 2 heads 4 kv_heads 2 scale 0.25 : (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x64xf32>, tensor<2x4x8xf32>, tensor<16x64xf32>) -> (tensor<16x64xf32>, tensor<16x32xf32>, tensor<16x64xf32>)
  return
}

// -----

func.func @first_key(%x: tensor<6x4xf32>, %first: tensor<3xi32>) {
  // expected-error@+1 {{'nn.attention' op expected first key of shape 6, got: 3}}
  %o, %lse = nn.attention %x, %x, %x first_key(%first : tensor<3xi32>) batch 2 heads 1 kv_heads 1 scale 0.5 causal : tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32> -> tensor<6x4xf32>, tensor<2x1x3xf32>
  return
}

// -----

func.func @grad_first_key(%x: tensor<6x4xf32>, %lse: tensor<2x1x3xf32>, %first: tensor<2x3xi32>) {
  // expected-error@+1 {{'nn.attention_grad' op expected first key of shape 6, got: 2x3}}
  %dq, %dk, %dv = nn.attention_grad %x, %x, %x, %x, %lse, %x first_key(%first) batch 2 heads 1 kv_heads 1 scale 0.5 causal : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<2x1x3xf32>, tensor<6x4xf32>, tensor<2x3xi32>) -> (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>)
  return
}
