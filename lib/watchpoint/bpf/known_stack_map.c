/* known_stack_map: the map of known stacks. */
#include "bpf/known_stack_map.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/bpf.h"

#define SIZE (WP_KNOWN_ENTRIES * sizeof(struct wp_known_entry))

int
wp_known_open(struct wp_known *known, unsigned rings)
{
	void *entries;

	*known = (struct wp_known){.scratch = -1};
	if ((known->map = wp_bpf_shared(SIZE)) < 0)
		return known->map;
	entries = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
	    known->map, 0);
	if (entries != MAP_FAILED) {
		known->entry = entries;
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
	if (known->entry != NULL)
		(void)munmap(known->entry, SIZE);
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

/* Of a word, without its rule. */
static unsigned
place_of(const struct wp_known_stack *stack, unsigned i)
{
	return stack->place[i] & ~(unsigned)WP_KNOWN_RELATIVE;
}

bool
wp_known_is_valid(const struct wp_known_stack *stack)
{
	bool valid = stack->n >= 1 && stack->n <= WP_KNOWN_WORDS &&
	    stack->by_fp <= 1 && stack->by_sp <= 1 && stack->pid > 0 &&
	    is_valid_value(&stack->value);

	for (unsigned i = 0; valid && i < stack->n; i++)
		valid = place_of(stack, i) % sizeof(stack->word[0]) == 0 &&
		    place_of(stack, i) < WP_KNOWN_REACH;
	return valid;
}

static struct wp_known_way
way_of(const struct wp_known_stack *stack, uint64_t number, uint64_t slot)
{
	struct wp_known_way way = {
		.fp = stack->by_fp != 0 ? stack->fp - stack->sp : 0,
		.fp_bits = stack->by_fp != 0 ? UINT64_MAX : 0,
		.sp = stack->by_sp != 0 ? stack->sp : 0,
		.sp_bits = stack->by_sp != 0 ? UINT64_MAX : 0,
		.n = stack->n,
		.number = number, .slot = slot, .value = stack->value,
	};

	for (unsigned i = 0; i < stack->n; i++) {
		way.place[i] = stack->place[i];
		way.word[i] = stack->word[i] -
		    ((stack->place[i] & WP_KNOWN_RELATIVE) != 0 ?
		    stack->sp : 0);
	}
	return way;
}

static uint64_t
reach_of(const struct wp_known_stack *stack)
{
	uint64_t reach = WP_KNOWN_SHORTEST;

	for (unsigned i = 0; i < stack->n; i++)
		while (place_of(stack, i) + sizeof(stack->word[0]) > reach)
			reach *= 2;
	return reach;
}

/* Mark an entry as changing, for programs that read it at the same time. */
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

static struct wp_known_entry *
entry_of(const struct wp_known *known, const struct wp_known_stack *stack)
{
	const uint64_t mix = wp_known_mix(stack->pc, stack->sp % WP_KNOWN_PAGE,
	    (uint64_t)stack->pid);

	return &known->entry[mix * WP_KNOWN_FACTOR >> (64 - WP_KNOWN_BITS)];
}

static bool
is_of(const struct wp_known_entry *entry, const struct wp_known_stack *stack)
{
	return entry->pid == (uint64_t)stack->pid && entry->pc == stack->pc &&
	    entry->sp == stack->sp % WP_KNOWN_PAGE;
}

static void
make_empty(struct wp_known_entry *entry)
{
	memset(&entry->pc, 0, sizeof(*entry) -
	    offsetof(struct wp_known_entry, pc));
	for (unsigned i = 0; i < WP_KNOWN_WAYS; i++)
		entry->way[i].fp = 1;
}

/* Find the way that has the same stack for this slot, or NULL. */
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
	struct wp_known_entry *entry = entry_of(known, stack);
	const struct wp_known_way way = way_of(stack, number, slot);
	const uint64_t reach = reach_of(stack);
	struct wp_known_way *same = is_of(entry, stack) ?
	    same_way(entry, &way) : NULL;

	if (same != NULL && (same->number != 0 || number == 0))
		return false;
	begin_change(entry);
	if (!is_of(entry, stack))
		make_empty(entry);
	entry->pc = stack->pc;
	entry->sp = stack->sp % WP_KNOWN_PAGE;
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
		struct wp_known_entry *entry = &known->entry[i];

		if (entry->pid == 0 ||
		    (pid != 0 && entry->pid != (uint64_t)pid))
			continue;
		begin_change(entry);
		make_empty(entry);
		end_change(entry);
	}
}
