/* callers: where blocks are allocated and freed.  See callers.h. */
#include "guard/callers.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "guard/watch.h"

enum { KEYS = 1 << 17, PROBES = 8, BY_HASH = 2 * HG_CALLERS_MAX };

struct callers {
	struct hg_stack stack;
	uint64_t hash;		/* never 0, written last */
	_Atomic uint32_t count;	/* of their blocks */
	bool wanted;		/* one of which is to be watched */
};

struct key {
	_Atomic uint64_t mixed;	/* the key ^ the number */
	_Atomic uint64_t number;
};

static struct callers *all;	/* HG_CALLERS_MAX of them, by numbers */
static struct key *keys;
static _Atomic uint32_t *by_hash;	/* BY_HASH of them: numbers */
static _Atomic uint32_t made;

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
	keys = room(KEYS * sizeof(*keys));
	by_hash = room(BY_HASH * sizeof(*by_hash));
	return all == NULL || keys == NULL || by_hash == NULL ? -ENOMEM : 0;
}

void
hg_callers_walk(const struct hg_frame *from, struct hg_stack *stack)
{
	struct hg_frame f = *from;
	bool outermost = false;

	stack->n = 0;
	do {
		stack->pc[stack->n++] = f.pc;
	} while (stack->n < HG_FRAMES_MAX && hg_frame_step(&f, &outermost));
	stack->whole = outermost;
}

/* Addresses differ between runs; code in no module is at any. */
static uint64_t
hash_stack(const struct hg_stack *stack)
{
	uint64_t sum = stack->n, base;
	const char *name;

	for (uint32_t i = 0; i < stack->n; i++) {
		if (!hg_frame_module(stack->pc[i] - 1, &base, &name)) {
			sum = hash(sum, 1);
			continue;
		}
		sum = hash(sum, stack->pc[i] - base);
		for (; *name != '\0'; name++)
			sum = hash(sum, (unsigned char)*name);
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
	all[number].wanted = hg_watch_wants(sum);
	all[number].hash = sum;
	return number;
}

/* Two threads may give the same callers two numbers, which have one hash. */
static uint32_t
find(const struct hg_frame *from)
{
	struct hg_stack stack;
	uint64_t sum;
	uint32_t number, none = 0;
	_Atomic uint32_t *at;

	hg_callers_walk(from, &stack);
	sum = hash_stack(&stack);
	for (size_t i = 0; i < BY_HASH; i++) {
		at = &by_hash[(sum + i) % BY_HASH];
		if ((number = atomic_load(at)) == 0)
			break;
		if (is_same(number, sum, &stack))
			return number;
	}
	number = make(sum, &stack);
	if (number != 0)
		(void)atomic_compare_exchange_strong(at, &none, number);
	return number;
}

static uint32_t
look_up(uint64_t sum, const struct hg_frame *from)
{
	uint64_t number;
	struct key *key = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		key = &keys[(sum + i) % KEYS];
		number = atomic_load_explicit(&key->number,
		    memory_order_relaxed);
		if (number == 0)
			break;
		if ((atomic_load_explicit(&key->mixed,
		    memory_order_relaxed) ^ number) == sum)
			return (uint32_t)number;
	}
	if ((number = find(from)) != 0) {
		atomic_store(&key->number, number);
		atomic_store(&key->mixed, sum ^ number);
	}
	return (uint32_t)number;
}

static bool
is_site(const struct hg_site *s, const struct hg_frame *f, unsigned frames)
{
	return s->pc == f->pc && s->sp == f->sp && s->bp == f->bp &&
	    s->frames == frames && (s->at[0] == NULL ||
	    *s->at[0] == s->word[0]) && (s->at[1] == NULL ||
	    *s->at[1] == s->word[1]);
}

uint32_t
hg_callers_of(struct hg_thread *t, const struct hg_frame *from,
    unsigned frames)
{
	const uint64_t mixed = (from->pc ^ from->sp << 7) *
	    UINT64_C(0x9e3779b97f4a7c15);
	struct hg_site *s = &t->site[mixed >> 56];
	struct hg_frame f = *from;
	uint64_t sum;
	bool outermost;

	if (is_site(s, from, frames))
		return s->callers;
	*s = (struct hg_site){f.pc, f.sp, f.bp, .frames = frames};
	sum = hash(hash(frames, f.pc), f.sp);
	for (unsigned i = 0; i < frames && hg_frame_step(&f, &outermost);
	    i++) {
		s->at[i] = (const uint64_t *)(uintptr_t)(f.sp - 8);
		s->word[i] = f.pc;
		sum = hash(sum, f.pc);
	}
	s->callers = look_up(sum, from);
	return s->callers;
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

bool
hg_callers_are_wanted(uint32_t callers)
{
	return all[callers].wanted;
}

uint32_t
hg_callers_count_in(struct hg_thread *t, uint32_t callers)
{
	return ++t->count[callers];
}

uint32_t
hg_callers_count(uint32_t callers)
{
	_Atomic uint32_t *count = &all[callers].count;
	uint32_t n;

	if (atomic_load_explicit(&hg_state.nthreads,
	    memory_order_relaxed) > 1)
		return atomic_fetch_add_explicit(count, 1,
		    memory_order_relaxed) + 1;
	n = atomic_load_explicit(count, memory_order_relaxed) + 1;
	atomic_store_explicit(count, n, memory_order_relaxed);
	return n;
}
