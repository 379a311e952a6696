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
alignas(16) extern unsigned shared_words[];

inline void __syncthreads() { shim::sync_block(); }

// What `find` makes of the values that all lanes of the own warp bring.
template <typename Find> unsigned of_lanes(unsigned value, Find find)
{
    unsigned *values = shim::lane_values();
    __atomic_store_n(&values[threadIdx.x % shim::WARP], value, __ATOMIC_RELAXED);
    shim::sync_warp();
    const unsigned found =
        find([values](int lane) { return __atomic_load_n(&values[lane], __ATOMIC_RELAXED); });
    shim::sync_warp();
    return found;
}

inline unsigned __shfl_sync(unsigned, unsigned value, int lane)
{
    return of_lanes(value, [lane](auto of) { return of(lane); });
}

inline unsigned __shfl_xor_sync(unsigned, unsigned value, int bits)
{
    return of_lanes(value, [bits](auto of) { return of(threadIdx.x % shim::WARP ^ bits); });
}

inline bool __any_sync(unsigned, bool value)
{
    return of_lanes(value, [](auto of) {
        unsigned any = 0;
        for (int lane = 0; lane < shim::WARP; ++lane)
            any |= of(lane);
        return any;
    });
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

#define SEEN(place) seen(place)
template <typename Word> auto seen(const Word *place)
{
    struct { Word words[4]; } found;
    for (int word = 0; word < 4; ++word) {
        shim::maybe_yield();
        found.words[word] = __atomic_load_n(&place[word], __ATOMIC_RELAXED);
    }
    return found;
}

inline int __clz(int value) { return value ? __builtin_clz((unsigned)value) : 32; }
inline int __ffs(int value) { return __builtin_ffs(value); }
inline int min(int a, int b) { return a < b ? a : b; }
