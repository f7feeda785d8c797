/* narrow_inside: watches itself, as a 32-bit program with libwatchpoint. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include <watchpoint.h>

int word;
uint64_t big;
char buffer[8];

static void *
thread(void *arg)
{
	word = 5;
	return arg;
}

__attribute__((noinline)) static void
add(void)
{
	word++;
}

int
main(void)
{
	pthread_t other;
	int ends[2];

	WP_WATCH(word);
	WP_WATCH(big);
	WP_WATCH(buffer);
	word = 1;
	add();
	big = 3;
	if (pthread_create(&other, NULL, thread, NULL) != 0 ||
	    pthread_join(other, NULL) != 0 || pipe(ends) != 0 ||
	    write(ends[1], "kernel", 6) != 6 || read(ends[0], buffer, 6) != 6)
		return 1;
	WP_UNWATCH(word);
	WP_FREEZE(word)
		word = 9;
	return wp_stray_count() == 1 ? 0 : 2;
}
