/*
 * inside_report: the reports on programs that watch themselves, written by the
 * helper that their library starts.
 *
 * The programs are children of this one.  They write marks into the file that
 * the reports go to, so that the order of both can be checked.
 */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explainers.h"
#include "live.h"
#include "scratch.h"
#include "handler/watches.h"
#include "arming/helper.h"
#include "program/table.h"
#include "watching.h"

#ifdef __clang__
#define OWN __attribute__((noinline))
#else
#define OWN __attribute__((noinline, noclone))
#endif
static volatile long word;
static _Alignas(16) struct {
	volatile long a, b, c, d;
} quad;

/* --- what the programs do --- */

OWN static void
store(long value)
{
	word = value;
	__asm__ volatile("");
}

static void
mark(const char *text)
{
	int fd = open(getenv("WATCHPOINT_OUTPUT"),
	    O_WRONLY | O_APPEND | O_CREAT, 0666);
	char line[256];
	int n = snprintf(line, sizeof(line),
	    "{\"type\":\"mark\",\"text\":\"%s\"}\n", text);

	if (fd < 0 || write(fd, line, (size_t)n) != n || close(fd) != 0)
		_exit(99);
}

static struct wp_watch *
open_attr(struct wp_attr attr)
{
	struct wp_watch *w;

	attr.size = sizeof(attr);
	if (attr.addr == NULL)
		attr.addr = &word;
	attr.len = sizeof(word);
	if (wp_open(&attr, &w) < 0) {
		(void)fprintf(stderr, "wp_open: %s\n", wp_cause());
		_exit(98);
	}
	return w;
}

#define open_watch(...) open_attr((struct wp_attr){__VA_ARGS__})

static void
block(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTRAP);
	(void)sigprocmask(how, &set, NULL);
}

/* --- programs, and what is reported of them --- */

enum { ENDS = 0, EXITS };	/* by _exit(2), or by exit(3) */

/* Start one; its stderr, which the helper has too, is a pipe. */
static pid_t
start_program(void (*fn)(void), int how, int *err)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	(void)fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(fds[1], 2);
		fn();
		if (how == EXITS)
			exit(0);
		_exit(0);
	}
	(void)close(fds[1]);
	*err = fds[0];
	return pid;
}

/* Run one; its helper ends when nobody has its stderr any more.  The report may
   have lines of the library's in it. */
static void
run_with_lines(struct outcome *o, void (*fn)(void), int how)
{
	struct running r = {.in = -1};

	(void)unlink(getenv("WATCHPOINT_OUTPUT"));
	r.pid = start_program(fn, how, &r.err);
	r.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	finish(&r, o);
	outcome_take(o, getenv("WATCHPOINT_OUTPUT"));
}

static void
run_program(struct outcome *o, void (*fn)(void), int how)
{
	run_with_lines(o, fn, how);
	if (o->lines == NULL)
		fail_msg("no report in JSON: %s%s", report_of(o), o->err);
}

static const char *
type_at(const struct outcome *o, size_t i)
{
	const json_t *line = json_array_get(o->lines, i);

	return line == NULL ? "" : text_of(line, "type");
}

/* All in order, and the account comes out even. */
static void
expect_account(const struct outcome *o, json_int_t hits, json_int_t lost)
{
	const json_t *end = account_of(o);

	if (number_of(end, "hits") != hits + lost ||
	    number_of(end, "lost") != lost)
		fail_msg("not %lld hits and %lld lost: %s%s", (long long)hits,
		    (long long)lost, report_of(o), o->err);
	for (size_t i = 0; i < (size_t)hits; i++)
		assert_int_equal(number_of(hit_at(o, i), "seq"), i + 1);
}

/* --- the order --- */

static void
stores_and_marks(void)
{
	if (WP_WATCH(word) < 0)
		_exit(98);
	for (int i = 0; i < 5; i++) {
		mark("before");
		store(i);
	}
	mark("end");
}

TEST(a_hit_is_reported_before_the_program_goes_on)
{
	struct outcome o;
	size_t at = 3;		/* behind start, watch and the first mark */

	run_program(&o, stores_and_marks, EXITS);
	assert_int_equal(o.status, 0);
	assert_string_equal(o.err, "");
	/* a program does not wait for the report to begin */
	for (size_t i = 0; i < at; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(type_at(&o, k), type_at(&o, i));
	for (size_t i = 0; i < at; i++)
		assert_string_not_equal(type_at(&o, i), "hit");
	assert_string_equal(text_of(first_of(&o, "start"), "mode"), "inside");
	assert_int_equal(count_of(&o, "mark"), 6);
	for (int i = 0; i < 5; i++) {
		const json_t *hit = hit_at(&o, (size_t)i);

		if (i > 0)
			assert_string_equal(type_at(&o, at++), "mark");
		assert_ptr_equal(json_array_get(o.lines, at++), hit);
		expect_function(hit, 0, "store");
		expect_function(hit, 1, "stores_and_marks");
	}
	assert_string_equal(type_at(&o, at), "mark");
	expect_account(&o, 5, 0);
}

static void
watches_by_signals(void)
{
	(void)setenv("WATCHPOINT_DELIVERY", "async", 1);
	if (WP_WATCH(word) < 0)
		_exit(98);
	store(1);
}

/* What the macro itself blocks while it opens a watch is not what the program
   does. */
TEST(a_macro_warns_of_nothing_that_it_does)
{
	struct outcome o;

	run_program(&o, watches_by_signals, EXITS);
	if (strstr(report_of(&o), "blocked") != NULL ||
	    strstr(o.err, "blocked") != NULL)
		fail_msg("%s%s", report_of(&o), o.err);
	expect_account(&o, 1, 0);
}

/* --- a block --- */

OWN static void
store_to(volatile long *to, long value)
{
	*to = value;
	__asm__ volatile("");
}

static jmp_buf outside;

OWN static void
watches_a_local(int how)
{
	volatile long local = 0;

	store_to(&local, 1);
	WP_SCOPE(local) {
		store_to(&local, 10 + how);
		if (how == 1)
			return;
		if (how == 2)
			break;
		if (how == 3)
			goto out;
		if (how == 4)
			longjmp(outside, 1);
		WP_SCOPE(local)
			store_to(&local, 20);
		store_to(&local, 30);
	}
	store_to(&local, 2);
out:
	store_to(&local, 3);
}

/* Where the local was, another is. */
static void
watches_locals(void)
{
	for (volatile int how = 0; how <= 4; how++) {
		if (setjmp(outside) == 0)
			watches_a_local(how);
		store_to(&word, how);
	}
	mark("end");
}

TEST(a_local_is_watched_in_its_block)
{
	static const char *const values[] = {
		"0xa", "0x14", "0x1e", "0xb", "0xc", "0xd", "0xe",
	};
	struct outcome o;

	run_program(&o, watches_locals, EXITS);
	assert_int_equal(o.status, 0);
	assert_string_equal(o.err, "");
	for (size_t i = 0; i < COUNT(values); i++) {
		assert_string_equal(text_of(hit_at(&o, i), "new"), values[i]);
		expect_function(hit_at(&o, i), 0, "store_to");
		expect_function(hit_at(&o, i), 1, "watches_a_local");
	}
	expect_account(&o, COUNT(values), 0);
}

/* --- blocks of the heap --- */

struct node {
	struct node *next;
	volatile long value;
};

OWN static void
drop(void *block)
{
	free(block);
}

static void *
drop_in_thread(void *block)
{
	drop(block);
	return NULL;
}

/* What the compiler knows of a block, it may leave out. */
OWN static void *
block_of(size_t size)
{
	return calloc(1, size);
}

/* While one is watched, another is freed. */
static void
watches_blocks(void)
{
	struct node *node = block_of(sizeof(*node)), *other = block_of(40);
	pthread_t thread;

	if (WP_WATCH_HEAP(node, node->value) != 0)
		_exit(97);
	store_to(&node->value, 10);
	drop(other);
	store_to(&node->value, 11);
	drop(node);
	node = block_of(sizeof(*node));	/* the same, usually */
	store_to(&node->value, 1);
	if (WP_WATCH_HEAP(&node->next) != 0 ||	/* it begins there */
	    WP_WATCH_HEAP(&node->next) != 0)	/* already */
		_exit(97);
	node->next = node;
	node = realloc(node, 4096);
	node->next = NULL;
	if (WP_WATCH_HEAP(node, node->value) != 0)
		_exit(97);
	store_to(&node->value, 12);
	if (pthread_create(&thread, NULL, drop_in_thread, node) != 0 ||
	    pthread_join(thread, NULL) != 0)
		_exit(97);
	node = block_of(4096);
	if (WP_WATCH_HEAP(node, node->value) != 0)
		_exit(97);
	store_to(&node->value, 13);
	if (WP_UNWATCH(node->value) != 0 || WP_UNWATCH(node->value) == 0)
		_exit(97);
	store_to(&node->value, 2);
	drop(node);
}

static void
watches_blocks_by_signals(void)
{
	(void)setenv("WATCHPOINT_DELIVERY", "async", 1);
	watches_blocks();
}

static void
watches_blocks_by_ptrace(void)
{
	(void)setenv("WATCHPOINT_DELIVERY", "ptrace", 1);
	watches_blocks();
}

/* How often the end of a watch was said. */
static unsigned
count_ends(const struct outcome *o, const char *what)
{
	char text[128];
	unsigned n = 0;
	json_t *line;
	size_t i;

	(void)snprintf(text, sizeof(text),
	    "%s is no longer watched: its block at 0x", what);
	json_array_foreach(o->lines, i, line)
		n += strcmp(text_of(line, "type"), "warning") == 0 &&
		    strncmp(text_of(line, "text"), text, strlen(text)) == 0;
	return n;
}

/* The free is a hit, too, and then it is over. */
TEST(a_block_is_watched_until_it_is_freed)
{
	static void (*const programs[])(void) = {
		watches_blocks, watches_blocks_by_signals,
		watches_blocks_by_ptrace,
	};
	static const struct { const char *access, *caller; } hits[] = {
		{"write", "watches_blocks"}, {"write", "watches_blocks"},
		{"execute", "drop"}, {"write", ""},
		{"execute", "watches_blocks"}, {"write", "watches_blocks"},
		{"execute", "drop"}, {"write", "watches_blocks"},
	};
	struct outcome o;

	for (size_t k = 0; k < COUNT(programs); k++) {
		run_program(&o, programs[k], EXITS);
		assert_int_equal(o.status, 0);
		expect_account(&o, COUNT(hits), 0);
		for (size_t i = 0; i < COUNT(hits); i++) {
			assert_string_equal(text_of(hit_at(&o, i), "access"),
			    hits[i].access);
			if (hits[i].caller[0] != '\0')
				expect_function(hit_at(&o, i), 1,
				    hits[i].caller);
		}
		assert_int_equal(count_ends(&o, "node->value"), 2);
		assert_int_equal(count_ends(&o, "*&node->next"), 1);
	}
}

/* A child's blocks are its own. */
static void
forks_with_a_block(void)
{
	struct node *node = block_of(sizeof(*node));
	int status = -1;
	pid_t pid;

	if (WP_WATCH_HEAP(node, node->value) != 0 || (pid = fork()) < 0)
		_exit(97);
	if (pid == 0) {
		store_to(&node->value, 1);
		drop(node);
		node = block_of(sizeof(*node));
		_exit(WP_WATCH_HEAP(node, node->value) == 0 &&
		    WP_UNWATCH(node->value) == 0 ? 0 : 96);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(97);
	store_to(&node->value, 2);
	drop(node);
}

TEST(a_child_has_no_watch_of_its_parents_blocks)
{
	struct outcome o;

	run_program(&o, forks_with_a_block, EXITS);
	assert_int_equal(o.status, 0);
	expect_account(&o, 2, 0);
	assert_string_equal(text_of(hit_at(&o, 0), "new"), "0x2");
	assert_int_equal(count_ends(&o, "node->value"), 1);
}

static void
watches_a_wide_block(void)
{
	struct wide { char bytes[256]; } *wide = block_of(sizeof(*wide));

	for (int i = 0; i < 2; i++)
		if (WP_WATCH_HEAP(wide) == 0)
			_exit(97);
	drop(wide);
	watches_a_local(1);
}

/* And nothing is left of it. */
TEST(a_block_that_cannot_be_watched_is_reported)
{
	struct outcome o;

	run_program(&o, watches_a_wide_block, EXITS);
	assert_int_equal(o.status, 0);
	assert_holds(o.err,
	    ": WP_WATCH_HEAP(*wide) is not in force: 256 bytes");
	expect_account(&o, 1, 0);
}

static void
watches_three_words(void)
{
	struct three { long words[3]; } *three = block_of(sizeof(*three));

	if (WP_WATCH_HEAP(three) == 0)
		_exit(97);
	drop(three);
}

/* There is no other watch that could be closed. */
TEST(a_block_says_what_its_watch_takes_besides)
{
	struct outcome o;

	run_with_lines(&o, watches_three_words, EXITS);
	assert_int_equal(o.status, 0);
	assert_holds(report_of(&o), ": WP_WATCH_HEAP(*three) is not in force "
	    "(it takes a debug register for each of free and realloc, too;");
}

static void
watches_too_much(void)
{
	volatile char wide[256] = "";

	for (int i = 0; i < 2; i++)
		WP_SCOPE(wide)
			wide[0]++;
	if (wide[0] != 2 || wp_stray_missed() != 0)
		_exit(97);
	watches_a_local(1);
}

TEST(a_block_that_cannot_be_watched_runs)
{
	struct outcome o;

	run_program(&o, watches_too_much, EXITS);
	assert_int_equal(o.status, 0);
	assert_holds(o.err, ": WP_SCOPE(wide) is not in force: ");
	assert_ptr_equal(strstr(o.err, "WP_SCOPE"),
	    strstr(o.err, "WP_SCOPE(wide)"));
	assert_lacks(strstr(o.err, "WP_SCOPE") + 1, "WP_SCOPE");
	expect_account(&o, 1, 0);
}

/* Watches are reported when they are first hit, once. */
static void
opens_and_closes(void)
{
	struct wp_watch *w = open_watch(.label = "first");

	store(1);
	wp_close(w);
	w = open_watch(.label = "never", .addr = &quad.a);
	wp_close(w);
	w = open_watch(.label = "first");
	store(2);
	wp_close(w);
	w = open_watch(.label = "second");
	store(3);
	wp_close(w);
	store(4);
}

TEST(a_watch_is_announced_before_its_first_hit)
{
	static const char *const types[] = {
		"start", "watch", "hit", "hit", "watch", "hit",
	};
	const json_t *watch;
	struct outcome o;
	char addr[32];

	run_program(&o, opens_and_closes, EXITS);
	for (size_t i = 0; i < COUNT(types); i++)
		assert_string_equal(type_at(&o, i), types[i]);
	expect_account(&o, 3, 0);
	watch = first_of(&o, "watch");
	(void)snprintf(addr, sizeof(addr), "%p", (void *)&word);
	assert_string_equal(text_of(watch, "spec"), "first");
	assert_string_equal(text_of(watch, "addr"), addr);
	assert_string_equal(text_of(watch, "access"), "w");
	assert_int_equal(number_of(watch, "id"), 1);
	assert_int_equal(number_of(watch, "len"), sizeof(word));
	assert_int_equal(number_of(watch, "slots"), 1);
	assert_int_equal(number_of(hit_at(&o, 1), "watch"), 1);
	assert_int_equal(number_of(hit_at(&o, 2), "watch"), 2);
}

enum { THREADS = 4, TIMES = 100 };

static void *
store_often(void *unused)
{
	for (int i = 0; i < TIMES; i++)
		store(i);
	return unused;
}

static void
stores_by_threads(void)
{
	pthread_t thread[THREADS];

	(void)open_watch(.label = "word");
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, store_often, NULL) != 0)
			_exit(97);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
}

static void
stores_without_waiting(void)
{
	(void)open_watch(.flags = WP_ASYNC);
	(void)store_often(NULL);
}

TEST(every_hit_of_every_thread)
{
	struct outcome o;
	json_t *tids = json_object();

	run_program(&o, stores_by_threads, EXITS);
	expect_account(&o, THREADS * TIMES, 0);
	for (size_t i = 0; i < THREADS * TIMES; i++) {
		char tid[32];

		(void)snprintf(tid, sizeof(tid), "%d",
		    (int)number_of(hit_at(&o, i), "tid"));
		(void)json_object_set_new(tids, tid, json_true());
	}
	assert_int_equal(json_object_size(tids), THREADS);
	json_decref(tids);
	run_program(&o, stores_without_waiting, EXITS);
	expect_account(&o, TIMES, 0);
}

/* --- the end --- */

static void
dies_by_segv(void)
{
	(void)open_watch(.label = "word");
	(void)signal(SIGSEGV, SIG_DFL);
	store(1);
	(void)raise(SIGSEGV);
}

static void
dies_by_kill(void)
{
	(void)open_watch(.label = "word");
	store(1);
	(void)kill(getpid(), SIGKILL);
}

static void
dies_by_abort(void)
{
	(void)open_watch(.label = "word", .action = WP_PRINT | WP_ABORT);
	(void)signal(SIGABRT, SIG_DFL);
	store(1);
}

static void
dies_by_exit(void)
{
	(void)open_watch(.label = "word");
	store(1);
	_exit(5);
}

static void
dies_without_waiting(void)
{
	(void)open_watch(.flags = WP_ASYNC);
	store(1);
	_exit(5);
}

TEST(a_hit_outlives_its_program)
{
	static const struct {
		void (*fn)(void);
		int status;
	} ends[] = {
		{dies_by_segv, 128 + SIGSEGV}, {dies_by_kill, 128 + SIGKILL},
		{dies_by_abort, 128 + SIGABRT}, {dies_by_exit, 5},
		{dies_without_waiting, 5},
	};

	for (size_t i = 0; i < COUNT(ends); i++) {
		struct outcome o;

		run_program(&o, ends[i].fn, ENDS);
		assert_int_equal(o.status, ends[i].status);
		expect_account(&o, 1, 0);
		expect_function(hit_at(&o, 0), 0, "store");
	}
}

/* What malloc(3) keeps around its blocks is no more. */
__attribute__((no_sanitize_address)) static void
corrupts_its_heap(void)
{
	volatile char *block = malloc(4096);

	if (block == NULL)
		_exit(97);
	(void)open_watch(.label = "word");
	store(1);
	for (int i = -16; i < 4096 + 16; i++)
		block[i] = (char)0xff;
	store(2);
	_exit(0);
}

/* A stack that leads nowhere, and ends soon. */
OWN static void
stores_on_a_ruined_stack(void)
{
#ifdef __x86_64__
	const size_t size = 1 << 18;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)open_watch(.label = "word");
	memset(stack, 0xa5, size);
	__asm__ volatile("mov	%%rsp, %%rbx\n\t"
	    "mov	%0, %%rsp\n\t"
	    "movq	$7, %1\n\t"
	    "mov	%%rbx, %%rsp" : :
	    "r"(stack + size - 64), "m"(word) : "rbx", "memory");
#else
	(void)open_watch(.label = "word");
	store(7);
#endif
}

TEST(a_ruined_program_is_explained)
{
	struct outcome o;

	run_program(&o, corrupts_its_heap, ENDS);
	expect_account(&o, 2, 0);
	expect_function(hit_at(&o, 1), 0, "store");
	expect_function(hit_at(&o, 1), 1, "corrupts_its_heap");
	run_program(&o, stores_on_a_ruined_stack, EXITS);
	expect_account(&o, 1, 0);
	expect_function(hit_at(&o, 0), 0, "stores_on_a_ruined_stack");
}

/* --- who and what --- */

OWN static void
store_two(void)
{
#ifdef __x86_64__
	__asm__ volatile("movups	%%xmm0, %0" : "=m"(quad));
#else
	quad.a = 1;
	quad.b = 1;
#endif
}

static void
touches_several(void)
{
	(void)open_watch(.label = "a", .addr = &quad.a);
	(void)open_watch(.label = "b", .addr = &quad.b);
	(void)open_watch(.label = "c", .addr = &quad.c);
	store_two();
	quad.c = 1;
	store_two();
}

TEST(one_instruction_is_a_hit_of_each_watch)
{
	static const struct {
		const char *function;
		unsigned a, b, c;
	} steps[] = {{"store_two", 1, 1, 0}, {"touches_several", 0, 0, 1},
	    {"store_two", 1, 1, 0}};
	struct outcome o;
	size_t at = 0;

	run_program(&o, touches_several, EXITS);
	expect_account(&o, 5, 0);
	for (size_t i = 0; i < COUNT(steps); i++) {
		const unsigned n = steps[i].a + steps[i].b + steps[i].c;
		unsigned seen = 0;

		for (unsigned k = 0; k < n; k++) {
			const json_t *hit = hit_at(&o, at++);

			expect_function(hit, 0, steps[i].function);
			assert_int_equal(number_of(hit, "len"), sizeof(long));
			seen |= 1u << number_of(hit, "watch");
		}
		assert_int_equal(__builtin_popcount(seen), n);
	}
}

static void
has_it_filled(void)
{
	int fds[2];

	(void)open_watch(.label = "word");
	if (pipe(fds) != 0 || write(fds[1], "1234", 4) != 4 ||
	    read(fds[0], (void *)(uintptr_t)&word, 8) != 4)
		_exit(97);
	store(1);
}

TEST(the_kernels_access_names_the_call)
{
	const json_t *hit;
	struct outcome o;

	if (!live_features.kernel)
		skip();
	run_program(&o, has_it_filled, EXITS);
	expect_account(&o, 2, 0);
	hit = hit_at(&o, 0);
	assert_string_equal(text_of(hit, "origin"), "kernel");
	assert_string_equal(text_of(hit, "syscall"), "read");
	assert_int_equal(number_of(hit, "syscall_bytes"), 8);
	assert_int_equal(number_of(hit, "len"), 4);
	assert_holds(text_of(hit, "file"), "pipe:");
	assert_string_equal(text_of(hit, "file_source"), "stop");
	/* the thread has read it, however long the report takes */
	assert_string_equal(text_of(hit, "value_source"), "stop");
	assert_null(json_object_get(hit, "insn"));
	hit = hit_at(&o, 1);
	assert_string_equal(text_of(hit, "origin"), "user");
	assert_non_null(json_object_get(hit, "insn"));
}

static void
stores_while_blocked(void)
{
	(void)open_watch(.label = "word");
	block(SIG_BLOCK);
	store(1);
	store(2);
	block(SIG_UNBLOCK);
}

static void
exits_while_blocked(void)
{
	(void)open_watch(.label = "word");
	block(SIG_BLOCK);
	store(1);
	store(2);
	store(3);
}

TEST(late_hits_are_marked)
{
	const json_t *hit;
	struct outcome o;

	run_program(&o, stores_while_blocked, EXITS);
	expect_account(&o, 1, 0);
	hit = hit_at(&o, 0);
	assert_true(json_is_true(json_object_get(hit, "late")));
	assert_int_equal(number_of(hit, "accesses"), 2);
	assert_int_equal(number_of(first_of(&o, "end"), "merged"), 1);
	assert_string_equal(text_of(json_object_get(hit, "insn"),
	    "confidence"), "unknown");
	assert_string_equal(text_of(hit, "origin"), "user");
	run_program(&o, exits_while_blocked, EXITS);
	expect_account(&o, 0, 3);
	assert_holds(text_of(first_of(&o, "warning"), "text"), "SIGTRAP");
}

/* --- stray accesses, and replies --- */

static void
keep_text(const struct wp_hit *hit, void *arg)
{
	const char *function = strstr(hit->text, "store");

	(void)arg;
	mark(function == NULL || strstr(function, ".c:") == NULL ||
	    strstr(hit->text, "same backtrace") != NULL ? "useless" :
	    hit->stray ? "stray" : "hit");
}

static void
is_frozen(void)
{
	wp_stray_handler(keep_text, NULL);
	WP_FREEZE(word) {
		store(1);
		store(2);
		WP_PERMIT(word) { store(3); }
	}
	wp_stray_handler(NULL, NULL);
	(void)open_watch(.label = "called", .handler = keep_text,
	    .action = WP_PRINT | WP_CALL);
	store(4);
	(void)open_watch(.label = "quiet", .addr = &quad.a,
	    .action = WP_CALL, .flags = WP_STRAY, .handler = keep_text);
	quad.a = 5;
}

TEST(stray_accesses_are_marked_and_reported)
{
	static const char *const texts[] = {"stray", "stray", "hit"};
	struct outcome o;
	size_t i, n = 0;
	json_t *line;

	run_program(&o, is_frozen, EXITS);
	assert_int_equal(number_of(account_of(&o), "hits"), 4);
	assert_int_equal(number_of(account_of(&o), "reported"), 3);
	assert_int_equal(number_of(account_of(&o), "handled"), 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(json_is_true(json_object_get(hit_at(&o, i),
		    "stray")), i < 2);
	json_array_foreach(o.lines, i, line) {
		if (strcmp(text_of(line, "type"), "mark") != 0)
			continue;
		if (n < COUNT(texts))
			assert_string_equal(text_of(line, "text"), texts[n]);
		n++;
	}
	assert_int_equal(n, 4);
}

/* --- what there was before --- */

static void
write_too(const struct wp_hit *hit, void *arg)
{
	(void)hit;
	(void)arg;
	word = 71;
}

static void
changes_unseen(void)
{
	struct wp_watch *w;

	word = 10;
	w = open_watch(.label = "word");
	store(11);
	store(12);
	(void)wp_disable(w);
	store(13);
	(void)wp_enable(w);
	store(14);
	quad.a = 20;
	(void)wp_move(w, &quad.a);
	store(15);
	quad.a = 21;
	(void)wp_move(w, &word);
	store(16);
	wp_close(w);
	store(17);
	WP_FREEZE(word) {
		store(18);
		WP_PERMIT(word) {
			store(19);
			store(20);
		}
		store(21);
		store(22);
	}
	w = open_watch(.label = "word", .action = WP_PRINT | WP_CALL,
	    .handler = write_too);
	store(23);
	store(24);
	store(25);
	wp_close(w);
}

OWN static void
store_byte(unsigned at, unsigned char value)
{
	((volatile unsigned char *)&word)[at] = value;
	__asm__ volatile("");
}

static void
moves_to_a_byte(void)
{
	struct wp_watch *w;

	word = 0x1122334455667788;
	w = open_watch(.label = "word");
	store_byte(3, 0x99);
	(void)wp_move(w, (volatile char *)&word + 5, 1);
	store_byte(4, 0xaa);
	store_byte(5, 0xbb);
	(void)wp_move(w, &word, 8);
	store_byte(6, 0xcc);
	wp_close(w);
}

TEST(a_watch_that_moves_has_another_length)
{
	static const struct { const char *old, *new; } hits[] = {
		{"0x55", "0x99"}, {"0x33", "0xbb"}, {"0x22", "0xcc"},
	};
	struct outcome o;

	run_program(&o, moves_to_a_byte, EXITS);
	expect_account(&o, COUNT(hits), 0);
	for (size_t i = 0; i < COUNT(hits); i++) {
		assert_string_equal(text_of(hit_at(&o, i), "old"), hits[i].old);
		assert_string_equal(text_of(hit_at(&o, i), "new"), hits[i].new);
	}
}

static void *
sleep_for_ever(void *arg)
{
	for (;;)
		(void)pause();
	return arg;
}

static void
changes_unseen_beside_a_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
		_exit(97);
	changes_unseen();
}

static void
changes_unseen_by_signals(void)
{
	(void)setenv("WATCHPOINT_DELIVERY", "async", 1);
	changes_unseen();
}

static void *
write_one(void *arg)
{
	word = 2;
	return arg;
}

static void
is_not_alone(void)
{
	pthread_t thread;

	(void)open_watch(.label = "word", .threads = WP_THIS_THREAD);
	store(1);
	if (pthread_create(&thread, NULL, write_one, NULL) != 0 ||
	    pthread_join(thread, NULL) != 0)
		_exit(97);
	store(3);
	store(4);
}

/* A watch on one thread does not see what the others write. */
TEST(writes_of_other_processes_are_not_seen)
{
	static const char *const old[] = {"0x0", "", ""};
	struct outcome o;

	word = 0;
	run_program(&o, is_not_alone, EXITS);
	expect_account(&o, COUNT(old), 0);
	for (size_t i = 0; i < COUNT(old); i++)
		assert_string_equal(maybe_text(hit_at(&o, i), "old"), old[i]);
}

static int
store_five(void *unused)
{
	(void)unused;
	while (word == 0)
		(void)usleep(100);
	word = 5;
	(void)pause();
	return 0;
}

/* A process that was there before the watch writes unseen. */
static void
shares_its_memory(void)
{
	static _Alignas(16) char stack[65536];
	const pid_t pid = clone(store_five, stack + sizeof(stack),
	    CLONE_VM | SIGCHLD, NULL);

	if (pid < 0)
		_exit(97);
	(void)open_watch(.label = "word");
	store(1);
	while (word != 5)
		(void)usleep(100);
	store(6);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

TEST(writes_of_processes_that_share_the_memory_are_not_seen)
{
	struct outcome o;

	word = 0;
	run_program(&o, shares_its_memory, EXITS);
	expect_account(&o, 2, 0);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(maybe_text(hit_at(&o, i), "old"), "");
}

/* The first hit's old value is known, too, and the next after what no hit shows
   of: but what a handler wrote. */
TEST(old_values_are_right)
{
	static const struct {
		void (*program)(void);
	} cases[] = {
		{changes_unseen}, {changes_unseen_beside_a_thread},
		{changes_unseen_by_signals},
	};
	static const struct {
		const char *old;
		long new;
	} hits[] = {
		{"0xa", 11}, {"0xb", 12}, {"0xd", 14}, {"0x14", 21},
		{"0xf", 16}, {"0x11", 18}, {"0x14", 21}, {"0x15", 22},
		{"0x16", 23}, {"", 24}, {"", 25},
	};

	for (size_t c = 0; c < COUNT(cases); c++) {
		struct outcome o;

		run_program(&o, cases[c].program, EXITS);
		expect_account(&o, COUNT(hits), 0);
		for (size_t i = 0; i < COUNT(hits); i++) {
			const char *old = maybe_text(hit_at(&o, i), "old");

			if (strcmp(old, hits[i].old) != 0)
				fail_msg("program %zu, hit %zu: \"%s\"", c, i,
				    old);
			assert_int_equal(strtol(text_of(hit_at(&o, i), "new"),
			    NULL, 16), hits[i].new);
		}
	}
}

/* --- libraries that come and go --- */

static void *
plug_in(const char *name, void (**write_to)(volatile long *))
{
	void *library = dlopen(scratch_path(name), RTLD_NOW);
	union {
		void *data;
		void (*function)(volatile long *);
	} found = {.data = library == NULL ? NULL : dlsym(library, "entry")};

	if (found.data == NULL)
		_exit(97);
	*write_to = found.function;
	return library;
}

static void
plugs_in_and_out(void)
{
	void (*first)(volatile long *), (*second)(volatile long *);
	void *library;

	(void)open_watch(.label = "word");
	for (int i = 0; i < 3; i++) {
		library = plug_in("libalpha.so", &first);
		first(&word);
		first(&word);
		(void)dlclose(library);
		library = plug_in("libbravo.so", &second);
		second(&word);
		(void)dlclose(library);
		mark(first == second ? "the same place" : "other places");
	}
}

/* Other libraries come while nobody explains: each hit is made by the library
   that was there. */
static void
plugs_in_unexplained(void)
{
	void (*write_to)(volatile long *);
	pid_t explainer = 0;

	(void)open_watch(.label = "word");
	for (int i = 0; i < 9; i++) {
		void *library = plug_in(i % 3 == 2 ? "libbravo.so" :
		    "libalpha.so", &write_to);

		write_to(&word);
		(void)dlclose(library);
		if (i > 0)
			continue;
		explainer = explainer_of(
		    atomic_load(&wp_state.channel)->helper_pid);
		if (explainer == 0 || kill(explainer, SIGSTOP) != 0)
			_exit(96);
	}
	if (kill(explainer, SIGCONT) != 0)
		_exit(95);
	mark("the same place");
}

static void
expect_libraries(void (*program)(void))
{
	static const char *const names[] = {"alpha", "alpha", "bravo"};
	static const char *const values[] = {"0x1", "0x1", "0x2"};
	const char *by = program == plugs_in_and_out ? "plugs_in_and_out" :
	    "plugs_in_unexplained";
	struct outcome o;
	char name[32];
	const char *new;

	run_program(&o, program, EXITS);
	expect_account(&o, 9, 0);
	for (size_t i = 0; i < 9; i++) {
		const json_t *frame = frame_of(hit_at(&o, i), 0);

		(void)snprintf(name, sizeof(name), "lib%s.so", names[i % 3]);
		assert_string_equal(text_of(frame, "function"), names[i % 3]);
		assert_string_equal(text_of(frame, "module"), name);
		new = maybe_text(hit_at(&o, i), "new");
		if (*new != '\0' || program == plugs_in_and_out)
			assert_string_equal(new, values[i % 3]);
		expect_function(hit_at(&o, i), 2, by);
	}
	assert_string_equal(text_of(first_of(&o, "mark"), "text"),
	    "the same place");
}

TEST(another_library_at_the_same_place)
{
	static const char *const names[] = {"alpha", "bravo"};

	for (unsigned i = 0; i < 2; i++)
		scratch_run("echo 'static void %s(volatile long *p) "
		    "{ *p = %u; __asm__ volatile(\"\"); } "
		    "void entry(volatile long *p) { %s(p); "
		    "__asm__ volatile(\"\"); }' > %s.c && "
		    "%s -g -O0 -shared -fPIC -o lib%s.so %s.c", names[i], i + 1,
		    names[i], names[i], getenv("CC"), names[i], names[i]);
	expect_libraries(plugs_in_and_out);
	expect_libraries(plugs_in_unexplained);
}

/* --- what goes wrong --- */

/* Until the report holds a text: what the helper sees now and then. */
static bool
await_report(const char *text)
{
	char all[65536];

	for (unsigned i = 0; i < 2000; i++) {
		int fd = open(getenv("WATCHPOINT_OUTPUT"), O_RDONLY);
		ssize_t n = read(fd, all, sizeof(all) - 1);

		(void)close(fd);
		all[n > 0 ? n : 0] = '\0';
		if (strstr(all, text) != NULL)
			return true;
		(void)usleep(10000);
	}
	return false;
}

static void
ignores_its_hits(void)
{
	(void)open_watch(.label = "word");
	(void)signal(SIGTRAP, SIG_IGN);
	if (!await_report("ignores SIGTRAP"))
		_exit(96);
	store(1);
}

static void *
sleep_blocked(void *arg)
{
	block(SIG_BLOCK);
	if (!await_report("blocks SIGTRAP"))
		_exit(96);
	return arg;
}

static void
has_a_deaf_thread(void)
{
	pthread_t thread;

	(void)open_watch(.label = "word");
	if (pthread_create(&thread, NULL, sleep_blocked, NULL) != 0)
		_exit(97);
	(void)pthread_join(thread, NULL);
}

TEST(a_blocked_signal_is_noticed)
{
	struct outcome o;

	run_program(&o, ignores_its_hits, EXITS);
	assert_int_equal(o.status, 0);
	expect_account(&o, 0, 1);
	run_program(&o, has_a_deaf_thread, EXITS);
	assert_int_equal(o.status, 0);
	assert_int_equal(count_of(&o, "warning"), 1);
	expect_account(&o, 0, 0);
}

/* A word for word copy of a program's memory is not what it should be. */
static void
ruin_cell(struct wp_channel *channel, unsigned i)
{
	static const uint16_t sizes[] = {0, 1, 8, 64, 4096, 17000, 65535};
	uint32_t ticket, seed = i * 2654435761u;
	struct wp_cell *cell = wp_channel_take(channel, &ticket);
	uint8_t *byte;

	if (cell == NULL)
		_exit(96);
	byte = (uint8_t *)cell + offsetof(struct wp_cell, flags);
	for (size_t k = 0; i % 3 != 0 && k < sizeof(*cell) -
	    offsetof(struct wp_cell, flags); k++) {
		seed = seed * 1664525 + 1013904223;
		byte[k] = (uint8_t)(seed >> 24);
	}
	cell->record.header.type = i % 5 == 0 ? i : PERF_RECORD_SAMPLE;
	cell->record.header.size = sizes[i % COUNT(sizes)];
	cell->flags &= ~(uint32_t)(i % 2 == 0 ? WP_CELL_QUIET : 0);
	cell->flags &= ~(uint32_t)WP_CELL_REPLY;
	cell->watch.access = i % 4 == 0 ? 'w' : cell->watch.access;
	if (i % 7 == 0) {
		cell->watch.addr = (uintptr_t)&word;
		cell->watch.len = sizeof(word);
	}
	wp_channel_post(channel, cell, ticket);
	(void)wp_channel_wait(channel, cell, ticket);
}

static void
ruins_the_channel(void)
{
	struct wp_channel *channel;
	struct wp_request *request;

	(void)open_watch(.label = "word");
	store(1);
	channel = atomic_load(&wp_state.channel);
	for (unsigned i = 0; i < 300; i++)
		ruin_cell(channel, i);
	memset(channel->warning, 'x', sizeof(channel->warning));
	(void)atomic_fetch_add(&channel->warned, 1);
	for (unsigned what = WP_ASK_RESOLVE; what <= WP_ASK_ARMED; what++) {
		wp_watches_lock();
		if ((request = wp_helper_request(what)) == NULL)
			_exit(96);
		memset(request->text, 'w', sizeof(request->text));
		memset(request->region, 0xff, sizeof(request->region));
		(void)wp_helper_ask(NULL);
		wp_watches_unlock();
	}
	for (unsigned i = 1; i < WP_WATCHES_MAX; i++) {
		memset((char *)&channel->watch[i] + sizeof(uint32_t), 0xff,
		    sizeof(channel->watch[i]) - sizeof(uint32_t));
		atomic_store(&channel->watch[i].serial, 0);
	}
	store(2);
	__asm__ volatile("");
}

/* Made-up hits may be reported, but nothing keeps the true ones out. */
TEST(a_ruined_channel_is_survived)
{
	const json_t *hit = NULL;
	struct outcome o;
	json_t *line;
	size_t i;

	run_program(&o, ruins_the_channel, EXITS);
	assert_int_equal(o.status, 0);
	(void)account_of(&o);
	json_array_foreach(o.lines, i, line)
		if (is_hit(line))
			hit = line;
	expect_function(hit, 0, "store");
	expect_function(hit, 1, "ruins_the_channel");
}

/* The same in words, on standard error. */
static void
run_in_words(struct outcome *o, void (*fn)(void), const char *output)
{
	char *path = strdup(getenv("WATCHPOINT_OUTPUT"));
	struct running r = {.in = -1};

	if (output == NULL)
		(void)unsetenv("WATCHPOINT_OUTPUT");
	else
		(void)setenv("WATCHPOINT_OUTPUT", output, 1);
	(void)setenv("WATCHPOINT_FORM", "text", 1);
	r.pid = start_program(fn, EXITS, &r.err);
	r.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	finish(&r, o);
	(void)setenv("WATCHPOINT_OUTPUT", path, 1);
	(void)setenv("WATCHPOINT_FORM", "json", 1);
	free(path);
}

/* --- what is asked for when the report has begun --- */

/* More than the first room for watches in the report. */
enum { ASKED = 8 * WP_REGIONS_MAX };

static char asked_of[ASKED];

/* Ask what so many places are, from first on. */
static void
ask(unsigned first, unsigned n)
{
	struct wp_request *request;
	size_t at = 0;

	wp_watches_lock();
	if ((request = wp_helper_request(WP_ASK_RESOLVE)) == NULL)
		_exit(96);
	for (unsigned i = first; i < first + n; i++)
		at += (size_t)snprintf(request->text + at,
		    sizeof(request->text) - at, "w:%p:1\n",
		    (void *)&asked_of[i]);
	if (wp_helper_ask(NULL) != (int)n)
		_exit(97);
	wp_watches_unlock();
}

static void
asks_for_more(void)
{
	(void)open_watch(.label = "word");
	store(1);
	for (unsigned i = 0; i < ASKED; i += WP_REGIONS_MAX)
		ask(i, WP_REGIONS_MAX);
	store(2);
}

/* Freed memory is not what it was. */
TEST(more_may_be_asked_for_after_the_first_hit)
{
	unsigned told = 0;
	struct outcome o;
	json_t *line;
	size_t i;

	assert_int_equal(setenv("MALLOC_PERTURB_", "165", 1), 0);
	run_program(&o, asks_for_more, EXITS);
	expect_account(&o, 2, 0);
	json_array_foreach(o.lines, i, line)
		told += strcmp(type_at(&o, i), "watch") == 0;
	assert_int_equal(told, 1 + ASKED);
	run_in_words(&o, asks_for_more, NULL);
	assert_int_equal(unsetenv("MALLOC_PERTURB_"), 0);
	assert_holds(o.err, "\nwatchctl: 2 hits, 2 reported, 0 " "lost\n");
}

/* --- where it is said --- */

static void
stores_once(void)
{
	(void)open_watch(.label = "word");
	store(1);
}

static void
stores_nothing(void)
{
	(void)open_watch(.label = "word");
}

TEST(text_has_hits_only)
{
	struct outcome o;

	run_in_words(&o, stores_nothing, NULL);
	assert_string_equal(o.err, "");
	run_in_words(&o, stores_once, NULL);
	assert_ptr_equal(strstr(o.err, "#1   write  word"), o.err);
	assert_holds(o.err, "1 hit, 1 reported, 0 lost");
	run_in_words(&o, stores_while_blocked, NULL);
	assert_holds(o.err, "unblocked; 2 accesses were counted");
	assert_holds(o.err, "; 1 more access is part of hits that came late");
}

TEST(a_useless_output_is_replaced)
{
	struct outcome o;

	run_in_words(&o, stores_once, "/nowhere/at/all");
	assert_holds(o.err, "/nowhere/at/all: No such file");
	assert_holds(o.err, "#1   write  word");
	assert_int_equal(mkfifo(scratch_path("fifo"), 0600), 0);
	run_in_words(&o, stores_once, scratch_path("fifo"));
	assert_holds(o.err, "#1   write  word");
}

static void
stores_often(void)
{
	(void)open_watch(.label = "word");
	for (int i = 0; i < 2000; i++)
		store(i);
}

/* Hits that find no room are lost, but their threads go on, and it is said. */
TEST(a_report_need_not_be_read)
{
	struct running r = {.in = -1};
	struct outcome o;
	unsigned long hits = 0, reported = 0, lost = 0;
	const char *account;
	char *path = strdup(getenv("WATCHPOINT_OUTPUT"));

	(void)unlink(path);
	assert_int_equal(mkfifo(scratch_path("pipe"), 0600), 0);
	r.out = open(scratch_path("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(r.out >= 0);
	assert_int_equal(fcntl(r.out, F_SETFL, 0), 0);
	(void)setenv("WATCHPOINT_FORM", "text", 1);
	(void)setenv("WATCHPOINT_OUTPUT", scratch_path("pipe"), 1);
	r.pid = start_program(stores_often, EXITS, &r.err);
	(void)setenv("WATCHPOINT_OUTPUT", path, 1);
	(void)setenv("WATCHPOINT_FORM", "json", 1);
	free(path);
	/* nobody reads before it has ended */
	assert_int_equal(waitid(P_PID, (id_t)r.pid, &(siginfo_t){0},
	    WEXITED | WNOWAIT), 0);
	finish_status(&r, &o, 0);
	account = strstr(o.err, "watchctl: 2000 hits");
	if (account == NULL || sscanf(account, "watchctl: %lu hits, %lu "
	    "reported, %lu lost", &hits, &reported, &lost) != 3)
		fail_msg("no account: %s", o.err);
	assert_true(reported > 10);
	assert_true(lost > 10);
	assert_int_equal(hits, 2000);
	assert_int_equal(reported + lost, hits);
	assert_holds(o.out, " hits here\n");
}

static int
begin(void **state)
{
	if (scratch_make(state) < 0)
		return -1;
	(void)setenv("WATCHPOINT_HELPER", watchctl(), 1);
	(void)setenv("WATCHPOINT_OUTPUT", scratch_path("report"), 1);
	(void)setenv("WATCHPOINT_FORM", "json", 1);
	return 0;
}

RUN_LIVE_TESTS(.before_all = begin, .after_all = scratch_remove)
