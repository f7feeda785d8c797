/*
 * freeze: nobody may write to the configuration while the server serves, but for
 * the thread that reloads it.  One of them has a bug.
 */
#include <stdio.h>
#include <watchpoint.h>

static struct config {
	int port;
	int limit;
} config = {8080, 3};

static void
reload(void)
{
	WP_PERMIT(config)
		config.port = 8081;
}

static int
accepts(int clients)
{
	if ((config.limit = clients))	/* meant: == */
		return 0;
	return 1;
}

static void
serve(void)
{
	reload();
	for (int clients = 1; clients <= 2; clients++)
		(void)accepts(clients);
}

int
main(void)
{
	WP_FREEZE(config)
		serve();
	printf("limit %d, stray writes %d\n", config.limit,
	    (int)wp_stray_count());
	return wp_stray_count() != 0 || wp_stray_missed() != 0;
}
