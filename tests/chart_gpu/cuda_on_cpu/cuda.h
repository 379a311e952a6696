// As much of CUDA as chart.cu uses, on a CPU: for g++.
//
// Blocks run one after the other, and so do a block's threads: each is a fiber, and at every place
// where threads may meet (barriers, what a warp does together, atomics) another may go on, drawn by
// chance from a seed. So an order that a missing barrier lets happen does happen, for some seed; a
// barrier that not all threads come to is an error. With THREADS the threads are the system's and
// run at once, for sanitizers.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __shared__
#define __grid_constant__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct Place { unsigned x; };

namespace shim {

constexpr int WARP = 32;
constexpr size_t MOST_SHARED = 227 << 10;
constexpr unsigned GUARD = 0xdeadbeef;

// Of one block at a time.
extern int threads;
void sync_block();
void sync_warp();
void maybe_yield();
unsigned *lane_values();     // one for each lane of the own warp
void run(int blocks, int threads, size_t shared, unsigned seed, const std::function<void()> &kernel);

}  // namespace shim

extern thread_local Place threadIdx;
extern Place blockIdx, blockDim, gridDim;
extern unsigned shared_words[];

inline void __syncthreads() { shim::sync_block(); }

inline unsigned __shfl_sync(unsigned, unsigned value, int lane)
{
    unsigned *values = shim::lane_values();
    __atomic_store_n(&values[threadIdx.x % shim::WARP], value, __ATOMIC_RELAXED);
    shim::sync_warp();
    const unsigned found = __atomic_load_n(&values[lane], __ATOMIC_RELAXED);
    shim::sync_warp();
    return found;
}

inline unsigned atomicOr(unsigned *at, unsigned value)
{
    shim::maybe_yield();
    return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}

inline unsigned atomicExch(unsigned *at, unsigned value)
{
    shim::maybe_yield();
    return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

inline int atomicAdd(int *at, int value)
{
    shim::maybe_yield();
    return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

#define SEEN(place) (shim::maybe_yield(), __atomic_load_n(place, __ATOMIC_RELAXED))

inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int min(int a, int b) { return a < b ? a : b; }
