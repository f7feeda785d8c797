/*
 * code: generates BPF programs, one instruction at a time.
 */
#ifndef WP_CODE_H
#define WP_CODE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

/* Headers older than Linux 5.12 have none of these. */
#ifndef BPF_ATOMIC
#define BPF_ATOMIC	0xc0
#define BPF_FETCH	0x01
#define BPF_CMPXCHG	(0xf0 | BPF_FETCH)
#endif

enum { WP_CODE_INSNS = 4096, WP_CODE_PASSES = 64 };

#define FP BPF_REG_10

struct code {
	struct bpf_insn insn[WP_CODE_INSNS];
	unsigned n;
	unsigned pass[WP_CODE_PASSES], npass;	/* jumps to where the hit is
						   left to the kernel */
};

/* A full program must not be loaded: its last instruction was overwritten. */
static inline bool
is_full(const struct code *c)
{
	return c->n == WP_CODE_INSNS;
}

static inline void
emit(struct code *c, int op, unsigned dst, unsigned src, int off, int imm)
{
	c->insn[is_full(c) ? c->n - 1 : c->n++] = (struct bpf_insn){
		.code = (uint8_t)op, .dst_reg = dst & 15, .src_reg = src & 15,
		.off = (int16_t)off, .imm = imm,
	};
}

static inline void
set(struct code *c, unsigned dst, int value)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value);
}

static inline void
copy(struct code *c, unsigned dst, unsigned src)
{
	emit(c, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static inline void
add(struct code *c, unsigned dst, int value)
{
	emit(c, BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value);
}

static inline void
set_wide(struct code *c, unsigned dst, int kind, uint64_t value)
{
	emit(c, BPF_LD | BPF_IMM | BPF_DW, dst, (unsigned)kind, 0,
	    (int)(uint32_t)value);
	emit(c, 0, 0, 0, 0, (int)(uint32_t)(value >> 32));
}

static inline void
load(struct code *c, int size, unsigned dst, unsigned src, int off)
{
	emit(c, BPF_LDX | BPF_MEM | size, dst, src, off, 0);
}

static inline void
store(struct code *c, int size, unsigned dst, int off, unsigned src)
{
	emit(c, BPF_STX | BPF_MEM | size, dst, src, off, 0);
}

static inline void
call(struct code *c, int function)
{
	emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

/* Let the jump at this instruction lead to here. */
static inline void
land(struct code *c, unsigned at)
{
	c->insn[at].off = (int16_t)(c->n - at - 1);
}

/* A conditional jump forward, to where land() is called with the result. */
static inline unsigned
jump(struct code *c, int op, unsigned reg, int value)
{
	emit(c, BPF_JMP | op | BPF_K, reg, 0, 0, value);
	return c->n - 1;
}

static inline unsigned
jump_always(struct code *c)
{
	emit(c, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	return c->n - 1;
}

/* Repeat from this instruction on.  The verifier must see that it ends. */
static inline void
jump_back(struct code *c, unsigned to)
{
	emit(c, BPF_JMP | BPF_JA, 0, 0, (int)to - (int)c->n - 1, 0);
}

static inline void
return_zero(struct code *c)
{
	set(c, BPF_REG_0, 0);
	emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

struct wp_counters;

/* Where the code that reads counters leaves the counts (bpf/counter_reading.h)
   on the stack, each 8 bytes below the one before it.  It also uses what is
   below WP_CODE_OWN for itself. */
enum { WP_CODE_OWN = -48, WP_CODE_COUNTS = WP_CODE_OWN - 4 * 8 };

/* Read what each counter counted since the thread's last hit (counters.h).
   Changes all registers but R6. */
void wp_code_counters(struct code *, const struct wp_counters *);

/* Store the id of the thread that made the hit, and behind it that of its
   process, 4 bytes each, at this place of the stack.  Changes R0 to R5.
   Returns the jump that is taken if it has no id in this process's PID
   namespace. */
unsigned wp_code_thread_ids(struct code *, int at);

#endif
