/* code: a program that is too long is known as such, and stays in its
   bounds. */
#include "test.h"

#include <string.h>

#include "bpf/code.h"

TEST(a_program_ends_where_its_room_does)
{
	static struct {
		struct code code;
		uint8_t behind[64];
	} it;
	struct code *c = &it.code;
	const uint8_t untouched[sizeof(it.behind)] = {0};

	for (unsigned i = 0; i < WP_CODE_INSNS - 1; i++) {
		assert_false(is_full(c));
		set(c, BPF_REG_0, (int)i);
	}
	assert_false(is_full(c));
	set_wide(c, BPF_REG_1, 0, UINT64_MAX);	/* two instructions */
	assert_true(is_full(c));
	for (unsigned i = 0; i < 2 * WP_CODE_INSNS; i++)
		land(c, jump(c, BPF_JEQ, BPF_REG_0, 0));
	assert_true(is_full(c));
	assert_int_equal(c->n, WP_CODE_INSNS);
	assert_int_equal(c->npass, 0);
	assert_memory_equal(it.behind, untouched, sizeof(untouched));
	assert_int_equal(c->insn[0].imm, 0);
	assert_int_equal(c->insn[WP_CODE_INSNS - 2].imm, WP_CODE_INSNS - 2);
}

RUN_TESTS()
