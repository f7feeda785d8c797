/*
 * symbolize_log: logs with the lines of hits that libwatchpoint writes without
 * a helper, and logs that only look like it.
 */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "broker/symbolize_log.h"
#include "said.h"
#include "scratch.h"

/* What frames lie in. */
__attribute__((noinline)) static int
landmark(int n)
{
	__asm__ volatile("");
	return n + 1;
}

static char self[PATH_MAX];		/* this program's file */
static unsigned long long offset;	/* of landmark in it */

/* --- logs --- */

/* What becomes of a log. */
static char *
resolve(const char *log)
{
	char *path = strdup(scratch_path("log"));
	const struct options options = {
		.file = path, .output = scratch_path("out"),
	};
	char *text;

	scratch_write("log", log);
	assert_int_equal(symbolize_log(&options), 0);
	text = scratch_read("out", NULL);
	free(path);
	return text;
}

static void
expect_unchanged(const char *log)
{
	char *text = resolve(log);

	assert_string_equal(text, log);
}

static void
expect_text(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("no \"%s\" in: %s", part, text);
}

TEST(frames_get_names_and_lines)
{
	char log[3 * PATH_MAX], part[2 * PATH_MAX], *text;

	(void)snprintf(log, sizeof(log),
	    "begin\n"
	    "watchpoint: #3 write x (8 bytes at 0x404060) by prog[1/2]\n"
	    "watchpoint:   #3 frame 0 0x1234 %s+0x%llx\n"
	    "watchpoint:   #3 frame 1 0x5678 %s+0x%llx\n"
	    "end", self, offset + 2, self, offset + 3);
	text = resolve(log);
	assert_memory_equal(text, log, strcspn(log, "("));
	expect_text(text, "#3 frame 0 0x1234 landmark+0x2 ");
	expect_text(text, "#3 frame 1 0x5678 landmark+0x3 ");
	expect_text(text, "symbolize_log_test.c:");
	(void)snprintf(part, sizeof(part), " (%s+0x%llx)\nend", self,
	    offset + 3);
	expect_text(text, part);
}

/* The pc of an execution is the instruction's; of others it lies behind it, and
   belongs to the line before. */
TEST(an_execution_is_where_it_is)
{
	static const char *const words[] = {"execute", "write"};
	char log[2 * PATH_MAX], *text[2], *frame[2];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(log, sizeof(log),
		    "watchpoint: #1 %s x (1 bytes at 0x1) by prog[1/2]\n"
		    "watchpoint:   #1 frame 0 0x99 %s+0x%llx\n", words[i],
		    self, offset);
		text[i] = resolve(log);
		frame[i] = strstr(text[i], "frame 0");
		assert_non_null(frame[i]);
	}
	expect_text(frame[0], "0x99 landmark+0x0 ");
	assert_string_not_equal(frame[0], frame[1]);
}

/* Where the file in the scratch directory has its function outer. */
static unsigned long long
outer_of(const char *file)
{
	unsigned long long addr;
	char *nm;

	scratch_run("nm '%s' | grep ' T outer' > nm", file);
	nm = scratch_read("nm", NULL);
	addr = strtoull(nm, NULL, 16);
	return addr;
}

/* Its first mapping is not at 0. */
TEST(a_program_at_a_fixed_place)
{
	char log[2 * PATH_MAX], *text;

	scratch_write("fixed.c", "static int inner(int n) { return n + 1; }\n"
	    "int outer(int n) { return inner(n); }\n"
	    "int main(void) { return outer(1); }\n");
	scratch_run("%s -g -O0 -no-pie -o fixed fixed.c", getenv("CC"));
	(void)snprintf(log, sizeof(log), "watchpoint: #1 write x (1 bytes at "
	    "0x1) by prog[1/2]\nwatchpoint:   #1 frame 1 0x1 %s+0x%llx\n",
	    scratch_path("fixed"), outer_of("fixed") + 8 - 0x400000);
	text = resolve(log);
	expect_text(text, "outer+0x8 ");
	expect_text(text, "fixed.c:2 ");
}

/* Each level of inlining has its line. */
TEST(inlined_calls_are_reported)
{
	char log[2 * PATH_MAX], *text;

	scratch_write("inl.c", "volatile int x;\n"
	    "static inline __attribute__((always_inline)) void inner(void)\n"
	    "{ x = 1; }\n"
	    "void outer(void) { inner(); }\n");
	scratch_run("%s -g -O1 -shared -fPIC -o 'with space+0x1.so' inl.c",
	    getenv("CC"));
	(void)snprintf(log, sizeof(log), "watchpoint:   #1 frame 1 0x1 "
	    "%s+0x%llx\n", scratch_path("with\\x20space+0x1.so"),
	    outer_of("with space+0x1.so") + 2);
	text = resolve(log);
	expect_text(text, "frame 1 0x1 inner ");
	expect_text(text, "inl.c:3 (inlined)\n");
	expect_text(text, "frame 1 0x1 outer+0x2 ");
}

TEST(other_lines_stay_as_they_are)
{
	static const char *const lines[] = {
		"", "\n", "no line's end",
		"\tTab \033[1mbold\033[0m \x01\xff\n",
		"watchpoint: a warning\n", "watchpoint:\n",
		"watchpoint:   #x frame 0 0x1 /bin/sh+0x1\n",
		"watchpoint:   #1 frame 0 0x1\n",
		"watchpoint:   #1 frame 0 0x1 relative+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /no/such/file+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /bin+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /dev/zero+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /etc/passwd+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /proc/self/mem+0x1\n",
		"watchpoint:   #1 frame 0 0x1 [vdso]+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /bin/sh+0xffffffffffffffff\n",
		"watchpoint:   #1 frame 0 0x1 /bin/sh+0x1ffffffffffffffff\n",
		"watchpoint:   #1 frame 0 0x1 /bin/sh+0x1 \n",
		"watchpoint:   #1 frame 99999999999 0x1 /bin/sh+0x1\n",
		"watchpoint:   #-1 frame 0 0x1 /bin/sh+0x1\n",
		"watchpoint:   #1 frame 0 0x1 /bin/sh\\x00+0x1\n",
		" watchpoint:   #1 frame 0 0x1 /bin/sh+0x1\n",
	};

	for (size_t i = 0; i < COUNT(lines); i++)
		expect_unchanged(lines[i]);
}

/* Neither is a piece of a long line, nor a line with a NUL in it. */
TEST(long_lines_and_nuls_are_passed_on)
{
	const size_t size = 100000;
	char *log = malloc(size + 2 * PATH_MAX), *text;
	const struct options options = {
		.file = strdup(scratch_path("log")),
		.output = scratch_path("out"),
	};
	size_t len, got;
	FILE *f;

	assert_non_null(log);
	memset(log, ' ', size);
	(void)snprintf(log + 16383, 2 * PATH_MAX,
	    "watchpoint:   #1 frame 0 0x1 %s+0x%llx\n", self, offset + 1);
	expect_unchanged(log);
	len = (size_t)snprintf(log, 2 * PATH_MAX,
	    "watchpoint:   #1 frame 0 0x1 %s+0x%llx", self, offset + 1);
	memcpy(log + len, "\0\n", 2);
	f = fopen(options.file, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(log, 1, len + 2, f), len + 2);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(symbolize_log(&options), 0);
	text = scratch_read("out", &got);
	assert_int_equal(got, len + 2);
	assert_memory_equal(text, log, got);
	free(log);
	free((char *)(uintptr_t)options.file);
}

TEST(many_files_are_too_many)
{
	char *log = malloc(5000 * 128), *text, *at = log;

	assert_non_null(log);
	for (int i = 0; i < 5000; i++)
		at += sprintf(at, "watchpoint:   #1 frame 1 0x1 /no/%d+0x1\n",
		    i);
	text = resolve(log);
	assert_string_equal(text, log);
	free(log);
}

/* --- what is a log --- */

TEST(a_log_is_told_from_a_recording)
{
	static const struct {
		const char *text;
		bool log;
	} files[] = {
		{"", false}, {"some text\n", false},
		{"watchpoint: a warning\n", false},
		{"PERFILE2\nwatchpoint: #1 write\n", false},
		{"x watchpoint: #1 write\n", false},
		{"watchpoint: #1 write\n", true},
		{"text\nwatchpoint: #1 write\n", true},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		scratch_write("log", files[i].text);
		assert_int_equal(symbolize_log_is_log(scratch_path("log")),
		    files[i].log);
	}
	assert_false(symbolize_log_is_log(scratch_path("missing")));
	assert_false(symbolize_log_is_log(scratch_path(".")));
	assert_false(symbolize_log_is_log("/dev/null"));
}

static void
write_to_fifo(void *log)
{
	int fd = open(scratch_path("fifo"), O_WRONLY);

	if (write(fd, log, strlen(log)) != (ssize_t)strlen(log))
		_exit(1);
}

TEST(a_pipe_is_read)
{
	char log[2 * PATH_MAX], *path = strdup(scratch_path("fifo")), *text;
	const struct options options = {
		.file = path, .output = scratch_path("out"),
	};
	pid_t pid;

	(void)snprintf(log, sizeof(log),
	    "watchpoint:   #1 frame 1 0x1 %s+0x%llx\n", self, offset + 1);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(symbolize_log_is_log(path));
	pid = child_start(write_to_fifo, log);
	assert_int_equal(symbolize_log(&options), 0);
	assert_int_equal(child_wait(pid), 0);
	text = scratch_read("out", NULL);
	expect_text(text, "landmark+0x1 ");
	free(path);
}

/* It would be taken for a log without end of line. */
TEST(a_recording_in_a_pipe_is_refused)
{
	static char recording[] = "PERFILE2h";
	char *path = strdup(scratch_path("fifo")), *said;
	const struct options options = {
		.file = path, .output = scratch_path("out"),
	};
	pid_t pid;

	pid = child_start(write_to_fifo, recording);
	said_begin(STDERR_FILENO);
	assert_int_equal(symbolize_log(&options), 125);
	said = said_end(STDERR_FILENO);
	assert_holds(said, "not from a pipe");
	assert_int_equal(child_wait(pid), 0);
	said = scratch_read("out", NULL);
	assert_string_equal(said, "");
	free(path);
}

/* A terminal would obey. */
TEST(a_terminal_is_not_controlled)
{
	char *path = strdup(scratch_path("log")), got[256];
	struct options options = {.file = path};
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	size_t len = 0;
	ssize_t n;

	assert_true(terminal >= 0);
	assert_int_equal(grantpt(terminal), 0);
	assert_int_equal(unlockpt(terminal), 0);
	options.output = ptsname(terminal);
	scratch_write("log", "watchpoint: #1 \033[2Jx\ty\x07\n");
	assert_int_equal(symbolize_log(&options), 0);
	/* the line may come in parts */
	do {
		n = read(terminal, got + len, sizeof(got) - 1 - len);
		assert_true(n > 0);
		len += (size_t)n;
	} while (got[len - 1] != '\n');
	got[len] = '\0';
	assert_string_equal(got, "watchpoint: #1 \\x1b[2Jx\ty\\x07\r\n");
	(void)close(terminal);
	free(path);
}

/* --- what is refused --- */

static void
expect_refused(struct options options, const char *why)
{
	char *said;
	int status;

	said_begin(STDERR_FILENO);
	status = symbolize_log(&options);
	said = said_end(STDERR_FILENO);
	assert_int_equal(status, 125);
	expect_text(said, why);
}

TEST(what_logs_are_not_for)
{
	static const char *allow = "x";
	char *path = strdup(scratch_path("log")), *text;

	scratch_write("log", "watchpoint: #1\n");
	expect_refused((struct options){.file = path, .form = FORM_JSON},
	    "for recordings");
	expect_refused((struct options){.file = path, .limit = 1},
	    "for recordings");
	expect_refused((struct options){.file = path, .allow = &allow,
	    .nallow = 1}, "for recordings");
	expect_refused((struct options){.file = path, .output = path},
	    "would overwrite");
	expect_refused((struct options){.file = path, .output = "/no/dir/x"},
	    "No such file");
	expect_refused((struct options){.file = "/no/log"}, "No such file");
	text = scratch_read("log", NULL);
	assert_string_equal(text, "watchpoint: #1\n");
	expect_refused((struct options){.file = path, .output = "/dev/full"},
	    "incomplete");
	free(path);
}

static int
begin(void **state)
{
	union {
		int (*function)(int);
		void *at;
	} where = {.function = landmark};
	Dl_info info;

	if (dladdr(where.at, &info) == 0 ||
	    realpath("/proc/self/exe", self) == NULL || landmark(1) != 2)
		return -1;
	offset = (unsigned long long)((char *)where.at -
	    (char *)info.dli_fbase);
	return scratch_make(state);
}

RUN_TESTS(.before_all = begin, .after_all = scratch_remove,
    .after_each = children_end)
