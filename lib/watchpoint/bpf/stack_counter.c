/* stack_counter: the table, and how a program counts in it. */
#include "bpf/stack_counter.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/bpf.h"
#include "bpf/code.h"

enum { PROBES = 4, TRIES = 64 };

#define SIZE ((WP_STACK_TABLE_ROWS + 1) * sizeof(struct wp_stack_row))
#define FACTOR UINT64_C(0x9e3779b97f4a7c15)
#define ROW(member) ((int)offsetof(struct wp_stack_row, member))

int
wp_stack_table_open(struct wp_stack_table *t)
{
	void *rows;

	*t = (struct wp_stack_table){.map = wp_bpf_shared(SIZE)};
	if (t->map < 0)
		return t->map;
	rows = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, t->map, 0);
	if (rows != MAP_FAILED) {
		t->row = rows;
		return 0;
	}
	wp_stack_table_close(t);
	return -ENOMEM;
}

void
wp_stack_table_close(struct wp_stack_table *t)
{
	if (t->row != NULL)
		(void)munmap(t->row, SIZE);
	if (t->map >= 0)
		(void)close(t->map);
	*t = (struct wp_stack_table){.map = -1};
}

static uint64_t
count_of(const struct wp_stack_row *row)
{
	return __atomic_load_n(&row->count, __ATOMIC_SEQ_CST);
}

bool
wp_stack_table_read(const struct wp_stack_table *t, unsigned i,
    struct wp_stack_row *as_was)
{
	const struct wp_stack_row *row = &t->row[i];

	for (int tries = 0; tries < TRIES; tries++) {
		const uint64_t count = count_of(row);

		memcpy(as_was, row, sizeof(*as_was));
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&row->begun, __ATOMIC_SEQ_CST) != count)
			continue;
		as_was->count = count;
		return as_was->owner != 0 && count > 0;
	}
	return false;
}

uint64_t
wp_stack_table_refused(const struct wp_stack_table *t)
{
	return count_of(&t->row[WP_STACK_TABLE_ROWS]);
}

/* Wait until programs that run now have ended: they run where the kernel does
   not sleep, and the call waits for all processors to leave that. */
bool
wp_stack_table_settle(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

void
wp_stack_table_clear(const struct wp_stack_table *t)
{
	memset(t->row, 0, SIZE);
}

/* --- programs --- */

/* R2 and R7 become the first row that the owner in R1 may have, and its
   number. */
static void
find(struct code *c, const struct wp_stack_table *t)
{
	set_wide(c, BPF_REG_2, 0, FACTOR);
	copy(c, BPF_REG_7, BPF_REG_1);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_X, BPF_REG_7, BPF_REG_2, 0, 0);
	emit(c, BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_7, 0, 0,
	    64 - WP_STACK_BITS);
	set_wide(c, BPF_REG_9, BPF_PSEUDO_MAP_VALUE, (uint32_t)t->map);
}

/* R2 becomes the row with the number in R7, in the table at R9. */
static void
point(struct code *c)
{
	copy(c, BPF_REG_0, BPF_REG_7);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, 0,
	    WP_STACK_TABLE_ROWS - 1);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_K, BPF_REG_0, 0, 0,
	    sizeof(struct wp_stack_row));
	copy(c, BPF_REG_2, BPF_REG_9);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_2, BPF_REG_0, 0, 0);
}

/* Jump if the relation of two registers holds. */
static unsigned
jump_by(struct code *c, int op, unsigned a, unsigned b)
{
	emit(c, BPF_JMP | op | BPF_X, a, b, 0, 0);
	return c->n - 1;
}

/* Take the row at R2 if it is free or is the owner's already.  taken[] are the
   jumps in that case. */
static void
take(struct code *c, unsigned taken[3])
{
	unsigned other;

	load(c, BPF_DW, BPF_REG_0, BPF_REG_2, ROW(owner));
	taken[0] = jump_by(c, BPF_JEQ, BPF_REG_0, BPF_REG_1);
	other = jump(c, BPF_JNE, BPF_REG_0, 0);
	copy(c, BPF_REG_5, BPF_REG_1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_2, BPF_REG_5, ROW(owner),
	    BPF_CMPXCHG);
	taken[1] = jump(c, BPF_JEQ, BPF_REG_0, 0);
	taken[2] = jump_by(c, BPF_JEQ, BPF_REG_0, BPF_REG_1);
	land(c, other);
	add(c, BPF_REG_7, 1);
}

/* Keep the value in R3 if it is the new least or largest one. */
static void
keep_if(struct code *c, int not_if, int at, bool first)
{
	unsigned not = 0;

	if (!first) {
		load(c, BPF_DW, BPF_REG_0, BPF_REG_2, at);
		not = jump_by(c, not_if, BPF_REG_3, BPF_REG_0);
	}
	store(c, BPF_DW, BPF_REG_2, at, BPF_REG_3);
	if (!first)
		land(c, not);
}

/* Extend the value in R3, of len bytes, to a signed or unsigned number. */
static void
extend(struct code *c, unsigned len, bool is_signed)
{
	const int bits = 64 - 8 * (int)len;

	if (bits == 0)
		return;
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_3, 0, 0, bits);
	emit(c, BPF_ALU64 | (is_signed ? BPF_ARSH : BPF_RSH) | BPF_K,
	    BPF_REG_3, 0, 0, bits);
}

/* Note the value; R8 is the number of the hit. */
static void
put_values(struct code *c, unsigned len, bool first)
{
	extend(c, len, false);
	if (first) {
		store(c, BPF_DW, BPF_REG_2, ROW(first_value), BPF_REG_3);
		store(c, BPF_DW, BPF_REG_2, ROW(at_first), BPF_REG_8);
	}
	store(c, BPF_DW, BPF_REG_2, ROW(last_value), BPF_REG_3);
	store(c, BPF_DW, BPF_REG_2, ROW(at_last), BPF_REG_8);
	keep_if(c, BPF_JGE, ROW(least), first);
	keep_if(c, BPF_JLE, ROW(largest), first);
	extend(c, len, true);
	keep_if(c, BPF_JSGE, ROW(least_signed), first);
	keep_if(c, BPF_JSLE, ROW(largest_signed), first);
}

/* Count the value in R3, provided that R4 says that it is known. */
static void
count_value(struct code *c, unsigned len)
{
	unsigned none = jump(c, BPF_JEQ, BPF_REG_4, 0), again, end;

	load(c, BPF_DW, BPF_REG_4, BPF_REG_2, ROW(values));
	again = jump(c, BPF_JNE, BPF_REG_4, 0);
	put_values(c, len, true);
	end = c->n;
	emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	land(c, again);
	put_values(c, len, false);
	land(c, end);
	add(c, BPF_REG_4, 1);
	store(c, BPF_DW, BPF_REG_2, ROW(values), BPF_REG_4);
	land(c, none);
}

void
wp_code_tally(struct code *c, const struct wp_stack_table *t, unsigned len,
    int time)
{
	unsigned taken[PROBES][3], full, not_first;

	find(c, t);
	for (unsigned i = 0; i < PROBES; i++) {
		point(c);
		take(c, taken[i]);
	}
	add(c, BPF_REG_9,
	    WP_STACK_TABLE_ROWS * (int)sizeof(struct wp_stack_row));
	set(c, BPF_REG_1, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_9, BPF_REG_1, ROW(count),
	    BPF_ADD);
	full = c->n;
	emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	for (unsigned i = 0; i < PROBES; i++)
		for (unsigned k = 0; k < 3; k++)
			land(c, taken[i][k]);
	load(c, BPF_DW, BPF_REG_8, BPF_REG_2, ROW(count));
	copy(c, BPF_REG_1, BPF_REG_8);
	add(c, BPF_REG_1, 1);
	store(c, BPF_DW, BPF_REG_2, ROW(begun), BPF_REG_1);
	load(c, BPF_DW, BPF_REG_1, FP, time);
	not_first = jump(c, BPF_JNE, BPF_REG_8, 0);
	store(c, BPF_DW, BPF_REG_2, ROW(first), BPF_REG_1);
	land(c, not_first);
	store(c, BPF_DW, BPF_REG_2, ROW(last), BPF_REG_1);
	count_value(c, len);
	add(c, BPF_REG_8, 1);
	store(c, BPF_DW, BPF_REG_2, ROW(count), BPF_REG_8);
	return_zero(c);
	land(c, full);
}
