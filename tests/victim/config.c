/*
 * config: a victim whose configuration is written by those who may, and by
 * those who may not.
 *
 *	config ACT ...
 *
 * Says "pid PID config ADDRESS", waits for a line on stdin (not at end of
 * file), acts, says "done N" (how many acts), and ends, with status 7, at the
 * next line.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "line.h"

#define OWN __attribute__((noinline, noclone))
#define INLINED __attribute__((always_inline)) static inline

union {
	volatile long number;
	char text[8];
} config __attribute__((aligned(8)));

static char source[] = "1234567";
char *motto = source;		/* relocated where the program is */
static volatile size_t size = sizeof(source);

INLINED void
config_set(long value)
{
	config.number = value;
}

/* Those who may. */

OWN void
config_load(void)
{
	config.number = 1;
	memcpy(config.text, source, size);
	strcpy(config.text, source);
}

OWN void
config_read(void)
{
	int fd[2];

	if (pipe(fd) != 0 || write(fd[1], source, 8) != 8 ||
	    read(fd[0], config.text, 8) != 8)
		abort();
}

/* Their caller's caller's ... caller, by as many frames of 1 KiB. */
OWN void
config_deep(int depth)
{
	volatile char room[1000];

	room[0] = 0;
	if (depth > 0)
		config_deep(depth - 1);
	else
		config_set(room[0]);
	room[1] = 1;
}

OWN void
config_begin(void)
{
	config_deep(8);
	__asm__ volatile("");
}

/* Those who may not. */

OWN void
update(void)
{
	config_set(2);
}

OWN void
scribble(void)
{
	config.number = 3;
}

OWN void
by_one(void)
{
	scribble();
	__asm__ volatile("");
}

OWN void
by_another(void)
{
	scribble();
	__asm__ volatile("");
}

/* Five hits by one store, which is reached from two places. */
OWN void
scribbles(void)
{
	for (int i = 0; i < 3; i++)
		by_one();
	for (int i = 0; i < 2; i++)
		by_another();
}

/* Two who call the same function of the C library. */
OWN void
smudge(void)
{
	for (int i = 0; i < 4; i++)
		memcpy(config.text, source, size);
}

OWN void
smear(void)
{
	memcpy(config.text, source, size);
	__asm__ volatile("");
}

OWN void
print(void)
{
	(void)sprintf(config.text, "%d", (int)size);
}

OWN void
fill(void)
{
	config_read();
	__asm__ volatile("");
}

static void *
in_thread(void *unused)
{
	scribble();
	return unused;
}

OWN void
thread(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, in_thread, NULL) != 0 ||
	    pthread_join(other, NULL) != 0)
		abort();
}

/* Another program, at once and without further ado. */
OWN void
become_another(void)
{
	(void)execl("/bin/true", "true", (char *)NULL);
	abort();
}

static const struct {
	const char *name;
	void (*run)(void);
} acts[] = {
	{"load", config_load}, {"read", config_read}, {"deep", config_begin},
	{"update", update}, {"scribble", scribble}, {"scribbles", scribbles},
	{"smudge", smudge}, {"smear", smear}, {"print", print},
	{"fill", fill}, {"thread", thread},
	{"become_another", become_another},
};

int
main(int argc, char **argv)
{
	int done = 0;

	printf("pid %d config %p\n", (int)getpid(), (void *)&config);
	fflush(stdout);
	(void)await_line();
	for (int i = 1; i < argc; i++) {
		for (size_t k = 0; k < sizeof(acts) / sizeof(acts[0]); k++) {
			if (strcmp(argv[i], acts[k].name) == 0) {
				acts[k].run();
				done++;
			}
		}
	}
	printf("done %d\n", done);
	fflush(stdout);
	(void)await_line();
	return 7;
}
