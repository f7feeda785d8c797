/* plain_assert: a test program that has no framework. */
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
