/*
 * thread_counter: counts each thread's hits.
 *
 *	fp-24: 0, the count of a new thread
 *	fp-16: the key
 */
#include "bpf/thread_counter.h"

#include <stddef.h>

#include "bpf/bpf.h"
#include "bpf/code.h"
#include "bpf/process_filter.h"
#include "bpf/uprobe_guard.h"

#define INSN(op, dst, src, offset, value) (struct bpf_insn){		\
	.code = (op), .dst_reg = (dst), .src_reg = (src),		\
	.off = (offset), .imm = (value)}
#define SET(dst, value)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define COPY(dst, src)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define ADD(dst, value)	INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, value)
#define CALL(function)	INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define WIDE(dst, kind, value)						\
	INSN(BPF_LD | BPF_IMM | BPF_DW, dst, kind, 0, (int)(value)),	\
	INSN(0, 0, 0, 0, (int)((uint64_t)(value) >> 32))
#define JUMP(op, reg, value, over)					\
	INSN(BPF_JMP | (op) | BPF_K, reg, 0, over, value)
#define STORE(dst, offset, src)						\
	INSN(BPF_STX | BPF_MEM | BPF_DW, dst, src, offset, 0)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int
wp_thread_counter_map(unsigned max)
{
	return wp_bpf_hash(sizeof(struct wp_thread_key), sizeof(uint64_t), max);
}

_Static_assert(offsetof(struct wp_thread_key, tid) == 0,
    "the thread's id begins the key");

int
wp_thread_counter_load(int map, uint64_t watch,
    const struct wp_uprobe_guard *guard, const struct wp_own *own)
{
	struct code c = {.n = 0};
	unsigned unknown;
	const struct bpf_insn program[] = {
		WIDE(BPF_REG_1, 0, watch),
		STORE(FP, -8, BPF_REG_1),
		/* look up the thread's count */
		WIDE(BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)map),
		COPY(BPF_REG_2, FP),
		ADD(BPF_REG_2, -16),
		CALL(BPF_FUNC_map_lookup_elem),
		JUMP(BPF_JNE, BPF_REG_0, 0, 15),
		/* or add one */
		STORE(FP, -24, BPF_REG_0),
		WIDE(BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)map),
		COPY(BPF_REG_2, FP),
		ADD(BPF_REG_2, -16),
		COPY(BPF_REG_3, FP),
		ADD(BPF_REG_3, -24),
		SET(BPF_REG_4, BPF_NOEXIST),
		CALL(BPF_FUNC_map_update_elem),
		WIDE(BPF_REG_1, BPF_PSEUDO_MAP_FD, (uint32_t)map),
		COPY(BPF_REG_2, FP),
		ADD(BPF_REG_2, -16),
		CALL(BPF_FUNC_map_lookup_elem),
		JUMP(BPF_JEQ, BPF_REG_0, 0, 2),
		SET(BPF_REG_1, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0,
		    BPF_ADD),
		SET(BPF_REG_0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	copy(&c, BPF_REG_6, BPF_REG_1);
	if (guard != NULL)
		wp_code_guard(&c, guard);
	else if (own != NULL)
		wp_code_own(&c, own);
	unknown = wp_code_thread_ids(&c, -16);
	for (size_t i = 0; i < COUNT(program); i++)
		c.insn[c.n++] = program[i];
	land(&c, unknown);
	return_zero(&c);
	return (guard != NULL ? wp_bpf_load_uprobe : wp_bpf_load)(c.insn, c.n);
}
