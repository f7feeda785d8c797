/* quarantine: freed blocks are kept in their order, and when there is no room a
   few of them go at once. */
#include "test.h"

#include <string.h>

/* the guard is a library that replaces malloc: only this part of it is here */
#include "guard/block.c"	/* NOLINT(bugprone-suspicious-include) */
#include "guard/alloc.c"	/* NOLINT(bugprone-suspicious-include) */

enum { SIZE = 1024, FIT = 128, ROOM = FIT * SIZE, MANY = HG_RING + 10 };

struct hg_state hg_state = {.quarantine = ROOM, .share = ROOM};
struct hg_ledger hg_ledger;
struct hg_next hg_next;
struct hg_calls *hg_calls;
_Thread_local struct hg_thread *hg_self
    __attribute__((tls_model("initial-exec")));
_Atomic uint64_t hg_rules[HG_RULES];

static struct hg_thread thread;
static struct hg_entry entries[MANY];
static char memory[SIZE + 64] __attribute__((aligned(16)));
static unsigned freed, reports;
static struct hg_entry *reported;
static bool may_learn;	/* a site may be looked up */

static void
count_free(void *raw)
{
	assert_ptr_equal(raw, memory);
	freed++;
}

void
hg_report_block(struct hg_entry *e, uint64_t block, enum hg_when when,
    const struct hg_record *from)
{
	(void)block;
	(void)from;
	assert_int_equal(when, HG_AT_REUSE);
	reports++;
	reported = e;
}

/* All blocks are in the same place, which does not matter here. */
static void
keep_one(uint32_t number, size_t size)
{
	const uint64_t block = (uintptr_t)memory + HG_HEAD;
	struct hg_entry *e = &entries[number];

	*e = (struct hg_entry){
		.block = block, .size_low = (uint32_t)size, .pad = 4,
		.state = HG_FREED,
	};
	keep(&thread, e);
}

static void
begin(void)
{
	memset(&thread, 0, sizeof(thread));
	hg_ledger.all = entries;
	atomic_store(&hg_ledger.used, MANY);
	hg_next.free = count_free;
	freed = reports = 0;
	reported = NULL;
}

TEST(a_few_go_at_once_the_oldest_first)
{
	begin();
	for (uint32_t i = 1; i <= FIT; i++)
		keep_one(i, SIZE);
	assert_int_equal(freed, 0);
	assert_int_equal(thread.held, ROOM);
	keep_one(FIT + 1, SIZE);
	assert_int_equal(freed, AT_ONCE);
	assert_int_equal(thread.held, ROOM - (AT_ONCE - 1) * SIZE);
	for (uint32_t i = 1; i <= FIT + 1; i++)
		assert_int_equal(atomic_load(&entries[i].state),
		    i <= AT_ONCE ? HG_NONE : HG_FREED);
	keep_one(FIT + 2, SIZE);
	assert_int_equal(freed, AT_ONCE);
	for (uint32_t i = 0; i < AT_ONCE; i++)
		assert_int_equal(thread.spare[i], i + 1);
}

TEST(as_many_go_as_a_large_one_needs)
{
	begin();
	for (uint32_t i = 1; i <= FIT; i++)
		keep_one(i, SIZE);
	keep_one(FIT + 1, ROOM / 2);
	assert_int_equal(freed, FIT / 2);
	assert_int_equal(thread.held, ROOM);
}

/* More than that are not at hand for their size in the allocator: with glibc
   they would be joined with what lies beside them, and cut up again. */
TEST(small_ones_do_not_go_in_crowds)
{
	begin();
	for (uint32_t i = 1; i <= ROOM / 16; i++)
		keep_one(i, 16);
	keep_one(ROOM / 16 + 1, 16);
	assert_in_range(freed, 1, 7);
}

TEST(each_that_goes_is_looked_at)
{
	begin();
	for (uint32_t i = 1; i <= FIT + 1; i++)
		keep_one(i, SIZE);
	/* none was filled */
	assert_int_equal(reports, AT_ONCE);
	assert_ptr_equal(reported, &entries[AT_ONCE]);
}

TEST(one_that_is_larger_than_all_goes_alone)
{
	begin();
	keep_one(1, SIZE);
	keep_one(2, ROOM + 1);
	assert_int_equal(freed, 1);
	assert_int_equal(atomic_load(&entries[1].state), HG_FREED);
	assert_int_equal(thread.held, SIZE);
}

TEST(there_are_no_more_than_the_ring_has_room_for)
{
	begin();
	for (uint32_t i = 1; i < MANY; i++)
		keep_one(i, 0);
	assert_int_equal(thread.last - thread.first, HG_RING);
	assert_int_equal(freed, MANY - 1 - HG_RING);
}

/* --- without a quarantine --- */

static char other[2 * SIZE] __attribute__((aligned(16)));
static struct hg_calls calls[1];

/* As if the allocator had room behind the block. */
static void *
resize_in_place(void *raw, size_t size)
{
	assert_in_range(size, SIZE, sizeof(other));
	assert_ptr_equal(raw, other);
	return raw;
}

/* A live block in other. */
static char *
live_block(size_t size)
{
	const uint64_t block = (uintptr_t)other + HG_HEAD;

	begin();
	hg_self = &thread;
	hg_state.quarantine = 0;
	hg_calls = calls;
	entries[1] = (struct hg_entry){
		.block = block, .size_low = (uint32_t)size, .pad = 4,
		.state = HG_LIVE,
	};
	hg_block_seal(block, size, 1, true);
	return other + HG_HEAD;
}

static void
end(void)
{
	hg_self = NULL;
	hg_state.quarantine = ROOM;
}

static void
count_other(void *raw)
{
	assert_ptr_equal(raw, other);
	freed++;
}

/* Nobody would read it. */
TEST(without_a_quarantine_who_frees_is_not_looked_up)
{
	const struct hg_record from = {0, 0x1234};
	char *block = live_block(40);

	hg_next.free = count_other;
	hg_free(block, HG_MALLOC, &from);
	assert_int_equal(freed, 1);
	assert_int_equal(atomic_load(&entries[1].state), HG_NONE);
	end();
}

/* Nothing would notice a write to where it was. */
TEST(without_a_quarantine_a_block_is_resized_in_place)
{
	const struct hg_record from = {0, 0x1234};
	char *block = live_block(40);

#ifdef __x86_64__
	/* it is the outermost caller */
	atomic_store(&hg_rules[0x1234], (uint64_t)HG_OUTERMOST << 32);
#endif
	may_learn = true;
	memcpy(block, "kept", 5);
	hg_next.realloc = resize_in_place;
	assert_ptr_equal(hg_realloc(block, SIZE, &from), block);
	assert_string_equal(block, "kept");
	assert_int_equal(hg_size(block), SIZE);
	assert_true(hg_block_is_whole(hg_block_entry(block),
	    (uintptr_t)block));
	may_learn = false;
	end();
}

/* --- not called here --- */

void
hg_report_free(enum hg_kind kind, struct hg_entry *e, uint64_t block,
    enum hg_family family, const struct hg_record *from)
{
	fail_msg("%d %p %lx %d %p", kind, (void *)e, (unsigned long)block,
	    family, (const void *)from);
}

uint32_t
hg_site_learn(struct hg_thread *t, uint64_t sum, const struct hg_record *from,
    unsigned frames)
{
	if (may_learn)
		return 0;
	fail_msg("%p %lx %p %u", (void *)t, (unsigned long)sum,
	    (const void *)from, frames);
	return 0;
}

struct hg_rule
hg_rule_learn(uint64_t pc)
{
	fail_msg("%lx", (unsigned long)pc);
	return (struct hg_rule){0};
}

#define NOT_CALLED(type, name, parameters, result)			\
	type								\
	name parameters							\
	{								\
		fail_msg(#name);					\
		return result;						\
	}
NOT_CALLED(struct hg_thread *, hg_thread_make, (void), NULL)
NOT_CALLED(bool, hg_arena_has, (const void *p), p == NULL)
NOT_CALLED(bool, hg_early_has, (uint64_t block), block == 0)
NOT_CALLED(void *, hg_early_note, (void *p), p)
NOT_CALLED(void, hg_early_forget, (uint64_t block), (void)block)
NOT_CALLED(void, hg_ledger_refill, (struct hg_thread *t), (void)t)
NOT_CALLED(void, hg_ledger_drain, (struct hg_thread *t), (void)t)
NOT_CALLED(struct hg_entry *, hg_ledger_search, (uint64_t block),
    &entries[block])
NOT_CALLED(struct hg_entry *, hg_ledger_around, (uint64_t address),
    &entries[address])
NOT_CALLED(void, hg_watch_end, (const struct hg_entry *e), (void)e)
NOT_CALLED(void, hg_watch_allocated, (struct hg_entry *e, uint64_t block),
    (void)(e->size_low + block))
NOT_CALLED(void, hg_watch_freed, (struct hg_entry *e, uint64_t block),
    (void)(e->size_low + block))

RUN_TESTS()
