/*
 * unseen: a word that is also written where a watch of it does not see.
 *
 *	unseen vfork N		by children of vfork(2)
 *	unseen kernel N		by read(2)
 *	unseen alias N		through another mapping, of the same memory
 *	unseen other N		by a process that has had the memory since
 *				before, and takes turns with this one in storing
 *	unseen peers N		by a child that has the memory, too, and takes
 *				turns with its parent in adding 1
 *	unseen past N		by process_vm_writev(2), and then adds 1
 *	unseen spawn N		by no one, but always a child of vfork(2) has
 *				the memory for a while, until it executes a
 *				program: for ever
 *	unseen wait MODE N	the same, begun and ended by a line on stdin
 *
 * The first three do, N times: a store by the program, another one unseen, and
 * one of several instructions by the program.  At the end each of the program's
 * writes is logged in a line, as race does: what it stored or added, and what
 * was there before.  Waiting, it first says "pid PID word ADDRESS" (and of
 * peers "pid CHILD peer ADDRESS", of the other process "pid OTHER other
 * ADDRESS"), and last "done N", how many lines there were.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "line.h"

enum { PAGE = 4096, WRITES_MAX = 8192 };

/* The first is used; it has a page of its own, over which others can be
   mapped. */
_Alignas(PAGE) volatile uint64_t word[PAGE / sizeof(uint64_t)];

/* The log, of all processes. */
static struct log {
	unsigned n;
	struct {
		pid_t pid;
		const char *operation;
		uint64_t stored, old;
	} write[WRITES_MAX];
} *log;
static volatile uint64_t *alias;
static int waits;

static void
note(const char *operation, uint64_t stored, uint64_t old)
{
	const unsigned n = log->n++;

	if (n == WRITES_MAX)
		abort();
	log->write[n].pid = getpid();
	log->write[n].operation = operation;
	log->write[n].stored = stored;
	log->write[n].old = old;
}

static void
put(uint64_t value, uint64_t old)
{
	__asm__ volatile("movq %1,%0" : "=m"(*word) : "r"(value));
	note("mov", value, old);
}

static void
add(uint64_t old)
{
	__asm__ volatile("addq $1,%0" : "+m"(*word));
	note("add", 1, old);
}

static void
exchange_add(void)
{
	uint64_t one = 1;

	__asm__ volatile("lock xaddq %0,%1" : "+r"(one), "+m"(*word));
	note("xadd", 1, one);
}

static void
write_by_child(uint64_t value)
{
	const pid_t pid = vfork();

	if (pid == 0) {
		*word = value;
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
}

static void
write_by_kernel(uint64_t value)
{
	static int fd[2];

	if ((fd[1] == 0 && pipe(fd) != 0) ||
	    write(fd[1], &value, sizeof(value)) != sizeof(value) ||
	    read(fd[0], (void *)(uintptr_t)word, sizeof(value)) !=
	    sizeof(value))
		abort();
}

static void
write_by_alias(uint64_t value)
{
	*alias = value;
}

/* What the other process is to store; it has. */
static _Atomic uint64_t ordered;

static int
store_as_ordered(void *arg)
{
	(void)arg;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (usleep(100) == 0) {
		if (ordered == 0)
			continue;
		*word = ordered;
		ordered = 0;
	}
	return 0;
}

static void
write_by_other(uint64_t value)
{
	ordered = value;
	while (ordered != 0)
		(void)usleep(100);
}

/* One that has all of the memory, and ends with this one. */
static void
make_other(void)
{
	static _Alignas(16) char stack[16384];
	const pid_t pid = clone(store_as_ordered, stack + sizeof(stack),
	    CLONE_VM | SIGCHLD, NULL);

	if (pid < 0)
		abort();
	if (waits) {
		printf("pid %d other %p\n", (int)pid,
		    (void *)(uintptr_t)word);
		(void)fflush(stdout);
	}
}

/* Programs that run for a while beside the next ones. */
static void
spawn_always(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		const pid_t pid = vfork();

		if (pid < 0)
			abort();
		if (pid == 0) {
			(void)usleep(10000);
			execl("/bin/sleep", "sleep", "0.3", (char *)NULL);
			_exit(127);
		}
	}
}

/* The word's page, with what is in it, from now on shared. */
static void
share(void)
{
	const int fd = memfd_create("word", 0);
	void *at = (void *)(uintptr_t)word;

	if (fd < 0 || write(fd, at, PAGE) != PAGE || mmap(at, PAGE,
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != at ||
	    (alias = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
	    0)) == MAP_FAILED)
		abort();
}

/* Numbers with low byte 0 are distinct from what is added to them. */
static void
work(void (*unseen)(uint64_t), unsigned n)
{
	uint64_t last = *word;

	for (unsigned i = 1; i <= n; i++) {
		const uint64_t mine = (uint64_t)i << 16;
		/* now and then what was there before the store */
		const uint64_t other = i % 4 == 3 ? last : mine + 0x8000;

		put(mine, last);
		unseen(other);
		switch (i % 4) {
		case 0:
			add(other);
			last = other + 1;
			break;
		case 1:
			exchange_add();
			last = other + 1;
			break;
		default:
			/* what it would seem to have been */
			last = i % 4 == 2 ? mine : mine + 0x4000;
			put(last, other);
		}
	}
}

static void
add_to_what_came_past(unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		uint64_t value = (uint64_t)i << 16;
		const struct iovec from = {&value, sizeof(value)};
		const struct iovec to = {(void *)(uintptr_t)word,
		    sizeof(value)};

		if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) !=
		    sizeof(value))
			abort();
		add(value);
	}
}

static void
store_by_turns(unsigned n)
{
	uint64_t last = *word;

	for (unsigned i = 1; i <= n; i++) {
		const uint64_t mine = (uint64_t)i << 16;

		put(mine, last);
		last = mine + 0x8000;
		write_by_other(last);
	}
}

/* By turns: each waits for the other's byte. */
static void
take_turns(int in, int out, int first, unsigned n)
{
	char byte = 0;

	for (unsigned i = 0; i < n; i++) {
		if ((i > 0 || !first) && read(in, &byte, 1) != 1)
			abort();
		add(*word);
		if (write(out, &byte, 1) != 1)
			abort();
	}
}

static void
await_turn(void)
{
	if (waits && !await_line())
		exit(1);
}

static void
add_by_turns(unsigned n)
{
	int there[2], back[2], start[2];
	char byte = 0;
	pid_t pid;

	if (pipe(there) != 0 || pipe(back) != 0 || pipe(start) != 0 ||
	    (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		(void)close(start[1]);
		if (read(start[0], &byte, 1) != 1)
			_exit(1);
		take_turns(there[0], back[1], 0, n);
		_exit(0);
	}
	if (waits) {
		printf("pid %d peer %p\n", (int)pid, (void *)(uintptr_t)word);
		(void)fflush(stdout);
	}
	await_turn();
	if (write(start[1], &byte, 1) != 1)
		abort();
	take_turns(back[0], there[1], 1, n);
	(void)waitpid(pid, NULL, 0);
}

static void
tell(void)
{
	for (unsigned i = 0; i < log->n; i++)
		printf("write %d %s|%#llx|%#llx\n", (int)log->write[i].pid,
		    log->write[i].operation,
		    (unsigned long long)log->write[i].stored,
		    (unsigned long long)log->write[i].old);
	if (waits)
		printf("done %u\n", log->n);
	(void)fflush(stdout);
}

int
main(int argc, char **argv)
{
	const char *mode;
	unsigned n;

	waits = argc > 1 && strcmp(argv[1], "wait") == 0;
	if (argc != 3 + waits)
		return 2;
	mode = argv[1 + waits];
	n = (unsigned)atoi(argv[2 + waits]);
	log = mmap(NULL, sizeof(*log), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (log == MAP_FAILED)
		return 2;
	if (strcmp(mode, "alias") == 0 || strcmp(mode, "peers") == 0)
		share();
	if (waits) {
		printf("pid %d word %p\n", (int)getpid(),
		    (void *)(uintptr_t)word);
		(void)fflush(stdout);
	}
	if (strcmp(mode, "peers") == 0) {
		add_by_turns(n);
	} else if (strcmp(mode, "past") == 0) {
		add_to_what_came_past(n);
	} else if (strcmp(mode, "spawn") == 0) {
		spawn_always();
	} else if (strcmp(mode, "other") == 0) {
		make_other();
		await_turn();
		store_by_turns(n);
	} else {
		await_turn();
		work(strcmp(mode, "vfork") == 0 ? write_by_child :
		    strcmp(mode, "kernel") == 0 ? write_by_kernel :
		    write_by_alias, n);
	}
	tell();
	await_turn();
	return 0;
}
