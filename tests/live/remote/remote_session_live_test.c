/*
 * remote_session: hits of a watch are explained in another process, and
 * whatever becomes of who explains them, each is reported once.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beside.h"
#include "command.h"
#include "explainers.h"
#include "live.h"
#include "proc/proc.h"
#include "refuse.h"
#include "scratch.h"
#include "watching.h"

enum {
	HIT = 4096,		/* bytes of a report that have one */
	MODES_MAX = 6,
	KILLS = 10, THOROUGH_KILLS = 100,	/* at most */
	CROWD = 8,		/* threads */
	WAIT = 2000,		/* ms that a stopped thread waits, at most */
	SOME = 3,		/* deaths that are survived though no hit is
				   reported in between */
};

/* Ways of watching, and how often each of two threads is to write; often, where
   there is time. */
static const struct mode {
	const char *option[3];
	int writes;
	const char *delivery;	/* of a program's own hits */
} modes_by_events[] = {
	{{"--user-only"}, 1000},
	{{"--stop"}, 1000},
	{{"--on-hit", "exec echo acted"}, 50},
	{{"--inside"}, 250, "sigtrap"},
	{{"--inside"}, 250, "async"},
	{{"--inside"}, 250, "ptrace"},
}, modes_by_registers[] = {
	{{"--stop"}, 1000},
	{{"--on-hit", "exec echo acted"}, 50},
	{{"--inside"}, 250},
};

static const struct mode *modes = modes_by_events;
static size_t nmodes = COUNT(modes_by_events);

static off_t
size_of_report(void)
{
	struct stat st;

	return stat(scratch_path("report"), &st) == 0 ? st.st_size : 0;
}

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* No two hits are the same access: of one thread at one time. */
static void
expect_distinct(const struct outcome *o, size_t n)
{
	char **at = calloc(n, sizeof(*at));
	json_t *line;
	size_t i, k = 0;

	assert_non_null(at);
	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "hit") == 0 && k < n)
			assert_true(asprintf(&at[k++], "%lld %.9f",
			    (long long)number_of(line, "tid"),
			    json_number_value(json_object_get(line,
			    "time"))) > 0);
	assert_int_equal(k, n);
	qsort(at, n, sizeof(*at), compare_texts);
	for (i = 1; i < n; i++)
		assert_string_not_equal(at[i - 1], at[i]);
	for (i = 0; i < n; i++)
		free(at[i]);
	free(at);
}

/* Each hit once, in order; the account and the tables are of all. */
static void
expect_all(const struct outcome *o, json_int_t n)
{
	json_int_t seq = 0, summed = 0;
	json_t *line;
	size_t i;

	assert_int_equal(o->status, 7);
	assert_non_null(o->lines);
	json_array_foreach(o->lines, i, line) {
		if (strcmp(text_of(line, "type"), "hit") == 0)
			assert_int_equal(number_of(line, "seq"), ++seq);
		else if (strcmp(text_of(line, "type"), "summary") == 0)
			summed += number_of(line, "count");
	}
	assert_int_equal(seq, n);
	assert_int_equal(summed, n);
	assert_int_equal(count_of(o, "start"), 1);
	assert_int_equal(count_of(o, "end"), 1);
	assert_int_equal(number_of(first_of(o, "end"), "reported"), n);
	assert_int_equal(number_of(first_of(o, "end"), "lost"), 0);
	expect_distinct(o, (size_t)n);
}

/* Once at each hit, if there was something to do. */
static void
expect_acted(const struct outcome *o, const struct mode *mode, int n)
{
	int acted = 0;

	for (const char *at = o->err; (at = strstr(at, "acted")) != NULL; at++)
		acted++;
	assert_int_equal(acted, mode->option[1] != NULL ? n : 0);
}

/* Kill one explainer after the other, so many at most, each once it has
   reported a hit, which takes more room than the warning of the last one's
   death.  Size is that of the report at the last one's death.  Result: how
   many. */
static unsigned
kill_each(struct running *w, off_t each, unsigned most, off_t *size)
{
	unsigned kills = 0;

	while (kills < most && !is_gone(w->pid)) {
		const pid_t explainer = explainer_of(w->pid);

		(void)usleep((useconds_t)(random() % 10000));
		if (explainer == 0 || size_of_report() < *size + each)
			continue;
		kills += kill(explainer, SIGKILL) == 0;
		*size = size_of_report();
	}
	return kills;
}

/* The same of one that does not end before it is told to: so one dies at least,
   however busy the machine is. */
static unsigned
kill_all(struct running *w, off_t each, const char *to_end)
{
	const unsigned most = getenv("THOROUGH") != NULL ? THOROUGH_KILLS :
	    KILLS;
	off_t size = 0;
	unsigned kills = kill_each(w, each, 1, &size);

	say(w, to_end);
	return kills + kill_each(w, each, most - kills, &size);
}

/* The arguments of a mode, and these. */
static const char *const *
arguments(const struct mode *mode, const char *const *more)
{
	static const char *argv[ARGS];
	size_t n = append(argv, 0, LIST(watchctl()));

	(void)unsetenv("WATCHPOINT_DELIVERY");
	if (mode->delivery != NULL)
		(void)setenv("WATCHPOINT_DELIVERY", mode->delivery, 1);

	n = append(argv, n, mode->option);
	(void)append(argv, n, more);
	return argv;
}

static void
start_mode(const struct mode *mode, struct running *w, const char *const *more)
{
	start(w, arguments(mode, more));
}

TEST(each_hit_is_reported_once)
{
	const bool thorough = getenv("THOROUGH") != NULL;
	const unsigned runs = thorough ? 3 : 1;
	unsigned kills = 0;
	struct running w;
	struct outcome o;

	for (unsigned i = 0; i < runs * nmodes; i++) {
		const struct mode *mode = &modes[i % nmodes];
		const int n = thorough ? 4 * mode->writes : mode->writes;
		char writes[16];

		(void)snprintf(writes, sizeof(writes), "%d", n);
		(void)unlink(scratch_path("report"));
		start_mode(mode, &w, LIST("-w", "counter", "-o", "json", "-O",
		    scratch_path("report"), "--", victim("counter"), "2",
		    writes, "50000"));
		say(&w, "go\n");
		kills += kill_all(&w, HIT, "end\n");
		finish(&w, &o);
		outcome_take(&o, scratch_path("report"));
		expect_all(&o, 2 * n);
		expect_acted(&o, mode, 2 * n);
	}
	print_message("%u were killed\n", kills);
	assert_true(kills >= runs * nmodes);
}

/* Kill explainers at any moment, as long as there is one, but not too many.
   The command has begun: what to watch has been found. */
static unsigned
kill_some(struct running *w)
{
	unsigned kills = 0;

	while (kills < SOME && !is_gone(w->pid)) {
		const pid_t explainer = explainer_of(w->pid);

		(void)usleep((useconds_t)(20000 + random() % 30000));
		kills += explainer != 0 && kill(explainer, SIGKILL) == 0;
	}
	return kills;
}

/* The last number of each line of folded stacks. */
static json_int_t
folded_hits(const char *text)
{
	json_int_t n = 0;

	for (const char *end; (end = strchr(text, '\n')) != NULL; text = end +
	    1)
		for (const char *at = end; at > text; at--)
			if (at[-1] == ' ') {
				n += strtoll(at, NULL, 10);
				break;
			}
	return n;
}

/* What is written at the end has all that was taken before. */
TEST(each_hit_is_summed_up_once)
{
	static const char *const forms[] = {"summary,json", "folded"};
	const unsigned runs = getenv("THOROUGH") != NULL ? 4 : 1;
	unsigned kills = 0;

	for (unsigned i = 0; i < runs * nmodes; i++) {
		const struct mode *mode = &modes[i % nmodes];
		const bool folded = (i + i / nmodes) % 2 != 0;
		const int each = mode->writes / 4;
		json_int_t n = 0;
		struct running w;
		struct outcome o;
		char writes[16], begun[64], *text;
		json_t *line;
		size_t k;

		(void)snprintf(writes, sizeof(writes), "%d", each);
		(void)unlink(scratch_path("report"));
		start_mode(mode, &w, LIST("-w", "counter", "-o", forms[folded],
		    "-O", scratch_path("report"), "--", victim("counter"),
		    "2", writes, "50000"));
		hear(&w, begun, sizeof(begun));
		say(&w, "go\nend\n");
		kills += kill_some(&w);
		finish_status(&w, &o, 7);
		assert_holds(o.err, " 0 lost");
		if (!folded) {
			outcome_take(&o, scratch_path("report"));
			json_array_foreach(o.lines, k, line)
				if (strcmp(text_of(line, "type"), "summary") ==
				    0)
					n += number_of(line, "count");
		} else {
			text = scratch_read("report", NULL);
			n = folded_hits(text);
		}
		assert_int_equal(n, 2 * each);
	}
	print_message("%u were killed\n", kills);
	assert_true(kills > 0);
}

/* The same of a family, which waits when half of its children have ended: each
   of them is another process, which is learnt, and forgotten. */
TEST(each_hit_of_children_is_reported_once)
{
	static const struct mode families[] = {
		{{"--user-only", "-f"}}, {{"--stop", "-f"}},
		{{"--inside", "-f"}, 0, "sigtrap"},
		{{"--inside", "-f"}, 0, "async"},
	};
	const bool thorough = getenv("THOROUGH") != NULL;
	const int children = thorough ? 100 : 10;
	char argument[16];
	struct running w;
	struct outcome o;

	if (modes != modes_by_events)
		return;
	scratch_write("family.c", "#include <stdlib.h>\n"
	    "#include <sys/wait.h>\n#include <unistd.h>\n"
	    "int counter;\nstatic void hit(void) {\n"
	    "    for (int i = 0; i < 20; i++) { counter++; usleep(50); } }\n"
	    "int main(int argc, char **argv) {\n"
	    "    const int half = atoi(argv[argc - 1]) / 2; char c;\n"
	    "    for (int n = 2 * half; n > 0; n--) {\n"
	    "        pid_t pid = fork(); hit(); if (pid == 0) _exit(0);\n"
	    "        waitpid(pid, 0, 0);\n"
	    "        if (n == half + 1 && read(0, &c, 1) != 1) return 1; }\n"
	    "    return 7; }\n");
	scratch_run("%s -g -o family family.c", getenv("CC"));
	(void)snprintf(argument, sizeof(argument), "%d", children);
	for (size_t i = 0; i < COUNT(families); i++) {
		unsigned kills;

		(void)unlink(scratch_path("report"));
		start_mode(&families[i], &w, LIST("-w", "counter", "-o", "json",
		    "-O", scratch_path("report"), "--", scratch_path("family"),
		    argument));
		kills = kill_all(&w, HIT, "\n");
		finish(&w, &o);
		print_message("%u were killed\n", kills);
		assert_true(kills > 0);
		outcome_take(&o, scratch_path("report"));
		expect_all(&o, 40 * children);
	}
}

/* What is only counted is reported by explainers, too; the first line has been
   read. */
TEST(a_count_is_reported_once)
{
	struct target t;
	struct running w;
	struct outcome o;
	pid_t explainer;

	if (modes != modes_by_events)
		return;
	target_start(&t, LIST(victim("counter"), "2", "1000"));
	watch_start(&w, LIST(watchctl(), "--count", "-w", "counter", "-o",
	    "json", "-p", t.pid));
	assert_true((explainer = explainer_of(w.pid)) > 0);
	assert_int_equal(kill(explainer, SIGKILL), 0);
	say(&t.run, "go\nend\n");
	finish(&t.run, &o);
	finish(&w, &o);
	assert_int_equal(count_of(&o, "start"), 0);
	assert_int_equal(count_of(&o, "end"), 1);
	assert_int_equal(number_of(first_of(&o, "end"), "hits"), 2000);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), 2000);
}

/* What is left out is left out once, by its number: whoever explains goes on
   counting where another died. */
TEST(each_hit_is_chosen_once)
{
	enum { HITS = 900, REJECTED = HITS / 3, EVERY = 12,
		REPORTED = (HITS - REJECTED) / EVERY };
	struct running w;
	struct outcome o;

	for (unsigned i = 0; i < nmodes; i++) {
		const json_t *end;
		json_int_t nth = 0;
		unsigned kills;
		json_t *line;
		size_t k;

		(void)unlink(scratch_path("report"));
		start_mode(&modes[i], &w, LIST("-w", "counter", "-o", "json",
		    "--if", "count % 3 != 0", "--every", "12", "-O",
		    scratch_path("report"), "--", victim("counter"), "1",
		    "900", "50000"));
		say(&w, "go\n");
		kills = kill_all(&w, HIT, "end\n");
		finish(&w, &o);
		outcome_take(&o, scratch_path("report"));
		print_message("%u were killed\n", kills);
		assert_true(kills > 0);
		end = first_of(&o, "end");
		assert_int_equal(number_of(end, "hits"), HITS);
		assert_int_equal(number_of(end, "lost"), 0);
		assert_int_equal(number_of(end, "rejected"), REJECTED);
		assert_int_equal(number_of(end, "reported"), REPORTED);
		assert_int_equal(count_of(&o, "hit"), REPORTED);
		json_array_foreach(o.lines, k, line) {
			if (strcmp(text_of(line, "type"), "hit") != 0)
				continue;
			/* 1, 2, 4, 5, 7, ... are not rejected */
			nth += EVERY;
			if (json_object_get(line, "new") != NULL)
				assert_int_equal(strtoll(text_of(line, "new"),
				    NULL, 16), nth + (nth - 1) / 2);
		}
	}
}

/* Threads that hit at the same time wait as long as one would, while who
   explains is stopped; and what is to be done at their hits is done. */
TEST(threads_wait_together)
{
	const struct mode *mode = modes;
	long ms, most = 0;
	struct running w;
	struct outcome o;
	char line[64];
	pid_t explainer;

	scratch_write("counter.c", "#include <pthread.h>\n"
	    "#include <stdio.h>\n#include <time.h>\n#include <unistd.h>\n"
	    "int counter;\nstatic pthread_barrier_t all;\n"
	    "static long now(void) { struct timespec t;\n"
	    "    clock_gettime(CLOCK_MONOTONIC, &t);\n"
	    "    return t.tv_sec * 1000 + t.tv_nsec / 1000000; }\n"
	    "static void *hit(void *arg) { long began;\n"
	    "    pthread_barrier_wait(&all); began = now(); counter = 1;\n"
	    "    printf(\"%ld\\n\", now() - began); return arg; }\n"
	    "int main(void) { pthread_t t[8]; char c;\n"
	    "    setlinebuf(stdout); puts(\"here\");\n"
	    "    pthread_barrier_init(&all, 0, 8); (void)!read(0, &c, 1);\n"
	    "    for (int i = 0; i < 8; i++)\n"
	    "        pthread_create(&t[i], 0, hit, 0);\n"
	    "    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);\n"
	    "    return read(0, &c, 1) == 1 ? 3 : 2; }\n");
	scratch_run("%s -g -pthread -o counter counter.c", getenv("CC"));
	while (mode->option[1] == NULL)
		mode++;
	start(&w, arguments(mode, LIST("-w", "counter", "-O",
	    scratch_path("report"), "--", scratch_path("counter"))));
	hear(&w, line, sizeof(line));
	assert_true((explainer = explainer_of(w.pid)) > 0);
	assert_int_equal(kill(explainer, SIGSTOP), 0);
	say(&w, "\n");
	for (unsigned i = 0; i < CROWD; i++) {
		hear(&w, line, sizeof(line));
		assert_int_equal(sscanf(line, "%ld", &ms), 1);
		most = ms > most ? ms : most;
	}
	/* one after the other, the last would wait eight times as long */
	print_message("they waited %ld ms at most\n", most);
	assert_true(most < CROWD / 2 * WAIT);
	assert_int_equal(kill(explainer, SIGCONT), 0);
	say(&w, "\n");
	finish_status(&w, &o, 3);
	assert_holds(o.err, "8 hits, 8 reported, 0 lost");
	expect_acted(&o, mode, CROWD);
}

/* Of two libraries that were mapped at one place, each is blamed for its own,
   also by an explainer that came when a third one was there. */
TEST(a_backtrace_is_of_its_time)
{
	struct running w;
	struct outcome o;
	char line[64];

	if (modes != modes_by_events)
		return;
	scratch_write("lib.c", "extern int counter;\n"
	    "__attribute__((noinline)) void FN(void) { counter++; }\n"
	    "void put(void) { FN(); }\n");
	scratch_write("loads.c", "#include <dlfcn.h>\n#include <stdio.h>\n"
	    "#include <unistd.h>\nint counter;\n"
	    "int main(void) { char c, name[] = \"./liba.so\";\n"
	    "    for (int i = 0; i < 3; i++) {\n"
	    "        void *l, (*put)(void); name[5] = 'a' + i;\n"
	    "        if ((l = dlopen(name, RTLD_NOW)) == 0) return 1;\n"
	    "        *(void **)&put = dlsym(l, \"put\");\n"
	    "        if (i < 2) put(); else puts(\"two\");\n"
	    "        fflush(stdout);\n"
	    "        if (i == 2 && read(0, &c, 1) != 1) return 2;\n"
	    "        dlclose(l); }\n"
	    "    return 3; }\n");
	scratch_run("for n in a b c; do %1$s -O1 -g -shared -fPIC -DFN=in_$n "
	    "-o lib$n.so lib.c || exit; done; "
	    "%1$s -g -rdynamic -o loads loads.c -ldl", getenv("CC"));
	assert_int_equal(chdir(scratch_dir), 0);
	start(&w, LIST(watchctl(), "--stop", "-w", "counter", "--",
	    scratch_path("loads")));
	hear(&w, line, sizeof(line));
	await(w.err, "#2 ");
	explainer_kill(w.pid);
	say(&w, "\n");
	finish_status(&w, &o, 3);
	assert_holds(o.err, "counter: 2 hits, 2 backtraces");
	assert_holds(o.err, "#1         write in in_a ");
	assert_holds(o.err, "#2         write in in_b ");
}

#if !SANITIZED	/* whose library must come first, and calls what it likes */
/* Watch while the intruder does this where debug information is read. */
static void
start_with(const char *what, const struct mode *mode, struct running *w)
{
	start_intruded(what, w, arguments(mode, LIST("-w", "counter", "-o",
	    "json", "-O", "/dev/stderr", "--", victim("counter"), "2",
	    "300")));
}

/* Its lines of the report are among those of watchctl's own. */
static void
finish_with(struct running *w, struct outcome *o)
{
	say(w, "go\nend\n");
	finish_status(w, o, 7);
	assert_holds(o->err, "\"hits\":600,\"reported\":600,\"lost\":0");
}

TEST(what_the_explainer_may_not_do_fails)
{
	struct running w[MODES_MAX];
	struct outcome o;

	for (size_t i = 0; i < nmodes; i++)
		start_with("try", &modes[i], &w[i]);
	for (size_t i = 0; i < nmodes; i++) {
		await(w[i].err, "\"type\":\"start\"");
		explainer_expect_confined(explainer_of(w[i].pid));
		finish_with(&w[i], &o);
		assert_lacks(o.err, "the process that explains");
		assert_holds(o.err, "counter.c");
	}
}

/* One module is left aside. */
TEST(the_explainers_death_is_survived)
{
	static const char *const what[] = {"crash", "memory"};
	struct running w[COUNT(what)][MODES_MAX];
	struct outcome o;

	for (size_t k = 0; k < COUNT(what); k++)
		for (size_t i = 0; i < nmodes; i++)
			start_with(what[k], &modes[i], &w[k][i]);
	for (size_t k = 0; k < COUNT(what); k++) {
		for (size_t i = 0; i < nmodes; i++) {
			finish_with(&w[k][i], &o);
			assert_holds(o.err, "counter, whose "
			    "functions and lines are left out");
		}
	}
}

/* What a SPEC means in one process is asked while it reads another's debug
   information. */
TEST(a_question_may_be_asked_meanwhile)
{
	struct target t[2];
	struct running w;
	struct outcome o;

	for (size_t i = 0; i < 2; i++)
		target_start(&t[i], LIST(victim("counter"), "1", "5"));
	start_intruded("slow", &w, LIST(watchctl(), modes->option[0], "-w",
	    "counter", "-o", "json", "-p", t[0].pid, "-p", t[1].pid));
	await(w.out, "\"type\":\"start\"");
	for (size_t i = 0; i < 2; i++)
		target_end(&t[i], 7);
	finish_status(&w, &o, 0);
	assert_lacks(o.err, "the process that explains");
	assert_holds(o.err, "10 hits, 10 reported, 0 lost");
}

/* Who explains makes no progress: threads go on after two seconds, and what is
   to be done at their hits is done, unless it takes an explanation to know
   whether it is. */
TEST(no_thread_waits_for_ever)
{
	static const char *const more[] = {NULL, "--changed", "--if=1"};
	struct running w[COUNT(more)];
	struct outcome o;
	int acted;

	if (getenv("THOROUGH") == NULL)		/* it takes ten seconds */
		return;
	for (size_t i = 0; i < COUNT(more); i++) {
		const char *argv[ARGS];
		size_t n = append(argv, 0, LIST(watchctl(), "-w", "counter",
		    "--on-hit", "exec echo acted $WATCHCTL_TID", "-O",
		    "/dev/null"));

		n = append(argv, n, LIST(more[i]));
		(void)append(argv, n, LIST("--", victim("counter"), "1",
		    "3"));
		start_intruded("sleep", &w[i], argv);
		say(&w[i], "go\nend\n");
	}
	for (size_t i = 0; i < COUNT(more); i++) {
		finish(&w[i], &o);
		acted = 0;
		for (const char *at = o.err; (at = strstr(at, "acted ")) !=
		    NULL; at++)
			acted += at[6] != '\n';
		assert_int_equal(o.status, 7);
		assert_holds(o.err, "made no progress");
		assert_holds(o.err, "3 hits, 3 reported, 0 lost");
		if (i == 0)
			assert_int_equal(acted, 3);
		assert_int_equal(strstr(o.err, "went on before") != NULL,
		    acted < 3);
	}
}

/* Four hits while it hangs.  Result: whether it did so to the last one. */
static bool
hits_while_it_hangs(void)
{
	struct running w;
	struct outcome o;
	char line[64];
	pid_t first = 0;
	bool same;

	start_intruded("sleep", &w, LIST(watchctl(), "--inside", "-w",
	    "counter", "-O", scratch_path("report"), "--",
	    scratch_path("counter")));
	for (unsigned i = 0; i < 4; i++) {
		if (i > 0)
			say(&w, "\n");
		hear(&w, line, sizeof(line));
		if (i == 0)
			first = explainer_of(w.pid);
	}
	same = first > 0 && explainer_of(w.pid) == first;
	explainer_kill(w.pid);
	say(&w, "\n");
	finish_status(&w, &o, 3);
	assert_holds(o.err, "the process that explains");
	assert_holds(o.err, "4 hits, 4 reported, 0 lost");
	o = (struct outcome){.out = NULL};
	outcome_take(&o, scratch_path("report"));
	assert_holds(o.report, "#4   write  counter");
	assert_lacks(o.report, "#5");
	return same;
}

/* A thread waits for a while, and no thread after it does. */
TEST(hits_do_not_wait_for_one_that_hangs)
{
	unsigned tries = 3;

	if (modes != modes_by_events)
		return;
	scratch_write("counter.c", "#include <stdio.h>\n"
	    "#include <unistd.h>\n"
	    "int counter;\nint main(void) { char c;\n"
	    "    for (int i = 0; i < 4; i++) { counter++; puts(\"one\");\n"
	    "        fflush(stdout); if (read(0, &c, 1) != 1) return 2; }\n"
	    "    return 3; }\n");
	scratch_run("%s -g -o counter counter.c", getenv("CC"));
	while (!hits_while_it_hangs())
		assert_true(--tries > 0);
}
#endif

static int
begin_refused(void **state)
{
	modes = modes_by_registers;
	nmodes = COUNT(modes_by_registers);
	return be_refused(state) < 0 ? -1 : scratch_make(state);
}

/* The second part is refused events, as all that it starts. */
static int
run_part(unsigned part)
{
#if !SANITIZED
	const CMUnitTestFunction long_ones[] = {
		no_thread_waits_for_ever, a_question_may_be_asked_meanwhile,
		getenv("THOROUGH") == NULL ? threads_wait_together : NULL, NULL,
	};
#else
	const CMUnitTestFunction long_ones[] = {NULL};
#endif

	return part == 0 ? run_live_tests(.before_all = scratch_make,
	    .after_all = scratch_remove) : run_live_tests(.except = long_ones,
	    .before_all = begin_refused, .after_all = scratch_remove);
}

int
main(void)
{
	return run_beside(2, run_part);
}
