// Charts in CUDA: one block of threads reads letters for one text.
//
// What the kernels of kernels.py do, in another order: not place after place, but by what is new.
// A right child that turns out to begin at some places is put into a queue with them; a warp takes it,
// unites the columns of those places for each left child beside it, and gives what is new to the
// parents. What is found in one round is taken in the next: as many rounds as a derivation is deep
// along its right side, which is few, where places are many. Nothing gets lost and nothing matters
// of the order: sets only grow, and each place of each symbol is taken once.
//
// All that threads tell each other lies in the memory of the block (shared memory, or where that is
// too small the device's), behind barriers; in a round by atomics alone. What Charts and Tables hold,
// and how it lies there, they say. launches.py mirrors `Chart`, and tests compile this file for the CPU.

typedef unsigned int Word;      // 32 places, symbols or letters
typedef long long Index;        // into what is as large as the device's memory

// Four words, which one instruction loads: 128 places. What has words for places has them in fours.
struct alignas(16) Quad {
    Word words[4];

    __device__ __forceinline__ bool any() const
    {
        return words[0] | words[1] | words[2] | words[3];
    }
};

__device__ __forceinline__ Quad load(const void *place) { return *(const Quad *)place; }
__device__ __forceinline__ void store(void *place, const Quad &quad) { *(Quad *)place = quad; }

// Four words that others may be uniting with something just now: any of their values will do.
#ifndef SEEN
#define SEEN(place) (*(const Quad *)(place))
#endif

struct Chart {
    // The grammar: rules as pairs (left child, right child) with their parents, ascending by right.
    const int *pairs;           // where those of each right begin; where the parents of each begin;
                                // the pairs, left | right << 16; the parents
    const int *leaf_starts;
    const short *leaf_symbols;
    const short *left_symbols;
    const int *corners;
    // The texts.
    int *ended;
    int *predicted;
    int *ending;                // of each row and left child the places where any string of it ends
    int *following;
    signed char *complete;
    int *lengths;
    int *status;
    const int *counts;
    const int *node_rows;
    const int *node_letters;
    const int *node_parents;
    int *paths;
    Word *scratch;
    int num_symbols, num_rights, num_lefts, num_pairs, num_parents, num_letters;
    int start, symbol_words, corner_words;
    int rows, columns, width, ahead, tail, nodes;
    int column_words;           // of `ended`: num_lefts * width
    int pitch;                  // words between symbols in the memory of a block: an odd number of
                                // quads, so that neighbours lie in different banks
    int item_bits;              // of an item for its word; the others are for its right
    int scratch_words;          // of each block, where its memory is not shared
};

// The memory of a block.
template <typename Item> struct Memory {
    Word *begins;               // of each symbol the places where a string of it begins
    Word *predicted;
    Word *ending;               // of each left child the places where it ends; or may, of a node's own
    Word *fresh;                // of each right the places where no one has looked yet
    Word *wanted;               // rights, as bits
    Word *alive;                // left children that end with the letter, as bits
    Word *found;                // a row of corners
    int *path;                  // of a node the slots of its ancestors
    int *queued;                // how much is queued: for this round, the next, and the one after
    const int *starts, *heads, *pairs, *parents;
    Item *queue;                // two of num_rights * width items
};

// With a copy of the pairs or without.
template <typename Item, bool HAS_PAIRS>
__device__ __forceinline__ Memory<Item> memory_of(const Chart &chart, Word *words)
{
    Memory<Item> own;
    own.begins = words;
    own.predicted = own.begins + chart.num_symbols * chart.pitch;
    own.ending = own.predicted + chart.num_symbols * chart.pitch;
    own.fresh = own.ending + chart.num_lefts * chart.pitch;
    own.wanted = own.fresh + chart.num_rights * chart.pitch;
    own.alive = own.wanted + (chart.num_rights + 31) / 32;
    own.found = own.alive + (chart.num_lefts + 31) / 32;
    own.path = (int *)(own.found + chart.corner_words);
    own.queued = own.path + chart.ahead;
    // Words come in fours from here on.
    int *table = (int *)words + (((own.queued + 3 - (int *)words) + 3) & ~3);
    const int table_words = chart.num_rights + 2 + 2 * chart.num_pairs + chart.num_parents;
    own.queue = (Item *)(HAS_PAIRS ? table + ((table_words + 3) & ~3) : table);
    if (HAS_PAIRS) {
        for (int at = 4 * (int)threadIdx.x; at < table_words; at += 4 * (int)blockDim.x)
            store(table + at, load(chart.pairs + at));
    }
    own.starts = HAS_PAIRS ? table : chart.pairs;
    own.heads = own.starts + chart.num_rights + 1;
    own.pairs = own.heads + chart.num_pairs + 1;
    own.parents = own.pairs + chart.num_pairs;
    return own;
}

// The smallest power of two that is no less, as an exponent, and 32 at most.
__device__ __forceinline__ int lanes_for(int words)
{
    return words >= 32 ? 5 : 32 - __clz(words - 1);
}

// Visits all parts (words or quads) of all rows, neighbours by neighbours.
template <typename Visit>
__device__ __forceinline__ void each_part(int rows, int parts, Visit visit)
{
    const int shift = lanes_for(parts), many = 1 << shift;
    for (int row = threadIdx.x >> shift; row < rows; row += blockDim.x >> shift)
        for (int part = threadIdx.x & (many - 1); part < parts; part += many)
            visit(row, part);
}


// Where what a text has read lies.
struct Text {
    const int *columns;         // its columns: that of place 0
    Index slot;                 // of the column to come
    Index predicted, ending;    // of its words there
    Index tail, own_tail;       // of a node: of its parent's words there, and of its own
    int base;                   // places from here on are in a node's path and tail
};

// Slots of nodes stand behind those of the rows' places.
__device__ __forceinline__ Index first_node_of(const Chart &chart)
{
    return (Index)chart.rows * (chart.columns + 1);
}

// A warp takes what is fresh of one right in one word: 32 places at most. A lane has a pair, a quad
// of its left child's columns, and where lanes are left, a slice of the places.
template <bool TREE, typename Item>
__device__ __forceinline__ void take(const Chart &chart, const Memory<Item> &own, const Text &text,
                                     unsigned int item, Item *next, int *queued)
{
    const Word all = 0xffffffffu;
    const int lane = threadIdx.x & 31;
    const int right = item >> chart.item_bits, at = item & ((1u << chart.item_bits) - 1);
    Word places = 0;
    if (lane == 0)
        places = atomicExch(&own.fresh[right * chart.pitch + at], 0u);
    const int first = own.starts[right], last = own.starts[right + 1];
    places = __shfl_sync(all, places, 0);
    // What begins before place 32 * at + 31 lies in quads up to this one.
    const int quads = (at >> 2) + 1, for_quads = lanes_for(quads), many = 1 << for_quads;
    const int for_pairs = min(lanes_for(last - first), 5 - for_quads);
    const int for_slices = min(5 - for_quads - for_pairs, 3), slices = 1 << for_slices;
    const int slice = lane >> for_quads & (slices - 1);
    const Word every = slices == 1 ? all : slices == 2 ? 0x55555555u
                       : slices == 4 ? 0x11111111u : 0x01010101u;
    places &= every << slice;
    // Lanes of no pair: there are more than pairs where slices are as many as they may be.
    const int own_pair = first + (lane >> (for_quads + for_slices));
    if (own_pair - first >= 1 << for_pairs)
        places = 0;
    // Unsigned numbers of 32 bits: an address is then one instruction.
    const unsigned int column_bytes = chart.column_words * sizeof(Word), first_place = 32 * at;
    const char *columns = (const char *)text.columns;
    const char *node_columns = (const char *)chart.ended + first_node_of(chart) * column_bytes;
    for (int base = 0; base < quads; base += many) {
        const int quad = base + (lane & (many - 1));
        for (int pair = own_pair; pair - own_pair < last - first; pair += 1 << for_pairs) {
            Word rest = 0;
            int left = 0;
            if (pair < last && quad < quads) {
                left = own.pairs[pair] & 0xffff;
                rest = places & own.ending[left * chart.pitch + at];
            }
            if (!__any_sync(all, rest != 0))
                continue;
            Quad ends = {};
            const Index offset = (left * chart.width + 4 * quad) * (Index)sizeof(Word);
            const char *here = columns + offset, *node_here = node_columns + offset;
            unsigned int place = 0;
            while (rest) {
                // Several at a time, so that their loads are under way together; the last one over
                // and over. A node has few fresh places, and its multiprocessor other nodes.
                constexpr int together = TREE ? 2 : 4;
                Quad found[together];
#pragma unroll
                for (int i = 0; i < together; ++i) {
                    place = rest ? first_place + __ffs(rest) - 1 : place;
                    rest &= rest - 1;
                    const bool is_node = TREE && (int)place > text.base;
                    const unsigned int number = is_node ? own.path[place - text.base - 1] : place;
                    const unsigned long long before = (unsigned long long)number * column_bytes;
                    found[i] = load((is_node ? node_here : here) + before);
                }
#pragma unroll
                for (int i = 0; i < together; ++i)
#pragma unroll
                    for (int word = 0; word < 4; ++word)
                        ends.words[word] |= found[i].words[word];
            }
            for (int step = 1; step < slices; step *= 2)
#pragma unroll
                for (int word = 0; word < 4; ++word)
                    ends.words[word] |= __shfl_xor_sync(all, ends.words[word], step * many);
            if (!ends.any())
                continue;
            // Each slice gives to parents of its own.
            const int last_head = own.heads[pair + 1];
            for (int head = own.heads[pair] + slice; head < last_head; head += slices) {
                const int symbol = own.parents[head], to = symbol * chart.pitch + 4 * quad;
                const Quad may = load(&own.predicted[to]);
                const auto old = SEEN(&own.begins[to]);
                Quad more;
#pragma unroll
                for (int word = 0; word < 4; ++word)
                    more.words[word] = ends.words[word] & may.words[word] & ~old.words[word];
                if (!more.any())
                    continue;
#pragma unroll
                for (int word = 0; word < 4; ++word) {
                    Word add = more.words[word];
                    if (!add)
                        continue;
                    add &= ~atomicOr(&own.begins[to + word], add);
                    // Nothing stands left of place 0.
                    if (word == 0 && quad == 0)
                        add &= ~1u;
                    if (symbol < chart.num_rights && add && !atomicOr(&own.fresh[to + word], add))
                        next[atomicAdd(queued, 1)] =
                            (Item)(symbol << chart.item_bits | (4 * quad + word));
                }
            }
        }
    }
}

// Reads the letter between places n and n + 1. All threads of the block, with the same arguments.
template <bool TREE, typename Item>
__device__ __forceinline__ void advance(const Chart &chart, const Memory<Item> &own,
                                        const Text &text, int n, int letter)
{
    const int thread = threadIdx.x, threads = blockDim.x, warp = thread >> 5;
    const int end = n + 1, quads = (end >> 7) + 1, pitch = chart.pitch, from = text.base >> 5;
    // What has the letter: loaded before it is needed.
    const int first_leaf = chart.leaf_starts[letter] + thread;
    const int last_leaf = chart.leaf_starts[letter + 1];
    const int leaf = first_leaf < last_leaf ? chart.leaf_symbols[first_leaf] : 0;
    each_part(chart.num_symbols, quads, [&](int symbol, int quad) {
        const int to = symbol * pitch + 4 * quad;
        Quad value = load(chart.predicted + text.predicted + (Index)symbol * chart.width + 4 * quad);
        if (TREE)
            for (int word = 0; word < 4; ++word) {
                const int behind = 4 * quad + word - from;
                if (behind >= 0 && behind < chart.tail)
                    value.words[word] =
                        chart.predicted[text.tail + (Index)symbol * chart.tail + behind];
            }
        store(&own.predicted[to], value);
        store(&own.begins[to], Quad{});
        if (symbol < chart.num_rights)
            store(&own.fresh[to], Quad{});
    });
    each_part(chart.num_lefts, quads, [&](int left, int quad) {
        Quad value = load(chart.ending + text.ending + (Index)left * chart.width + 4 * quad);
        if (TREE)
            for (int word = 0; word < 4; ++word)
                if (4 * quad + word >= from)
                    value.words[word] = ~0u;
        store(&own.ending[left * pitch + 4 * quad], value);
    });
    for (int at = thread; at < own.found + chart.corner_words - own.wanted; at += threads)
        own.wanted[at] = 0;
    if (thread < 3)
        own.queued[thread] = 0;
    __syncthreads();

    // What has the letter begins at n.
    const int here = n >> 5;
    const Word bit = 1u << (n & 31);
    for (int at = first_leaf; at < last_leaf; at += threads) {
        const int symbol = at == first_leaf ? leaf : chart.leaf_symbols[at];
        const int to = symbol * pitch + here;
        if (!(own.predicted[to] & bit))
            continue;
        own.begins[to] = bit;
        if (n > 0 && symbol < chart.num_rights) {
            own.fresh[to] = bit;
            own.queue[atomicAdd(&own.queued[0], 1)] = (Item)(symbol << chart.item_bits | here);
        }
    }
    const int room = chart.num_rights * chart.width;
    for (int round = 0;; ++round) {
        __syncthreads();
        const int count = own.queued[round % 3];
        if (!count)
            break;
        if (thread == 0)
            own.queued[(round + 2) % 3] = 0;
        const Item *items = own.queue + (round & 1) * room;
        Item *next = own.queue + (~round & 1) * room;
        for (int at = warp; at < count; at += threads >> 5)
            take<TREE>(chart, own, text, items[at], next, &own.queued[(round + 1) % 3]);
    }

    // What ends with the letter is kept for left children alone. Words behind those of its places
    // are 0, up to the quad of the letter's own end.
    each_part(chart.num_lefts, quads, [&](int left, int quad) {
        const Quad value = load(&own.begins[chart.left_symbols[left] * pitch + 4 * quad]);
        store(chart.ended + text.slot * chart.column_words + left * chart.width + 4 * quad, value);
        if (value.any())
            atomicOr(&own.alive[left >> 5], 1u << (left & 31));
    });
    __syncthreads();
    // What may begin after the letter: right children beside a left one that ended.
    for (int pair = thread; pair < chart.num_pairs; pair += threads) {
        const int left = own.pairs[pair] & 0xffff, right = own.pairs[pair] >> 16;
        if (!(own.alive[left >> 5] >> (left & 31) & 1))
            continue;
        const Word *ends = own.begins + chart.left_symbols[left] * pitch;
        Word may = 0;
        for (int head = own.heads[pair]; head < own.heads[pair + 1] && !may; ++head) {
            const Word *places = own.predicted + own.parents[head] * pitch;
            for (int at = 0; at < 4 * quads && !may; at += 4) {
                const Quad some = load(ends + at), there = load(places + at);
#pragma unroll
                for (int word = 0; word < 4; ++word)
                    may |= some.words[word] & there.words[word];
            }
        }
        if (may)
            atomicOr(&own.wanted[right >> 5], 1u << (right & 31));
    }
    __syncthreads();
    // And all that may stand first in those: symbols, then letters.
    const int for_corners = lanes_for(chart.corner_words);
    for (int word = thread & ((1 << for_corners) - 1); word < chart.corner_words;
         word += 1 << for_corners) {
        Word value = 0;
#pragma unroll 8
        for (int right = thread >> for_corners; right < chart.num_rights;
             right += threads >> for_corners)
            if (own.wanted[right >> 5] >> (right & 31) & 1)
                value |= (Word)chart.corners[(Index)right * chart.corner_words + word];
        if (value)
            atomicOr(&own.found[word], value);
    }
    __syncthreads();
    const int letter_words = chart.corner_words - chart.symbol_words;
    for (int word = thread; word < letter_words; word += threads)
        chart.following[text.slot * letter_words + word] =
            (int)own.found[chart.symbol_words + word];
    const Word end_bit = 1u << (end & 31);
    // The word that has the end. Places past it may be left of a longer text, and where the end
    // begins a word none below it are there.
    auto with_end = [&](Word old, const Word *flags, int number) {
        const bool is_set = flags[number >> 5] >> (number & 31) & 1;
        return (int)((old & (end_bit - 1)) | (is_set ? end_bit : 0));
    };
    if (TREE) {
        each_part(chart.num_symbols, chart.tail, [&](int symbol, int at) {
            const int word = from + at;
            int value = 0;
            if (word < end >> 5)
                value = (int)own.predicted[symbol * pitch + word];
            else if (word == end >> 5)
                value = with_end(own.predicted[symbol * pitch + here], own.found, symbol);
            chart.predicted[text.own_tail + (Index)symbol * chart.tail + at] = value;
        });
    } else {
        for (int symbol = thread; symbol < chart.num_symbols; symbol += threads)
            chart.predicted[text.predicted + (Index)symbol * chart.width + (end >> 5)] =
                with_end(own.predicted[symbol * pitch + here], own.found, symbol);
        for (int left = thread; left < chart.num_lefts; left += threads)
            chart.ending[text.ending + (Index)left * chart.width + (end >> 5)] =
                with_end(own.ending[left * pitch + here], own.alive, left);
        if (thread == 0)
            chart.complete[text.slot] = (signed char)(own.begins[chart.start * pitch] & 1);
    }
    __syncthreads();
}

// The letters of each row, one after the other, as far as they are taken; -2 ends them.
template <typename Item>
__device__ __forceinline__ void read_rows(const Chart &chart, const Memory<Item> &own,
                                          const int *letters, int stride, int many)
{
    const int letter_words = chart.corner_words - chart.symbol_words;
    for (int row = blockIdx.x; row < chart.rows; row += gridDim.x) {
        Text text;
        const Index first_slot = (Index)row * (chart.columns + 1);
        text.columns = chart.ended + first_slot * chart.column_words;
        text.predicted = (Index)row * chart.num_symbols * chart.width;
        text.ending = (Index)row * chart.column_words;
        text.tail = text.own_tail = text.base = 0;
        int n = chart.lengths[row], verdict = 0;
        for (int at = 0; at < many; ++at) {
            const int letter = letters[(Index)row * stride + at];
            if (letter == -2) {
                verdict = at ? 0 : 3;
                break;
            }
            const Index here = first_slot + n;
            text.slot = here + 1;
            const int *following = chart.following + here * letter_words;
            verdict = letter < 0 || letter >= chart.num_letters ? 1
                      : !(following[letter >> 5] >> (letter & 31) & 1) ? 1
                      : n >= chart.columns ? 2 : 0;
            if (verdict)
                break;
            advance<false>(chart, own, text, n, letter);
            ++n;
        }
        // All have read the length and what follows there before anyone writes.
        __syncthreads();
        if (threadIdx.x == 0) {
            chart.lengths[row] = n;
            chart.status[row] = verdict;
        }
    }
}

// The letters of the live nodes of a level of the token tree, one each.
template <typename Item>
__device__ __forceinline__ void read_level(const Chart &chart, const Memory<Item> &own, int level)
{
    const Index first_tail = (Index)chart.rows * chart.num_symbols * chart.width;
    int first = 0;
    for (int before = 0; before < level; ++before)
        first += chart.counts[before];
    const int count = min(chart.counts[level], chart.nodes - first);
    for (int item = blockIdx.x; item < count; item += gridDim.x) {
        const int node = first + item, row = chart.node_rows[node];
        const int parent = chart.node_parents[node];
        Text text;
        text.columns = chart.ended + (Index)row * (chart.columns + 1) * chart.column_words;
        text.slot = first_node_of(chart) + node;
        text.predicted = (Index)row * chart.num_symbols * chart.width;
        text.ending = (Index)row * chart.column_words;
        text.tail = first_tail + (Index)parent * chart.num_symbols * chart.tail;
        text.own_tail = first_tail + (Index)node * chart.num_symbols * chart.tail;
        text.base = chart.lengths[row];
        for (int at = threadIdx.x; at < level; at += blockDim.x) {
            const int slot = at == level - 1 ? node : chart.paths[(Index)parent * chart.ahead + at];
            own.path[at] = slot;
            chart.paths[(Index)node * chart.ahead + at] = slot;
        }
        advance<true>(chart, own, text, text.base + level - 1, chart.node_letters[node]);
    }
}

// Where the memory of a block is: shared, with the pairs ("near") or without ("half"), where items
// have 16 bits; or the device's ("far").
alignas(16) extern __shared__ Word shared_words[];

#define NEAR memory_of<unsigned short, true>(chart, shared_words)
#define HALF memory_of<unsigned short, false>(chart, shared_words)
#define FAR memory_of<unsigned int, false>(chart, \
                                           chart.scratch + (Index)blockIdx.x * chart.scratch_words)

#define KERNELS(WHERE, MEMORY)                                                                     \
    extern "C" __global__ void __launch_bounds__(1024, 1)                                          \
    read_rows_##WHERE(const __grid_constant__ Chart chart, const int *letters, int stride,         \
                      int many)                                                                    \
    {                                                                                              \
        read_rows(chart, MEMORY, letters, stride, many);                                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(256, 2)                                           \
    read_level_##WHERE(const __grid_constant__ Chart chart, int level)                             \
    {                                                                                              \
        read_level(chart, MEMORY, level);                                                          \
    }

KERNELS(near, NEAR)
KERNELS(half, HALF)
KERNELS(far, FAR)
