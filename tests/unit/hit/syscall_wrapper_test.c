/* syscall_wrapper: functions' names, and the system calls that they are for. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "hit/syscall_wrapper.h"

static void
names_calls(void **state)
{
	static const struct {
		const char *function, *call;	/* NULL: none */
	} names[] = {
		{"read", "read"}, {"__read", "read"},
		{"__libc_read", "read"}, {"__GI___libc_read", "read"},
		{"__GI_read", "read"}, {"recvfrom", "recvfrom"},
		{"accept", "accept"}, {"writev", "writev"},
		{"syscall", NULL}, {"getpid", NULL}, {"", NULL}, {"_", NULL},
		{"__GI_", NULL}, {"readx", NULL}, {"fread", NULL},
		{"libc_read", NULL}, {"GI_read", NULL}, {"reader", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *call = ex_syscall_of_wrapper(names[i].function);

		if (names[i].call == NULL)
			assert_null(call);
		else
			assert_string_equal(call, names[i].call);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_calls),
	};

	return cmocka_run_group_tests_name("syscall_wrapper", tests, NULL, NULL);
}
