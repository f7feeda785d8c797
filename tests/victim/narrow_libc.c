/*
 * narrow_libc: what a 32-bit program does: it calls, writes members, follows
 * pointers, reads a file, and has a thread.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWN	__attribute__((noinline, noclone))

struct point {
	int x;
	long y;
	char *name;
	long long big;
};

struct node {
	struct node *next;
	int value;
};

struct point point;
int counter;
char buffer[8];
struct node first, second, *head = &first;

OWN void
set(int n, int value)
{
	if (n > 0) {
		set(n - 1, value);
		__asm__ volatile("");
		return;
	}
	counter = value;
	point.y += value;
	point.big = (long long)value << 33;
}

OWN int
add(int a, const char *text, long long c)
{
	counter += a;
	return (int)c + text[0];
}

static void *
thread(void *arg)
{
	for (int i = 0; i < 3; i++) {
		counter++;
		__asm__ volatile("" : : : "memory");
	}
	return arg;
}

OWN static int
compare(const void *a, const void *b)
{
	counter++;
	return *(const int *)a - *(const int *)b;
}

int
main(int argc, char **argv)
{
	int numbers[] = {2, 1}, pair[2];
	const int fd = open(argv[argc - 1], O_RDONLY);
	pthread_t other;

	first.next = &second;
	set(3, 1);
	set(2, 7);
	if (add(5, "z", 6) == 0)
		return 1;
	qsort(numbers, 2, sizeof(numbers[0]), compare);
	if (read(fd, buffer, sizeof(buffer)) != sizeof(buffer) ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0 ||
	    send(pair[0], "sent", 4, 0) != 4 ||
	    recv(pair[1], buffer, sizeof(buffer), 0) != 4)
		return 1;
	head->next->value = 3;
	(void)pthread_create(&other, NULL, thread, NULL);
	(void)pthread_join(other, NULL);
	return 0;
}
