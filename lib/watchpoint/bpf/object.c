/*
 * object: the programs that see objects created, freed and reused.
 *
 * R6 is what the program is given, R7 the table, then a place in it; R8 the
 * number, the time, or a size; R9 the object's address.  On the stack is what
 * enum object_stack says.
 */
#include "bpf/object.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/bpf.h"
#include "bpf/code.h"
#include "bpf/sampler.h"
#include "bpf/uprobe_guard.h"

/* Where a program finds what a function returns, and its arguments. */
enum { ARGUMENTS = 3 };
#if defined(__x86_64__)
#define RESULT	offsetof(struct pt_regs, rax)
static const size_t argument[ARGUMENTS] = {
	offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rsi),
	offsetof(struct pt_regs, rdx),
};
#else
#define RESULT	offsetof(struct user_pt_regs, regs[0])
static const size_t argument[ARGUMENTS] = {
	offsetof(struct user_pt_regs, regs[0]),
	offsetof(struct user_pt_regs, regs[1]),
	offsetof(struct user_pt_regs, regs[2]),
};
#endif

/* What a thread does until its object is armed: looks, with calls between two
   that take some 25 ns each, and more with a slow clock. */
enum { LOOKS = 2000, CALLS = 8 };

/* What the allocator was called with: the first argument, and the size; and the
   number of the object that the first one is, 0: of none. */
struct wp_object_called {
	uint64_t first, size, number;
};
_Static_assert(sizeof(struct wp_object_called) == WP_OBJECT_CALLED, "");

enum object_stack {
	TID = -8,		/* the process is behind it */
	ADDR = WP_SAMPLE_KEPT,
	PLACE = WP_SAMPLE_OWN - 8,	/* R7, while there is a sample */
	CALL = PLACE - (int)sizeof(struct wp_object_called),
	RECORD = CALL - (int)sizeof(struct wp_object_record),
};

#define IN_TABLE(member)	((int)offsetof(struct wp_object_table, member))
#define IN_PLACE(member)	((int)offsetof(struct wp_object_place, member))
#define IN_CALL(member)		(CALL + (int)offsetof(		\
	struct wp_object_called, member))
#define IN_RECORD(member)	(RECORD + (int)offsetof(	\
	struct wp_object_record, member))

/* Jumps to the end. */
struct ends {
	unsigned at[32], n;
};

static void
end_if(struct ends *ends, unsigned at)
{
	ends->at[ends->n++] = at;
}

static void
put_end(struct code *c, const struct ends *ends)
{
	for (unsigned i = 0; i < ends->n; i++)
		land(c, ends->at[i]);
	return_zero(c);
}

static unsigned
jump_registers(struct code *c, int op, unsigned one, unsigned other)
{
	emit(c, BPF_JMP | op | BPF_X, one, other, 0, 0);
	return c->n - 1;
}

/* Add a register to what is there. */
static void
add_there(struct code *c, unsigned src, int at)
{
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, src, at, BPF_ADD);
}

/* End here unless the programs run. */
static void
put_on(struct code *c, const struct wp_object_maps *maps, struct ends *ends)
{
	copy(c, BPF_REG_6, BPF_REG_1);
	set_wide(c, BPF_REG_7, BPF_PSEUDO_MAP_VALUE, (uint32_t)maps->table);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(on));
	end_if(ends, jump(c, BPF_JEQ, BPF_REG_1, 0));
}

/* End here unless this is the process. */
static void
put_process(struct code *c, const struct wp_object_maps *maps,
    struct ends *ends)
{
	unsigned other[2];

	wp_code_unless_process(c, maps->pid, other);
	end_if(ends, other[0]);
	end_if(ends, other[1]);
}

static void
put_begin(struct code *c, const struct wp_object_maps *maps, struct ends *ends)
{
	put_on(c, maps, ends);
	put_process(c, maps, ends);
}

/* The address of an object is there; else jump. */
static unsigned
put_address(struct code *c, size_t addr)
{
	unsigned none;

	load(c, BPF_DW, BPF_REG_9, BPF_REG_6, (int)addr);
	none = jump(c, BPF_JLE, BPF_REG_9, WP_OBJECT_CLOSED);
	store(c, BPF_DW, FP, ADDR, BPF_REG_9);
	return none;
}

/* What the place at R7 has, of the number and time that are there. */
static void
put_record(struct code *c, const struct wp_object_maps *maps, unsigned type)
{
	const struct perf_event_header header = {
		.type = type, .size = sizeof(struct wp_object_record),
	};

	store(c, BPF_DW, FP, PLACE, BPF_REG_7);
	wp_code_sample(c, &maps->attr, maps->ring);
	load(c, BPF_DW, BPF_REG_7, FP, PLACE);
	load(c, BPF_DW, BPF_REG_9, FP, ADDR);
	set_wide(c, BPF_REG_1, 0, (uint64_t)header.size << 48 | header.type);
	store(c, BPF_DW, FP, IN_RECORD(header), BPF_REG_1);
	load(c, BPF_W, BPF_REG_1, FP, TID);
	store(c, BPF_W, FP, IN_RECORD(tid), BPF_REG_1);
	store(c, BPF_DW, FP, IN_RECORD(addr), BPF_REG_9);
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)maps->ring);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, RECORD);
	set(c, BPF_REG_3, sizeof(struct wp_object_record));
	set(c, BPF_REG_4, 0);
	call(c, BPF_FUNC_ringbuf_output);
}

/* R7 is to be place i of the table. */
static void
choose(struct code *c, unsigned i)
{
	set(c, BPF_REG_1, (int)i);
	store(c, BPF_W, FP, IN_RECORD(place), BPF_REG_1);
	add(c, BPF_REG_7, IN_TABLE(place) +
	    (int)(i * sizeof(struct wp_object_place)));
}

#define OF_PLACE(i, member) (IN_TABLE(place) + IN_PLACE(member) +	\
    (int)((i) * sizeof(struct wp_object_place)))

/* The place at R7: its number, and the time that is in R0. */
static void
put_number_and_time(struct code *c)
{
	store(c, BPF_DW, FP, IN_RECORD(time), BPF_REG_0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_PLACE(number));
	store(c, BPF_DW, FP, IN_RECORD(number), BPF_REG_1);
}

/* One more, or one less, in the table. */
static void
count(struct code *c, int at, int by)
{
	set_wide(c, BPF_REG_1, 0, (uint64_t)(int64_t)by);
	add_there(c, BPF_REG_1, at);
}

/* A place has one more to keep, if they are kept. */
static void
put_kept(struct code *c, const struct wp_object_maps *maps)
{
	copy(c, BPF_REG_8, BPF_REG_7);
	set_wide(c, BPF_REG_7, BPF_PSEUDO_MAP_VALUE, (uint32_t)maps->table);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(stays));
	add_there(c, BPF_REG_1, IN_TABLE(kept));
	copy(c, BPF_REG_7, BPF_REG_8);
}

/* If a place has the object at R9, it is ended; reused: and its memory is not
   free. */
static void
put_ended(struct code *c, const struct wp_object_maps *maps, bool reused,
    struct ends *ends)
{
	unsigned found[WP_OBJECT_PLACES], chosen[WP_OBJECT_PLACES];

	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++) {
		load(c, BPF_DW, BPF_REG_1, BPF_REG_7, OF_PLACE(i, addr));
		found[i] = jump_registers(c, BPF_JEQ, BPF_REG_1, BPF_REG_9);
	}
	end_if(ends, jump_always(c));
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++) {
		land(c, found[i]);
		choose(c, i);
		chosen[i] = jump_always(c);
	}
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++)
		land(c, chosen[i]);
	call(c, BPF_FUNC_ktime_get_ns);
	copy(c, BPF_REG_8, BPF_REG_0);
	copy(c, BPF_REG_0, BPF_REG_9);
	set(c, BPF_REG_1, WP_OBJECT_CLOSED);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_1,
	    IN_PLACE(addr), BPF_CMPXCHG);
	end_if(ends, jump_registers(c, BPF_JNE, BPF_REG_0, BPF_REG_9));
	store(c, BPF_DW, BPF_REG_7, IN_PLACE(ended), BPF_REG_8);
	copy(c, BPF_REG_0, BPF_REG_8);
	put_number_and_time(c);
	if (reused)
		store(c, BPF_DW, BPF_REG_7, IN_PLACE(reused), BPF_REG_8);
	else
		put_kept(c, maps);
	put_record(c, maps, WP_OBJECT_ENDED);
	end_if(ends, jump_always(c));
}

/* R1 and R2 are the map and the address in it. */
static void
put_key(struct code *c, const struct wp_object_maps *maps)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)maps->objects);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, ADDR);
}

/* --- memory that is handed out --- */

static int
finish(struct code *c, const struct ends *ends)
{
	put_end(c, ends);
	return is_full(c) ? -E2BIG : wp_bpf_load_uprobe(c->insn, c->n);
}

/* Bit i of R8, if the bytes of a place that is kept are among those that are
   handed out from R9 on, so many as are in R3, at the time in R0. */
static void
mark_reused(struct code *c, unsigned i)
{
	unsigned no[4];

	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, OF_PLACE(i, ended));
	no[0] = jump(c, BPF_JEQ, BPF_REG_1, 0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, OF_PLACE(i, reused));
	no[1] = jump(c, BPF_JNE, BPF_REG_1, 0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, OF_PLACE(i, object));
	load(c, BPF_DW, BPF_REG_2, BPF_REG_7, IN_TABLE(part));
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	copy(c, BPF_REG_4, BPF_REG_9);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_4, BPF_REG_3, 0, 0);
	no[2] = jump_registers(c, BPF_JLE, BPF_REG_4, BPF_REG_1);
	load(c, BPF_DW, BPF_REG_2, BPF_REG_7, IN_TABLE(len));
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	no[3] = jump_registers(c, BPF_JGE, BPF_REG_9, BPF_REG_1);
	store(c, BPF_DW, BPF_REG_7, OF_PLACE(i, reused), BPF_REG_0);
	emit(c, BPF_ALU64 | BPF_OR | BPF_K, BPF_REG_8, 0, 0, 1 << i);
	for (unsigned k = 0; k < sizeof(no) / sizeof(no[0]); k++)
		land(c, no[k]);
}

/* Memory from R9 on is handed out, R8 bytes of it. */
static void
put_reused(struct code *c, const struct wp_object_maps *maps)
{
	unsigned none;

	call(c, BPF_FUNC_ktime_get_ns);
	store(c, BPF_DW, FP, IN_RECORD(time), BPF_REG_0);
	copy(c, BPF_REG_3, BPF_REG_8);
	set(c, BPF_REG_8, 0);
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++)
		mark_reused(c, i);
	none = jump(c, BPF_JEQ, BPF_REG_8, 0);
	store(c, BPF_W, FP, IN_RECORD(place), BPF_REG_8);
	store(c, BPF_DW, FP, IN_RECORD(number), BPF_REG_8);
	put_record(c, maps, WP_OBJECT_REUSED);
	land(c, none);
}

/* The map of calls, and its owner. */
static void
put_caller(struct code *c, const struct wp_object_maps *maps)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)maps->calls);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, TID);
}

/* The number of the object at R9, if it is one. */
static void
put_called_object(struct code *c, const struct wp_object_maps *maps)
{
	unsigned none;

	store(c, BPF_DW, FP, ADDR, BPF_REG_9);
	put_key(c, maps);
	call(c, BPF_FUNC_map_lookup_elem);
	set(c, BPF_REG_1, 0);
	none = jump(c, BPF_JEQ, BPF_REG_0, 0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_0, 0);
	land(c, none);
	store(c, BPF_DW, FP, IN_CALL(number), BPF_REG_1);
}

int
wp_object_load_call(const struct wp_object_maps *maps,
    enum wp_object_call which)
{
	struct code c = {.n = 0};
	struct ends ends = {.n = 0};
	const unsigned size = which == WP_OBJECT_SIZE ? 0 :
	    which == WP_OBJECT_POINTED ? 2 : 1;

	put_begin(&c, maps, &ends);
	load(&c, BPF_DW, BPF_REG_9, BPF_REG_6, (int)argument[0]);
	store(&c, BPF_DW, FP, IN_CALL(first), BPF_REG_9);
	load(&c, BPF_DW, BPF_REG_2, BPF_REG_6, (int)argument[size]);
	if (which == WP_OBJECT_PRODUCT)
		emit(&c, BPF_ALU64 | BPF_MUL | BPF_X, BPF_REG_2, BPF_REG_9, 0,
		    0);
	store(&c, BPF_DW, FP, IN_CALL(size), BPF_REG_2);
	if (which == WP_OBJECT_RESIZED) {
		put_called_object(&c, maps);
	} else {
		set(&c, BPF_REG_1, 0);
		store(&c, BPF_DW, FP, IN_CALL(number), BPF_REG_1);
	}
	put_caller(&c, maps);
	copy(&c, BPF_REG_3, FP);
	add(&c, BPF_REG_3, CALL);
	set(&c, BPF_REG_4, BPF_ANY);
	call(&c, BPF_FUNC_map_update_elem);
	return finish(&c, &ends);
}

/* The call that returns here; its size is in R8. */
static void
put_called(struct code *c, const struct wp_object_maps *maps, struct ends *ends)
{
	const int words = sizeof(struct wp_object_called) / 8;

	put_caller(c, maps);
	call(c, BPF_FUNC_map_lookup_elem);
	end_if(ends, jump(c, BPF_JEQ, BPF_REG_0, 0));
	for (int i = 0; i < words; i++) {
		load(c, BPF_DW, BPF_REG_1, BPF_REG_0, 8 * i);
		store(c, BPF_DW, FP, CALL + 8 * i, BPF_REG_1);
	}
	load(c, BPF_DW, BPF_REG_8, FP, IN_CALL(size));
}

/* What is returned, to R9 and its place. */
static void
put_handed(struct code *c, enum wp_object_call which, struct ends *ends)
{
	load(c, BPF_DW, BPF_REG_9, BPF_REG_6, (int)RESULT);
	if (which != WP_OBJECT_POINTED) {
		end_if(ends, jump(c, BPF_JEQ, BPF_REG_9, 0));
		store(c, BPF_DW, FP, ADDR, BPF_REG_9);
		return;
	}
	end_if(ends, jump(c, BPF_JNE, BPF_REG_9, 0));
	copy(c, BPF_REG_1, FP);
	add(c, BPF_REG_1, ADDR);
	set(c, BPF_REG_2, 8);
	load(c, BPF_DW, BPF_REG_3, FP, IN_CALL(first));
	call(c, BPF_FUNC_probe_read_user);
	end_if(ends, jump(c, BPF_JNE, BPF_REG_0, 0));
	load(c, BPF_DW, BPF_REG_9, FP, ADDR);
}

/* End here unless an object is kept. */
static void
unless_kept(struct code *c, struct ends *ends)
{
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(kept));
	end_if(ends, jump(c, BPF_JEQ, BPF_REG_1, 0));
}

/* The object at R9 is one no longer. */
static void
put_gone(struct code *c, const struct wp_object_maps *maps, struct ends *ends)
{
	call(c, BPF_FUNC_ktime_get_ns);
	add_there(c, BPF_REG_0, IN_TABLE(ended));
	count(c, IN_TABLE(live), -1);
	put_ended(c, maps, false, ends);
}

/* What was to be resized is ended now, if it is still the same. */
static void
put_resized(struct code *c, const struct wp_object_maps *maps)
{
	struct ends none = {.n = 0};

	load(c, BPF_DW, BPF_REG_9, FP, IN_CALL(first));
	store(c, BPF_DW, FP, ADDR, BPF_REG_9);
	load(c, BPF_DW, BPF_REG_8, FP, IN_CALL(number));
	end_if(&none, jump(c, BPF_JEQ, BPF_REG_8, 0));
	put_key(c, maps);
	call(c, BPF_FUNC_map_lookup_elem);
	end_if(&none, jump(c, BPF_JEQ, BPF_REG_0, 0));
	load(c, BPF_DW, BPF_REG_1, BPF_REG_0, 0);
	end_if(&none, jump_registers(c, BPF_JNE, BPF_REG_1, BPF_REG_8));
	put_key(c, maps);
	call(c, BPF_FUNC_map_delete_elem);
	end_if(&none, jump(c, BPF_JNE, BPF_REG_0, 0));
	put_gone(c, maps, &none);
	for (unsigned i = 0; i < none.n; i++)
		land(c, none.at[i]);
	set_wide(c, BPF_REG_7, BPF_PSEUDO_MAP_VALUE, (uint32_t)maps->table);
}

int
wp_object_load_handed(const struct wp_object_maps *maps,
    enum wp_object_call which)
{
	struct code c = {.n = 0};
	struct ends ends = {.n = 0};
	unsigned good;

	put_begin(&c, maps, &ends);
	if (which != WP_OBJECT_RESIZED)
		unless_kept(&c, &ends);
	put_called(&c, maps, &ends);
	if (which == WP_OBJECT_RESIZED) {
		/* without memory all is as it was; of no size, it is freed */
		load(&c, BPF_DW, BPF_REG_9, BPF_REG_6, (int)RESULT);
		good = jump(&c, BPF_JNE, BPF_REG_9, 0);
		end_if(&ends, jump(&c, BPF_JNE, BPF_REG_8, 0));
		land(&c, good);
		put_resized(&c, maps);
		unless_kept(&c, &ends);
		load(&c, BPF_DW, BPF_REG_8, FP, IN_CALL(size));
	}
	put_handed(&c, which, &ends);
	put_reused(&c, maps);
	return finish(&c, &ends);
}

/* --- objects --- */

/* The thread waits until its place is armed. */
static void
put_wait(struct code *c, struct ends *ends)
{
	unsigned loop, late;

	set(c, BPF_REG_8, 0);
	loop = c->n;
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_PLACE(armed));
	end_if(ends, jump(c, BPF_JNE, BPF_REG_1, 0));
	for (unsigned i = 0; i < CALLS; i++)
		call(c, BPF_FUNC_ktime_get_ns);
	load(c, BPF_DW, BPF_REG_1, FP, IN_RECORD(time));
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_0, BPF_REG_1, 0, 0);
	late = jump(c, BPF_JGE, BPF_REG_0, WP_OBJECT_WAIT);
	add(c, BPF_REG_8, 1);
	emit(c, BPF_JMP | BPF_JLT | BPF_K, BPF_REG_8, 0,
	    (int)loop - (int)c->n - 1, LOOKS);
	land(c, late);
	set(c, BPF_REG_0, 0);
	set(c, BPF_REG_1, 2);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_1,
	    IN_PLACE(armed), BPF_CMPXCHG);
}

/* R8 is the object's number. */
static void
put_number(struct code *c, struct ends *ends)
{
	unsigned all;

	set(c, BPF_REG_8, 1);
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_8,
	    IN_TABLE(seen), BPF_ADD | BPF_FETCH);
	add(c, BPF_REG_8, 1);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(only));
	all = jump(c, BPF_JEQ, BPF_REG_1, 0);
	end_if(ends, jump_registers(c, BPF_JNE, BPF_REG_1, BPF_REG_8));
	land(c, all);
}

/* The object at R9 has the number in R8. */
static void
put_object(struct code *c, const struct wp_object_maps *maps, int how)
{
	store(c, BPF_DW, FP, IN_CALL(number), BPF_REG_8);
	put_key(c, maps);
	copy(c, BPF_REG_3, FP);
	add(c, BPF_REG_3, IN_CALL(number));
	set(c, BPF_REG_4, how);
	call(c, BPF_FUNC_map_update_elem);
}

/* The object is new, and counts. */
static void
put_new(struct code *c)
{
	call(c, BPF_FUNC_ktime_get_ns);
	add_there(c, BPF_REG_0, IN_TABLE(born));
	count(c, IN_TABLE(live), 1);
}

/* The memory of one that a place keeps is handed out again. */
static void
put_again(struct code *c, const struct wp_object_maps *maps)
{
	unsigned none;

	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(kept));
	none = jump(c, BPF_JEQ, BPF_REG_1, 0);
	load(c, BPF_DW, BPF_REG_8, BPF_REG_7, IN_TABLE(part));
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(len));
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_8, BPF_REG_1, 0, 0);
	put_reused(c, maps);
	land(c, none);
}

int
wp_object_load_begin(const struct wp_object_maps *maps)
{
	struct code c = {.n = 0};
	struct ends ends = {.n = 0};
	unsigned taken[WP_OBJECT_PLACES], chosen[WP_OBJECT_PLACES], is_new;

	put_begin(&c, maps, &ends);
	end_if(&ends, put_address(&c, RESULT));
	put_again(&c, maps);
	put_number(&c, &ends);
	put_object(&c, maps, BPF_NOEXIST);
	is_new = jump(&c, BPF_JEQ, BPF_REG_0, 0);
	put_object(&c, maps, BPF_EXIST);
	count(&c, IN_TABLE(missed), 1);
	put_ended(&c, maps, true, &ends);
	land(&c, is_new);
	put_new(&c);
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++) {
		set(&c, BPF_REG_0, 0);
		emit(&c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_9,
		    OF_PLACE(i, addr), BPF_CMPXCHG);
		taken[i] = jump(&c, BPF_JEQ, BPF_REG_0, 0);
	}
	end_if(&ends, jump_always(&c));
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++) {
		land(&c, taken[i]);
		choose(&c, i);
		chosen[i] = jump_always(&c);
	}
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++)
		land(&c, chosen[i]);
	store(&c, BPF_DW, BPF_REG_7, IN_PLACE(object), BPF_REG_9);
	store(&c, BPF_DW, BPF_REG_7, IN_PLACE(number), BPF_REG_8);
	call(&c, BPF_FUNC_ktime_get_ns);
	put_number_and_time(&c);
	put_record(&c, maps, WP_OBJECT_NEW);
	put_wait(&c, &ends);
	return finish(&c, &ends);
}

/* Most of what is freed is none of the objects, which is found out at once. */
int
wp_object_load_end(const struct wp_object_maps *maps, unsigned n)
{
	struct code c = {.n = 0};
	struct ends ends = {.n = 0};
	unsigned found[ARGUMENTS];

	put_on(&c, maps, &ends);
	for (unsigned i = 0; i < n && i < ARGUMENTS; i++) {
		const unsigned none = put_address(&c, argument[i]);

		put_key(&c, maps);
		call(&c, BPF_FUNC_map_lookup_elem);
		found[i] = jump(&c, BPF_JNE, BPF_REG_0, 0);
		land(&c, none);
	}
	end_if(&ends, jump_always(&c));
	for (unsigned i = 0; i < n && i < ARGUMENTS; i++)
		land(&c, found[i]);
	put_process(&c, maps, &ends);
	put_key(&c, maps);
	call(&c, BPF_FUNC_map_delete_elem);
	end_if(&ends, jump(&c, BPF_JNE, BPF_REG_0, 0));
	put_gone(&c, maps, &ends);
	return finish(&c, &ends);
}
