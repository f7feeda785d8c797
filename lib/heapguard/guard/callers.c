/* callers: the places where blocks are allocated and freed.  See callers.h. */
#include "guard/callers.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "guard/next.h"
#include "guard/watch.h"

/* A table consists of buckets of one cache line, in levels that are four times
   as large as the one before. */
enum {
	BUCKET = 8, LEVELS = 5, SMALLEST = 64,
	BUCKETS = ((SMALLEST << 2 * LEVELS) - SMALLEST) / 3,
	PLACES = LEVELS * BUCKET,	/* for a sum */
};

struct callers {
	struct hg_stack stack;
	uint64_t hash;		/* never 0, written last */
};

/* Arrays of HG_CALLERS_MAX, indexed by number.  What is read for every block is
   separate from the backtraces, so that it stays in cache. */
static struct callers *all;
struct hg_calls *hg_calls;

/* Hash tables of words: a sum, with the number in its lowest bits.  The small
   levels are filled first, so few entries take little memory. */
typedef _Atomic uint64_t bucket[BUCKET];
static bucket *keys, *by_hash;
static _Atomic uint32_t made;

/* The place where a sum is looked for after i others. */
static _Atomic uint64_t *
place(bucket *table, uint64_t sum, unsigned i)
{
	const uint64_t n = SMALLEST << i / BUCKET * 2;

	return &table[(n - SMALLEST) / 3 + (sum >> 47) % n][i % BUCKET];
}

static uint64_t
word_of(uint64_t sum, uint32_t number)
{
	return (sum & ~(uint64_t)(HG_CALLERS_MAX - 1)) | number;
}

static uint64_t
hash(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 29;
}

static void *
room(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int
hg_callers_begin(void)
{
	all = room(HG_CALLERS_MAX * sizeof(*all));
	hg_calls = room(HG_CALLERS_MAX * sizeof(*hg_calls));
	keys = room(BUCKETS * sizeof(*keys));
	by_hash = room(BUCKETS * sizeof(*by_hash));
	return all == NULL || hg_calls == NULL || keys == NULL ||
	    by_hash == NULL ? -ENOMEM : 0;
}

void
hg_callers_walk(struct hg_frame f, struct hg_stack *stack)
{
	bool outermost = false;

	stack->n = 0;
	do {
		stack->pc[stack->n++] = f.pc;
	} while (stack->n < HG_FRAMES_MAX && hg_frame_step(&f, &outermost));
	stack->whole = outermost;
}

static uint64_t
hash_name(const char *name)
{
	uint64_t sum = 0;

	for (; *name != '\0'; name++)
		sum = hash(sum, (unsigned char)*name);
	return sum;
}

/* Hash offsets in modules, because addresses differ between runs.  All code
   outside of modules counts as the same.  Most frames are in the module of the
   frame before. */
static uint64_t
hash_stack(const struct hg_stack *stack)
{
	struct hg_module module = {0};
	uint64_t sum = stack->n, name = 0;

	for (uint32_t i = 0; i < stack->n; i++) {
		const uint64_t pc = stack->pc[i] - 1;

		if (pc < module.start || pc >= module.end) {
			if (!hg_frame_module(pc, &module)) {
				sum = hash(sum, 1);
				continue;
			}
			name = hash_name(module.name);
		}
		sum = hash(hash(sum, stack->pc[i] - module.base), name);
	}
	return sum != 0 ? sum : 1;
}

static bool
is_same(uint32_t number, uint64_t sum, const struct hg_stack *stack)
{
	return all[number].hash == sum && all[number].stack.n == stack->n &&
	    memcmp(all[number].stack.pc, stack->pc,
	    stack->n * sizeof(stack->pc[0])) == 0;
}

static uint32_t
make(uint64_t sum, const struct hg_stack *stack)
{
	const uint32_t number = atomic_fetch_add(&made, 1) + 1;

	if (number >= HG_CALLERS_MAX) {
		atomic_store(&made, HG_CALLERS_MAX);
		return 0;
	}
	all[number].stack = *stack;
	all[number].hash = sum;
	atomic_store(&hg_calls[number].due, hg_watch_wants(sum));
	return number;
}

/* If two threads see new callers at the same time, or the places for their hash
   are all taken, these get two numbers, with the same hash. */
static uint32_t
find(struct hg_frame from)
{
	_Atomic uint64_t *at = NULL;
	struct hg_stack stack;
	uint64_t sum, word = 0, none = 0;
	uint32_t number;

	hg_callers_walk(from, &stack);
	sum = hash_stack(&stack);
	for (unsigned i = 0; i < PLACES; i++) {
		at = place(by_hash, sum, i);
		if ((word = atomic_load(at)) == 0)
			break;
		number = word % HG_CALLERS_MAX;
		if (is_same(number, sum, &stack))
			return number;
	}
	number = make(sum, &stack);
	if (number != 0 && word == 0)
		(void)atomic_compare_exchange_strong(at, &none,
		    word_of(sum, number));
	return number;
}

/* If the places for a key are all taken, it gets the last one. */
static uint16_t
look_up(uint64_t sum, struct hg_frame from)
{
	_Atomic uint64_t *key = NULL;
	uint64_t word;
	uint32_t number;

	for (unsigned i = 0; i < PLACES; i++) {
		key = place(keys, sum, i);
		word = atomic_load_explicit(key, memory_order_relaxed);
		if (word == 0)
			break;
		if ((word ^ sum) < HG_CALLERS_MAX)
			return word % HG_CALLERS_MAX;
	}
	if ((number = find(from)) != 0)
		atomic_store(key, word_of(sum, number));
	return (uint16_t)number;
}

/* When more sites were learned than half of the table's used part has room for,
   four times as much is used.  What is not found in its new place is learned
   again. */
static struct hg_site *
make_room(struct hg_thread *t, uint64_t sum)
{
	const uint32_t size = HG_SITES_FIRST << t->grown;

	if (++t->learned > size / 2 && size < HG_SITES) {
		t->learned = 0;
		t->grown += 2;
	}
	return hg_site_of(t, sum);
}

uint32_t
hg_site_learn(struct hg_thread *t, uint64_t sum, const struct hg_record *from,
    unsigned frames)
{
	struct hg_frame f = hg_frame_of(from), last;
	struct hg_site found = {.sum = sum}, *s = make_room(t, sum);
	bool outermost, goes_on = frames > 0 && hg_frame_step(&f, &outermost);

	sum = hash(sum, 0);
	last = f;
	if (goes_on && hg_frame_step(&last, &outermost))
		sum = hash(sum, last.pc);
	found.bp = f.bp;
	found.by_bp = last.by_bp;
	if (last.sp != f.sp) {
		found.at = (uint32_t)(last.sp - 8 - f.sp);
		memcpy(&found.word, (const void *)(uintptr_t)(last.sp - 8),
		    sizeof(found.word));
	}
	found.callers = look_up(sum, hg_frame_of(from));
	s[1] = s[0];
	s[0] = found;
	return found.callers;
}

void
hg_callers_stack(uint32_t callers, struct hg_stack *stack)
{
	if (callers == 0 || callers >= HG_CALLERS_MAX)
		*stack = (struct hg_stack){0};
	else
		*stack = all[callers].stack;
}

uint64_t
hg_callers_hash(uint32_t callers)
{
	return callers == 0 ? 0 : all[callers].hash;
}

void
hg_callers_set_due(uint32_t callers, uint32_t number)
{
	atomic_store_explicit(&hg_calls[callers].due, number != 0 ? number : 1,
	    memory_order_relaxed);
}

uint32_t
hg_callers_made(void)
{
	const uint32_t n = atomic_load(&made);

	return n < HG_CALLERS_MAX ? n : HG_CALLERS_MAX - 1;
}

uint32_t
hg_callers_blocks(uint32_t callers)
{
	return atomic_load_explicit(&hg_calls[callers].blocks,
	    memory_order_relaxed);
}
