/*
 * viewers: -o html and -o trace of real hits, in each way of watching and of a
 * recording; which sources are in a page; and what is left of a trace when the
 * process that explains dies.
 */
#include "test.h"

#include <signal.h>
#include <sys/stat.h>

#include "explainers.h"
#include "live.h"
#include "page.h"
#include "scratch.h"
#include "trace.h"
#include "watching.h"

/* Have two threads of the victim write, 50 times each; the report is a file. */
static void
watch_counter(const char *mode, const char *form)
{
	struct running w;
	struct outcome o;

	start(&w, LIST(watchctl(), mode, "-w", "counter", "-w", "filled", "-o",
	    form, "-O", scratch_path(form), "--", victim("counter"), "2",
	    "50"));
	say(&w, "go\nend\n");
	finish_status(&w, &o, 7);
	assert_holds(o.err, " 0 lost");
}

/* 100 hits of counter; where it is seen, one more by a system call. */
static void
check_trace(const char *file)
{
	char *text = scratch_read(file, NULL);
	struct trace_contents t = trace_check(text);

	assert_in_range(t.hits, 100, 101);
	assert_in_range(t.values, 1, 101);
	assert_int_equal(t.samples, t.hits);
	assert_in_range(t.names, 2, 3);
	assert_holds(text, "\"name\":\"bump\"");
	assert_holds(text, "\"name\":\"level15\"");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(
	    t.json, "otherData"), "hits")), t.hits);
}

static void
check_page(const char *file)
{
	char *text = scratch_read(file, NULL);
	const struct page_check p = page_check(text);

	assert_int_equal(p.svgs, 2);
	assert_in_range(p.details, 1, 3);
	assert_holds(text, "<code class=\"who\">bump</code>");
	assert_holds(text, "<code>level15</code>");
	assert_holds(text, "<b><i>");
}

TEST(each_way_of_watching)
{
	static const char *const modes[] = {"-n200", "--stop", "--inside"};

	for (size_t i = 0; i < COUNT(modes); i++) {
		watch_counter(modes[i], "trace");
		check_trace("trace");
		watch_counter(modes[i], "html");
		check_page("html");
	}
}

TEST(a_running_process)
{
	static const char *const forms[] = {"html", "trace"};
	struct trace_contents trace;
	struct outcome ended;
	struct target t;
	char *text;

	target_start(&t, LIST(victim("busy"), "alone"));
	for (size_t i = 0; i < COUNT(forms); i++) {
		struct outcome o;

		run_status(&o, 0, LIST(watchctl(), "-w", "word", "-n", "10",
		    "-o", forms[i], "-O", scratch_path(forms[i]), "-p", t.pid));
	}
	text = scratch_read("html", NULL);
	assert_int_equal(page_check(text).svgs, 1);
	assert_holds(text, "<b>10</b><span>reported</span>");
	text = scratch_read("trace", NULL);
	trace = trace_check(text);
	assert_int_equal(trace.hits, 10);
	say(&t.run, "end\n");
	finish_status(&t.run, &ended, 7);
}

TEST(recordings)
{
	struct outcome o;

	watch_counter("-n200", "perf");
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "trace", "-O",
	    scratch_path("trace"), scratch_path("perf")));
	check_trace("trace");
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "html", "-O",
	    scratch_path("html"), scratch_path("perf")));
	check_page("html");
}

/* --- sources --- */

static char *
page_of(const char *program)
{
	struct outcome o;

	run_status(&o, 0, LIST(watchctl(), "-w", "word", "-o", "html", "-O",
	    scratch_path("html"), "--", scratch_path(program)));
	return scratch_read("html", NULL);
}

/* A program whose debug information says that it was made from that file. */
static void
make(const char *file)
{
	char source[512];

	(void)snprintf(source, sizeof(source), "int word;\nint main(void) {\n"
	    "#line 3 \"%s\"\n	word = 1;\n	return 0;\n}\n",
	    scratch_path(file));
	scratch_write("made.c", source);
	scratch_run("cc -g -o program made.c");
}

TEST(only_sources_are_read)
{
	static const char lines[] = "1\n2\nsecret <word>\n4\n5\n";
	static const struct {
		const char *file;
		bool shown;
	} rows[] = {
		{"it.c", true}, {"it.f90", true}, {"it.key", false},
		{"passwd", false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		char *page;

		scratch_write(rows[i].file, lines);
		make(rows[i].file);
		page = page_of("program");
		(void)page_check(page);
		assert_int_equal(strstr(page,
		    "<b><i>3</i>secret &lt;word&gt;</b>") != NULL,
		    rows[i].shown);
		assert_int_equal(strstr(page, "secret") != NULL,
		    rows[i].shown);
	}
}

/* A FIFO would block, and a directory has no lines. */
TEST(only_regular_files_are_read)
{
	char *page;

	assert_int_equal(mkfifo(scratch_path("fifo.c"), 0600), 0);
	make("fifo.c");
	page = page_of("program");
	assert_lacks(page, "<pre");
	assert_int_equal(mkdir(scratch_path("folder.c"), 0700), 0);
	make("folder.c");
	page = page_of("program");
	assert_lacks(page, "<pre");
	make("missing.c");
	page = page_of("program");
	assert_holds(page, "missing.c:3");
	assert_lacks(page, "<pre");
}

/* --- deaths --- */

/* Kill the explainer when there are hits in the trace. */
static void
kill_explainer(const struct running *w)
{
	pid_t explainer;
	struct stat st;

	for (unsigned ms = 0; stat(scratch_path("trace"), &st) < 0 ||
	    st.st_size < 3000; ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
	explainer = explainer_of(w->pid);
	assert_int_not_equal(explainer, 0);
	assert_int_equal(kill(explainer, SIGKILL), 0);
}

TEST(a_trace_is_whole_when_its_explainer_died)
{
	struct trace_contents t;
	struct running w;
	struct outcome o;
	json_int_t left_out;
	char *text;

	(void)unlink(scratch_path("trace"));
	start(&w, LIST(watchctl(), "-w", "counter", "-o", "trace", "-O",
	    scratch_path("trace"), "--", victim("counter"), "1", "100",
	    "10000"));
	say(&w, "go\n");
	kill_explainer(&w);
	say(&w, "end\n");
	finish_status(&w, &o, 7);
	text = scratch_read("trace", NULL);
	t = trace_check(text);
	assert_int_equal(t.hits, 100);
	left_out = json_integer_value(json_object_get(json_object_get(t.json,
	    "otherData"), "hits_without_sample"));
	assert_true(left_out > 0);
	assert_int_equal(t.samples + (size_t)left_out, 100);
}

RUN_LIVE_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
