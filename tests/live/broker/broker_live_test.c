/*
 * broker: what explains is confined to that, and its death is survived.
 */
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "explainers.h"
#include "record/perfdata.h"
#include "live.h"
#include "refuse.h"
#include "scratch.h"
#include "terminal.h"

static char recording[PATH_MAX];

static int
make_recording(void **state)
{
	struct outcome o;

	if (scratch_make(state) != 0)
		return -1;
	(void)snprintf(recording, sizeof(recording), "%s", scratch_path("p"));
	run_status(&o, 7, LIST(watchctl(), "-w", "counter", "-o", "perf", "-O",
	    recording, victim("counter"), "2", "300"));
	return 0;
}

/* Each hit once, in order, and the account of all. */
static void
expect_all(const struct outcome *o)
{
	size_t i;
	json_t *line;
	json_int_t seq = 0;

	assert_non_null(o->lines);
	json_array_foreach(o->lines, i, line)
		if (strcmp(text_of(line, "type"), "hit") == 0)
			assert_int_equal(number_of(line, "seq"), ++seq);
	assert_int_equal(seq, 600);
	assert_int_equal(count_of(o, "start"), 1);
	assert_int_equal(count_of(o, "end"), 1);
	assert_int_equal(number_of(first_of(o, "end"), "reported"), 600);
	assert_holds(o->err, "600 hits, 600 reported, 0 lost");
	assert_int_equal(o->status, 0);
}

/* How many of several ways to die are tried: the last ones take ten seconds,
   which is much for a test of every day. */
static size_t
tried(size_t n, size_t long_ones)
{
	return getenv("THOROUGH") != NULL ? n : n - long_ones;
}

#if !SANITIZED	/* whose library must come first, and calls what it likes */
static void
start_with(const char *what, struct running *w)
{
	start_intruded(what, w, LIST(watchctl(), "report", "-o", "json",
	    recording));
}

/* What becomes of a report while the intruder does this; standard error is a
   terminal. */
static void
report_on_terminal(const char *what, const char *report, struct outcome *o)
{
	intrude(what);
	run_on_terminal(o, 0, LIST(watchctl(), "report", "-o", "json", "-O",
	    report, recording));
	(void)unsetenv("LD_PRELOAD");
}

/* What takes long to be read is named, where somebody may wait for it; then the
   hits come that waited, in order. */
TEST(says_what_it_reads)
{
	struct outcome o;
	char *said, *behind;
	bool named = false;

	report_on_terminal("slow", scratch_path("report"), &o);
	behind = o.err;
	/* on a busy machine there may be more than one */
	while ((said = strstr(behind, "watchctl: reading ")) != NULL) {
		assert_non_null(behind = strchr(said, '\r'));
		*behind++ = '\0';
		named |= strstr(said, "/counter") != NULL;
		/* nothing of it is left */
		assert_int_equal(strspn(behind, " "), strlen(said));
		assert_int_equal(behind[strlen(said)], '\r');
	}
	assert_true(named);
	assert_holds(behind, "600 hits, 600 reported, 0 lost");
	outcome_take(&o, scratch_path("report"));
	o.err = behind;
	expect_all(&o);
}

/* Where nobody waits it is not. */
TEST(says_nothing_to_a_file)
{
	struct running w;
	struct outcome o;

	start_with("slow", &w);
	finish(&w, &o);
	assert_lacks(o.err, "reading");
	expect_all(&o);
}

/* Nothing that it tries works, and everything else does. */
TEST(what_the_explainer_may_not_do_fails)
{
	struct running w;
	struct outcome o;

	start_with("try", &w);
	finish(&w, &o);
	expect_all(&o);
	assert_lacks(o.err, "warning");
	assert_holds(o.out, "\"file\"");
}

/* abort(3) ends by its last resort, since it may not send signals. */
static const struct {
	const char *what, *said;
} deaths[] = {
	{"crash", "SIGSEGV"},
	{"memory", "SIGSEGV"},
	{"sleep", "no progress"},
	{"hang", "no progress"},
};

/* One module is left aside, and no hit is missing. */
TEST(the_explainers_death_is_survived)
{
	struct running w[COUNT(deaths)];
	const size_t n = tried(COUNT(deaths), 2);
	struct outcome o;

	for (size_t i = 0; i < n; i++)
		start_with(deaths[i].what, &w[i]);
	for (size_t i = 0; i < n; i++) {
		finish(&w[i], &o);
		assert_holds(o.err, deaths[i].said);
		assert_holds(o.err, "counter, whose functions and "
		    "lines are left out");
		expect_all(&o);
	}
}

/* What it sends without end is not kept without end, and it is replaced. */
TEST(memory_beyond_the_limit_ends_the_explainer)
{
	static const char *const what[] = {"floods", "babbles"};
	struct running w;
	struct rusage before, after;
	struct outcome o;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &before), 0);
	for (size_t i = 0; i < COUNT(what); i++) {
		start_with(what[i], &w);
		finish(&w, &o);
		assert_holds(o.err, "did not do as it should: "
		    "Protocol error");
		assert_holds(o.err, "counter, whose functions and lines are "
		    "left out");
		expect_all(&o);
	}
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &after), 0);
	assert_true(after.ru_maxrss < before.ru_maxrss + (64 << 10));
}

/* --- SPECs --- */

/* Count the hits of a SPEC. */
static void
start_spec(const char *what, struct running *w, const char *mode,
    const char *spec)
{
	start_intruded(what, w, LIST(watchctl(), mode, "-w", spec, "--",
	    victim("counter"), "2", "300"));
}

TEST(resolving_a_spec_may_not_do_more)
{
	struct running w;
	struct outcome o;

	start_spec("symbols-try", &w, "--count", "counter");
	finish_status(&w, &o, 7);
	assert_lacks(o.err, "warning");
	assert_holds(o.err, "600 hits, 600 reported, 0 lost");
}

/* Symbols of the module that was left aside are unknown, those of others are
   not. */
TEST(death_of_a_spec_is_survived)
{
	static const char *const what[] = {
		"symbols-crash", "symbols-memory", "symbols-sleep",
	};
	struct running own[COUNT(what)], other[COUNT(what)];
	const size_t n = tried(COUNT(what), 1);
	struct outcome o;

	for (size_t i = 0; i < n; i++) {
		start_spec(what[i], &own[i], "--count", "counter");
		start_spec(what[i], &other[i], "--count",
		    "libc.so.6!environ");
	}
	for (size_t i = 0; i < n; i++) {
		finish_status(&own[i], &o, 125);
		assert_holds(o.err, "counter, whose functions and "
		    "lines are left out");
		assert_holds(o.err, "'counter': no symbol");
		finish_status(&other[i], &o, 7);
		assert_holds(o.err, "counter, whose functions and "
		    "lines are left out");
	}
}

/* One death may be anything's fault. */
TEST(a_spec_is_looked_for_twice)
{
	struct running w;
	struct outcome o;

	start_spec("symbols-crash-once", &w, "--count", "counter");
	finish_status(&w, &o, 7);
	assert_holds(o.err, "another one tries that once more");
	assert_lacks(o.err, "left out");
	assert_holds(o.err, "600 hits, 600 reported");
}

/* Kill the one that the intruder keeps asleep while it reads. */
static void
kill_reader(pid_t pid, pid_t *reader)
{
	char path[64], call[16];
	pid_t last = *reader;
	FILE *f;

	for (int ms = 0;; ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
		if ((*reader = explainer_of(pid)) == 0 || *reader == last)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/syscall", *reader);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		*call = '\0';
		(void)fgets(call, sizeof(call), f);
		(void)fclose(f);
		if (atoi(call) == SYS_futex)
			break;
	}
	(void)kill(*reader, SIGKILL);
}

/* Whoever kills one says nothing about what it is reading, unless that happens
   again there. */
TEST(a_killed_explainer_blames_no_module_at_first)
{
	struct running w;
	struct outcome o;
	pid_t reader = 0;

	start_intruded("sleep-once", &w, LIST(watchctl(), "report", recording));
	kill_reader(w.pid, &reader);
	finish_status(&w, &o, 0);
	assert_holds(o.err, "was killed while it read ");
	assert_holds(o.err, "counter; another one tries that once more");
	assert_lacks(o.err, "left out");
	assert_holds(o.out, "counter.c:");
	assert_holds(o.err, "600 hits, 600 reported, 0 lost");
	start_intruded("sleep", &w, LIST(watchctl(), "report", recording));
	reader = 0;
	kill_reader(w.pid, &reader);
	kill_reader(w.pid, &reader);
	finish_status(&w, &o, 0);
	assert_holds(o.err, "was killed while it read ");
	assert_holds(o.err, "counter, whose functions and lines are left out");
	assert_lacks(o.out, "counter.c:");
	assert_holds(o.err, "600 hits, 600 reported, 0 lost");
}

/* After three the SPEC is named, whatever the way of watching. */
TEST(three_deaths_of_a_spec_are_the_end)
{
	static const char *const modes[] = {"--count", "--stop", "--inside"};
	struct running w;
	struct outcome o;

	for (size_t i = 0; i < COUNT(modes); i++) {
		start_spec("every-crash", &w, modes[i], "counter");
		finish_status(&w, &o, 125);
		assert_holds(o.err, "as did two before it");
		assert_holds(o.err, "'counter': reading symbols");
	}
}

/* --- logs --- */

static unsigned long long
offset_of_bump(void)
{
	unsigned long long offset = 0;
	char *said;

	scratch_run("nm '%s' | sed -n 's/ [tT] bump$//p' > bump",
	    victim("counter"));
	said = scratch_read("bump", NULL);
	assert_int_equal(sscanf(said, "%llx", &offset), 1);
	return offset;
}

/* Lines stay as they are, and other modules' get names. */
TEST(death_of_a_log_is_survived)
{
	static const char *const what[] = {"crash", "memory", "try", "sleep"};
	const size_t n = tried(COUNT(what), 1);
	char log[4 * PATH_MAX], *path = strdup(scratch_path("log"));
	struct running w[COUNT(what)];
	struct outcome o;

	(void)snprintf(log, sizeof(log), "watchpoint: #1 write x (8 bytes at "
	    "0x404060) by prog[1/2]\n"
	    "watchpoint:   #1 frame 0 0x1234 %1$s+0x%2$llx\n"
	    "watchpoint:   #1 frame 1 0x1234 %1$s+0x%2$llx\n"
	    "end\n", victim("counter"), offset_of_bump() + 4);
	scratch_write("log", log);
	for (size_t i = 0; i < n; i++)
		start_intruded(what[i], &w[i], LIST(watchctl(), "report",
		    path));
	for (size_t i = 0; i < n; i++) {
		finish_status(&w[i], &o, 0);
		if (strcmp(what[i], "try") == 0) {
			assert_holds(o.out, "frame 1 0x1234 bump+");
			assert_lacks(o.err, "warning");
		} else {
			assert_string_equal(o.out, log);
			assert_holds(o.err, "counter, whose "
			    "functions and lines are left out");
		}
	}
	free(path);
}

#endif

/* The first child of a process; 0: it has none. */
static pid_t
child_of(pid_t pid)
{
	char path[64];
	FILE *f;
	int child = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid,
	    pid);
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	if (fscanf(f, "%d", &child) != 1)
		child = 0;
	(void)fclose(f);
	return child;
}

#if !SANITIZED
/* A report whose reader is slow; its explainer is there, and has begun. */
static pid_t
start_report(struct running *w)
{
	char line[2048];
	pid_t pid;

	start(w, LIST(watchctl(), "report", "-o", "json", recording));
	hear(w, line, sizeof(line));
	pid = child_of(w->pid);
	assert_true(pid > 0);
	return pid;
}

TEST(the_explainer_has_no_privileges)
{
	struct running w;
	struct outcome o;
	pid_t pid = start_report(&w);
	char path[64], name[32], to[PATH_MAX];
	unsigned open = 0;

	explainer_expect_confined(pid);
	for (int fd = 0; fd <= 2; fd++) {
		ssize_t len;

		(void)snprintf(name, sizeof(name), "fd/%d", fd);
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
		len = readlink(path, to, sizeof(to) - 1);
		assert_true(len > 0);
		to[len] = '\0';
		assert_string_equal(to, "/dev/null");
		open++;
	}
	assert_int_equal(open, 3);
	finish(&w, &o);
	assert_holds(o.err, "600 hits, 600 reported, 0 lost");
}

#endif

/* Killed whenever, its successor goes on where it was. */
TEST(killed_at_any_time)
{
	for (unsigned i = 0; i < tried(20, 10); i++) {
		struct running w;
		struct outcome o;
		char line[2048];
		pid_t pid;

		start(&w, LIST(watchctl(), "report", "-o", "json", recording));
		while ((pid = child_of(w.pid)) == 0)
			;
		(void)usleep(i * 3000);
		if (i % 2 == 0)
			hear(&w, line, sizeof(line));
		if (child_of(w.pid) == pid)
			(void)kill(pid, SIGKILL);
		finish(&w, &o);
		if (i % 2 == 1)
			expect_all(&o);
		assert_int_equal(o.status, 0);
		assert_holds(o.err, "600 hits, 600 reported, " "0 lost");
	}
}

/* --- recordings --- */

/* Bit n for library n. */
static void
note_library(void *arg, const char *path, const uint8_t *id, size_t len)
{
	const char *at = strstr(path, "/lib");

	assert_true(len > 0 && id != NULL);
	if (at != NULL && at[4] >= '0' && at[4] <= '9' &&
	    strcmp(at + 5, ".so") == 0)
		*(unsigned *)arg |= 1u << (at[4] - '0');
}

/* Those that are loaded while it runs are in the table of build ids, whatever
   became of the explainer meanwhile. */
TEST(recordings_have_later_build_ids)
{
	char *program = strdup(scratch_path("loads"));
	char *file = strdup(scratch_path("loads.data")), line[64];
	struct ex_perfdata *data;
	struct running w;
	struct outcome o;
	unsigned found = 0;
	const char *why;

	scratch_write("lib.c", "int number(void) { return N; }\n");
	scratch_write("loads.c", "#include <dlfcn.h>\n#include <stdio.h>\n"
	    "#include <unistd.h>\n"
	    "int counter;\nint main(void) {\n"
	    "    for (int i = 0; i < 4; i++) {\n"
	    "        char name[] = \"./lib0.so\", c;\n"
	    "        name[5] += i; if (dlopen(name, RTLD_NOW) == 0) return 1;\n"
	    "        counter++; puts(\"one\"); fflush(stdout);\n"
	    "        if (read(0, &c, 1) != 1) return 2;\n"
	    "    }\n    return 0;\n}\n");
	scratch_run("for n in 0 1 2 3; do %1$s -shared -fPIC -DN=$n "
	    "-Wl,--build-id -o lib$n.so lib.c || exit; done; %1$s -o loads "
	    "loads.c -ldl", getenv("CC"));
	assert_int_equal(chdir(scratch_dir), 0);
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "perf", "-O", file,
	    "--", program));
	for (unsigned i = 0; i < 4; i++) {
		hear(&w, line, sizeof(line));
		if (i == 1)
			explainer_kill(w.pid);
		say(&w, "\n");
	}
	finish_status(&w, &o, 0);
	assert_int_equal(ex_perfdata_open(file, &data, &why), 0);
	ex_perfdata_build_ids(data, note_library, &found);
	ex_perfdata_close(data);
	assert_int_equal(found, 0xf);
	free(program);
	free(file);
}

#if !SANITIZED	/* whose shadow memory is not limited */
/* Whether the explainer is there, and may use so much private memory. */
static bool
is_limited(pid_t pid, const char *bytes)
{
	char path[64], line[128], limit[32] = "";
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/limits",
	    explainer_of(pid));
	if ((f = fopen(path, "r")) == NULL)
		return false;
	while (*limit == '\0' && fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "Max data size %31s", limit);
	(void)fclose(f);
	return strcmp(limit, bytes) == 0;
}

static void
expect_limit(pid_t pid, const char *bytes)
{
	for (int ms = 0; !is_limited(pid, bytes); ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
}
#endif

/* Once SPECs are resolved, one that is killed harms neither hits nor the
   target, in whatever way it is watched; and it may use as much memory as was
   said. */
TEST(killed_while_hits_are_made)
{
	static const char *const modes[] = {
		"--user-only", "--stop", "--inside",
	};
	char line[64];

	scratch_write("slow.c", "#include <stdio.h>\n#include <unistd.h>\n"
	    "int counter;\nint main(void) { char c;\n"
	    "    for (int i = 0; i < 4; i++) { counter++; puts(\"one\");\n"
	    "        fflush(stdout); if (read(0, &c, 1) != 1) return 2; }\n"
	    "    return 3; }\n");
	scratch_run("%s -g -o slow slow.c", getenv("CC"));
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct running w;
		struct outcome o;

		start(&w, LIST(watchctl(), modes[i], "--explain-memory", "64M",
		    "-w", "counter", "-O", scratch_path("report"), "--",
		    scratch_path("slow")));
		for (unsigned k = 0; k < 4; k++) {
			hear(&w, line, sizeof(line));
#if !SANITIZED
			if (k == 1)
				expect_limit(w.pid, "67108864");
#endif
			if (k == 1)
				explainer_kill(w.pid);
			say(&w, "\n");
		}
		finish_status(&w, &o, 3);
		assert_holds(o.err, "4 hits, 4 reported, 0 lost");
	}
}

/* --- where it cannot be run --- */

/* What may be in place of the explainer: NULL, nothing; else a script, or what
   none can execute. */
static const char *const instead[] = {
	NULL, "no program", "#!/bin/sh\nexit 0\n", "#!/bin/sh\nkill -SEGV $$\n",
	"#!/bin/sh\nexec sleep 1000\n",
};

static void
put_instead(const char *text)
{
	(void)unlink(scratch_path("watchctl-explain"));
	if (text == NULL)
		return;
	scratch_write("watchctl-explain", text);
	if (*text == '#')
		assert_int_equal(chmod(scratch_path("watchctl-explain"), 0755),
		    0);
}

/* At the start: nothing is watched, and the reason and the way out are said. */
TEST(an_explainer_that_does_not_start_is_named)
{
	static const char *const modes[] = {"--count", "--stop"};
	char *copy = strdup(scratch_path("watchctl"));
	struct outcome o;

	scratch_run("cp '%s' watchctl", watchctl());
	for (size_t i = 0; i < tried(COUNT(instead), 1); i++) {
		put_instead(instead[i]);
		for (size_t k = 0; k < COUNT(modes); k++) {
			run_status(&o, 125, LIST(copy, modes[k], "-w",
			    "counter", "--", victim("counter"), "2", "300"));
			/* the first two cannot be executed */
			assert_holds(o.err, i < 2 ? "watchctl-explain, which "
			    "reads symbols, was not started" :
			    "watchctl-explain, which reads symbols, does not "
			    "run here");
		}
	}
	free(copy);
}

/* Later on: the program goes on, and the account has what was reported. */
TEST(an_explainer_that_starts_no_more_is_survived)
{
	static const char *const modes[] = {"--user-only", "--stop"};
	char *copy = strdup(scratch_path("watchctl")), line[64];
	struct running w;
	struct outcome o;

	scratch_write("ticks.c", "#include <stdio.h>\n#include <unistd.h>\n"
	    "int counter;\nint main(void) { char c;\n"
	    "    for (int i = 0; i < 4; i++) { counter++; puts(\"one\");\n"
	    "        fflush(stdout); if (read(0, &c, 1) != 1) return 2; }\n"
	    "    return 3; }\n");
	scratch_run("cp '%s' watchctl; %s -g -o ticks ticks.c", watchctl(),
	    getenv("CC"));
	for (size_t i = 0; i < tried(COUNT(instead), 1) * COUNT(modes); i++) {
		put_instead(NULL);
		scratch_run("cp \"$(dirname '%s')/watchctl-explain\" .",
		    watchctl());
		start(&w, LIST(copy, modes[i % COUNT(modes)], "-w", "counter",
		    "-o", "json", "-O", "/dev/stderr", "--",
		    scratch_path("ticks")));
		for (unsigned k = 0; k < 4; k++) {
			hear(&w, line, sizeof(line));
			if (k == 2) {
				await(w.err, "\"seq\":3");
				put_instead(instead[i / COUNT(modes)]);
				explainer_kill(w.pid);
			}
			say(&w, "\n");
		}
		finish_status(&w, &o, 125);
		/* the watch may have ended before the fourth */
		assert_holds(o.err, " hits, 3 reported, ");
		assert_holds(o.err, "the report is incomplete: ");
		assert_holds(o.err, "there is no process any more "
		    "that explains");
	}
	free(copy);
}

/* --- debug information from a server --- */

/* Serve the scratch directory.  Result: the port. */
static int
start_server(struct running *server)
{
	char line[256];
	int port;

	start(server, LIST("/usr/bin/python3", "-u", "-m", "http.server", "-b",
	    "127.0.0.1", "-d", scratch_path("."), "0"));
	hear(server, line, sizeof(line));
	assert_int_equal(sscanf(line, "Serving HTTP on 127.0.0.1 port %d",
	    &port), 1);
	return port;
}

static bool
has_line(const char *file)
{
	struct outcome o;
	bool has;

	run_status(&o, 0, LIST(watchctl(), "report", "-o", "json", file));
	has = strstr(o.out, "counter.c\",\"line\":") != NULL;
	return has;
}

/* Only where the user's environment names one, and what it has is the one. */
TEST(debug_information_is_fetched)
{
	char *file = strdup(scratch_path("stripped.data")), url[64];
	struct running server;
	struct outcome o;

	scratch_run("cp '%s' stripped && strip -g stripped && "
	    "id=$(readelf -n stripped | sed -n 's/.*Build ID: //p') && "
	    "mkdir -p buildid/$id && objcopy --only-keep-debug '%s' "
	    "buildid/$id/debuginfo", victim("counter"), victim("counter"));
	run(&o, LIST(watchctl(), "-w", "counter", "-n", "1", "-o", "perf", "-O",
	    file, scratch_path("stripped"), "1", "1"));
	assert_false(has_line(file));
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d",
	    start_server(&server));
	(void)setenv("DEBUGINFOD_URLS", url, 1);
	(void)setenv("DEBUGINFOD_CACHE_PATH", scratch_path("cache"), 1);
	assert_true(has_line(file));
	end(&server);
	scratch_run("rm -rf cache && mkdir cache");
	assert_false(has_line(file));	/* it is gone */
	(void)unsetenv("DEBUGINFOD_URLS");
	(void)unsetenv("DEBUGINFOD_CACHE_PATH");
	free(file);
}

/* A server of which only this is known: where it listens.  Result: its
   socket. */
static int
listen_only(char url[64])
{
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr =
		    htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);

	assert_int_equal(bind(server, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(server, 8), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(url, 64, "http://127.0.0.1:%d", ntohs(at.sin_port));
	return server;
}

/* Answer that there is none, until it is asked for this build id.  Result: the
   connection, on which that is not answered. */
static int
await_request(int server, const char *id)
{
	static const char none[] = "HTTP/1.0 404 None\r\n"
	    "Content-Length: 0\r\nConnection: close\r\n\r\n";
	struct pollfd p = {.fd = server, .events = POLLIN};
	char request[4096];

	for (;;) {
		int client;
		ssize_t n;

		assert_int_equal(poll(&p, 1, 60000), 1);
		client = accept4(server, NULL, NULL, SOCK_CLOEXEC);
		n = recv(client, request, sizeof(request) - 1, 0);
		request[n < 0 ? 0 : n] = '\0';
		if (strstr(request, id) != NULL)
			return client;
		(void)send(client, none, strlen(none), MSG_NOSIGNAL);
		(void)close(client);
	}
}

/* The build id of a file. */
static void
read_build_id(const char *file, char id[64])
{
	FILE *f;

	scratch_run("readelf -n %s | sed -n 's/.*Build ID: //p' >id", file);
	f = fopen(scratch_path("id"), "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%63s", id), 1);
	(void)fclose(f);
}

/* A stopped thread goes on, while a server takes its time. */
TEST(no_thread_waits_for_a_server)
{
	char url[64], id[64], line[64], byte;
	struct running w;
	struct outcome o;
	int server, client;

	scratch_write("put.c", "void put(int *p) { *p = 1; }\n");
	scratch_write("puts.c", "#include <stdio.h>\n#include <unistd.h>\n"
	    "void put(int *);\nint counter;\n"
	    "int main(void) { char c; put(&counter); puts(\"one\");\n"
	    "    fflush(stdout); return read(0, &c, 1) == 1 ? 3 : 2; }\n");
	scratch_run("%s -O1 -shared -fPIC -Wl,--build-id -o libput.so put.c && "
	    "strip -g libput.so && %s -g -o puts puts.c -L. -lput "
	    "-Wl,-rpath,'$ORIGIN'", getenv("CC"), getenv("CC"));
	read_build_id("libput.so", id);
	server = listen_only(url);
	(void)setenv("DEBUGINFOD_URLS", url, 1);
	(void)setenv("DEBUGINFOD_CACHE_PATH", scratch_path("slow-cache"), 1);
	start(&w, LIST(watchctl(), "--no-cache", "-w", "counter", "--on-hit",
	    "exec true", "-O", scratch_path("report"), "--",
	    scratch_path("puts")));
	client = await_request(server, id);
	hear(&w, line, sizeof(line));
	assert_string_equal(line, "one");
	assert_int_equal(recv(client, &byte, 1, MSG_DONTWAIT), -1);
	(void)close(server);
	(void)close(client);
	say(&w, "\n");
	finish_status(&w, &o, 3);
	assert_holds(o.err, "1 hit, 1 reported, 0 lost");
	(void)unsetenv("DEBUGINFOD_URLS");
	(void)unsetenv("DEBUGINFOD_CACHE_PATH");
}

/* Run doctor where there is no seccomp. */
static void
run_unfiltered(struct outcome *o)
{
	const struct refuse_arg filters = {0, PR_SET_SECCOMP, false};
	int status;
	pid_t pid;

	if ((pid = fork()) == 0) {
		int fd = open(scratch_path("doctor"), O_CREAT | O_WRONLY, 0600);

		(void)dup2(fd, STDOUT_FILENO);
		if (refuse_call(SYS_seccomp, ENOSYS, NULL, 0) &&
		    refuse_call(SYS_prctl, EINVAL, &filters, 1))
			(void)execl(watchctl(), "watchctl", "doctor", "-o",
			    "json", (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	*o = (struct outcome){.out = NULL};
	outcome_take(o, scratch_path("doctor"));
}

static const json_t *
sandbox_of(const struct outcome *o)
{
	const json_t *sandbox = json_object_get(json_array_get(o->lines, 0),
	    "sandbox");

	assert_non_null(sandbox);
	return sandbox;
}

/* An explainer is started, and looked at. */
TEST(doctor_says_how_confined_it_is)
{
	const json_t *sandbox;
	struct outcome o;

	run(&o, LIST(watchctl(), "doctor", "-o", "json"));
	sandbox = sandbox_of(&o);
	assert_int_equal(json_is_true(json_object_get(sandbox, "ok")),
	    !SANITIZED);
	assert_int_equal(json_is_true(json_object_get(sandbox, "filtered")),
	    !SANITIZED);
	assert_true(json_is_false(json_object_get(sandbox, "capabilities")));
	assert_int_not_equal(number_of(sandbox, "uid"), 0);
	if (SANITIZED)
		return;
	run_unfiltered(&o);
	sandbox = sandbox_of(&o);
	assert_true(json_is_false(json_object_get(sandbox, "ok")));
	assert_holds(text_of(sandbox, "detail"), "not filtered: "
	    "warning: this kernel does not filter system calls");
}

RUN_LIVE_TESTS(.before_all = make_recording, .after_all = scratch_remove)
