/*
 * cfi: finds callers by call frame information, in the process itself.
 *
 * Only what most functions have is understood: the CFA is a register (rsp or
 * rbp) and an offset, and rbp is where it was or saved beside it.  Other frames
 * end the walk.  A rule is looked up once for each return address and kept.
 */
#ifndef HG_CFI_H
#define HG_CFI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct hg_frame {
	uint64_t pc;		/* where it goes on */
	uint64_t sp, bp;	/* its registers then */
	bool by_bp;		/* of one that was stepped to: rbp led there */
};

enum {
	HG_RULES = 1 << 15,	/* that are kept */
	HG_UNKNOWN = 0, HG_FROM_SP, HG_FROM_BP, HG_OUTERMOST,	/* how */
};

/* How to go on from an address: a word, which is read and written without a
   lock.  The address' lowest bits are where it is kept. */
struct hg_rule {
	uint32_t high;		/* its other bits */
	uint16_t cfa;		/* the CFA is so many words from the register */
	uint16_t bp : 14;	/* the saved rbp is so many in front of the CFA;
				   0: it is the same */
	uint16_t how : 2;	/* HG_OUTERMOST: nobody called it */
};
_Static_assert(sizeof(struct hg_rule) == 8, "a rule is one word");

extern _Atomic uint64_t hg_rules[HG_RULES]
    __attribute__((visibility("hidden")));

/* Find one that is not kept, and keep it. */
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

/* Go to its caller.  False: there is none, or it is not known; *outermost says
   that there is none. */
static inline bool
hg_frame_step(struct hg_frame *f, bool *outermost)
{
	const struct hg_rule rule = hg_rule_of(f->pc);
	uint64_t cfa;

	*outermost = rule.how == HG_OUTERMOST;
	f->by_bp = rule.how == HG_FROM_BP;
	if (rule.how == HG_UNKNOWN || rule.how == HG_OUTERMOST)
		return false;
	cfa = (f->by_bp ? f->bp : f->sp) + 8 * rule.cfa;
	/* what makes no sense may not be there to read */
	if (cfa - f->sp - 1 >= 1 << 20 || cfa % 8 != 0)
		return false;
	if (rule.bp != 0)
		memcpy(&f->bp, (void *)(uintptr_t)(cfa - 8 * rule.bp),
		    sizeof(f->bp));
	memcpy(&f->pc, (void *)(uintptr_t)(cfa - 8), sizeof(f->pc));
	f->sp = cfa;
	*outermost = f->pc == 0;
	return f->pc != 0;
}

/* A library has gone: what is known of addresses is forgotten. */
void hg_frame_forget(void);

/* The module that an address lies in: where it was loaded, and its name.
   False: in none. */
bool hg_frame_module(uint64_t pc, uint64_t *base, const char **name);

#endif
