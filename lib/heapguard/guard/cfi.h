/*
 * cfi: finds callers within the process.
 *
 * On x86-64, where functions have no frame pointers, by call frame information.
 * Only the rules of most functions are understood: the CFA is a register (rsp
 * or rbp) plus an offset, and rbp is unchanged or saved beside the CFA.  Other
 * frames end the walk.  The rule of each return address is looked up once and
 * kept.
 *
 * On arm64 callers are found by the frame records of its procedure call
 * standard, which compilers make by default.  Functions without such a record
 * are left out.
 */
#ifndef HG_CFI_H
#define HG_CFI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct hg_frame {
	uint64_t pc;		/* where it continues */
	uint64_t sp, bp;	/* its registers there; on arm64 sp is the end
				   of the record of what it called, and bp is
				   x29 */
	bool by_bp;		/* the step to this frame used bp */
};

/* The stack of a function that has a frame pointer begins with these two words
   of its caller. */
struct hg_record {
	uint64_t bp, pc;
};

/* A return address without its signature (pointer authentication). */
static inline uint64_t
hg_frame_pc(uint64_t pc)
{
#ifdef __aarch64__
	register uint64_t lr __asm__("x30") = pc;

	__asm__("hint 7" : "+r"(lr));	/* xpaclri, or nothing */
	return lr;
#else
	return pc;
#endif
}

/* The frame of that caller, as it will continue. */
static inline struct hg_frame
hg_frame_of(const struct hg_record *record)
{
	return (struct hg_frame){hg_frame_pc(record->pc),
		(uintptr_t)(record + 1), record->bp, false};
}

#ifdef __aarch64__

/* Step to the frame's caller.  False: there is none, or it is unknown;
   *outermost says that there is none. */
static inline bool
hg_frame_step(struct hg_frame *f, bool *outermost)
{
	const struct hg_record *record =
	    (const struct hg_record *)(uintptr_t)f->bp;

	*outermost = record == NULL;
	f->by_bp = true;
	/* an implausible record may be unreadable */
	if (record == NULL || f->bp - f->sp >= 1 << 20 || f->bp % 8 != 0)
		return false;
	*f = hg_frame_of(record);
	f->by_bp = true;
	*outermost = f->pc == 0;
	return f->pc != 0;
}

#else

enum {
	HG_RULES = 1 << 15,	/* kept rules */
	HG_UNKNOWN = 0, HG_OUTERMOST, HG_FROM_SP, HG_FROM_BP,	/* how */
};

/* The rule for stepping from an address to its caller.  It is one word, read
   and written without a lock.  The address's low bits are the index in the
   table. */
struct hg_rule {
	uint32_t high;		/* the address's other bits */
	uint16_t how : 2;
	uint16_t bp : 14;	/* CFA minus the place of the saved rbp, in
				   words; 0: rbp is unchanged */
	uint16_t cfa;		/* CFA minus the register, in words */
};
_Static_assert(sizeof(struct hg_rule) == 8, "a rule is one word");

extern _Atomic uint64_t hg_rules[HG_RULES]
    __attribute__((visibility("hidden")));

/* Determine a rule that is not kept yet, and keep it. */
struct hg_rule hg_rule_learn(uint64_t pc);

static inline struct hg_rule
hg_rule_of(uint64_t pc)
{
	const uint64_t word = atomic_load_explicit(&hg_rules[pc % HG_RULES],
	    memory_order_relaxed);
	struct hg_rule rule;

	memcpy(&rule, &word, sizeof(rule));
	return rule.high == pc / HG_RULES ? rule : hg_rule_learn(pc);
}

/* Step to the frame's caller.  False: there is none, or it is unknown;
   *outermost says that there is none. */
static inline bool
hg_frame_step(struct hg_frame *f, bool *outermost)
{
	const struct hg_rule rule = hg_rule_of(f->pc);
	uint64_t cfa = 8 * (uint64_t)rule.cfa;

	*outermost = rule.how == HG_OUTERMOST;
	f->by_bp = rule.how == HG_FROM_BP;
	if (rule.how < HG_FROM_SP)
		return false;
	cfa += f->by_bp ? f->bp : f->sp;
	/* an implausible CFA may be unreadable */
	if (f->by_bp && (cfa - f->sp - 1 >= 1 << 20 || cfa % 8 != 0))
		return false;
	if (rule.bp != 0)
		memcpy(&f->bp, (void *)(uintptr_t)(cfa - 8 * rule.bp),
		    sizeof(f->bp));
	memcpy(&f->pc, (void *)(uintptr_t)(cfa - 8), sizeof(f->pc));
	f->sp = cfa;
	*outermost = f->pc == 0;
	return f->pc != 0;
}

#endif

/* Forget what is kept: a library was unloaded. */
void hg_frame_forget(void);

#endif
