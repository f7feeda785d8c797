/* known_stack_map: the map of known stacks. */
#include "bpf/known_stack_map.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/bpf.h"

#define SIZE sizeof(struct wp_known_table)

int
wp_known_open(struct wp_known *known, unsigned rings)
{
	void *table;

	*known = (struct wp_known){.scratch = -1};
	if ((known->map = wp_bpf_shared(SIZE)) < 0)
		return known->map;
	table = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
	    known->map, 0);
	if (table != MAP_FAILED) {
		known->table = table;
		known->scratch = wp_bpf_shared((size_t)rings *
		    WP_KNOWN_SCRATCH);
	}
	if (known->scratch >= 0)
		return 0;
	wp_known_close(known);
	return -ENOMEM;
}

void
wp_known_close(struct wp_known *known)
{
	if (known->table != NULL)
		(void)munmap(known->table, SIZE);
	if (known->map >= 0)
		(void)close(known->map);
	if (known->scratch >= 0)
		(void)close(known->scratch);
	*known = (struct wp_known){.map = -1, .scratch = -1};
}

static bool
is_register(uint32_t reg)
{
	return reg < WP_KNOWN_REGISTERS;
}

static bool
is_valid_value(const struct wp_known_value *value)
{
	return value->source <= WP_KNOWN_REGISTER &&
	    is_register(value->reg) && value->nbases <= 2 &&
	    is_register(value->base[0]) && is_register(value->base[1]);
}

static bool
are_places(const uint16_t *place, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (place[i] % sizeof(uint64_t) != 0 ||
		    place[i] >= WP_KNOWN_REACH)
			return false;
	return true;
}

bool
wp_known_is_valid(const struct wp_known_stack *stack)
{
	return stack->n >= 1 && stack->n <= WP_KNOWN_WORDS &&
	    stack->naddresses <= WP_KNOWN_ADDRESSES && stack->by_fp <= 1 &&
	    stack->fixed <= 1 && stack->pid > 0 && stack->tid > 0 &&
	    is_valid_value(&stack->value) &&
	    are_places(stack->place, stack->n) &&
	    are_places(stack->address_place, stack->naddresses);
}

static struct wp_known_way
way_of(const struct wp_known_stack *stack, uint64_t number, uint64_t slot)
{
	const uint64_t sp_bits = stack->fixed != 0 ? UINT64_MAX :
	    WP_KNOWN_ALIGN - 1;
	struct wp_known_way way = {
		.fp = stack->by_fp != 0 ? stack->fp : 0,
		.fp_bits = stack->by_fp != 0 ? UINT64_MAX : 0,
		.sp = stack->sp & sp_bits, .sp_bits = sp_bits,
		.n = stack->n, .naddresses = stack->naddresses,
		.number = number, .slot = slot, .value = stack->value,
	};

	for (unsigned i = 0; i < WP_KNOWN_ADDRESSES &&
	    stack->naddresses > 0; i++) {
		const unsigned from = i < stack->naddresses ? i : 0;

		way.address[i] = stack->address[from];
		way.address_place[i] = stack->address_place[from];
	}
	for (unsigned i = 0; i < WP_KNOWN_WORDS; i++) {
		const unsigned from = i < stack->n ? i : 0;

		way.word[i] = stack->word[from];
		way.place[i] = stack->place[from];
	}
	return way;
}

static uint64_t
reach_of(const struct wp_known_stack *stack)
{
	uint64_t reach = 0;

	for (unsigned i = 0; i < stack->n; i++)
		if (stack->place[i] >= reach)
			reach = stack->place[i] + sizeof(uint64_t);
	for (unsigned i = 0; i < stack->naddresses; i++)
		if (stack->address_place[i] >= reach)
			reach = stack->address_place[i] + sizeof(uint64_t);
	return reach;
}

/* An entry is not what it was, for programs that look at it meanwhile. */
static void
begin_change(struct wp_known_entry *entry)
{
	__atomic_store_n(&entry->version, entry->version + 1,
	    __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void
end_change(struct wp_known_entry *entry)
{
	__atomic_store_n(&entry->version, entry->version + 1,
	    __ATOMIC_SEQ_CST);
}

/* How deep programs will find it to be, which have this from now on. */
static uint64_t
depth_of(const struct wp_known *known, const struct wp_known_stack *stack)
{
	const uint64_t tid = (uint64_t)stack->tid;
	const uint64_t begin = stack->sp + stack->depth;
	struct wp_known_thread *thread =
	    &known->table->thread[tid % WP_KNOWN_THREADS];

	if (stack->depth == 0)
		return (thread->tid == tid ? thread->begin : 0) - stack->sp;
	if (thread->tid != tid) {
		__atomic_store_n(&thread->tid, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&thread->begin, begin, __ATOMIC_SEQ_CST);
		__atomic_store_n(&thread->tid, tid, __ATOMIC_SEQ_CST);
	} else if (thread->begin != begin) {
		__atomic_store_n(&thread->begin, 0, __ATOMIC_SEQ_CST);
	}
	return thread->begin - stack->sp;
}

static struct wp_known_entry *
entry_of(const struct wp_known *known, const struct wp_known_stack *stack,
    uint64_t depth)
{
	const uint64_t mix = wp_known_mix(stack->pc, depth,
	    (uint64_t)stack->pid);

	return &known->table->entry[mix * WP_KNOWN_FACTOR >>
	    (64 - WP_KNOWN_BITS)];
}

static bool
is_of(const struct wp_known_entry *entry, const struct wp_known_stack *stack,
    uint64_t depth)
{
	return entry->pid == (uint64_t)stack->pid && entry->pc == stack->pc &&
	    entry->depth == depth;
}

static void
make_empty(struct wp_known_entry *entry)
{
	memset(&entry->pc, 0, sizeof(*entry) -
	    offsetof(struct wp_known_entry, pc));
	for (unsigned i = 0; i < WP_KNOWN_WAYS; i++)
		entry->way[i].fp = 1;
}

/* Which way is of the same stack, for this slot: one of those; NULL: none. */
static struct wp_known_way *
same_way(struct wp_known_entry *entry, const struct wp_known_way *way)
{
	for (unsigned i = 0; i < WP_KNOWN_WAYS; i++) {
		struct wp_known_way *other = &entry->way[i];

		if (memcmp(other, way,
		    offsetof(struct wp_known_way, number)) == 0 &&
		    (other->number == 0 || way->number == 0 ||
		    other->slot == way->slot))
			return other;
	}
	return NULL;
}

bool
wp_known_add(const struct wp_known *known, const struct wp_known_stack *stack,
    uint64_t number, uint64_t slot)
{
	const uint64_t depth = depth_of(known, stack);
	struct wp_known_entry *entry = entry_of(known, stack, depth);
	const struct wp_known_way way = way_of(stack, number, slot);
	const uint64_t reach = reach_of(stack);
	struct wp_known_way *same = is_of(entry, stack, depth) ?
	    same_way(entry, &way) : NULL;

	if (same != NULL && (same->number != 0 || number == 0))
		return false;
	begin_change(entry);
	if (!is_of(entry, stack, depth))
		make_empty(entry);
	entry->pc = stack->pc;
	entry->depth = depth;
	entry->pid = (uint64_t)stack->pid;
	if (entry->reach < reach)
		entry->reach = reach;
	if (same == NULL) {
		memmove(entry->way + 1, entry->way,
		    (WP_KNOWN_WAYS - 1) * sizeof(entry->way[0]));
		same = &entry->way[0];
	}
	*same = way;
	end_change(entry);
	return number != 0;
}

void
wp_known_forget(const struct wp_known *known, pid_t pid)
{
	for (unsigned i = 0; i < WP_KNOWN_ENTRIES; i++) {
		struct wp_known_entry *entry = &known->table->entry[i];

		if (entry->pid == 0 ||
		    (pid != 0 && entry->pid != (uint64_t)pid))
			continue;
		begin_change(entry);
		make_empty(entry);
		end_change(entry);
	}
}
