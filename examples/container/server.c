/* A server whose limit somebody changes. */
#include <unistd.h>

static volatile int limit = 10;

static void reload(int to)
{
	limit = to;
}

int main(void)
{
	for (int to = 11; to < 16; to++) {
		usleep(20000);
		reload(to);
	}
	return 0;
}
