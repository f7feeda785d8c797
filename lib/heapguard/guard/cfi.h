/*
 * cfi: finds callers by call frame information, within the process.
 *
 * Only the rules of most functions are understood: the CFA is a register (rsp
 * or rbp) plus an offset, and rbp is unchanged or saved beside the CFA.  Other
 * frames end the walk.  The rule of each return address is looked up once and
 * kept.
 */
#ifndef HG_CFI_H
#define HG_CFI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct hg_frame {
	uint64_t pc;		/* where it continues */
	uint64_t sp, bp;	/* its registers there */
	bool by_bp;		/* the step to this frame used rbp */
};

/* The stack of a function that has a frame pointer begins with these two words
   of its caller. */
struct hg_record {
	uint64_t bp, pc;
};

/* The frame of that caller, as it will continue. */
static inline struct hg_frame
hg_frame_of(const struct hg_record *record)
{
	return (struct hg_frame){record->pc, (uintptr_t)(record + 1),
		record->bp, false};
}

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

/* Forget all rules: a library was unloaded. */
void hg_frame_forget(void);

/* The module of an address: its load address and name.  False: there is
   none. */
bool hg_frame_module(uint64_t pc, uint64_t *base, const char **name);

#endif
