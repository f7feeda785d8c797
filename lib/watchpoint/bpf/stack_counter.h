/*
 * stack_counter: hits that are counted by their thread and stack, and not
 * delivered.
 *
 * Programs and user space share a table.  A row is of one thread and one stack
 * that is known (known_stack_map.h), so nobody but the programs of that
 * thread's hits writes it, one after the other:
 *
 *	thread, number - hash -> row - taken? - next row ... no room: a sample
 *
 * User space reads it while it is written.  A row stays until the table is
 * cleared, when no program can be at it any more.
 */
#ifndef WP_STACK_COUNTER_H
#define WP_STACK_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

struct code;

enum { WP_STACK_BITS = 13, WP_STACK_TABLE_ROWS = 1 << WP_STACK_BITS };

struct wp_stack_row {
	uint64_t owner;		/* wp_stack_row_owner(); 0: it is free */
	uint64_t first, last;	/* ns, of its hits */
	uint64_t values;	/* how many of them have a known value; then: */
	uint64_t first_value, last_value;	/* of the first and the last
						   that have one, */
	uint64_t at_first, at_last;	/* and the numbers of these hits, from
					   0 */
	uint64_t least, largest;	/* as numbers without a sign, */
	int64_t least_signed, largest_signed;	/* and with one */
	uint64_t count;		/* of its hits: what is written last */
	uint64_t begun;		/* and what is written first: that, with the
				   hit that is being counted */
	uint64_t spare[2];
};
_Static_assert(sizeof(struct wp_stack_row) == 128, "rows do not share lines");

static inline uint64_t
wp_stack_row_owner(uint32_t tid, uint32_t number)
{
	return (uint64_t)tid << 32 | number;
}

struct wp_stack_table {
	int map;		/* < 0: there are none */
	struct wp_stack_row *row;	/* WP_STACK_TABLE_ROWS of them, and one
				   that has only a count: of hits for which
				   there was no room */
};

/* 0 or -errno: there are none. */
int wp_stack_table_open(struct wp_stack_table *);
void wp_stack_table_close(struct wp_stack_table *);

/* A row as it was at one moment.  False: it is free, or written too often to
   say. */
bool wp_stack_table_read(const struct wp_stack_table *, unsigned row,
    struct wp_stack_row *);

/* For how many hits there was no room. */
uint64_t wp_stack_table_refused(const struct wp_stack_table *);

/* Wait until no program is at it that had begun by now.  False: that cannot be
   known here. */
bool wp_stack_table_settle(void);

/* Have all rows free. */
void wp_stack_table_clear(const struct wp_stack_table *);

/*
 * For a program: count a hit, and end; or go on behind where there is no room.
 * R1 is its owner, R3 its value of len bytes, and R4 whether it is known; its
 * time is on the stack.  Changes R0 to R5, R7, R8 and R9.
 */
void wp_code_tally(struct code *, const struct wp_stack_table *, unsigned len,
    int time);

#endif
