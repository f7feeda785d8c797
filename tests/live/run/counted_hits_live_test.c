/*
 * tallies: with -o summary, hits at known backtraces are only counted, in the
 * kernel; and each of them counts once, whoever makes it, and whoever dies
 * meanwhile.
 */
#include "test.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "borrow.h"
#include "bpf/stack_counter.h"
#include "os/known_stack.h"
#include "explainers.h"
#include "live.h"
#include "watching.h"
#include "child.h"

enum { THREADS = 100 };
#define SIZE ((WP_STACK_TABLE_ROWS + 1) * sizeof(struct wp_stack_row))
#define OWN __attribute__((noinline))

static volatile long word;		/* of the child */

/* What it is to do, and has done; both processes see it. */
static struct shared {
	atomic_uint round, done;
	enum { SET, ADD } what;
	unsigned threads, each;	/* stores of each */
	bool together;		/* they run at the same time; else one after the
				   other */
	bool forks;		/* they are processes, which take their time */
	unsigned turn;		/* or: whose turn it is, of two threads; these
				   are */
	pid_t tid[2];
	uintptr_t pushed[2];	/* where a call of the site pushes */
} *shared;
SHARED_FIXTURE

/* --- the child --- */

static OWN void
set(long value)
{
	word = value;
	__asm__ volatile("" ::: "memory");
}

static OWN void
add_one(void)
{
	__asm__ volatile("lock incq %0" : "+m"(word));
}

static void *
store_all(void *arg)
{
	for (unsigned i = 0; i < shared->each; i++) {
		if (shared->what == SET)
			set((long)i - 7);
		else
			add_one();
		if (shared->forks)
			nap_us(100);
	}
	return arg;
}

static void
run_threads(void)
{
	static pthread_t thread[THREADS];

	for (unsigned i = 0; i < shared->threads; i++) {
		(void)pthread_create(&thread[i], NULL, store_all, NULL);
		if (!shared->together)
			(void)pthread_join(thread[i], NULL);
	}
	for (unsigned i = 0; shared->together && i < shared->threads; i++)
		(void)pthread_join(thread[i], NULL);
}

static void
run_children(void)
{
	for (unsigned i = 0; i < shared->threads; i++) {
		const pid_t pid = fork();

		if (pid == 0) {
			(void)store_all(NULL);
			_exit(0);
		}
		(void)waitpid(pid, NULL, 0);
	}
}

#ifdef __x86_64__
/* site(at, value, to) calls to from one place; store() makes value the word at
   this address.  Who calls stored() reaches the same pc by the call.  What the
   site leaves unused is enough for a thread that waits. */
__asm__(".pushsection .text\n"
    ".type store,@function\n"
    "store: .cfi_startproc\n"
    "	mov	%rsi, (%rdi)\n"
    "stored: ret\n"
    "	.cfi_endproc\n"
    ".size store, .-store\n"
    ".type report_sp,@function\n"
    "report_sp: .cfi_startproc\n"
    "	mov	%rsp, (%rdi)\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size report_sp, .-report_sp\n"
    ".type site,@function\n"
    "site: .cfi_startproc\n"
    "	sub	$2056, %rsp\n"
    "	.cfi_adjust_cfa_offset 2056\n"
    "	mov	%rdx, %rax\n"
    "	call	*%rax\n"
    "	add	$2056, %rsp\n"
    "	.cfi_adjust_cfa_offset -2056\n"
    "	ret\n"
    "	.cfi_endproc\n"
    ".size site, .-site\n"
    ".popsection");
void site(uintptr_t *at, unsigned long value, void (*to)(void));
void store(void), stored(void), report_sp(void);

/* The first thread stores to the word onto which the second one pushes. */
static void *
take_turns(void *arg)
{
	const unsigned i = (unsigned)(uintptr_t)arg;

	shared->tid[i] = gettid();
	nap_us(1);		/* finds functions now, on the stack */
	site(&shared->pushed[i], 0, report_sp);
	for (;;) {
		if (shared->turn != i ||
		    atomic_load(&shared->done) == atomic_load(&shared->round)) {
			nap_us(100);
			continue;
		}
		for (unsigned n = 0; n < shared->each; n++)
			site((uintptr_t *)shared->pushed[1], n,
			    i == 0 ? store : stored);
		(void)atomic_fetch_add(&shared->done, 1);
	}
	return arg;
}

static void
run_turns(void *arg)
{
	child_threads(2, take_turns);
	(void)arg;
	for (;;)
		(void)pause();
}
#endif

static void *
obey(void *arg)
{
	for (;;) {
		if (atomic_load(&shared->done) == atomic_load(&shared->round)) {
			nap_us(100);
			continue;
		}
		if (shared->forks)
			run_children();
		else
			run_threads();
		(void)atomic_fetch_add(&shared->done, 1);
	}
	return arg;
}

/* In a thread, whose stack is small. */
static void
run_child(void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, obey, arg) == 0)
		(void)pthread_join(thread, NULL);
}

/* Not so often that hits come faster than a busy machine explains them. */
static void
play_round(void)
{
	nap_us(5000);
	(void)atomic_fetch_add(&shared->round, 1);
	await(atomic_load(&shared->done) == atomic_load(&shared->round));
}

/* --- watchctl --- */

/* False: BPF does not deliver. */
static bool
watch_at(struct running *w, pid_t pid, uintptr_t at, const char *option)
{
	char line[4096], spec[32], text[16];

	(void)snprintf(spec, sizeof(spec), "%#" PRIxPTR ":8", at);
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	watch_hear(w, LIST(watchctl(), "-w", spec, "-o", "summary,json", "-p",
	    text, option), line);
	return strstr(line, "\"delivery\":\"bpf\"") != NULL;
}

static bool
watch(struct running *w, pid_t pid, const char *option)
{
	return watch_at(w, pid, (uintptr_t)&word, option);
}

/* How many hits programs have counted. */
static uint64_t
tallied(const struct wp_stack_row *row)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < WP_STACK_TABLE_ROWS; i++)
		n += __atomic_load_n(&row[i].count, __ATOMIC_SEQ_CST);
	return n;
}

/* The hits of all rows; the last of these. */
static json_int_t
count_rows(const struct outcome *o, const json_t **last)
{
	json_int_t n = 0;
	json_t *line;
	size_t i;

	json_array_foreach(o->lines, i, line) {
		if (strcmp(text_of(line, "type"), "summary") != 0)
			continue;
		n += number_of(line, "count");
		*last = line;
	}
	return n;
}

/* All are reported, in one row. */
static const json_t *
expect_all(const struct outcome *o, json_int_t hits)
{
	const json_t *row = NULL, *account = first_of(o, "end");

	assert_int_equal(o->status, 0);
	assert_int_equal(number_of(account, "hits"), hits);
	assert_int_equal(number_of(account, "reported"), hits);
	assert_int_equal(number_of(account, "lost"), 0);
	assert_int_equal(count_rows(o, &row), hits);
	return row;
}

static void
expect_values(const json_t *row, unsigned each)
{
	const json_t *values = json_object_get(row, "values");
	char largest[32];

	(void)snprintf(largest, sizeof(largest), "%#x", each - 8);
	assert_string_equal(text_of(values, "first"), "0xfffffffffffffff9");
	assert_string_equal(text_of(values, "min"), "0xfffffffffffffff9");
	assert_string_equal(text_of(values, "max"), largest);
	assert_string_equal(text_of(values, "last"), largest);
}

static const struct shared rounds[] = {
	{.what = SET, .threads = 1, .each = 100},
	{.what = SET, .threads = 3, .each = 100, .together = true},
	{.what = SET, .threads = THREADS, .each = 5},
	{.what = SET, .threads = 2, .each = 1000, .forks = true},
};

/* Until hits are only counted: it takes some until a backtrace is known.  How
   many rounds that were. */
static unsigned
play_until_tallied(const struct wp_stack_row *rows)
{
	const uint64_t give_up = wp_clock_ns() + CHILD_PATIENCE_MS * 1000000ull;
	unsigned n = 0;

	while (tallied(rows) == 0 && wp_clock_ns() < give_up) {
		play_round();
		n++;
	}
	if (tallied(rows) == 0)
		fail_msg("%u threads%s: none is tallied",
		    shared->threads, shared->forks ? ", forked" : "");
	play_round();
	return n + 1;
}

/* Of threads and processes, which have long ended. */
TEST(each_hit_counts_once)
{
	for (size_t i = 0; i < COUNT(rounds); i++) {
		const struct shared *r = &rounds[i];
		const struct wp_stack_row *rows;
		const json_t *row;
		struct running w;
		struct outcome o;
		unsigned played;
		pid_t pid;

		*shared = *r;
		pid = child_start(run_child, NULL);
		if (!watch(&w, pid, r->forks ? "-f" : NULL)) {
			child_kill(pid);
			finish(&w, &o);
			skip();
		}
		assert_non_null(rows = borrow_map(w.pid, SIZE));
		played = play_until_tallied(rows);
		borrow_end(rows, SIZE);
		child_kill(pid);
		finish(&w, &o);
		row = expect_all(&o, (json_int_t)played * r->threads *
		    r->each);
		assert_int_equal(json_array_size(json_object_get(row,
		    "threads")), played * r->threads);
		if (r->threads == 1)
			expect_values(row, r->each);
	}
}

/* A value that follows from the hit before it is known only if none is left
   out. */
TEST(additions_are_delivered)
{
	enum { PLAYED = 10 };
	const struct wp_stack_row *rows;
	const json_t *values;
	struct running w;
	struct outcome o;
	pid_t pid;

	*shared = (struct shared){.what = ADD, .threads = 1, .each = 100};
	pid = child_start(run_child, NULL);
	if (!watch(&w, pid, NULL)) {
		child_kill(pid);
		finish(&w, &o);
		skip();
	}
	assert_non_null(rows = borrow_map(w.pid, SIZE));
	for (unsigned i = 0; i < PLAYED; i++)
		play_round();
	assert_int_equal(tallied(rows), 0);
	borrow_end(rows, SIZE);
	child_kill(pid);
	finish(&w, &o);
	values = json_object_get(expect_all(&o, PLAYED * 100), "values");
	assert_string_equal(text_of(values, "first"), "0x1");
	assert_string_equal(text_of(values, "max"), "0x3e8");
}

/* It may have fewer names, and then nothing is counted any more; or the same
   ones, and then it is counted again before anybody sees that none is. */
TEST(a_second_explainer_has_what_was_counted)
{
	const struct wp_stack_row *rows;
	const json_t *row;
	struct running w;
	struct outcome o;
	unsigned played;
	pid_t pid, first;

	*shared = (struct shared){.what = SET, .threads = 1, .each = 200};
	pid = child_start(run_child, NULL);
	if (!watch(&w, pid, NULL)) {
		child_kill(pid);
		finish(&w, &o);
		skip();
	}
	assert_non_null(rows = borrow_map(w.pid, SIZE));
	played = play_until_tallied(rows);
	first = explainer_of(w.pid);
	assert_true(first > 0);
	assert_int_equal(kill(first, SIGKILL), 0);
	borrow_end(rows, SIZE);
	await(has_other_explainer(w.pid, first) ||
	    (play_round(), played++, false));
	for (unsigned i = 0; i < 3; i++, played++)
		play_round();
	child_kill(pid);
	finish(&w, &o);
	row = expect_all(&o, (json_int_t)played * shared->each);
	assert_int_equal(json_array_size(json_object_get(row, "threads")),
	    played);
}

#ifdef __x86_64__
/* Whether a thread has a row of hits that programs have counted. */
static bool
is_owner(const struct wp_stack_row *row, pid_t tid)
{
	for (unsigned i = 0; i < WP_STACK_TABLE_ROWS; i++)
		if (__atomic_load_n(&row[i].owner, __ATOMIC_SEQ_CST) >> 32 ==
		    (uint64_t)tid)
			return true;
	return false;
}

static void
take_turn(unsigned i)
{
	shared->turn = i;
	play_round();
}

/* Each thread has its hits, and no other. */
static void
expect_turns(const struct outcome *o, json_int_t each)
{
	json_int_t count[2] = {0};
	json_t *line, *tid;
	size_t i, k;

	json_array_foreach(o->lines, i, line) {
		const json_t *threads = json_object_get(line, "threads");

		if (strcmp(text_of(line, "type"), "summary") != 0)
			continue;
		assert_int_equal(json_array_size(threads), 1);
		json_array_foreach(threads, k, tid)
			count[json_integer_value(tid) == shared->tid[1]] +=
			    number_of(line, "count");
	}
	assert_int_equal(count[0], each);
	assert_int_equal(count[1], each);
}

/* Another thread's call pushes where the known store is to, at the same pc and
   with the same words on the stack. */
TEST(what_a_call_pushes_is_not_counted_as_a_store)
{
	const struct wp_stack_row *rows;
	unsigned played;
	struct running w;
	struct outcome o;
	pid_t pid;

	*shared = (struct shared){.each = 100};
	pid = child_start(run_turns, NULL);
	await(((volatile uintptr_t *)shared->pushed)[0] != 0 &&
	    ((volatile uintptr_t *)shared->pushed)[1] != 0);
	assert_int_equal(shared->pushed[0] % WP_KNOWN_PAGE,
	    shared->pushed[1] % WP_KNOWN_PAGE);
	if (!watch_at(&w, pid, shared->pushed[1], NULL)) {
		child_kill(pid);
		finish(&w, &o);
		skip();
	}
	assert_non_null(rows = borrow_map(w.pid, SIZE));
	played = play_until_tallied(rows);
	assert_true(is_owner(rows, shared->tid[0]));
	for (unsigned i = 0; i < played; i++)
		take_turn(1);
	assert_false(is_owner(rows, shared->tid[1]));
	borrow_end(rows, SIZE);
	child_kill(pid);
	finish(&w, &o);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
	expect_turns(&o, (json_int_t)played * shared->each);
}
#endif

int
main(void)
{
	return run_live_tests();
}
