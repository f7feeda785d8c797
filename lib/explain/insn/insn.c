/*
 * insn: which instruction made an access.  What depends on the processor is in
 * insn_x86_64.c; on others no instruction is named.
 */
#include "insn/insn.h"

#include <string.h>

const char *
ex_confidence_text(enum ex_confidence confidence)
{
	switch (confidence) {
	case EX_UNKNOWN:
		break;
	case EX_AMBIGUOUS:
		return "ambiguous";
	case EX_ADDRESS_UNVERIFIED:
		return "address-unverified";
	case EX_EXACT:
		return "exact";
	}
	return "unknown";
}

void
ex_insn_no_jump(struct ex_insn *insn)
{
	insn->confidence = EX_EXACT;
	insn->addr = insn->jump;
	insn->jump = 0;
}

#ifndef __x86_64__
void
ex_insn_explain(struct ex_process *process, const struct ex_sample *sample,
    uint64_t addr, uint32_t len, enum wp_access access,
    struct ex_insn *out)
{
	(void)process;
	(void)sample;
	(void)addr;
	(void)len;
	(void)access;
	memset(out, 0, sizeof(*out));
}
#endif
