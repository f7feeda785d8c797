/*
 * viewers: a recording of 200,000 hits, and one of hits that have nothing in
 * common, reported by -o html, by -o trace, and by -o folded, which takes the
 * least of all forms; and how large the page is.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { ROUNDS = 7 };

static void
run_form(const struct bench_way *way, const char *file)
{
	struct outcome o;

	run_status(&o, 0, LIST(watchctl(), "report", "-o", way->command, "-O",
	    "/dev/null", file));
}

/* Bytes of the page of a recording. */
static double
page_size(const char *file)
{
	char page[] = "/tmp/viewers_bench.XXXXXX";
	const int fd = mkstemp(page);
	struct outcome o;
	struct stat st;

	assert_true(fd >= 0);
	run_status(&o, 0, LIST(watchctl(), "report", "-o", "html", "-O", page,
	    file));
	assert_int_equal(fstat(fd, &st), 0);
	(void)close(fd);
	(void)unlink(page);
	return (double)st.st_size;
}

static void
compare(const char *what, const struct bench_recordings *r)
{
	struct bench_way way[] = {
		{.run = run_form, .command = "folded"},
		{.run = run_form, .command = "html"},
		{.run = run_form, .command = "trace"},
	};
	char name[80];

	bench_compare(way, 3, ROUNDS, r);
	printf("reporting %.0f hits%s takes %.3f s of processor time as folded "
	    "stacks, %.3f s as a page, %.3f s as a trace\n", r->hits[1], what,
	    way[0].least[1], way[1].least[1], way[2].least[1]);
	for (size_t i = 1; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "-o %s%s", way[i].command,
		    what);
		bench_tell(name, way[i].least[1] / way[0].least[1], "x",
		    "-o folded", 1.5, 0);
	}
}

int
main(void)
{
	struct bench_recordings r;

	bench_record(&r, LIST("counter", "1", "1000"),
	    LIST("counter", "1", "200000"));
	compare("", &r);
	bench_tell("-o html of 200,000 hits", page_size(r.file[1]) / 1e6, " MB",
	    "a page", 2, 0);
	bench_remove(&r);
	bench_record(&r, LIST("paths", "1000"), LIST("paths", "40000"));
	compare(", each with callers of its own", &r);
	bench_tell("-o html of these", page_size(r.file[1]) / 1e6, " MB",
	    "a page", 2, 0);
	bench_remove(&r);
	return bench_status();
}
