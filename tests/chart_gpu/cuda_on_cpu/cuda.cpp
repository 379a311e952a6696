// chart.cu (SOURCE) for the CPU, and how its blocks are run: see cuda.h.
#include "cuda.h"

#include <string>
#include <vector>

#ifdef THREADS
#include <barrier>
#include <memory>
#include <thread>
#else
#include <ucontext.h>
#endif

thread_local Place threadIdx;
Place blockIdx, blockDim, gridDim;
alignas(16) unsigned shared_words[shim::MOST_SHARED / 4 + 1];

namespace shim {

int threads;
static std::vector<unsigned> values;

unsigned *lane_values() { return &values[threadIdx.x / WARP * WARP]; }

#ifdef THREADS

static std::unique_ptr<std::barrier<>> block_barrier;
static std::vector<std::unique_ptr<std::barrier<>>> warp_barriers;

void sync_block() { block_barrier->arrive_and_wait(); }
void sync_warp() { warp_barriers[threadIdx.x / WARP]->arrive_and_wait(); }
void maybe_yield() {}

static void run_block(unsigned, const std::function<void()> &kernel)
{
    block_barrier = std::make_unique<std::barrier<>>(threads);
    warp_barriers.clear();
    for (int warp = 0; warp < threads / WARP; ++warp)
        warp_barriers.push_back(std::make_unique<std::barrier<>>(WARP));
    std::vector<std::thread> running;
    for (int number = 0; number < threads; ++number)
        running.emplace_back([number, &kernel] {
            threadIdx.x = number;
            kernel();
        });
    for (std::thread &thread : running)
        thread.join();
}

#else

enum State { READY, AT_BLOCK, AT_WARP, DONE };

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    State state;
};

static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static const std::function<void()> *running;
static unsigned long long chance;

static unsigned drawn(unsigned below)
{
    chance = chance * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(chance >> 33) % below;
}

static void wait_in(State state)
{
    Fiber &own = fibers[threadIdx.x];
    own.state = state;
    swapcontext(&own.context, &scheduler);
}

void sync_block() { wait_in(AT_BLOCK); }
void sync_warp() { wait_in(AT_WARP); }

void maybe_yield()
{
    if (drawn(8) == 0)
        wait_in(READY);
}

static void begin()
{
    (*running)();
    wait_in(DONE);
}

// Those of a range that wait in a state go on, if all there do.
static bool released(int first, int last, State state)
{
    for (int number = first; number < last; ++number)
        if (fibers[number].state != state)
            return false;
    for (int number = first; number < last; ++number)
        fibers[number].state = READY;
    return true;
}

static void run_block(unsigned seed, const std::function<void()> &kernel)
{
    running = &kernel;
    chance = seed * 2654435761u + 1;
    fibers.resize(threads);
    for (Fiber &fiber : fibers) {
        fiber.stack.resize(64 << 10);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, begin, 0);
        fiber.state = READY;
    }
    std::vector<int> ready;
    while (true) {
        ready.clear();
        int done = 0;
        for (int number = 0; number < threads; ++number) {
            if (fibers[number].state == READY)
                ready.push_back(number);
            done += fibers[number].state == DONE;
        }
        if (done == threads)
            return;
        // All that are ready go on as far as they come, in an order by chance.
        for (size_t left = ready.size(); left; --left) {
            std::swap(ready[drawn((unsigned)left)], ready[left - 1]);
            threadIdx.x = ready[left - 1];
            swapcontext(&scheduler, &fibers[threadIdx.x].context);
        }
        bool any = released(0, threads, AT_BLOCK);
        for (int first = 0; first < threads; first += WARP)
            any |= released(first, first + WARP, AT_WARP);
        if (any || !ready.empty())
            continue;
        std::fprintf(stderr, "threads wait for threads that never come\n");
        std::abort();
    }
}

#endif

void run(int blocks, int threads_of_block, size_t shared, unsigned seed,
         const std::function<void()> &kernel)
{
    threads = threads_of_block;
    values.assign(threads, 0);
    gridDim.x = blocks;
    blockDim.x = threads;
    if (shared > MOST_SHARED || shared % 4 || threads % WARP) {
        std::fprintf(stderr, "%zu bytes, %d threads\n", shared, threads);
        std::abort();
    }
    for (int number = 0; number < blocks; ++number) {
        blockIdx.x = seed & 1 ? blocks - 1 - number : number;
        // A block finds anything in its memory, and may write no more than it asked for.
        std::memset(shared_words, 0xa5, shared);
        shared_words[shared / 4] = GUARD;
        run_block(seed + number, kernel);
        if (shared_words[shared / 4] != GUARD) {
            std::fprintf(stderr, "a block wrote past its %zu bytes\n", shared);
            std::abort();
        }
    }
}

}  // namespace shim

#include SOURCE

// What cuLaunchKernel takes: places of the arguments.
extern "C" int launch(const char *name, int blocks, int threads, size_t shared, void **arguments,
                      unsigned seed)
{
    const Chart &chart = *(const Chart *)arguments[0];
    std::function<void()> kernel;
    const std::string where = std::strrchr(name, '_') + 1;
    if (!std::strncmp(name, "read_rows_", 10)) {
        const auto function = where == "near"   ? read_rows_near
                              : where == "half" ? read_rows_half : read_rows_far;
        const int *letters = *(const int **)arguments[1];
        const int stride = *(int *)arguments[2], many = *(int *)arguments[3];
        kernel = [=, &chart] { function(chart, letters, stride, many); };
    } else {
        const auto function = where == "near"   ? read_level_near
                              : where == "half" ? read_level_half : read_level_far;
        const int level = *(int *)arguments[1];
        kernel = [=, &chart] { function(chart, level); };
    }
    shim::run(blocks, threads, shared, seed, kernel);
    return 0;
}

extern "C" size_t chart_bytes() { return sizeof(Chart); }

#ifdef THREADS
#include <iostream>

// Reads what a launch takes, runs it, and writes the arrays: the name of the kernel, its sizes and
// its last two numbers in a line; the struct, whose pointers are numbers of arrays; the arrays, each
// behind its size. So each array has memory of its own, no more than it needs.
int main()
{
    std::string name;
    int blocks, threads, shared, first, second;
    std::cin >> name >> blocks >> threads >> shared >> first >> second;
    std::cin.get();
    Chart chart;
    std::cin.read((char *)&chart, sizeof(Chart));
    std::vector<std::vector<char>> arrays;
    int64_t bytes;
    while (std::cin.read((char *)&bytes, sizeof(bytes))) {
        arrays.emplace_back(bytes);
        std::cin.read(arrays.back().data(), bytes);
    }
    // All pointers stand first in the struct; the last array is of letters.
    const size_t pointers = offsetof(Chart, num_symbols) / sizeof(void *);
    if (!std::cin.eof() || arrays.size() != pointers + 1)
        return 2;
    for (size_t number = 0; number < pointers; ++number) {
        void *place = arrays[number].data();
        std::memcpy((char *)&chart + number * sizeof(void *), &place, sizeof(place));
    }
    const void *letters = arrays.back().data();
    void *of_rows[] = {&chart, &letters, &first, &second}, *of_level[] = {&chart, &first};
    launch(name.c_str(), blocks, threads, shared, name[5] == 'r' ? of_rows : of_level, 0);
    for (const std::vector<char> &array : arrays)
        std::cout.write(array.data(), array.size());
    return 0;
}
#endif
