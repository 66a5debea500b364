#!/usr/bin/env bash
# Runs pytorch_step.py in the environment that makes PyTorch fast on a CPU:
#   run_pytorch.sh [arguments of pytorch_step.py]
# PYTHON names the interpreter of a virtual environment with requirements.txt installed.
set -euo pipefail

threads=$(nproc)
arguments=("$@")
for ((i = 0; i < ${#arguments[@]}; i++)); do
  case ${arguments[i]} in
    --threads) threads=${arguments[i + 1]:-$threads} ;;
    --threads=*) threads=${arguments[i]#--threads=} ;;
  esac
done

# Memory from the allocator, on huge pages, and kept: PyTorch allocates and frees each activation
# in each step, and a page fault costs more than the arithmetic done on the page.
tunables=glibc.malloc.hugetlb=1
tunables+=:glibc.malloc.mmap_threshold=4294967296
tunables+=:glibc.malloc.trim_threshold=17179869184
tunables+=:glibc.malloc.top_pad=268435456
export GLIBC_TUNABLES=$tunables

# The widest vector kernels the machine has.
if grep -qw avx512f /proc/cpuinfo; then
  export ATEN_CPU_CAPABILITY=avx512
else
  unset ATEN_CPU_CAPABILITY
fi

# One pool of as many threads as asked for; PyTorch's products (MKL) use the same OpenMP threads.
export OMP_NUM_THREADS=$threads MKL_NUM_THREADS=$threads
unset OPENBLAS_CORETYPE

exec "${PYTHON:-python3}" "$(dirname "${BASH_SOURCE[0]}")/pytorch_step.py" "$@"
