/* hot_stack: frequent stacks. */
#include "stack/hot_stack.h"

#include "unwind/regs.h"

/* False: the register is not one of those that are compared. */
static bool
add_register(const struct ex_regs *regs, uint32_t place,
    struct wp_known_stack *known)
{
	place &= ~EX_READ_ADDRESS;
	if (ex_regs_known(regs, EX_REG_FP) && place == regs->place[EX_REG_FP])
		known->by_fp = 1;
	else
		return place == regs->place[EX_REG_PC] ||
		    place == regs->place[EX_REG_SP];
	return true;
}

/* False: there is no room for another word. */
static bool
add_word(const struct ex_sample *sample, uint32_t place,
    struct wp_known_stack *known)
{
	const bool address = (place & EX_READ_ADDRESS) != 0;
	uint16_t rule;

	place &= ~EX_READ_ADDRESS;
	if (place % sizeof(known->word[0]) != 0 || place >= WP_KNOWN_REACH)
		return false;
	rule = (uint16_t)(place | (address ? WP_KNOWN_RELATIVE : 0));
	for (unsigned i = 0; i < known->n; i++) {
		if ((known->place[i] | WP_KNOWN_RELATIVE) !=
		    (rule | WP_KNOWN_RELATIVE))
			continue;
		if (known->place[i] != rule)
			known->by_sp = 1;	/* it is both */
		return true;
	}
	if (known->n == WP_KNOWN_WORDS)
		return false;
	known->place[known->n] = rule;
	known->word[known->n++] = ex_read_value(sample, place);
	return true;
}

bool
ex_hot_stack_make(const struct ex_sample *sample, const struct ex_reads *reads,
    struct wp_known_stack *known)
{
	struct ex_regs regs;
	bool fits = reads->n <= EX_READS_MAX &&
	    ex_regs_read(&sample->user, &regs) &&
	    ex_regs_known(&regs, EX_REG_PC) && ex_regs_known(&regs, EX_REG_SP);

	if (!fits || regs.narrow)
		return false;	/* the kernel's program has 8-byte words */
	*known = (struct wp_known_stack){
		.pc = regs.value[EX_REG_PC], .sp = regs.value[EX_REG_SP],
		.fp = regs.value[EX_REG_FP], .by_sp = reads->by_sp,
	};
	for (unsigned i = 0; fits && i < reads->n; i++)
		fits = (reads->place[i] & EX_READ_REG) != 0 ?
		    add_register(&regs, reads->place[i], known) :
		    add_word(sample, reads->place[i], known);
	return fits && known->n > 0;
}
