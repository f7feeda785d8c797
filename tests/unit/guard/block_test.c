/* block: each byte around a block is looked at, and none of its own. */
#include "test.h"

#include <string.h>

/* the guard is a library that replaces malloc: only this part of it is here */
#include "guard/block.c"	/* NOLINT(bugprone-suspicious-include) */

enum { FRONT = 64, MOST = 100 };

struct hg_state hg_state = {.quarantine = 1};
struct hg_ledger hg_ledger;
struct hg_next hg_next;

static struct hg_entry entries[2];
static _Alignas(16) uint8_t memory[FRONT + MOST + 64];
static uint8_t *const block = memory + FRONT;

/* A block of that size, in memory that has something in it. */
static struct hg_entry *
seal(size_t size)
{
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)i;
	hg_ledger.all = entries;
	atomic_store(&hg_ledger.used, 2);
	entries[1] = (struct hg_entry){
		.block = (uintptr_t)block, .size_low = (uint32_t)size,
		.state = HG_LIVE,
	};
	hg_block_seal((uintptr_t)block, size, 1, false);
	return &entries[1];
}

/* Try that with blocks of each size, in both kinds of allocators. */
static void
with_each_size(void (*try)(size_t size))
{
	for (size_t odd = 0; odd <= 8; odd += 8) {
		hg_block_odd = odd;
		for (size_t size = 0; size <= MOST; size++)
			try(size);
	}
}

static int64_t
end_of(size_t size)
{
	return (int64_t)(hg_block_room(size, HG_HEAD) - HG_HEAD);
}

static bool
is_whole(const struct hg_entry *e)
{
	return hg_block_is_whole(e, (uintptr_t)block);
}

static void
expect_the_rest_as_it_was(size_t size)
{
	const struct hg_entry *e = seal(size);

	assert_true(is_whole(e));
	assert_ptr_equal(hg_block_entry(block), e);
	for (int64_t i = -FRONT; i < MOST + 64; i++)
		if (i < -HG_HEAD || i >= end_of(size) ||
		    (i >= 0 && i < (int64_t)size))
			assert_int_equal(block[i], FRONT + i);
}

TEST(what_is_in_a_block_and_beyond_its_canaries_stays_as_it_was)
{
	with_each_size(expect_the_rest_as_it_was);
}

/* Change one byte, and back. */
static void
expect(const struct hg_entry *e, int64_t at, bool whole)
{
	struct hg_damage d;

	block[at] ^= 1;
	assert_int_equal(is_whole(e), whole);
	assert_int_equal(hg_block_damage(e, (uintptr_t)block, &d), !whole);
	if (!whole) {
		assert_int_equal(d.offset, at);
		assert_int_equal(d.len, 1);
	}
	block[at] ^= 1;
}

static void
expect_each_byte_looked_at(size_t size)
{
	const struct hg_entry *e = seal(size);

	for (int64_t i = -HG_HEAD; i < end_of(size); i++)
		expect(e, i, i >= 0 && i < (int64_t)size);
}

TEST(each_byte_around_a_block_is_looked_at)
{
	with_each_size(expect_each_byte_looked_at);
}

static void
expect_fill_looked_at(size_t size)
{
	struct hg_entry *e = seal(size);

	hg_block_fill(e, (uintptr_t)block);
	atomic_store(&e->state, HG_FREED);
	assert_true(is_whole(e));
	for (int64_t i = end_of(size); i < MOST + 64; i++)
		assert_int_equal(block[i], FRONT + i);
	for (int64_t i = -HG_HEAD; i < end_of(size); i++)
		expect(e, i, i >= HG_FILL && i < (int64_t)size);
}

TEST(the_first_bytes_of_a_freed_block_are_looked_at)
{
	with_each_size(expect_fill_looked_at);
}

TEST(an_entry_has_room_for_each_size_that_is_asked_for)
{
	struct hg_entry e = {.flags = HG_REPORTED | HG_WANTED};

	for (uint64_t size = 1; hg_block_room(size, HG_HEAD) != 0;
	    size = size * 2 + 1) {
		hg_entry_set_size(&e, size);
		assert_true(hg_entry_size(&e) == size);
		assert_int_equal(e.flags, HG_REPORTED | HG_WANTED);
	}
	assert_true(hg_entry_size(&e) == HG_SIZE_MAX - 1);
	assert_int_equal(hg_block_room(HG_SIZE_MAX, HG_HEAD), 0);
}

/* --- allocators --- */

static size_t usable;

static void *
give(size_t size)
{
	return size <= usable ? memory : NULL;
}

static void
take(void *p)
{
	assert_ptr_equal(p, memory);
}

static size_t
tell_usable(void *p)
{
	assert_ptr_equal(p, memory);
	return usable;
}

/* No byte between two blocks belongs to none, and no block takes a larger class
   than its 8 bytes of tail need. */
TEST(blocks_end_where_those_of_the_allocator_end)
{
	static const struct {
		size_t usable, odd;
	} allocators[] = {{40, 8}, {48, 0}};

	for (size_t i = 0; i < 2; i++) {
		usable = allocators[i].usable;
		hg_next = (struct hg_next){.malloc = give, .free = take,
			.usable_size = tell_usable};
		hg_block_begin();
		for (size_t size = 0; size <= MOST; size++) {
			const size_t room = hg_block_room(size, HG_HEAD);

			assert_int_equal(room % 16, allocators[i].odd);
			assert_in_range(room - HG_HEAD - size, 8, 23);
		}
	}
}

RUN_TESTS()
