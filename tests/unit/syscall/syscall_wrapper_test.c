/* syscall_wrapper: names of functions, and the system calls that they make. */
#include "test.h"

#include "syscall/syscall_wrapper.h"

TEST(names_calls)
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

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *call = ex_syscall_of_wrapper(names[i].function);

		if (names[i].call == NULL)
			assert_null(call);
		else
			assert_string_equal(call, names[i].call);
	}
}

RUN_TESTS()
