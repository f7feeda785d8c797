/*
 * insn: finds the instruction that made an access.  Code that depends on the
 * processor is in insn_x86_64.c and insn_aarch64.c.
 */
#include "insn/insn.h"

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
