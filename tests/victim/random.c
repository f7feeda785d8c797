/*
 * random: accesses memory in random ways, and logs what it does.
 *
 *	random LOG SEED ACCESSES KINDS OFFSET:LENGTH...
 *
 * Most of the accesses touch one of the given bytes of the window in `arena`.
 * KINDS are letters: k system calls, t threads that take turns, c threads that
 * contend, v vfork, f fork, s the arena is shared memory, and children of f
 * write there.
 *
 * How is the truth known without looking at what may be watched?  There is a
 * twin of the arena: whatever is to be done is done to the twin first, and what
 * that did is logged.  Threads that contend store values of which each is
 * unique, and log what an exchange loaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/random_log.h"
#include "random_forms.h"

enum {
	ARENA = 4096,
	WORKERS = 3,
	WATCHES = 4,
	ALTERNATE = 64 << 10,	/* bytes of a signal stack */
	CONTENDED = 12,		/* accesses of a thread in one phase */
};

uint8_t arena[ARENA] __attribute__((aligned(ARENA)));
static uint8_t twin[ARENA] __attribute__((aligned(ARENA)));

static struct random_log *log_;
static _Atomic uint32_t *logged;
static const char *kinds;
static uint64_t state;		/* of the random numbers */
static uint32_t phase;
static uint32_t child;		/* RANDOM_CHILD, in one */
static struct {
	unsigned offset, len;
} watch[WATCHES];
static unsigned nwatches;
static int file, feed[2], talk[2], ready;

static uint64_t
next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static unsigned
below(unsigned n)
{
	return (unsigned)(next_random() >> 33) % n;
}

static bool
has(char kind)
{
	return strchr(kinds, kind) != NULL;
}

/* --- the log --- */

static struct random_access *
log_next(const char *form)
{
	uint32_t i = atomic_fetch_add(logged, 1);
	struct random_access *a;

	if (i >= log_->max)
		_exit(3);
	a = &log_->access[i];
	a->pid = getpid();
	a->tid = gettid();
	a->flags = child;
	a->phase = phase;
	(void)strncpy(a->form, form, sizeof(a->form) - 1);
	return a;
}

static bool
is_full(void)
{
	/* a phase may add some */
	return atomic_load(logged) + 200 >= log_->max;
}

/* The window's bytes among len at an offset, which may lie outside. */
static uint64_t
bits(int offset, int len)
{
	uint64_t mask = 0;

	for (int i = offset; i < offset + len; i++)
		if (i >= 0 && i < RANDOM_WINDOW)
			mask |= UINT64_C(1) << i;
	return mask;
}

static void
look_before(struct random_access *a)
{
	memcpy(a->before, twin + RANDOM_BEFORE, RANDOM_WINDOW);
	a->known_before = UINT64_MAX;
}

static void
look_after(struct random_access *a)
{
	memcpy(a->after, twin + RANDOM_BEFORE, RANDOM_WINDOW);
	a->known_after = UINT64_MAX;
}

/* --- instructions --- */

/* An offset so that some of those bytes are some of a watch's, mostly. */
static int
choose_offset(const struct bytes *b)
{
	const unsigned w = below(nwatches);
	int at = (int)(watch[w].offset + below(watch[w].len)) - b->offset -
	    (b->len == 0 ? 0 : (int)below(b->len));

	if (below(8) == 0)
		at = (int)below(2 * RANDOM_WINDOW) - RANDOM_WINDOW / 2;
	return (at + RANDOM_BEFORE) / b->align * b->align - RANDOM_BEFORE;
}

static void
log_bytes(struct random_access *a, const struct bytes *b, uint64_t mask)
{
	if (b->mode == 'r' || b->mode == 'm')
		a->loads |= mask;
	if (b->mode == 'w' || b->mode == 'm')
		a->stores |= mask;
}

/* The elements of p that a mask leaves. */
static uint64_t
masked(const struct form *f, int offset, const struct operands *x)
{
	const int unit = f->flags >> FORM_UNIT_SHIFT & 0xff;
	uint64_t mask = 0;

	for (int i = 0; i < f->p.len / unit; i++)
		if ((f->flags & FORM_MASK_C) != 0 ? x->c >> i & 1 :
		    x->v[64 + unit * (i + 1) - 1] >> 7)
			mask |= bits(offset + i * unit, unit);
	return mask;
}

static void
log_operands(struct random_access *a, const struct form *f, int p, int q,
    bool q_inside, const struct operands *x)
{
	const uint64_t all = bits(p + f->p.offset, f->p.len);

	if ((f->flags & (FORM_MASK_C | FORM_MASK_V)) != 0) {
		log_bytes(a, &f->p, masked(f, p + f->p.offset, x));
		a->maybe = all;
	} else {
		log_bytes(a, &f->p, all);
	}
	if (q_inside)
		log_bytes(a, &f->q, bits(q + f->q.offset, f->q.len));
	a->flags |= f->flags & FORM_REPEATED;
}

static void
choose_values(struct operands *x, const struct form *f, int p, uint8_t v[128])
{
	static const uint64_t plain[] = {0, 1, 2, 0x80, 0xffff, UINT64_MAX};
	const uint8_t *at = twin + RANDOM_BEFORE + p;

	for (unsigned i = 0; i < 128; i += 8) {
		uint64_t r = next_random();

		memcpy(v + i, &r, sizeof(r));
	}
	x->v = v;
	x->a = next_random();
	x->c = next_random() & (below(2) == 0 ? UINT64_MAX : 0xff);
	x->d = next_random();
	if (below(4) == 0)
		x->c = plain[below(6)];
	if ((f->flags & FORM_COMPARES) != 0 && below(2) == 0) {
		memcpy(&x->a, at, sizeof(x->a));
		memcpy(&x->d, at + 8, sizeof(x->d));
	}
}

static bool
is_supported(const struct form *f)
{
	return ((f->flags & FORM_AVX) == 0 || __builtin_cpu_supports("avx")) &&
	    ((f->flags & FORM_AVX2) == 0 || __builtin_cpu_supports("avx2")) &&
	    ((f->flags & FORM_SSE4) == 0 ||
	    __builtin_cpu_supports("sse4.2")) &&
	    ((f->flags & FORM_MOVBE) == 0 || __builtin_cpu_supports("movbe")) &&
	    ((f->flags & FORM_CLZERO) == 0 ||
	    __builtin_cpu_supports("clzero")) &&
	    ((f->flags & FORM_F16C) == 0 || __builtin_cpu_supports("f16c")) &&
	    ((f->flags & FORM_AVX512) == 0 ||
	    (__builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl")));
}

static void
execute(const struct form *f)
{
	uint8_t aside[256] __attribute__((aligned(64))), v[128];
	const int p = choose_offset(&f->p), q = choose_offset(&f->q);
	const bool q_inside = f->q.mode != 0 && below(2) == 0;
	struct random_access *a = log_next(f->name);
	struct operands x, y;

	choose_values(&x, f, p, v);
	memcpy(aside, v, sizeof(v));
	y = x;
	log_operands(a, f, p, q, q_inside, &x);
	x.p = twin + RANDOM_BEFORE + p;
	y.p = arena + RANDOM_BEFORE + p;
	x.q = q_inside ? twin + RANDOM_BEFORE + q : aside + 128;
	y.q = q_inside ? arena + RANDOM_BEFORE + q : aside + 128;
	look_before(a);
	f->run(&x);
	look_after(a);
	a->pc = x.pc;
	a->end = x.end;
	f->run(&y);
}

static const struct form *
form_named(const char *name)
{
	const struct form *const *f = __start_forms;

	while (strcmp((*f)->name, name) != 0)
		f++;
	return *f;
}

/* A store to some bytes of the window that are watched. */
static struct random_access *
store(unsigned offset, const char *name)
{
	const struct form *f = form_named(name);
	struct random_access *a = log_next(name);
	struct operands x = {.c = next_random()}, y = x;

	log_bytes(a, &f->p, bits((int)offset, f->p.len));
	x.p = twin + RANDOM_BEFORE + offset;
	y.p = arena + RANDOM_BEFORE + offset;
	look_before(a);
	f->run(&x);
	look_after(a);
	a->pc = x.pc;
	a->end = x.end;
	f->run(&y);
	return a;
}

/* --- system calls --- */

/* Where the last one was made, in this thread; the lock is held, or the thread
   is the only one. */
static struct {
	uint64_t pc, end;
} entered;

/* The number is set before the call, as C libraries do it. */
#define CALL6(number_, a, b, c, d, e, f) ({				\
	register long r10_ __asm__("r10") = (long)(d);			\
	register long r8_ __asm__("r8") = (long)(e);			\
	register long r9_ __asm__("r9") = (long)(f);			\
	long result_;							\
									\
	__asm__ volatile("leaq 771f(%%rip),%%rcx\n\t"			\
	    "movq %%rcx,%1\n\tleaq 772f(%%rip),%%rcx\n\t"		\
	    "movq %%rcx,%2\n\tmovl %3,%%eax\n771:\tsyscall\n772:"	\
	    : "=&a"(result_), "=m"(entered.pc), "=m"(entered.end) :	\
	    "i"(number_), "D"((long)(a)), "S"((long)(b)),		\
	    "d"((long)(c)), "r"(r10_), "r"(r8_), "r"(r9_) : "rcx",	\
	    "r11", "memory");						\
	result_;							\
})
#define CALL(...) CALL_(__VA_ARGS__, 0, 0, 0, 0, 0)
#define CALL_(n, a, b, c, d, e, f, ...) CALL6(n, a, b, c, d, e, f)

/* What a system call does to the bytes at an address. */
struct effect {
	unsigned loads, stores;		/* bytes, */
	unsigned from;			/* those stored from there on */
};

static void
drain(int fd, size_t n)
{
	uint8_t aside[512];

	if (read(fd, aside, n) != (ssize_t)n)
		_exit(4);
}

#define ADDRESS(x) (long)(uintptr_t)(x)
#define EXPECT(result, wanted) do {					\
	if ((result) != (long)(wanted))					\
		_exit(5);						\
} while (0)

static struct effect
call_pread(uint8_t *p, unsigned n, const uint8_t *v)
{
	EXPECT(CALL(SYS_pread64, file, ADDRESS(p), n, v[0]), n);
	return (struct effect){.stores = n};
}

/* It asks for more than there is. */
static struct effect
call_read(uint8_t *p, unsigned n, const uint8_t *v)
{
	EXPECT(write(feed[1], v, n), n);
	EXPECT(CALL(SYS_read, feed[0], ADDRESS(p), n + v[0] % 9), n);
	return (struct effect){.stores = n};
}

static struct effect
call_readv(uint8_t *p, unsigned n, const uint8_t *v)
{
	const unsigned first = n / 2;
	const struct iovec part[2] = {{p, first}, {p + first, n - first}};

	EXPECT(CALL(SYS_preadv, file, ADDRESS(part), 2, v[0]), n);
	return (struct effect){.stores = n};
}

static struct effect
call_recvfrom(uint8_t *p, unsigned n, const uint8_t *v)
{
	EXPECT(send(talk[1], v, n, 0), n);
	EXPECT(CALL(SYS_recvfrom, talk[0], ADDRESS(p), n + v[0] % 9), n);
	return (struct effect){.stores = n};
}

static struct effect
call_recvmsg(uint8_t *p, unsigned n, const uint8_t *v)
{
	struct iovec part = {p, n + v[0] % 9};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};

	EXPECT(send(talk[1], v, n, 0), n);
	EXPECT(CALL(SYS_recvmsg, talk[0], ADDRESS(&m)), n);
	return (struct effect){.stores = n};
}

static struct effect
call_fstat(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)n, (void)v;
	EXPECT(CALL(SYS_fstat, file, ADDRESS(p)), 0);
	return (struct effect){.stores = sizeof(struct stat)};
}

static struct effect
call_sigprocmask(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)n, (void)v;
	EXPECT(CALL(SYS_rt_sigprocmask, SIG_BLOCK, 0, ADDRESS(p), 8), 0);
	return (struct effect){.stores = 8};
}

static struct effect
call_prlimit(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)n;
	EXPECT(CALL(SYS_prlimit64, 0, v[0] % 8, 0, ADDRESS(p)), 0);
	return (struct effect){.stores = 16};
}

static struct effect
call_getitimer(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)n;
	EXPECT(CALL(SYS_getitimer, v[0] % 3, ADDRESS(p)), 0);
	return (struct effect){.stores = 32};
}

static struct effect
call_getsockopt(uint8_t *p, unsigned n, const uint8_t *v)
{
	int len = 4;

	(void)n, (void)v;
	EXPECT(CALL(SYS_getsockopt, talk[0], SOL_SOCKET, SO_TYPE, ADDRESS(p),
	    ADDRESS(&len)), 0);
	return (struct effect){.stores = 4};
}

static struct effect
call_ioctl(uint8_t *p, unsigned n, const uint8_t *v)
{
	EXPECT(write(feed[1], v, n), n);
	EXPECT(CALL(SYS_ioctl, feed[0], FIONREAD, ADDRESS(p)), 0);
	drain(feed[0], n);
	return (struct effect){.stores = 4};
}

static struct effect
call_epoll_wait(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)n, (void)v;
	EXPECT(CALL(SYS_epoll_wait, ready, ADDRESS(p), 1, 0), 1);
	return (struct effect){.stores = 12};
}

/* The same descriptors each time. */
static struct effect
call_pipe2(uint8_t *p, unsigned n, const uint8_t *v)
{
	int fd[2];

	(void)n, (void)v;
	EXPECT(CALL(SYS_pipe2, ADDRESS(p), 0), 0);
	memcpy(fd, p + (twin - arena) * (p < twin || p >= twin + ARENA),
	    sizeof(fd));
	(void)close(fd[0]);
	(void)close(fd[1]);
	return (struct effect){.stores = 8};
}

static struct effect
call_readlink(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)v;
	EXPECT(CALL(SYS_readlink, ADDRESS("/dev/fd"), ADDRESS(p), n),
	    n < 13 ? n : 13);	/* /proc/self/fd */
	return (struct effect){.stores = n < 13 ? n : 13};
}

static struct effect
call_write(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)v;
	EXPECT(CALL(SYS_write, feed[1], ADDRESS(p), n), n);
	drain(feed[0], n);
	return (struct effect){.loads = n};
}

static struct effect
call_sendto(uint8_t *p, unsigned n, const uint8_t *v)
{
	(void)v;
	EXPECT(CALL(SYS_sendto, talk[1], ADDRESS(p), n), n);
	drain(talk[0], n);
	return (struct effect){.loads = n};
}

static struct effect
call_futex_wait(uint8_t *p, unsigned n, const uint8_t *v)
{
	uint32_t word;

	(void)n, (void)v;
	p -= (uintptr_t)p % 4;
	memcpy(&word, p < twin || p >= twin + ARENA ? p + (twin - arena) : p,
	    sizeof(word));
	EXPECT(CALL(SYS_futex, ADDRESS(p), FUTEX_WAIT_PRIVATE, (int)~word),
	    -EAGAIN);
	return (struct effect){.loads = 4};
}

static struct effect
call_futex_op(uint8_t *p, unsigned n, const uint8_t *v)
{
	static uint32_t nobody;

	(void)n, (void)v;
	p -= (uintptr_t)p % 4;
	EXPECT(CALL(SYS_futex, ADDRESS(&nobody), FUTEX_WAKE_OP_PRIVATE, 1, 1,
	    ADDRESS(p), FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0)), 0);
	return (struct effect){.loads = 4, .stores = 4};
}

static const struct {
	const char *name;
	struct effect (*call)(uint8_t *, unsigned, const uint8_t *);
	unsigned align;
} calls[] = {
	{"pread64", call_pread, 1}, {"read", call_read, 1},
	{"preadv", call_readv, 1}, {"recvfrom", call_recvfrom, 1},
	{"recvmsg", call_recvmsg, 1}, {"fstat", call_fstat, 1},
	{"rt_sigprocmask", call_sigprocmask, 1},
	{"prlimit64", call_prlimit, 1}, {"getitimer", call_getitimer, 1},
	{"getsockopt", call_getsockopt, 1}, {"ioctl", call_ioctl, 1},
	{"epoll_wait", call_epoll_wait, 1}, {"pipe2", call_pipe2, 1},
	{"readlink", call_readlink, 1}, {"write", call_write, 1},
	{"sendto", call_sendto, 1}, {"futex wait", call_futex_wait, 4},
	{"futex wake op", call_futex_op, 4},
};

static void
ask_kernel(void)
{
	const unsigned i = below(sizeof(calls) / sizeof(calls[0]));
	const unsigned n = 2 + below(39);
	const struct bytes b = {.len = (uint16_t)n,
	    .align = (uint16_t)calls[i].align};
	const int at = choose_offset(&b);
	struct random_access *a = log_next(calls[i].name);
	struct effect does;
	uint8_t v[64];

	for (unsigned k = 0; k < sizeof(v); k++)
		v[k] = (uint8_t)next_random();
	look_before(a);
	(void)calls[i].call(twin + RANDOM_BEFORE + at, n, v);
	look_after(a);
	does = calls[i].call(arena + RANDOM_BEFORE + at, n, v);
	a->pc = entered.pc;
	a->end = entered.end;
	a->loads = bits(at, (int)does.loads);
	a->stores = bits(at, (int)does.stores);
	a->flags |= RANDOM_BY_KERNEL;
}

/* --- phases --- */

/* What may be sampled more than once, or not at all, is followed by what shows
   that it is over. */
static void
access_some(unsigned n)
{
	const unsigned nforms = (unsigned)(__stop_forms - __start_forms);

	while (n-- > 0 && !is_full()) {
		const struct form *f = __start_forms[below(nforms)];

		if (has('k') && below(8) == 0) {
			ask_kernel();
			(void)store(watch[0].offset, "movb");
		} else if (is_supported(f)) {
			execute(f);
			if ((f->flags & (FORM_REPEATED | FORM_MASK_C |
			    FORM_MASK_V)) != 0)
				(void)store(watch[0].offset, "movb");
		}
	}
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_here;
static char wanted;		/* what workers are to do next; 'e': end */
static unsigned word;		/* that they contend for: its offset */
static atomic_uint unique;

static void
take_turns(void)
{
	for (unsigned i = 0; i < 8; i++) {
		(void)pthread_mutex_lock(&turn);
		access_some(1 + below(3));
		(void)pthread_mutex_unlock(&turn);
	}
}

static void
put8(uint8_t to[RANDOM_WINDOW], uint64_t *known, uint64_t value)
{
	memcpy(to + word, &value, sizeof(value));
	*known = bits((int)word, 8);
}

/* One operation, and what it shows of the word. */
static void
contend_once(const char *name, uint64_t *seen)
{
	const uint64_t value = (uint64_t)(atomic_fetch_add(&unique, 1) + 1)
	    << 16;
	const struct form *f = form_named(name);
	struct operands x = {.p = arena + RANDOM_BEFORE + word, .c = value};
	struct random_access *a = log_next(name);

	a->flags |= RANDOM_CONTENDED;
	log_bytes(a, &f->p, bits((int)word, 8));
	if (strcmp(name, "lock_xaddq") == 0)
		x.c = 1;
	if (strcmp(name, "lock_cmpxchgq") == 0)
		x.a = *seen;
	f->run(&x);
	a->pc = x.pc;
	a->end = x.end;
	if (strcmp(name, "movq") == 0) {
		put8(a->after, &a->known_after, value);
	} else if (strcmp(name, "xchgq") == 0) {
		put8(a->before, &a->known_before, *seen = x.c);
		put8(a->after, &a->known_after, value);
	} else if (strcmp(name, "lock_xaddq") == 0) {
		put8(a->before, &a->known_before, *seen = x.c);
		put8(a->after, &a->known_after, x.c + 1);
	} else if (strcmp(name, "lock_cmpxchgq") == 0) {
		put8(a->before, &a->known_before, x.a);
		put8(a->after, &a->known_after, x.a == *seen ? value : x.a);
		*seen = x.a;
	}
}

static void
contend(uint64_t *own)
{
	static const char *const names[] = {"movq", "xchgq", "lock_xaddq",
	    "lock_incq", "lock_cmpxchgq", "lock_incq"};
	uint64_t seen = 0;

	for (unsigned i = 0; i < CONTENDED; i++) {
		*own = *own * 6364136223846793005u + 1442695040888963407u;
		contend_once(names[(*own >> 33) % 6], &seen);
	}
}

/* Handlers of signals are to find a stack, wherever the stack pointer is. */
static void
make_signal_stack(void)
{
	stack_t s = {.ss_sp = malloc(ALTERNATE), .ss_size = ALTERNATE};

	if (s.ss_sp == NULL || sigaltstack(&s, NULL) != 0)
		_exit(6);
}

static void *
work(void *arg)
{
	uint64_t own = (uintptr_t)arg * 977 + 1;

	make_signal_stack();
	for (;;) {
		(void)pthread_barrier_wait(&all_here);
		if (wanted == 'e')
			return NULL;
		if (wanted == 't')
			take_turns();
		else
			contend(&own);
		(void)pthread_barrier_wait(&all_here);
	}
}

/* Have all workers do something; this thread waits. */
static void
together(char what)
{
	wanted = what;
	(void)pthread_barrier_wait(&all_here);
	(void)pthread_barrier_wait(&all_here);
}

/* What the threads left is not known; so store something else there. */
static void
contend_all(void)
{
	const unsigned w = below(nwatches);

	word = (watch[w].offset + below(watch[w].len)) & ~7u;
	together('c');
	phase++;
	store(word, "movq")->known_before = ~bits((int)word, 8);
}

static void
in_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		child = RANDOM_CHILD;
		access_some(1 + below(3));
		_exit(0);
	}
	child = 0;
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(7);
}

/* The child goes other ways than its parent: it has drawn numbers. */
static void
in_fork(void)
{
	pid_t pid;
	int status;

	(void)next_random();
	pid = fork();
	if (pid == 0) {
		child = RANDOM_CHILD;
		access_some(1 + below(6));
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		_exit(8);
	(void)next_random();
}

static void
go_on(void)
{
	static const char all[] = "tcvf";
	const char kind = all[below(4)];

	phase++;
	access_some(1 + below(30));
	phase++;
	if (!has(kind) || is_full())
		return;
	switch (kind) {
	case 't':
		together('t');
		break;
	case 'c':
		contend_all();
		break;
	case 'v':
		in_vfork();
		break;
	default:
		in_fork();
	}
}

static void *
must_map(void *at, size_t len, int flags, int fd)
{
	void *to = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | flags,
	    fd, 0);

	if (to == MAP_FAILED)
		_exit(9);
	return to;
}

static void
open_log(const char *path, unsigned max)
{
	const size_t size = sizeof(*log_) + max * sizeof(log_->access[0]);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
		_exit(10);
	log_ = must_map(NULL, size, 0, fd);
	log_->max = max;
	log_->arena = (uintptr_t)arena + RANDOM_BEFORE;
	logged = (_Atomic uint32_t *)&log_->n;
	(void)close(fd);
}

static void
open_files(void)
{
	struct epoll_event event = {
		.events = EPOLLOUT, .data.u64 = 0x1122334455,
	};
	uint8_t text[512];

	for (unsigned i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)next_random();
	file = memfd_create("random", MFD_CLOEXEC);
	ready = epoll_create1(EPOLL_CLOEXEC);
	if (file < 0 || write(file, text, sizeof(text)) != sizeof(text) ||
	    pipe2(feed, O_CLOEXEC) != 0 || ready < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, talk) != 0 ||
	    epoll_ctl(ready, EPOLL_CTL_ADD, feed[1], &event) != 0)
		_exit(11);
}

static void
work_all(void)
{
	pthread_t thread[WORKERS];
	const bool threads = has('t') || has('c');

	(void)pthread_barrier_init(&all_here, NULL, WORKERS + 1);
	for (uintptr_t i = 0; threads && i < WORKERS; i++)
		if (pthread_create(&thread[i], NULL, work, (void *)i) != 0)
			_exit(12);
	while (!is_full())
		go_on();
	if (!threads)
		return;
	wanted = 'e';
	(void)pthread_barrier_wait(&all_here);
	for (unsigned i = 0; i < WORKERS; i++)
		(void)pthread_join(thread[i], NULL);
}

int
main(int argc, char **argv)
{
	if (argc < 6 || argc > 5 + WATCHES)
		return 2;
	state = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15 + 1;
	kinds = argv[4];
	for (; argv[5 + nwatches] != NULL; nwatches++)
		if (sscanf(argv[5 + nwatches], "%u:%u",
		    &watch[nwatches].offset, &watch[nwatches].len) != 2)
			return 2;
	open_log(argv[1], (unsigned)atoi(argv[3]) + 200);
	if (has('s')) {
		(void)must_map(arena, ARENA, MAP_FIXED | MAP_ANONYMOUS, -1);
		(void)must_map(twin, ARENA, MAP_FIXED | MAP_ANONYMOUS, -1);
	}
	open_files();
	make_signal_stack();
	work_all();
	/* who has stored beside the window has done so to both */
	return memcmp(twin, arena, RANDOM_BEFORE) == 0 &&
	    memcmp(twin + RANDOM_BEFORE + RANDOM_WINDOW,
	    arena + RANDOM_BEFORE + RANDOM_WINDOW,
	    ARENA - RANDOM_BEFORE - RANDOM_WINDOW) == 0 ? 0 : 20;
}
