/*
 * jit: a victim that makes code while it runs, and says what it is called.
 *
 *	jit
 *
 * Says "pid PID jit ADDRESS", waits for a line on stdin (not at end of file).
 * Then it names a function in /tmp/perf-PID.map, which stores; and another.
 * Says "done 2" and ends, with status 7, at the next line.  The file stays.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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
	name(at, "made \033[1mat run time");
	call(1);
	name(at + 64, "made beside it");
	store = (void (*)(volatile long *, long))(void *)(at + 64);
	call(2);
	(void)printf("done 2\n");
	(void)fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
	return 7;
}
