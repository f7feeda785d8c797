/*
 * plain_assert: a test program that has no framework.
 *
 *	#1   stray write  system (4 bytes at 0x5570806a72d0)  -> 1000
 *	     plain_assert[7887/7887] cpu 1  +0.000358s
 *	     log_in+0xe  mov %edx, (%rax)   plain_assert.c:23
 *	     0  log_in  plain_assert.c:23
 *	     1  main    plain_assert.c:34
 *	     ...
 *	plain_assert: plain_assert.c:37: main: Assertion `wp_stray_missed() == 0 &&
 *	wp_stray_count() == 0' failed.
 */
#include <assert.h>
#include <watchpoint.h>

struct session {
	int user;
};

static void
log_in(struct session *session, int user)
{
	session->user = user;
}

int
main(void)
{
	static struct session system, guest;

	WP_FREEZE(system) {
		log_in(&guest, 1000);
		WP_ASSERT_NO_STRAY();
		log_in(&system, 1000);
	}
	assert(guest.user == 1000);
	assert(wp_stray_missed() == 0 && wp_stray_count() == 0);
	return 0;
}
