/*
 * object: what functions return, and what ends that.
 *
 * R6 is what the program is given, R7 the table, then a place in it; R8 the
 * number, or the time; R9 the object's address.  On the stack are the thread
 * and the process, the address, and a record.
 */
#include "bpf/object.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <stddef.h>

#include "bpf/bpf.h"
#include "bpf/code.h"
#include "bpf/uprobe_guard.h"

#if defined(__x86_64__)
#define RESULT	offsetof(struct pt_regs, rax)
#define FIRST	offsetof(struct pt_regs, rdi)
#else
#define RESULT	offsetof(struct user_pt_regs, regs[0])
#define FIRST	offsetof(struct user_pt_regs, regs[0])
#endif

/* What a thread does until its object is armed: looks, with calls between two
   that take some 25 ns each, and more with a slow clock. */
enum { LOOKS = 2000, CALLS = 8 };

/* On the stack. */
enum {
	TID = -8,		/* the process is behind it */
	ADDR = -16,
	RECORD = ADDR - (int)sizeof(struct wp_object_record),
};

#define IN_TABLE(member)	((int)offsetof(struct wp_object_table, member))
#define IN_PLACE(member)	((int)offsetof(struct wp_object_place, member))
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
	set(c, BPF_REG_0, 0);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static unsigned
jump_always(struct code *c)
{
	emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	return c->n - 1;
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

/* End here unless the programs run, for this process, with an address. */
static void
put_begin(struct code *c, const struct wp_object_maps *maps, size_t addr,
    struct ends *ends)
{
	unsigned other[2];

	copy(c, BPF_REG_6, BPF_REG_1);
	set_wide(c, BPF_REG_7, BPF_PSEUDO_MAP_VALUE, (uint32_t)maps->table);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_TABLE(on));
	end_if(ends, jump(c, BPF_JEQ, BPF_REG_1, 0));
	load(c, BPF_DW, BPF_REG_9, BPF_REG_6, (int)addr);
	end_if(ends, jump(c, BPF_JLE, BPF_REG_9, WP_OBJECT_CLOSED));
	wp_code_unless_process(c, maps->pid, other);
	end_if(ends, other[0]);
	end_if(ends, other[1]);
	store(c, BPF_DW, FP, ADDR, BPF_REG_9);
}

/* What the place at R7 has; the time is in R0. */
static void
put_record(struct code *c, const struct wp_object_maps *maps, unsigned type)
{
	const struct perf_event_header header = {
		.type = type, .size = sizeof(struct wp_object_record),
	};

	store(c, BPF_DW, FP, IN_RECORD(time), BPF_REG_0);
	set_wide(c, BPF_REG_1, 0, (uint64_t)header.size << 48 | header.type);
	store(c, BPF_DW, FP, IN_RECORD(header), BPF_REG_1);
	load(c, BPF_W, BPF_REG_1, FP, TID);
	store(c, BPF_W, FP, IN_RECORD(tid), BPF_REG_1);
	store(c, BPF_DW, FP, IN_RECORD(addr), BPF_REG_9);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_7, IN_PLACE(number));
	store(c, BPF_DW, FP, IN_RECORD(number), BPF_REG_1);
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

static int
place_addr(unsigned i)
{
	return IN_TABLE(place) + (int)(i * sizeof(struct wp_object_place)) +
	    IN_PLACE(addr);
}

/* If a place has the object at R9, it is ended. */
static void
put_ended(struct code *c, const struct wp_object_maps *maps, struct ends *ends)
{
	unsigned found[WP_OBJECT_PLACES], chosen[WP_OBJECT_PLACES];

	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++) {
		load(c, BPF_DW, BPF_REG_1, BPF_REG_7, place_addr(i));
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
	put_record(c, maps, WP_OBJECT_ENDED);
	end_if(ends, jump_always(c));
}

/* R1 and R2 are the map and the address in it, R3 the same as a value. */
static void
put_key(struct code *c, const struct wp_object_maps *maps)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)maps->objects);
	copy(c, BPF_REG_2, FP);
	add(c, BPF_REG_2, ADDR);
	copy(c, BPF_REG_3, BPF_REG_2);
}

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

static int
finish(struct code *c, const struct ends *ends)
{
	put_end(c, ends);
	return is_full(c) ? -E2BIG : wp_bpf_load_uprobe(c->insn, c->n);
}

int
wp_object_load_begin(const struct wp_object_maps *maps)
{
	struct code c = {.n = 0};
	struct ends ends = {.n = 0};
	unsigned taken[WP_OBJECT_PLACES], chosen[WP_OBJECT_PLACES], is_new;

	put_begin(&c, maps, RESULT, &ends);
	put_number(&c, &ends);
	put_key(&c, maps);
	set(&c, BPF_REG_4, BPF_NOEXIST);
	call(&c, BPF_FUNC_map_update_elem);
	is_new = jump(&c, BPF_JEQ, BPF_REG_0, 0);
	set(&c, BPF_REG_1, 1);
	add_there(&c, BPF_REG_1, IN_TABLE(missed));
	put_ended(&c, maps, &ends);
	land(&c, is_new);
	call(&c, BPF_FUNC_ktime_get_ns);
	add_there(&c, BPF_REG_0, IN_TABLE(born));
	set(&c, BPF_REG_1, 1);
	add_there(&c, BPF_REG_1, IN_TABLE(live));
	for (unsigned i = 0; i < WP_OBJECT_PLACES; i++) {
		set(&c, BPF_REG_0, 0);
		emit(&c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_7, BPF_REG_9,
		    place_addr(i), BPF_CMPXCHG);
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
	store(&c, BPF_DW, BPF_REG_7, IN_PLACE(number), BPF_REG_8);
	call(&c, BPF_FUNC_ktime_get_ns);
	put_record(&c, maps, WP_OBJECT_NEW);
	put_wait(&c, &ends);
	return finish(&c, &ends);
}

int
wp_object_load_end(const struct wp_object_maps *maps)
{
	struct code c = {.n = 0};
	struct ends ends = {.n = 0};

	put_begin(&c, maps, FIRST, &ends);
	put_key(&c, maps);
	call(&c, BPF_FUNC_map_delete_elem);
	end_if(&ends, jump(&c, BPF_JNE, BPF_REG_0, 0));
	call(&c, BPF_FUNC_ktime_get_ns);
	add_there(&c, BPF_REG_0, IN_TABLE(ended));
	set(&c, BPF_REG_1, 1);
	emit(&c, BPF_ALU64 | BPF_NEG, BPF_REG_1, 0, 0, 0);
	add_there(&c, BPF_REG_1, IN_TABLE(live));
	put_ended(&c, maps, &ends);
	return finish(&c, &ends);
}
