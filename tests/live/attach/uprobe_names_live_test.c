/*
 * uprobe_names: -x with -f by uprobes, whose events children inherit.  They are
 * used here because no slot is free, and because none fires on some machines.
 * The program counts its calls itself.
 */
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/uprobe_names.h"
#include "live.h"
#include "no_slots.h"
#include "uprobes.h"
#include "watching.h"

#define TRACEFS "/sys/kernel/tracing"

enum { PLACES = 12 };

/* Those of place6 to place11, of which call_all(1) makes so many, of 78. */
enum { FIRST = 6, CALLS = 7 + 8 + 9 + 10 + 11 + 12, ALL = 78 };

/* In a mount namespace of these tests' own. */
static bool
possible(void)
{
	const char *why;

	if (!uprobes_work())
		return false;
	if (access(TRACEFS "/uprobe_events", F_OK) < 0 &&
	    (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("nodev", TRACEFS, "tracefs", 0, NULL) < 0))
		print_message("tracefs cannot be mounted\n");
	if ((why = wp_uprobe_names_why_not()) != NULL)
		print_message("uprobes %s\n", why);
	return why == NULL;
}

/* The number of names of a process; 0: of all processes. */
static int
count_names(pid_t pid)
{
	FILE *f = fopen(TRACEFS "/uprobe_events", "re");
	char line[512];
	int n = 0, of;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		n += sscanf(line, "p:watchctl/p%d_", &of) == 1 &&
		    (pid == 0 || of == pid);
	(void)fclose(f);
	return n;
}

static void
watch_places(struct running *w, struct target *t, const char *const *more)
{
	const char *argv[ARGS];
	char name[PLACES][16], line[4096];
	size_t n = 0;

	argv[n++] = watchctl();
	for (int i = FIRST; i < PLACES; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "place%d", i);
		argv[n++] = "-x";
		argv[n++] = name[i];
	}
	n = append(argv, n, LIST("-f", "-o", "json", "-p", t->pid));
	(void)append(argv, n, more);
	watch_hear(w, argv, line);
	assert_holds(line, "\"uprobe\":true");
}

static json_int_t
ask(struct target *t, const char *what)
{
	say(&t->run, what);
	return target_done(&t->run);
}

TEST(children_are_watched)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t hits[PLACES] = {0};
	size_t i;
	json_t *hit;

	target_start(&t, LIST(victim("places")));
	watch_places(&w, &t, LIST(NULL));
	(void)ask(&t, "children\n");
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	each_hit(&o, i, hit)
		hits[FIRST - 1 + number_of(hit, "watch")]++;
	for (int k = FIRST; k < PLACES; k++)
		assert_int_equal(hits[k], 10 * (3 + 1) * (k + 1));
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    10 * (3 + 1) * CALLS);
	assert_int_equal(number_of(first_of(&o, "end"), "lost"), 0);
}

/* The kernel exchanges the events of parent and child at context switches
   unless it is kept from it, and removes uprobes of living processes then. */
TEST(none_is_lost_in_a_large_family)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t calls;

	target_start(&t, LIST(victim("places")));
	watch_places(&w, &t, LIST("--count"));
	calls = ask(&t, "family 30\n");
	assert_int_equal(calls, ALL * 10 * (1 + 2 * 5 * 30));
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    calls / ALL * CALLS);
}

/* Of a process that runs, all threads' children are watched. */
TEST(children_of_any_thread)
{
	struct target t;
	struct running w;
	struct outcome o;
	json_int_t calls;

	target_start(&t, LIST(victim("places")));
	say(&t.run, "leave\n");
	(void)ask(&t, "recurse\n");	/* by another thread, which goes on */
	watch_places(&w, &t, LIST("--count"));
	calls = ask(&t, "family 2\n");
	target_end(&t, 7);
	finish_status(&w, &o, 0);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    calls / ALL * CALLS);
}

TEST(the_program_goes_on_after_a_kill_and_names_are_removed)
{
	struct target t, other;
	struct running w, next, last;
	struct outcome o;

	target_start(&t, LIST(victim("places")));
	target_start(&other, LIST(victim("places")));
	watch_places(&w, &t, LIST("--count"));
	assert_int_equal(count_names(w.pid), PLACES - FIRST);
	say(&t.run, "family 5\n");
	(void)kill(w.pid, SIGKILL);
	end(&w);
	assert_int_equal(target_done(&t.run), ALL * 10 * (1 + 2 * 5 * 5));
	assert_int_equal(count_names(w.pid), PLACES - FIRST);

	watch_places(&next, &t, LIST("--count"));
	assert_int_equal(count_names(w.pid), 0);
	watch_places(&last, &other, LIST("--count"));
	assert_int_equal(count_names(next.pid), PLACES - FIRST);
	assert_int_equal(count_names(last.pid), PLACES - FIRST);
	(void)ask(&t, "family 1\n");
	target_end(&t, 7);
	target_end(&other, 7);
	finish_status(&next, &o, 0);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"),
	    CALLS * 10 * (1 + 2 * 5));
	finish_status(&last, &o, 0);
	assert_int_equal(count_names(0), 0);
}

static bool
hide_tracefs(int flags)
{
	return unshare(flags) == 0 &&
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("nodev", "/sys/kernel", "tmpfs", 0, NULL) == 0;
}

TEST(without_tracefs_one_line_says_so)
{
	struct running w;
	struct outcome o;

	start_prepared(&w, LIST(watchctl(), "-f", "-x", "place6", "-x",
	    "place7", "-x", "place8", "-x", "place9", "-x", "place10", "-x",
	    "place11", "--", victim("places")), hide_tracefs, CLONE_NEWNS);
	finish_status(&w, &o, 125);
	assert_holds(o.err, "follow the children of -f only where tracefs is "
	    "mounted: mount -t tracefs nodev " TRACEFS);
	assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
}

RUN_TESTS(.possible = possible, .before_all = take_slots,
    .after_all = give_slots)
