/*
 * origin: on which host and as which rank a report was made; names of files
 * made of that; and names of backtraces that are the same in each process.
 */
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "live.h"
#include "scratch.h"
#include "watching.h"

static char host[65];

/* Where a report goes: "HOST-RANK-PID.%". */
static const char *
path_of(int rank, json_int_t pid)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "%s-%d-%lld.%%", host, rank,
	    (long long)pid);
	return scratch_path(name);
}

/* The report of a run that has this many writes is there, and says where it was
   made. */
static void
expect_report(int rank, pid_t pid, json_int_t hits)
{
	struct outcome o = {0};
	const json_t *begin;

	outcome_take(&o, path_of(rank, pid));
	if (o.lines == NULL)
		fail_msg("no report %s", path_of(rank, pid));
	begin = first_of(&o, "start");
	assert_string_equal(text_of(begin, "host"), host);
	assert_int_equal(number_of(begin, "rank"), rank);
	assert_int_equal(number_of(begin, "pid"), pid);
	assert_int_equal(number_of(first_of(&o, "end"), "reported"), hits);
}

/* The pid that a victim says. */
static pid_t
pid_said(struct running *w)
{
	char line[256];
	int pid;

	hear(w, line, sizeof(line));
	assert_int_equal(sscanf(line, "pid %d", &pid), 1);
	return pid;
}

TEST(names_of_files)
{
	static const char *const modes[] = {"-n100", "--stop", "--inside"};

	(void)setenv("PMI_RANK", "3", 1);
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct running w;
		struct outcome o;
		pid_t pid;

		start(&w, LIST(watchctl(), modes[i], "-w", "counter", "-o",
		    "json", "-O", scratch_path("%h-%r-%p.%%"), "--",
		    victim("counter"), "1", "5"));
		pid = pid_said(&w);
		say(&w, "go\nend\n");
		finish_status(&w, &o, 7);
		expect_report(3, pid, 5);
	}
	(void)unsetenv("PMI_RANK");
}

TEST(of_a_process_that_runs)
{
	struct target t;
	struct running w;
	struct outcome o;

	(void)setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	target_start(&t, LIST(victim("counter"), "1", "5"));
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "json", "-n", "5",
	    "-O", scratch_path("%h-%r-%p.%%"), "-p", t.pid));
	for (struct stat st; stat(path_of(1, t.run.pid), &st) < 0 ||
	    st.st_size == 0; )
		(void)usleep(1000);
	say(&t.run, "go\n");
	finish_status(&w, &o, 0);
	target_end(&t, 7);
	expect_report(1, t.run.pid, 5);
	(void)unsetenv("OMPI_COMM_WORLD_RANK");
}

/* A recording says where it was made, whoever explains it. */
TEST(of_a_recording)
{
	struct running w;
	struct outcome o;
	pid_t pid;

	(void)setenv("SLURM_PROCID", "12", 1);
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "perf", "-O",
	    scratch_path("%p.data"), "--", victim("counter"), "1", "5"));
	pid = pid_said(&w);
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	(void)unsetenv("SLURM_PROCID");
	{
		char name[64];

		(void)snprintf(name, sizeof(name), "%d.data", pid);
		run(&o, LIST(watchctl(), "report", "-o", "json",
		    scratch_path(name)));
	}
	assert_string_equal(text_of(first_of(&o, "start"), "host"), host);
	assert_int_equal(number_of(first_of(&o, "start"), "rank"), 12);
	assert_int_equal(count_of(&o, "hit"), 5);
}

/* A file that cannot be made is refused before the command runs. */
TEST(what_cannot_be_written)
{
	static const char *const modes[] = {"-n100", "--stop", "--inside"};
	char touch[512];

	(void)snprintf(touch, sizeof(touch), "touch %s", scratch_path("ran"));
	for (size_t i = 0; i < COUNT(modes); i++) {
		struct outcome o;

		run_status(&o, 125, LIST(watchctl(), modes[i], "-w", "environ",
		    "-o", "json", "-O", scratch_path("none/%p"), "--",
		    "/bin/sh", "-c", touch));
		assert_holds(o.err, "none/");
		assert_holds(o.err, "cannot be written");
		assert_int_not_equal(access(scratch_path("ran"), F_OK), 0);
	}
}

/* The names of the backtraces of a run, sorted, as one text. */
static void
stacks_of(const char *program, const char *spec, char names[512])
{
	struct running w;
	struct outcome o;
	json_t *line;
	size_t i;

	start(&w, LIST(watchctl(), "-w", spec, "-o", "summary,json", "-O",
	    scratch_path("ids"), "--", victim(program), "1", "5"));
	say(&w, "go\nend\n");
	finish(&w, &o);
	memset(&o, 0, sizeof(o));
	outcome_take(&o, scratch_path("ids"));
	*names = '\0';
	json_array_foreach(o.lines, i, line)
		if (strcmp(text_of(line, "type"), "summary") == 0)
			(void)snprintf(names + strlen(names), 512 -
			    strlen(names), "%s ", text_of(line, "stack"));
}

/* At other addresses each time. */
TEST(names_of_backtraces)
{
	char first[512], again[512];

	stacks_of("counter", "counter", first);
	stacks_of("counter", "counter", again);
	assert_true(strlen(first) > 16);
	assert_string_equal(first, again);
}

static int
prepare(void **state)
{
	return gethostname(host, sizeof(host) - 1) < 0 ||
	    scratch_make(state) < 0 ? -1 : 0;
}

RUN_LIVE_TESTS(.before_all = prepare, .after_all = scratch_remove)
