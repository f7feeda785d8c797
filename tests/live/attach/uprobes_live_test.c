/*
 * uprobes: execution watches for which there are no slots.  The program counts
 * its calls itself.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "attach/target.h"
#include "attach/uprobes.h"
#include "live.h"
#include "os/attr.h"
#include "os/perf.h"
#include "proc/proc.h"
#include "refuse.h"
#include "uprobes.h"
#include "watching.h"

/* To close one takes the kernel a tenth of a second. */
enum { PLACES = 12, FEW = 6, SLOTS = 4, NEEDS_SLOT = 5, INT3 = 0xcc };

#define NAMES "place0", "place1", "place2", "place3", "place4", "place5", \
	"place6", "place7", "place8", "place9", "place10", "place11"
static const char *const names[PLACES] = {NAMES};

/* "-x place6 -x place7 ...", so many up to the last, and what follows. */
static size_t
put_places(const char *argv[ARGS], int places, const char *const *more)
{
	size_t n = 0;

	argv[n++] = watchctl();
	for (int i = PLACES - places; i < PLACES; i++) {
		argv[n++] = "-x";
		argv[n++] = names[i];
	}
	return append(argv, n, more);
}

static void
watch_places(struct running *w, struct target *t, int places, char line[4096])
{
	const char *argv[ARGS];

	target_start(t, LIST(victim("places")));
	(void)put_places(argv, places, LIST("-o", "json", "-p", t->pid));
	watch_hear(w, argv, line);
}

/* The first ones have, and one that cannot do without. */
static bool
has_slot(int i)
{
	return i < SLOTS - 1 || i == NEEDS_SLOT;
}

static json_int_t
ask(struct target *t, const char *what)
{
	say(&t->run, what);
	return target_done(&t->run);
}

static json_int_t
hits_of(const struct outcome *o, int watch)
{
	json_int_t n = 0;
	size_t i;
	json_t *hit;

	each_hit(o, i, hit)
		n += number_of(hit, "watch") == watch;
	return n;
}

TEST(any_number_of_functions_is_watched_in_all_threads)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096];
	json_int_t calls;
	json_t *first;

	NEEDS_UPROBES;
	watch_places(&w, &t, PLACES, line);
	first = json_loads(line, 0, NULL);
	for (int i = 0; i < PLACES; i++) {
		const json_t *watch = json_array_get(json_object_get(first,
		    "watches"), (size_t)i);

		assert_string_equal(text_of(watch, "spec"), names[i]);
		assert_int_equal(json_is_true(json_object_get(watch,
		    "uprobe")), !has_slot(i));
		assert_int_equal(json_object_get(watch, "slots") != NULL,
		    has_slot(i));
	}
	json_decref(first);
	calls = ask(&t, "threads\n");
	end_all(&w, &t, &o, calls);
	for (int i = 0; i < PLACES; i++)
		assert_int_equal(hits_of(&o, i + 1), 4 * 10 * (i + 1));
}

TEST(a_hit_is_as_one_of_a_slot)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096], name[16];
	json_int_t calls;

	NEEDS_UPROBES;
	watch_places(&w, &t, FEW, line);
	calls = ask(&t, "recurse\n");
	end_all(&w, &t, &o, calls);
	for (int i = 0; i <= 10; i++) {
		const json_t *hit = hit_at(&o, (size_t)i), *arg;

		assert_string_equal(text_of(hit, "access"), "execute");
		assert_string_equal(text_of(json_object_get(hit, "insn"),
		    "confidence"), "exact");
		assert_lacks(text_of(json_object_get(hit, "insn"), "text"),
		    "int3");
		for (int k = 0; k <= i; k++)
			expect_function(hit, k, "place11");
		expect_function(hit, -1, "_start");
		arg = json_array_get(json_object_get(hit, "args"), 0);
		(void)snprintf(name, sizeof(name), "%d", 10 - i);
		if (SANITIZED && arg == NULL)
			continue;	/* the other compiler does not say */
		assert_string_equal(text_of(arg, "name"), "with");
		assert_string_equal(text_of(arg, "text"), name);
	}
}

/* A child has a copy of the code as it is, and one of vfork(2) the same
   memory. */
TEST(children_are_not_watched_and_not_hurt)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096];

	NEEDS_UPROBES;
	watch_places(&w, &t, FEW, line);
	(void)ask(&t, "children\n");
	end_all(&w, &t, &o, 10 * (7 + 8 + 9 + 10 + 11 + 12));
}

TEST(the_program_can_see_it_until_watchctl_is_killed)
{
	struct target t;
	struct running w;
	char line[4096];
	json_int_t before, byte;

	NEEDS_UPROBES;
	target_start(&t, LIST(victim("places")));
	before = ask(&t, "bytes\n");
	target_end(&t, 7);
	watch_places(&w, &t, FEW, line);
	assert_int_equal(ask(&t, "bytes\n"), INT3);
	(void)kill(w.pid, SIGKILL);
	end(&w);
	assert_int_equal(ask(&t, "threads\n"), 4 * 10 * 78);
	for (int i = 0; (byte = ask(&t, "bytes\n")) == INT3 && i < 60000; i++)
		(void)usleep(1000);
	assert_int_equal(byte, before);
	target_end(&t, 7);
}

/* They were opened on that one. */
TEST(the_first_thread_may_end)
{
	struct target t;
	struct running w;
	struct outcome o;
	char line[4096];

	NEEDS_UPROBES;
	watch_places(&w, &t, FEW, line);
	say(&t.run, "leave\n");
	await(w.out, "for at most");
	(void)ask(&t, "threads\n");
	end_all(&w, &t, &o, 4 * 10 * (7 + 8 + 9 + 10 + 11 + 12));
}

/* It has the same addresses as before. */
TEST(another_program_is_not_watched)
{
	const char *argv[ARGS];
	struct running w;
	struct outcome o;
	char line[256];

	NEEDS_UPROBES;
	(void)put_places(argv, FEW, LIST("--no-aslr", "-o", "summary", "-O",
	    "/dev/null", "--", victim("places")));
	start(&w, argv);
	hear(&w, line, sizeof(line));
	say(&w, "recurse\n");
	assert_int_equal(target_done(&w), 11);
	say(&w, "again\n");
	hear(&w, line, sizeof(line));
	say(&w, "recurse\n");
	assert_int_equal(target_done(&w), 11);
	say(&w, "end\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, "watchctl: 11 hits, 11 reported, 0 " "lost\n");
}

/* The slots of a process that runs are another watchctl's. */
TEST(slots_may_be_taken)
{
	struct target t;
	struct running w, other;
	struct outcome o;
	json_int_t calls;

	NEEDS_UPROBES;
	target_start(&t, LIST(victim("places")));
	watch_start(&other, LIST(watchctl(), "-x", "place0", "-x", "place1",
	    "-x", "place2", "-x", "place3", "-o", "json", "-p", t.pid));
	run_status(&o, 125, LIST(watchctl(), "-x", "place11", "-w", "calls:8",
	    "-p", t.pid));
	assert_holds(o.err, "no free slot");
	watch_start(&w, LIST(watchctl(), "-x", "place10", "-x", "place11",
	    "--count", "-o", "json", "-p", t.pid));
	calls = ask(&t, "threads\n");
	assert_int_equal(calls, 4 * 10 * 78);
	target_end(&t, 7);
	finish(&w, &o);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    4 * 10 * (11 + 12));
	finish(&other, &o);
}

/* What is hit, and not reported, is counted. */
TEST(watches_end_as_others_do)
{
	const char *argv[ARGS];
	struct target t;
	struct outcome o;
	struct running w;

	NEEDS_UPROBES;
	target_start(&t, LIST(victim("places")));
	(void)put_places(argv, FEW, LIST("--each", "2", "-o", "json", "-p",
	    t.pid));
	watch_start(&w, argv);
	(void)ask(&t, "threads\n");
	finish(&w, &o);
	expect_hits(&o, 2 * FEW);
	for (int i = 1; i <= FEW; i++)
		assert_int_equal(hits_of(&o, i), 2);
	target_end(&t, 7);
}

static void
refused(const char *const *more, const char *words)
{
	const char *argv[ARGS];
	struct outcome o;

	(void)put_places(argv, FEW, more);
	run_status(&o, 125, argv);
	if (strstr(o.err, words) == NULL || strchr(o.err, '\n') !=
	    o.err + strlen(o.err) - 1)
		fail_msg("want %s, got %s", words, o.err);
}

/* One line says why. */
TEST(uprobes_that_are_refused)
{
	const char *argv[ARGS];
	struct running w;
	struct outcome o;

	NEEDS_UPROBES;
	refused(LIST("--stop", "--", victim("places")), "uprobes, which take "
	    "none, stop a thread one instruction too late for --stop");
	refused(LIST("--delivery", "ring", "--", victim("places")),
	    "are not for --delivery ring");
	refused(LIST("-w", "calls:40", "--", victim("places")),
	    "40 bytes at ");
	run_status(&o, 125, LIST(watchctl(), "-x", "place0+4", "-x", "place1+4",
	    "-x", "place2+4", "-x", "place3+4", "-x", "place4+4", "--",
	    victim("places")));
	assert_holds(o.err, "are where an instruction surely " "begins");
	(void)put_places(argv, FEW, LIST("--", victim("places")));
	start_prepared(&w, argv, be_nobody, 0);
	finish_status(&w, &o, 125);
	assert_holds(o.err, "need root, or CAP_SYS_ADMIN");
}

/* In a library; and a line with more addresses than there are slots beside
   others. */
TEST(libraries_and_lines)
{
	struct outcome o;
	json_int_t twice;

	NEEDS_UPROBES;
	run_status(&o, 3, LIST(watchctl(), "-x", "main", "-x", "none", "-x",
	    "once", "-x", "libc.so.6!malloc", "-x", "places.c:103", "-o",
	    "json", "-O", "-", "--", victim("arguments_plain")));
	assert_int_equal(hits_of(&o, 1), 1);
	twice = hits_of(&o, 5);
	assert_true(twice > 0);
	run(&o, LIST(watchctl(), "-x", "places.c:103", "-o", "json", "-O", "-",
	    "--", victim("arguments_plain")));
	assert_int_equal(count_of(&o, "hit"), twice);
}

/* --- why those of -f have names, and there are none with --stop --- */

void begins_with_nop(void);
__asm__(".text\n.globl begins_with_nop\n.type begins_with_nop, %function\n"
    "begins_with_nop:\n\tnop\n\tret\n"
    ".size begins_with_nop, . - begins_with_nop\n");

/* Have an event of a child opened as the kernel's threads and children would
   inherit it. */
static int
open_inherited(pid_t pid)
{
	const uint64_t addr = (uint64_t)(uintptr_t)begins_with_nop;
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	struct perf_event_attr attr;
	uint64_t offset;
	unsigned type;
	char link[32];
	int fd, file = wp_proc_open_code(pid, addr, &offset);

	assert_true(file >= 0);
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u", &type), 1);
	(void)fclose(f);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	wp_attr_uprobe(&attr, type, link, offset);
	attr.inherit = 1;
	fd = wp_perf_open(&attr, pid, -1);
	(void)close(file);
	return fd;
}

TEST(inherited_uprobes_make_fork_fail)
{
	int go[2], status, fd;
	pid_t pid, child;
	char c;

	NEEDS_UPROBES;
	assert_int_equal(pipe(go), 0);
	if ((pid = fork()) == 0) {
		(void)!read(go[0], &c, 1);
		child = fork();
		_exit(child >= 0 ? 0 : errno);
	}
	fd = open_inherited(pid);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)close(go[0]);
	(void)close(go[1]);
	assert_true(WIFEXITED(status));
	/* as whatever is there is no path, or that of no file */
	assert_int_not_equal(WEXITSTATUS(status), 0);
}

static volatile uint64_t stopped_at;

static void
note_place(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;

	(void)sig;
	(void)info;
#if defined(__x86_64__)
	stopped_at = (uint64_t)u->uc_mcontext.gregs[REG_RIP];
#else
	stopped_at = u->uc_mcontext.pc;
#endif
}

TEST(a_stop_by_a_uprobe_is_late)
{
	const uint64_t addr = (uint64_t)(uintptr_t)begins_with_nop;
	const struct sigaction action = {
		.sa_sigaction = note_place, .sa_flags = SA_SIGINFO,
	};
	const struct f_owner_ex owner = {F_OWNER_TID, gettid()};
	struct sigaction before;
	int fd;

	NEEDS_UPROBES;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	fd = wp_uprobe_open_signal(gettid(), addr);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETSIG, SIGUSR1), 0);
	assert_int_equal(fcntl(fd, F_SETOWN_EX, &owner), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_ASYNC), 0);
	begins_with_nop();
	(void)close(fd);
	(void)sigaction(SIGUSR1, &before, NULL);
	assert_in_range(stopped_at, addr + 1, addr + 4);
}

RUN_LIVE_TESTS()
