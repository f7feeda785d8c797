/*
 * jit: a victim that makes code while it runs, and says what it is called.
 *
 *	jit
 *
 * Says "pid PID jit ADDRESS", waits for a line on stdin (not at end of file).
 * Then, one after the other: a function that nobody has named yet stores; it is
 * named in /tmp/perf-PID.map, and stores; another takes its place under another
 * name, and stores.  Says "done 3" and ends, with status 7, at the next line.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

volatile long jit;

/* A frame; mov %rsi,(%rdi). */
static const unsigned char code[] = {
	0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x37, 0x5d, 0xc3,
};

static void (*volatile store)(volatile long *, long);

__attribute__((noinline, noclone)) static void
call(long value)
{
	store(&jit, value);
	__asm__ volatile("");
	/* long enough for a hit to be told before the next name comes */
	(void)nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
}

static void
name(const void *at, const char *as)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if ((f = fopen(path, "a")) == NULL)
		return;
	(void)fprintf(f, "%lx %zx %s\n", (unsigned long)at, sizeof(code), as);
	(void)fclose(f);
}

int
main(void)
{
	unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[64];

	if (at == MAP_FAILED)
		return 1;
	memcpy(at, code, sizeof(code));
	memcpy(at + 64, code, sizeof(code));
	store = (void (*)(volatile long *, long))(void *)at;
	(void)printf("pid %d jit %p\n", getpid(), (void *)&jit);
	(void)fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
	call(1);
	name(at, "made \033[1mat run time");
	call(2);
	name(at, "made later");
	store = (void (*)(volatile long *, long))(void *)(at + 64);
	name(at + 64, "made beside it");
	call(3);
	(void)printf("done 3\n");
	(void)fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
	(void)snprintf(line, sizeof(line), "/tmp/perf-%d.map", getpid());
	(void)unlink(line);
	return 7;
}
