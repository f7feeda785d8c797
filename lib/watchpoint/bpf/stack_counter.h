/*
 * stack_counter: counts hits by thread and stack instead of delivering them.
 *
 * Programs and user space share a table.  A row belongs to one thread and one
 * known stack (known_stack_map.h).  So only programs that run at that thread's
 * hits write it, one after another:
 *
 *	thread, number - hash -> row - taken? - next row ... no room: a sample
 *
 * User space reads a row while it is being written.  A row stays until the
 * table is cleared, which is done when no program can be using it any more.
 */
#ifndef WP_STACK_COUNTER_H
#define WP_STACK_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

struct code;

enum { WP_STACK_BITS = 13, WP_STACK_TABLE_ROWS = 1 << WP_STACK_BITS };

struct wp_stack_row {
	uint64_t owner;		/* wp_stack_row_owner(); 0: it is free */
	uint64_t first, last;	/* times of its first and last hits, ns */
	uint64_t values;	/* the number of hits with a known value; of
				   these: */
	uint64_t first_value, last_value;	/* the first and the last
						   value */
	uint64_t at_first, at_last;	/* and the numbers of their hits, from
					   0 */
	uint64_t least, largest;	/* as unsigned numbers */
	int64_t least_signed, largest_signed;	/* as signed numbers */
	uint64_t count;		/* the number of its hits; written last */
	uint64_t begun;		/* the same with the hit that is being counted;
				   written first */
	uint64_t spare[2];
};
_Static_assert(sizeof(struct wp_stack_row) == 128, "rows do not share lines");

static inline uint64_t
wp_stack_row_owner(uint32_t tid, uint32_t number)
{
	return (uint64_t)tid << 32 | number;
}

struct wp_stack_table {
	int map;		/* < 0: there is no table */
	struct wp_stack_row *row;	/* WP_STACK_TABLE_ROWS of them, and one
					   that has only a count: of the hits
					   for which there was no room */
};

/* Make the table.  0 or -errno: there is none. */
int wp_stack_table_open(struct wp_stack_table *);
void wp_stack_table_close(struct wp_stack_table *);

/* Read a row as it was at one moment.  False: it is free, or was written too
   often to be read. */
bool wp_stack_table_read(const struct wp_stack_table *, unsigned row,
    struct wp_stack_row *);

/* The number of hits for which there was no room. */
uint64_t wp_stack_table_refused(const struct wp_stack_table *);

/* Wait until every program that had begun by now has ended.  False: this kernel
   offers no way to wait for that. */
bool wp_stack_table_settle(void);

/* Free all rows. */
void wp_stack_table_clear(const struct wp_stack_table *);

/*
 * Generate code that counts a hit and ends the program, or continues behind it
 * if there is no room.  R1 is the row's owner, R3 the value of len bytes, and
 * R4 whether it is known; the time is on the stack.  Changes R0 to R5, R7, R8
 * and R9.
 */
void wp_code_tally(struct code *, const struct wp_stack_table *, unsigned len,
    int time);

#endif
