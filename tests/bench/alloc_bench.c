/*
 * alloc: measures what a program pays that allocates and frees a million times
 * a second while the objects of one of its functions are watched; in processor
 * time, of the same process.  Of what it allocates, nothing is such an object.
 * What of it is the kernel's is measured beside it: a uprobe at the same
 * instruction of free(3), of which a BPF program counts no hit.
 */
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/uprobes.h"
#include "bench.h"
#include "bpf/bpf.h"
#include "os/perf.h"

enum { RUNS = 9, PAIRS = 20000, SOME = 1000 };
#define PAIR 1000.0		/* ns, of a million a second */

/* ns for a malloc and its free, with so many rounds of work between. */
static double
ask(struct running *v, int rounds)
{
	char line[64];

	(void)snprintf(line, sizeof(line), "heap %d %d\n", PAIRS, rounds);
	return bench_least(v, line, RUNS);
}

/* The rounds with which it makes a million a second. */
static int
find_rounds(struct running *v)
{
	const double none = ask(v, 0), some = ask(v, SOME) - none;

	return (int)((PAIR - none) / some * SOME);
}

/* Where the C library lies in a process; 0: it has none. */
static uint64_t
find_libc(pid_t pid)
{
	char path[64], line[512];
	unsigned long long base = 0, found = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (found == 0 && fgets(line, sizeof(line), f) != NULL)
		if (strstr(line, "/libc.so.6\n") != NULL &&
		    sscanf(line, "%llx", &base) == 1)
			found = base;
	(void)fclose(f);
	return found;
}

/* The address of the conditional jump behind the test of free's argument, which
   the kernel emulates; 0: it is not there. */
static uint64_t
find_jump(pid_t pid)
{
	static const uint8_t test[] = {0x48, 0x85, 0xff};
	const uint64_t theirs = find_libc(pid), ours = find_libc(getpid());
	const uint8_t *code = dlsym(RTLD_DEFAULT, "free"), *at;

	if (theirs == 0 || ours == 0 || code == NULL ||
	    (at = memmem(code, 8, test, sizeof(test))) == NULL)
		return 0;
	return (uint64_t)(uintptr_t)(at + sizeof(test)) - ours + theirs;
}

/* A uprobe there whose program does nothing: a descriptor, < 0: not measured.
   Result of the program 0: no event is made. */
static int
open_bare(pid_t pid)
{
	static const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	const uint64_t jump = find_jump(pid);
	const int program = jump == 0 ? -1 : wp_bpf_load_uprobe(nothing, 2);
	const int fd = program < 0 ? -1 : wp_uprobe_open(pid, jump, false);

	if (fd >= 0 && wp_perf_set_bpf(fd, program) < 0)
		fail_msg("a uprobe takes no program");
	return fd;
}

/* What a pair costs beside the kernel's own uprobe, ns; 0: not measured. */
static double
ask_bare(struct running *v, int rounds)
{
	const int fd = open_bare(v->pid);
	double bare = 0;

	if (fd >= 0) {
		bare = ask(v, rounds);
		(void)close(fd);
	}
	return bare;
}

int
main(void)
{
	char pid[16], addr[32], line[4096];
	double without, bare, with;
	struct running v, w;
	struct outcome o;
	int rounds;

	start(&v, (const char *[]){victim("objects"), NULL});
	(void)snprintf(pid, sizeof(pid), "%d", v.pid);
	hear_address(&v, addr);
	rounds = find_rounds(&v);
	without = ask(&v, rounds);
	bare = ask_bare(&v, rounds);
	start(&w, (const char *[]){watchctl(), "-w", "alloc:item_new:8", "-o",
	    "json", "-p", pid, NULL});
	hear(&w, line, sizeof(line));
	if (strstr(line, "\"type\":\"start\"") == NULL)
		fail_msg("%s", line);
	with = ask(&v, rounds);
	bench_end(&v);
	finish(&w, &o);
	printf("alloc: a malloc and its free cost %.2f us, watched %.2f us\n",
	    without / 1e3, with / 1e3);
	if (bare > 0) {
		printf("alloc: that is %.2f x; a uprobe of free that does "
		    "nothing, %.2f us, is %.2f x\n", with / without,
		    bare / 1e3, bare / without);
		bench_tell("alloc", with / bare, "x", "the program with a "
		    "uprobe that does nothing", 1.3, 0);
	} else {
		bench_tell("alloc", with / without, "x", "the program that is "
		    "not watched", 1.5, 0);
	}
	return bench_status();
}
