/*
 * sampler_x86_64: the program that writes a sample.
 *
 * Registers: R6 what the program is given, R7 the record, R8 and R9 sizes of
 * the stack's copy.  Before there is a record: R7 the watched bytes' address,
 * R8 the number, R9 the tickets; then R7 a version, R8 the stacks that are
 * known, R9 what is compared with them.  On the stack lies what enum
 * sampler_stack says.
 *
 *	counters -> ticket -> whose hit -> filter -> known? -> sample -> exit
 *	                                      |         `-> less stack -> exit
 *	                                      `-> sample without a stack -> exit
 *
 * Where hits of known stacks are only counted, nothing is filtered:
 *
 *	whose hit -> known? -> ticket -> sample -> exit
 *	                `-> counted? -> ticket -> less stack -> exit
 *	                        `-> ticket without bytes, tally -> exit
 */
#include "bpf/sampler.h"

#include <asm/perf_regs.h>
#include <asm/ptrace.h>
#include <errno.h>
#include <linux/bpf_perf_event.h>
#include <linux/hw_breakpoint.h>
#include <stdbool.h>
#include <string.h>

#include "os/attr.h"
#include "os/cpus.h"
#include "bpf/bpf.h"
#include "bpf/code.h"
#include "bpf/counters.h"
#include "bpf/known_stack_map.h"
#include "bpf/counter_reading.h"

enum { PAGE = 4096, CS_64 = 0x33 };

/* A copy of so many bytes of the stack is made word by word. */
enum { FEW = 1024 };

/* Offsets from the end of the stack. */
enum sampler_stack {
	PID_TID = -8,		/* of the thread that made the hit */
	NUMBER = -16,		/* number of its ticket */
	LEN = -24,		/* number of bytes read, */
	BYTES = -32,		/* and these, read twice */
	AGAIN = -40,
	TIME = -48,		/* of the hit, taken before its number */
	REACH = WP_CODE_OWN - 8,	/* length of the known words, behind the
					   counters' code */
	COUNTS = WP_CODE_COUNTS,	/* counters, downwards */
};
_Static_assert((int)COUNTS < (int)TIME, "they do not overlap");
_Static_assert((int)TIME == (int)WP_SAMPLE_OWN, "nothing is below");

/*
 * The bytes are read several times between two readings of the ticket counter;
 * both readings and all copies must be equal.  A copy may be made byte by byte,
 * so a torn copy can only equal another one if different processors wrote
 * during each of them and between each two: for two copies three others, since
 * none writes twice without a ticket.
 */
enum { READS = 3, TRIES = 8 };

static unsigned
reads_needed(void)
{
	struct wp_cpus cpus;
	const int n = wp_cpus_possible(&cpus);

	return n == 1 ? 1 : n == 2 || n == 3 ? 2 : READS;
}

#define REG(name) ((int)(offsetof(struct bpf_perf_event_data, regs) +	\
    offsetof(struct pt_regs, name)))

/* Let the kernel take the sample if this holds. */
static void
pass_if(struct code *c, int op, unsigned reg, int value)
{
	c->pass[c->npass++] = c->n;
	emit(c, BPF_JMP | op | BPF_K, reg, 0, 0, value);
}

/* Store to the record, whose end may be out of reach of an instruction's
   offset. */
static void
put_from(struct code *c, size_t at, unsigned src)
{
	if (at <= INT16_MAX) {
		store(c, BPF_DW, BPF_REG_7, (int)at, src);
		return;
	}
	copy(c, BPF_REG_2, BPF_REG_7);
	add(c, BPF_REG_2, (int)at);
	store(c, BPF_DW, BPF_REG_2, 0, src);
}

static void
put(struct code *c, size_t at, uint64_t value)
{
	set_wide(c, BPF_REG_1, 0, value);
	put_from(c, at, BPF_REG_1);
}

static void
put_register(struct code *c, size_t at, int reg)
{
	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, reg);
	put_from(c, at, BPF_REG_1);
}

/* Indexed by PERF_REG_X86_*. */
static const int registers[] = {
	REG(rax), REG(rbx), REG(rcx), REG(rdx), REG(rsi), REG(rdi), REG(rbp),
	REG(rsp), REG(rip), REG(eflags), REG(cs), REG(ss), -1, -1, -1, -1,
	REG(r8), REG(r9), REG(r10), REG(r11), REG(r12), REG(r13), REG(r14),
	REG(r15),
};

/* Put the registers, preceded by their ABI. */
static size_t
put_registers(struct code *c, size_t at, uint64_t mask)
{
	put(c, at, PERF_SAMPLE_REGS_ABI_64);
	at += sizeof(uint64_t);
	for (unsigned i = 0; i < PERF_REG_X86_64_MAX; i++) {
		if ((mask >> i & 1) == 0)
			continue;
		put_register(c, at, registers[i]);
		at += sizeof(uint64_t);
	}
	return at;
}

/* Copy R8 bytes of the stack. */
static void
copy_stack(struct code *c, size_t at)
{
	copy(c, BPF_REG_1, BPF_REG_7);
	add(c, BPF_REG_1, (int)at);
	copy(c, BPF_REG_2, BPF_REG_8);
	load(c, BPF_DW, BPF_REG_3, BPF_REG_6, REG(rsp));
	call(c, BPF_FUNC_probe_read_user);
}

/* Put what was read to R9, and compared.  So few words take less than a helper's
   call. */
static size_t
put_known_words(struct code *c, size_t at, uint32_t size)
{
	const size_t word = sizeof(uint64_t), end = at + word + size;

	put(c, at, size);
	for (size_t i = 0; i < size; i += word) {
		load(c, BPF_DW, BPF_REG_1, BPF_REG_9, (int)i);
		put_from(c, at + word + i, BPF_REG_1);
	}
	put(c, end, size);
	return end + word;
}

/* Put all of the stack or, where some of its pages are missing, as much as ends
   at the end of a page. */
static size_t
put_stack(struct code *c, size_t at, uint32_t size)
{
	unsigned done[1 + UINT16_MAX / PAGE + 1], ndone = 0;

	put(c, at, size);
	at += sizeof(uint64_t);
	set(c, BPF_REG_8, (int)size);
	copy_stack(c, at);
	done[ndone++] = c->n;
	emit(c, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 0, 0);
	load(c, BPF_DW, BPF_REG_9, BPF_REG_6, REG(rsp));
	emit(c, BPF_ALU64 | BPF_NEG, BPF_REG_9, 0, 0, 0);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_9, 0, 0, PAGE - 1);
	for (int pages = (int)(size / PAGE); pages >= 0; pages--) {
		unsigned longer;

		copy(c, BPF_REG_8, BPF_REG_9);
		add(c, BPF_REG_8, pages * PAGE);
		longer = c->n;
		emit(c, BPF_JMP | BPF_JGT | BPF_K, BPF_REG_8, 0, 0, (int)size);
		copy_stack(c, at);
		done[ndone++] = c->n;
		emit(c, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 0, 0);
		land(c, longer);
	}
	set(c, BPF_REG_8, 0);
	while (ndone > 0)
		land(c, done[--ndone]);
	put_from(c, at + size, BPF_REG_8);
	return at + size + sizeof(uint64_t);
}

static bool
has_stack(const struct perf_event_attr *attr)
{
	return (attr->sample_type & PERF_SAMPLE_STACK_USER) != 0;
}

/* The number of counters that it reads. */
static unsigned
readings(const struct wp_sampler *sampler)
{
	const struct wp_counters *w = sampler->counters;

	return w == NULL ? 0 : w->n - w->hidden;
}

/* How much of the stack a record has: bytes copied, and the bytes that a short
   copy would have if one is being tried out. */
struct extent {
	uint32_t copy, trial;	/* 0 if there is none */
	bool known;		/* they are in R9 */
};

/* The size of the raw data, without the size field. */
static uint32_t
raw_size(const struct wp_sampler *sampler, struct extent extent)
{
	return (uint32_t)(sizeof(struct wp_ticket) +
	    readings(sampler) * sizeof(struct wp_counter_reading) +
	    (extent.trial != 0 ? sizeof(struct wp_known_trial) : 0));
}

/* The size of a record. */
static size_t
record_size(const struct perf_event_attr *attr,
    const struct wp_sampler *sampler, struct extent extent)
{
	const size_t word = sizeof(uint64_t);
	size_t size = sizeof(struct wp_sample) + word +
	    word * (size_t)__builtin_popcountll(attr->sample_regs_user);

	if ((attr->sample_type & PERF_SAMPLE_CALLCHAIN) != 0)
		size += word;
	if ((attr->sample_type & PERF_SAMPLE_RAW) != 0)
		size += sizeof(uint32_t) + raw_size(sampler, extent);
	if (has_stack(attr))
		size += extent.copy != 0 ? extent.copy + 2 * word : word;
	if ((attr->sample_type & PERF_SAMPLE_REGS_INTR) != 0)
		size += word + word *
		    (size_t)__builtin_popcountll(attr->sample_regs_intr);
	return size;
}

/* --- tickets --- */

/* Copy the watched bytes to the stack.  Returns the jump for a failure. */
static unsigned
read_watched(struct code *c, int to, unsigned len)
{
	copy(c, BPF_REG_1, FP);
	add(c, BPF_REG_1, to);
	set(c, BPF_REG_2, (int)len);
	copy(c, BPF_REG_3, BPF_REG_7);
	call(c, BPF_FUNC_probe_read_user);
	return jump(c, BPF_JNE, BPF_REG_0, 0);
}

static void
atomic(struct code *c, int op, unsigned src, int off)
{
	emit(c, BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_9, src, off, op);
}

/* One attempt to take a ticket with consistent bytes.  unread[] are the jumps
   when the bytes cannot be read; returns the jump when the ticket is taken. */
static unsigned
try_ticket(struct code *c, unsigned len, unsigned reads,
    unsigned unread[READS])
{
	unsigned differ[READS], done;

	load(c, BPF_DW, BPF_REG_8, BPF_REG_9, 0);
	unread[0] = read_watched(c, BYTES, len);
	for (unsigned i = 1; i < reads; i++) {
		unread[i] = read_watched(c, AGAIN, len);
		load(c, BPF_DW, BPF_REG_1, FP, BYTES);
		load(c, BPF_DW, BPF_REG_2, FP, AGAIN);
		differ[i] = c->n;
		emit(c, BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	}
	copy(c, BPF_REG_0, BPF_REG_8);
	copy(c, BPF_REG_1, BPF_REG_8);
	add(c, BPF_REG_1, 1);
	atomic(c, BPF_CMPXCHG, BPF_REG_1, 0);
	done = c->n;
	emit(c, BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_0, BPF_REG_8, 0, 0);
	for (unsigned i = 1; i < reads; i++)
		land(c, differ[i]);
	return done;
}

/* Every hit takes a ticket, whatever becomes of it.  It gets the bytes too,
   unless they are code, cannot be read, or other hits interfere with each
   attempt. */
static void
take_ticket(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	const unsigned tries = attr->bp_type == HW_BREAKPOINT_X ? 0 : TRIES;
	const unsigned reads = reads_needed();
	unsigned done[TRIES], unread[TRIES][READS];

	set_wide(c, BPF_REG_7, 0, attr->bp_addr);
	set_wide(c, BPF_REG_9, BPF_PSEUDO_MAP_VALUE,
	    (uint32_t)sampler->tickets);
	set(c, BPF_REG_1, 0);
	store(c, BPF_DW, FP, BYTES, BPF_REG_1);
	store(c, BPF_DW, FP, AGAIN, BPF_REG_1);
	set(c, BPF_REG_1, (int)attr->bp_len);
	store(c, BPF_DW, FP, LEN, BPF_REG_1);
	for (unsigned i = 0; i < tries; i++)
		done[i] = try_ticket(c, (unsigned)attr->bp_len, reads,
		    unread[i]);
	for (unsigned i = 0; i < tries; i++)
		for (unsigned k = 0; k < reads; k++)
			land(c, unread[i][k]);
	set(c, BPF_REG_8, 0);
	store(c, BPF_DW, FP, LEN, BPF_REG_8);
	set(c, BPF_REG_8, 1);
	atomic(c, BPF_ADD | BPF_FETCH, BPF_REG_8, 0);
	for (unsigned i = 0; i < tries; i++)
		land(c, done[i]);
	add(c, BPF_REG_8, 1);
	store(c, BPF_DW, FP, NUMBER, BPF_REG_8);
	set(c, BPF_REG_1, 1);
	atomic(c, BPF_ADD, BPF_REG_1, (int)sampler->line * WP_TICKET_LINE);
}

/* Take a ticket without bytes, which are not needed where the hit is only
   counted.  Changes R0, R2 and R9. */
static void
take_bare_ticket(struct code *c, const struct wp_sampler *sampler)
{
	set_wide(c, BPF_REG_9, BPF_PSEUDO_MAP_VALUE,
	    (uint32_t)sampler->tickets);
	set(c, BPF_REG_0, 0);
	store(c, BPF_DW, FP, BYTES, BPF_REG_0);
	store(c, BPF_DW, FP, LEN, BPF_REG_0);
	set(c, BPF_REG_2, 1);
	atomic(c, BPF_ADD | BPF_FETCH, BPF_REG_2, 0);
	add(c, BPF_REG_2, 1);
	store(c, BPF_DW, FP, NUMBER, BPF_REG_2);
	set(c, BPF_REG_0, 1);
	atomic(c, BPF_ADD, BPF_REG_0, (int)sampler->line * WP_TICKET_LINE);
}

/* Put the ticket as raw data, after its size. */
static size_t
put_ticket(struct code *c, const struct wp_sampler *sampler, size_t at,
    struct extent extent)
{
	const uint64_t end = (uint64_t)UINT32_MAX << 32 | WP_TICKET_VERSION;

	put(c, at, (uint64_t)WP_TICKET_MAGIC << 32 |
	    raw_size(sampler, extent));
	load(c, BPF_DW, BPF_REG_1, FP, NUMBER);
	put_from(c, at + 8, BPF_REG_1);
	load(c, BPF_DW, BPF_REG_1, FP, BYTES);
	put_from(c, at + 16, BPF_REG_1);
	load(c, BPF_DW, BPF_REG_1, FP, LEN);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_1, 0, 0, 16);
	set_wide(c, BPF_REG_2, 0, end);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	put_from(c, at + 24, BPF_REG_1);
	return at + sizeof(uint32_t) + sizeof(struct wp_ticket);
}

/* Put the counters, which follow the ticket. */
static size_t
put_readings(struct code *c, const struct wp_sampler *sampler, size_t at)
{
	const struct wp_counters *w = sampler->counters;

	for (unsigned i = w != NULL && w->hidden; w != NULL && i < w->n; i++) {
		put(c, at, w->counter[i]);
		load(c, BPF_DW, BPF_REG_1, FP, COUNTS - 8 * (int)i);
		put_from(c, at + offsetof(struct wp_counter_reading, count),
		    BPF_REG_1);
		at += sizeof(struct wp_counter_reading);
	}
	return at;
}

/* Put the trial, which follows the counters. */
static size_t
put_trial(struct code *c, size_t at, struct extent extent)
{
	if (extent.trial == 0)
		return at;
	put(c, at, extent.trial);
	return at + sizeof(struct wp_known_trial);
}

/* --- known stacks --- */

/* Jumps to one place that is not known yet. */
struct jumps {
	unsigned at[16 + 2 * WP_FILTER_MAX], n;
};

static void
land_all(struct code *c, const struct jumps *jumps)
{
	for (unsigned i = 0; i < jumps->n; i++)
		land(c, jumps->at[i]);
}

static void
leave_if(struct code *c, int op, unsigned reg, int value, struct jumps *to)
{
	to->at[to->n++] = jump(c, op, reg, value);
}

static void
leave_if_unequal(struct code *c, unsigned a, unsigned b, struct jumps *to)
{
	to->at[to->n++] = c->n;
	emit(c, BPF_JMP | BPF_JNE | BPF_X, a, b, 0, 0);
}

#define ENTRY(member) ((int)offsetof(struct wp_known_entry, member))

/* R8 becomes the entry for the place of the hit, R7 its version. */
static void
find_known(struct code *c, int map, struct jumps *unknown)
{
	load(c, BPF_DW, BPF_REG_3, BPF_REG_6, REG(rip));
	load(c, BPF_DW, BPF_REG_4, BPF_REG_6, REG(rsp));
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_4, 0, 0,
	    WP_KNOWN_PAGE - 1);
	load(c, BPF_W, BPF_REG_5, FP, PID_TID + 4);
	/* the same as wp_known_mix() */
	copy(c, BPF_REG_1, BPF_REG_4);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_1, 0, 0, 24);
	emit(c, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_1, BPF_REG_3, 0, 0);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_1, BPF_REG_5, 0, 0);
	set_wide(c, BPF_REG_2, 0, WP_KNOWN_FACTOR);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	emit(c, BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_1, 0, 0,
	    64 - WP_KNOWN_BITS);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_K, BPF_REG_1, 0, 0,
	    sizeof(struct wp_known_entry));
	set_wide(c, BPF_REG_8, BPF_PSEUDO_MAP_VALUE, (uint32_t)map);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_8, BPF_REG_1, 0, 0);
	load(c, BPF_DW, BPF_REG_7, BPF_REG_8, ENTRY(version));
	leave_if(c, BPF_JSET, BPF_REG_7, 1, unknown);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, ENTRY(pid));
	leave_if_unequal(c, BPF_REG_1, BPF_REG_5, unknown);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, ENTRY(pc));
	leave_if_unequal(c, BPF_REG_1, BPF_REG_3, unknown);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, ENTRY(sp));
	leave_if_unequal(c, BPF_REG_1, BPF_REG_4, unknown);
}

/* R9 becomes the place for what is compared. */
static void
load_scratch(struct code *c, const struct wp_sampler *sampler)
{
	set_wide(c, BPF_REG_9, BPF_PSEUDO_MAP_VALUE,
	    (uint32_t)sampler->known.scratch);
	c->insn[c->n - 1].imm = (int)((sampler->line - 1) * WP_KNOWN_SCRATCH);
}

/* Read the part of the stack that a short copy has to R9. */
static void
read_known(struct code *c, const struct wp_sampler *sampler,
    struct jumps *unknown)
{
	load_scratch(c, sampler);
	load(c, BPF_DW, BPF_REG_2, BPF_REG_8, ENTRY(reach));
	store(c, BPF_DW, FP, REACH, BPF_REG_2);
	leave_if(c, BPF_JGT, BPF_REG_2, WP_KNOWN_REACH, unknown);
	copy(c, BPF_REG_1, BPF_REG_9);
	load(c, BPF_DW, BPF_REG_3, BPF_REG_6, REG(rsp));
	call(c, BPF_FUNC_probe_read_user);
	leave_if(c, BPF_JNE, BPF_REG_0, 0, unknown);
}

/* Store the registers after it, to be loaded by number. */
static void
put_known_registers(struct code *c)
{
	for (unsigned i = 0; i < PERF_REG_X86_64_MAX; i++) {
		if (registers[i] < 0)
			continue;
		load(c, BPF_DW, BPF_REG_1, BPF_REG_6, registers[i]);
		store(c, BPF_DW, BPF_REG_9, WP_KNOWN_REACH + 8 * (int)i,
		    BPF_REG_1);
	}
}

static size_t
way_at(unsigned way)
{
	return offsetof(struct wp_known_entry, way) +
	    way * sizeof(struct wp_known_way);
}

#define WAY(member) ((int)offsetof(struct wp_known_way, member))

/* Jump unless R1 has the bits that the way in R5 demands of it. */
static void
compare_bits(struct code *c, int wanted, int bits, struct jumps *other)
{
	load(c, BPF_DW, BPF_REG_2, BPF_REG_5, bits);
	emit(c, BPF_ALU64 | BPF_AND | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	load(c, BPF_DW, BPF_REG_2, BPF_REG_5, wanted);
	leave_if_unequal(c, BPF_REG_1, BPF_REG_2, other);
}

/* Compare the words of the way in R5, in a loop: R0 and R2 lead to the next
   word's place and value, R3 is the number of words left, R4 is sp. */
static void
compare_words(struct code *c, struct jumps *other)
{
	unsigned begin, end;

	copy(c, BPF_REG_0, BPF_REG_5);
	add(c, BPF_REG_0, WAY(place));
	copy(c, BPF_REG_2, BPF_REG_5);
	add(c, BPF_REG_2, WAY(word));
	load(c, BPF_DW, BPF_REG_3, BPF_REG_5, WAY(n));
	leave_if(c, BPF_JGT, BPF_REG_3, WP_KNOWN_WORDS, other);
	begin = c->n;
	end = jump(c, BPF_JLT, BPF_REG_3, 1);
	load(c, BPF_H, BPF_REG_1, BPF_REG_0, 0);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_1, 0, 0,
	    WP_KNOWN_REACH - 8);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_1, BPF_REG_9, 0, 0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_1, 0);
	load(c, BPF_H, BPF_REG_5, BPF_REG_0, 0);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_5, 0, 0,
	    WP_KNOWN_RELATIVE);
	emit(c, BPF_ALU64 | BPF_MUL | BPF_X, BPF_REG_5, BPF_REG_4, 0, 0);
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_5, 0, 0);
	load(c, BPF_DW, BPF_REG_5, BPF_REG_2, 0);
	leave_if_unequal(c, BPF_REG_1, BPF_REG_5, other);
	add(c, BPF_REG_0, sizeof(uint16_t));
	add(c, BPF_REG_2, sizeof(uint64_t));
	add(c, BPF_REG_3, -1);
	jump_back(c, begin);
	land(c, end);
}

/* Compare everything in a way of the entry in R8; a way that is counted must
   also belong to this slot.  Afterwards R5 is the way. */
static void
compare_known(struct code *c, const struct wp_sampler *sampler, unsigned way,
    struct jumps *other)
{
	unsigned not_counted;

	copy(c, BPF_REG_5, BPF_REG_8);
	add(c, BPF_REG_5, (int)way_at(way));
	load(c, BPF_DW, BPF_REG_1, BPF_REG_5, WAY(number));
	not_counted = jump(c, BPF_JEQ, BPF_REG_1, 0);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_5, WAY(slot));
	set_wide(c, BPF_REG_2, 0, sampler->id);
	leave_if_unequal(c, BPF_REG_1, BPF_REG_2, other);
	land(c, not_counted);
	load(c, BPF_DW, BPF_REG_4, BPF_REG_6, REG(rsp));
	copy(c, BPF_REG_1, BPF_REG_4);
	compare_bits(c, WAY(sp), WAY(sp_bits), other);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, REG(rbp));
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_4, 0, 0);
	compare_bits(c, WAY(fp), WAY(fp_bits), other);
	compare_words(c, other);
	copy(c, BPF_REG_5, BPF_REG_8);
	add(c, BPF_REG_5, (int)way_at(way));
}

/* --- filters --- */

/* Clobbers R0 to R5. */
static void
set_cpu(struct code *c, unsigned to, const struct wp_sampler *sampler)
{
	if (sampler->uprobe == NULL) {
		set(c, to, sampler->cpu);
		return;
	}
	call(c, BPF_FUNC_get_smp_processor_id);
	copy(c, to, BPF_REG_0);
}

/* Jump if the relation has this truth value. */
static void
jump_if(struct code *c, const struct wp_filter_node *node, bool truth,
    const struct wp_sampler *sampler, struct jumps *to)
{
	static const int relations[][2] = {
		[WP_FILTER_EQUAL] = {BPF_JNE, BPF_JEQ},
		[WP_FILTER_UNEQUAL] = {BPF_JEQ, BPF_JNE},
		[WP_FILTER_LESS] = {BPF_JSGE, BPF_JSLT},
		[WP_FILTER_NOT_ABOVE] = {BPF_JSGT, BPF_JSLE},
		[WP_FILTER_ABOVE] = {BPF_JSLE, BPF_JSGT},
		[WP_FILTER_NOT_LESS] = {BPF_JSLT, BPF_JSGE},
	};

	if (node->number == WP_FILTER_CPU)
		set_cpu(c, BPF_REG_1, sampler);
	else
		load(c, BPF_W, BPF_REG_1, FP, node->number == WP_FILTER_PID ?
		    PID_TID + 4 : PID_TID);
	to->at[to->n++] = jump(c, relations[node->relation][truth], BPF_REG_1,
	    node->value);
}

/* Jump if a node certainly has this truth value; otherwise continue with the
   code that follows.  No code is emitted if it cannot have it. */
static void
jump_if_sure(struct code *c, const struct wp_sampler *sampler, unsigned i,
    bool truth, struct jumps *to)
{
	const struct wp_filter_node *node = &sampler->filter->node[i];
	struct jumps left = {.n = 0};
	unsigned not;

	switch (node->kind) {
	case WP_FILTER_COMPARE:
		jump_if(c, node, truth, sampler, to);
		break;
	case WP_FILTER_NOT:
		jump_if_sure(c, sampler, node->left, !truth, to);
		break;
	case WP_FILTER_AND:
	case WP_FILTER_OR:
		if ((node->kind == WP_FILTER_OR) == truth) {
			jump_if_sure(c, sampler, node->left, truth, to);
			jump_if_sure(c, sampler, node->right, truth, to);
			break;
		}
		jump_if_sure(c, sampler, node->left, truth, &left);
		if (left.n == 0)
			break;
		not = c->n;
		emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
		land_all(c, &left);
		jump_if_sure(c, sampler, node->right, truth, to);
		land(c, not);
		break;
	default:
		break;
	}
}

/* --- samples --- */

/* Only 64-bit code is sampled by the program. */
static void
begin(struct code *c, const struct wp_sampler *sampler)
{
	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, REG(cs));
	pass_if(c, BPF_JNE, BPF_REG_1, CS_64);
	/* a guard has stored them already */
	if (sampler->uprobe == NULL && sampler->own == NULL)
		c->pass[c->npass++] = wp_code_thread_ids(c, PID_TID);
}

/* Reserve the record in R7. */
static void
reserve(struct code *c, size_t size, int ringbuf)
{
	set_wide(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)ringbuf);
	set(c, BPF_REG_2, (int)size);
	set(c, BPF_REG_3, 0);
	call(c, BPF_FUNC_ringbuf_reserve);
	pass_if(c, BPF_JEQ, BPF_REG_0, 0);
	copy(c, BPF_REG_7, BPF_REG_0);
}

static void
put_start(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler, size_t size)
{
	const struct perf_event_header header = {
		PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)size,
	};
	uint64_t word;

	memcpy(&word, &header, sizeof(word));
	put(c, 0, word);
	put(c, offsetof(struct wp_sample, id), sampler->id);
	put_register(c, offsetof(struct wp_sample, ip), REG(rip));
	load(c, BPF_W, BPF_REG_1, FP, PID_TID + 4);
	store(c, BPF_W, BPF_REG_7, offsetof(struct wp_sample, pid), BPF_REG_1);
	load(c, BPF_W, BPF_REG_1, FP, PID_TID);
	store(c, BPF_W, BPF_REG_7, offsetof(struct wp_sample, tid), BPF_REG_1);
	load(c, BPF_DW, BPF_REG_1, FP, TIME);
	store(c, BPF_DW, BPF_REG_7, offsetof(struct wp_sample, time),
	    BPF_REG_1);
	put(c, offsetof(struct wp_sample, addr), attr->bp_addr);
	set_cpu(c, BPF_REG_1, sampler);
	store(c, BPF_DW, BPF_REG_7, offsetof(struct wp_sample, cpu),
	    BPF_REG_1);
}

static void
submit(struct code *c)
{
	copy(c, BPF_REG_1, BPF_REG_7);
	set(c, BPF_REG_2, BPF_RB_NO_WAKEUP);
	call(c, BPF_FUNC_ringbuf_submit);
}

static void
take_time(struct code *c)
{
	call(c, BPF_FUNC_ktime_get_ns);
	store(c, BPF_DW, FP, TIME, BPF_REG_0);
}

static void
write_sample(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler, struct extent extent)
{
	const size_t size = record_size(attr, sampler, extent);
	size_t at = sizeof(struct wp_sample);

	reserve(c, size, sampler->ringbuf);
	if (sampler->uprobe != NULL)
		take_time(c);	/* others may have run since the hit */
	put_start(c, attr, sampler, size);
	if ((attr->sample_type & PERF_SAMPLE_CALLCHAIN) != 0) {
		put(c, at, 0);
		at += sizeof(uint64_t);
	}
	if ((attr->sample_type & PERF_SAMPLE_RAW) != 0)
		at = put_trial(c, put_readings(c, sampler, put_ticket(c,
		    sampler, at, extent)), extent);
	at = put_registers(c, at, attr->sample_regs_user);
	if (has_stack(attr) && extent.known)
		at = put_known_words(c, at, extent.copy);
	else if (has_stack(attr) && extent.copy != 0)
		at = put_stack(c, at, extent.copy);
	else if (has_stack(attr)) {
		put(c, at, 0);
		at += sizeof(uint64_t);
	}
	if ((attr->sample_type & PERF_SAMPLE_REGS_INTR) != 0)
		(void)put_registers(c, at, attr->sample_regs_intr);
	submit(c);
}

/* Write a sample, and return. */
static void
put_sample(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler, struct extent extent)
{
	write_sample(c, attr, sampler, extent);
	return_zero(c);
}

/* Write a sample with the shortest of these copies of the stack that has all
   known words. */
static void
put_short(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	const uint32_t whole = attr->sample_stack_user;

	for (uint32_t size = WP_KNOWN_SHORTEST;
	    size <= WP_KNOWN_REACH && size < whole; size *= 2) {
		unsigned longer;

		load(c, BPF_DW, BPF_REG_1, FP, REACH);
		longer = jump(c, BPF_JGT, BPF_REG_1, (int)size);
		put_sample(c, attr, sampler, sampler->trial ?
		    (struct extent){whole, size, false} :
		    (struct extent){size, 0, size <= FEW});
		land(c, longer);
	}
}

/* --- counting --- */

/* Load the register whose number is in this member of the way in R5. */
static void
load_numbered(struct code *c, unsigned to, int at)
{
	load(c, BPF_W, to, BPF_REG_5, at);
	emit(c, BPF_ALU64 | BPF_AND | BPF_K, to, 0, 0, WP_KNOWN_REGISTERS - 1);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, to, 0, 0, 3);
	emit(c, BPF_ALU64 | BPF_ADD | BPF_X, to, BPF_REG_9, 0, 0);
	load(c, BPF_DW, to, to, WP_KNOWN_REACH);
}

/* R3 becomes the value that a hit of the way in R5 stored; R4: whether it is
   known. */
static void
load_value(struct code *c)
{
	unsigned none, all[2], other[2], constant;

	set(c, BPF_REG_4, 0);
	load(c, BPF_DW, BPF_REG_3, BPF_REG_5, WAY(value.constant));
	load(c, BPF_W, BPF_REG_0, BPF_REG_5, WAY(value.source));
	none = jump(c, BPF_JEQ, BPF_REG_0, WP_KNOWN_NOWHERE);
	load(c, BPF_W, BPF_REG_0, BPF_REG_5, WAY(value.nbases));
	for (int i = 0; i < 2; i++) {
		all[i] = jump(c, BPF_JLE, BPF_REG_0, i);
		load_numbered(c, BPF_REG_1, WAY(value.base) +
		    i * (int)sizeof(uint32_t));
		load(c, BPF_DW, BPF_REG_2, BPF_REG_5, WAY(value.holds) +
		    i * (int)sizeof(uint64_t));
		other[i] = c->n;
		emit(c, BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	}
	land(c, all[0]);
	land(c, all[1]);
	set(c, BPF_REG_4, 1);
	load(c, BPF_W, BPF_REG_0, BPF_REG_5, WAY(value.source));
	constant = jump(c, BPF_JEQ, BPF_REG_0, WP_KNOWN_CONSTANT);
	load_numbered(c, BPF_REG_3, WAY(value.reg));
	land(c, none);
	land(c, other[0]);
	land(c, other[1]);
	land(c, constant);
}

/* If hits of the way in R5 are counted, count this one and return; otherwise
   continue.  The entry in R8 may have changed in the meantime.  Returns the
   jump that is taken where there is no room to count it; it has a ticket
   then. */
static unsigned
put_tally(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler, struct jumps *unknown)
{
	const uint64_t word = sizeof(uint64_t);
	unsigned not, full;

	/* a call may have pushed onto the watch, rather than the instruction
	   in front of the pc stored to it */
	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, REG(rsp));
	set_wide(c, BPF_REG_2, 0, attr->bp_addr - (word - 1));
	emit(c, BPF_ALU64 | BPF_SUB | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	leave_if(c, BPF_JLT, BPF_REG_1, (int)(attr->bp_len + word - 1),
	    unknown);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_5, WAY(number));
	store(c, BPF_DW, FP, COUNTS, BPF_REG_1);
	load_value(c);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, ENTRY(version));
	leave_if_unequal(c, BPF_REG_1, BPF_REG_7, unknown);
	load(c, BPF_DW, BPF_REG_1, FP, COUNTS);
	not = jump(c, BPF_JEQ, BPF_REG_1, 0);
	load(c, BPF_W, BPF_REG_2, FP, PID_TID);
	emit(c, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_2, 0, 0, 32);
	emit(c, BPF_ALU64 | BPF_OR | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
	take_bare_ticket(c, sampler);
	wp_code_tally(c, sampler->tallies, (unsigned)attr->bp_len, TIME);
	full = jump_always(c);
	land(c, not);
	return full;
}

/* Find the way that has the stack: R5 becomes it, R8 its entry, R7 the entry's
   version, R9 what was compared. */
static void
match_known(struct code *c, const struct wp_sampler *sampler,
    struct jumps *unknown)
{
	unsigned known[WP_KNOWN_WAYS];

	find_known(c, sampler->known.map, unknown);
	read_known(c, sampler, unknown);
	if (sampler->tallies != NULL)
		put_known_registers(c);
	for (unsigned i = 0; i < WP_KNOWN_WAYS; i++) {
		struct jumps other = {.n = 0};

		compare_known(c, sampler, i, &other);
		known[i] = jump_always(c);
		land_all(c, &other);
	}
	unknown->at[unknown->n++] = jump_always(c);
	for (unsigned i = 0; i < WP_KNOWN_WAYS; i++)
		land(c, known[i]);
}

/* If the stack is known, write a sample with a short copy of it; otherwise
   continue. */
static void
put_known(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	struct jumps unknown = {.n = 0};

	match_known(c, sampler, &unknown);
	load(c, BPF_DW, BPF_REG_1, BPF_REG_8, ENTRY(version));
	leave_if_unequal(c, BPF_REG_1, BPF_REG_7, &unknown);
	put_short(c, attr, sampler);
	land_all(c, &unknown);
}

/* The same before there is a ticket, where the hit may only be counted: reading
   the bytes for one takes a third of the time. */
static void
count_known(struct code *c, const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	struct jumps unknown = {.n = 0};
	unsigned full;

	begin(c, sampler);
	while (c->npass > 0)	/* these take a ticket first */
		unknown.at[unknown.n++] = c->pass[--c->npass];
	match_known(c, sampler, &unknown);
	full = put_tally(c, attr, sampler, &unknown);
	take_ticket(c, attr, sampler);
	land(c, full);
	load_scratch(c, sampler);
	put_short(c, attr, sampler);
	land_all(c, &unknown);
}

static void
land_passes(struct code *c)
{
	while (c->npass > 0)
		land(c, c->pass[--c->npass]);
}

static void
end(struct code *c)
{
	land_passes(c);
	set(c, BPF_REG_0, 1);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* The arguments of an executed function may be anywhere on the stack, so its
   samples need all of it. */
static bool
is_for_known(const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	return sampler->known.map >= 0 && has_stack(attr) &&
	    attr->bp_type == HW_BREAKPOINT_W &&
	    (attr->sample_type & PERF_SAMPLE_RAW) != 0;
}

int
wp_sampler_load(const struct perf_event_attr *attr,
    const struct wp_sampler *sampler)
{
	const struct wp_filter *filter = sampler->filter;
	const bool filters = filter != NULL && filter->n > 0;
	const bool counts = is_for_known(attr, sampler) && !filters &&
	    sampler->tallies != NULL;
	const struct extent whole = {
		attr->sample_stack_user, sampler->trial, false,
	};
	struct jumps unwanted = {.n = 0};
	struct code c = {.n = 0};

	/* the program itself reads the stack and the watched bytes; if those
	   reads are watched, they make hits that nobody counts or delivers */
	if ((attr->bp_type & HW_BREAKPOINT_R) != 0 ||
	    record_size(attr, sampler, whole) > UINT16_MAX)
		return -ENOTSUP;
	copy(&c, BPF_REG_6, BPF_REG_1);
	if (sampler->uprobe == NULL)
		take_time(&c);
	if (sampler->uprobe != NULL)
		wp_code_guard(&c, sampler->uprobe);
	else if (sampler->own != NULL)
		wp_code_own(&c, sampler->own);
	if (readings(sampler) > 0)
		wp_code_counters(&c, sampler->counters);
	if (counts)
		count_known(&c, attr, sampler);
	if ((attr->sample_type & PERF_SAMPLE_RAW) != 0)
		take_ticket(&c, attr, sampler);
	begin(&c, sampler);
	if (filters)
		jump_if_sure(&c, sampler, filter->n - 1, false, &unwanted);
	if (!counts && is_for_known(attr, sampler))
		put_known(&c, attr, sampler);
	put_sample(&c, attr, sampler, (struct extent){.copy = whole.copy});
	if (unwanted.n > 0) {
		land_all(&c, &unwanted);
		put_sample(&c, attr, sampler, (struct extent){.copy = 0});
	}
	end(&c);
	return is_full(&c) ? -E2BIG : (sampler->uprobe != NULL ?
	    wp_bpf_load_uprobe : wp_bpf_load)(c.insn, c.n);
}

void
wp_code_sample(struct code *c, const struct perf_event_attr *attr, int ringbuf)
{
	static const struct wp_uprobe_guard here = {.map = -1};
	const struct wp_sampler sampler = {
		.ringbuf = ringbuf, .uprobe = &here, .tickets = -1,
		.known.map = -1,
	};
	const struct extent whole = {.copy = attr->sample_stack_user};

	if (record_size(attr, &sampler, whole) > UINT16_MAX)
		return;
	load(c, BPF_DW, BPF_REG_1, BPF_REG_6, REG(cs));
	pass_if(c, BPF_JNE, BPF_REG_1, CS_64);
	write_sample(c, attr, &sampler, whole);
	land_passes(c);
}
