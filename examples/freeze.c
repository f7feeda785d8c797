/*
 * freeze: only the thread that reloads the configuration may write to it while
 * the server runs.  One function has a bug:
 *
 *	#1   stray write  config (4 of 8 bytes, at 0x55e3ec7142d4)
 *	     freeze[7877/7877] cpu 0  +0.000365s
 *	     accepts+0xa  mov %eax, 0x11925(%rip)   freeze.c:33
 *	     0  accepts  freeze.c:33
 *	     1  serve    freeze.c:43
 *	     2  main     freeze.c:50
 *	     ...
 *	#2   stray write  config (4 of 8 bytes, ...)  (same backtrace as #1)
 *	limit 2, stray writes 2
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
