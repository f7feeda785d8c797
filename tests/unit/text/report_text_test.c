/*
 * report_text: the text that a user reads, in colours only where they are
 * wanted.
 */
#include "test.h"

#include <errno.h>
#include <pty.h>
#include <unistd.h>

#include "made_hits.h"
#include "report/output.h"

/* Only the first n watches. */
static struct report_start
start_with(unsigned n)
{
	struct report_start start = made_start;

	start.nwatches = n;
	return start;
}

TEST(begins_with_what_is_watched)
{
	struct report_start one = start_with(1), two = start_with(2);
	const struct report_start recorded = {
		.frozen_ms = -1, .watches = made_list, .nwatches = 1,
	};
	const struct ex_watch place = {
		.id = 1, .spec = "run", .addr = 0x401000, .len = 1,
		.access = WP_EXEC,
	}, *const places[] = {&place};
	const struct report_start uprobe = {
		.frozen_ms = -1, .watches = places, .nwatches = 1,
	};
	const struct {
		const struct report_start *start;
		const char *text;
	} cases[] = {
		{&one, "watching counter (8 bytes at 0x404090) for writes in "
		    "victim[4335], 3 threads, frozen 0.8 ms\n"},
		{&two, "watching counter (8 bytes at 0x404090) for writes,\n"
		    "         0x4040c0:64 (64 bytes at 0x4040c0) for any "
		    "access\n"
		    "         in victim[4335], 3 threads, frozen 0.8 ms\n"},
		{&recorded, "watching counter (8 bytes at 0x404090) for "
		    "writes in a recording\n"},
		{&uprobe, "watching run (at 0x401000) for execution by a "
		    "uprobe in a recording\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct made_report m;

		made_write(&m, &report_text, cases[i].start, NULL, 0, NULL);
		assert_string_equal(m.text, cases[i].text);
	}
}

static const char first_hit[] =
    "#1   write  counter (8 bytes at 0x404090)  41 -> 42\n"
    "     victim[4335/4340] cpu 1  +12.003417s\n"
    "     bump+0x0  mov %rdi,0x2d69(%rip)   victim.c:10\n"
    "     0  bump                         victim.c:10\n"
    "     1  ns::level<int, long>         victim.c:11 (inlined)\n"
    "     2  main                         victim.c:13\n"
    "     3  __libc_start_call_main+0x79  (libc.so.6)\n";

TEST(prints_a_backtrace_once)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2), made_hit(3)};
	struct report_start start = start_with(1);
	struct made_report m;

	hits[1].tid = 4341;
	memset(hits[1].new.byte, 0xff, 8);
	hits[2].addr += 4;
	hits[2].len = 4;
	hits[2].source = EX_VALUE_UNKNOWN;
	hits[2].old.known = 0;
	made_write(&m, &report_text, &start, hits, 3, NULL);
	assert_holds(m.text, first_hit);
	assert_string_equal(strstr(m.text, "#2 "),
	    "#2   write  counter  41 -> 0xffffffffffffffff  victim[4335/4341] "
	    "cpu 1  +12.003417s  (same backtrace as #1)\n"
	    "#3   write  counter (4 of 8 bytes, at 0x404094)  "
	    "victim[4335/4340] cpu 1  +12.003417s  (same backtrace as #1)\n");
}

TEST(prints_the_kernels_hits)
{
	struct ex_hit hits[] = {made_kernel_hit(7), made_kernel_hit(8)};
	struct report_start start = start_with(2);
	struct made_report m;

	hits[1].call.name = NULL;
	made_write(&m, &report_text, &start, hits, 2, NULL);
	assert_string_equal(strstr(m.text, "#7 "),
	    "#7   write by read(2)  0x4040c0:64 (8 of 64 bytes, at 0x4040c8)\n"
	    "     [4335/4335]  +12.003417s\n"
	    "     0  ksys_read+0x10  (kernel)\n"
	    "     1  0x7f00000f0010  (libc.so.6+0xf0010)\n"
	    "     2  0x12340         (no module) (signal frame)\n"
	    "     stack truncated: end of copy\n"
	    "#8   write by the kernel  0x4040c0:64 (8 of 64 bytes, at "
	    "0x4040c8)  [4335/4335]  +12.003417s  (same backtrace as #7)\n");
}

TEST(says_what_is_uncertain)
{
	static const struct {
		enum ex_confidence confidence;
		const char *line;
	} cases[] = {
		{EX_EXACT, "     main+0x25  mov %rdi,0x2d69(%rip)   "
		    "victim.c:11 (inlined)\n"},
		{EX_AMBIGUOUS, "     main+0x25  mov %rdi,0x2d69(%rip)   "
		    "victim.c:11 (inlined)  (instruction ambiguous)\n"},
		{EX_ADDRESS_UNVERIFIED, "     main+0x25  mov "
		    "%rdi,0x2d69(%rip)   victim.c:11 (inlined)  "
		    "(address unverified)\n"},
		{EX_UNKNOWN, "     main+0x25  instruction unknown   "
		    "victim.c:11 (inlined)\n"},
	};
	/* the innermost function is inlined in main */
	const struct ex_stack stack = {
		.id = 5, .n = 2, .frame = &made_plain_frames[1],
		.end = EX_END_OUTERMOST,
	};
	struct report_start start = start_with(1);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_hit(1);
		struct made_report m;

		hit.stack = &stack;
		hit.insn.confidence = cases[i].confidence;
		made_write(&m, &report_text, &start, &hit, 1, NULL);
		assert_holds(m.text, cases[i].line);
	}
}

/* What is known of a value, and how. */
TEST(reports_values)
{
	static const struct {
		const char *access;
		uint32_t old, new;	/* bytes known */
		uint8_t value;		/* new; old is 41 */
		enum ex_value_source source;
		bool typed;
		const char *path, *text;
	} cases[] = {
		{"write", 0, 0xff, 42, EX_VALUE_IMMEDIATE, false, NULL,
		    "0x404090)  -> 42\n"},
		{"write", 0xff, 0xff, 42, EX_VALUE_LATER, false, NULL,
		    "0x404090)  41 -> 42 (value read later)\n"},
		{"write", 0, 0xff, 42, EX_VALUE_LATER, false, NULL,
		    "0x404090)  -> 42 (value read later)\n"},
		{"write", 0xff, 0, 0, EX_VALUE_UNKNOWN, false, NULL,
		    "0x404090)  41 -> ?\n"},
		{"write", 0xff, 0xff, 41, EX_VALUE_DERIVED, false, NULL,
		    "0x404090)  41 (unchanged)\n"},
		{"read", 0xff, 0, 0, EX_VALUE_UNKNOWN, false, NULL,
		    "0x404090)  41\n"},
		{"read", 0, 0, 0, EX_VALUE_UNKNOWN, false, NULL,
		    "0x404090)\n"},
		{"write", 0xff, 0xff, 42, EX_VALUE_STOP, true, "counter",
		    "(long, 8 bytes at 0x404090)  <41> -> <42>\n"},
		{"write", 0xff, 0xff, 42, EX_VALUE_STOP, true, "c.state",
		    "(long, 8 bytes at 0x404090)  c.state: <41> -> <42>\n"},
	};
	struct report_start start = start_with(1);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_hit(1);
		struct made_report m;

		hit.access = cases[i].access;
		hit.old.known = cases[i].old;
		hit.new.known = cases[i].new;
		hit.new.byte[0] = cases[i].value;
		hit.source = cases[i].source;
		hit.unchanged = cases[i].value == 41;
		hit.process = cases[i].typed ? MADE_PROCESS : NULL;
		made_object.path = cases[i].path;
		made_write(&m, &report_text, &start, &hit, 1, NULL);
		if (strstr(m.text, cases[i].text) == NULL)
			fail_msg("no %s in %s", cases[i].text, m.text);
	}
	made_object.path = "counter";
}

/* An access may begin below what is watched, and reach beyond. */
TEST(reports_how_far_an_access_reaches)
{
#define PLACE "mov %rdi,0x2d69(%rip)   victim.c:10"
	static const struct {
		uint64_t addr;
		uint32_t size;
		const char *line;
	} cases[] = {
		{0x404088, 16, PLACE "  (16 bytes at 0x404088)\n"},
		{0x404094, 8, PLACE "  (8 bytes at 0x404094)\n"},
		{0x404088, 9, PLACE "  (9 bytes at 0x404088)\n"},
		{0x404090, 8, PLACE "\n"},
		{0x404097, 1, PLACE "\n"},
		{0, 0, PLACE "\n"},
	};
	struct report_start start = start_with(1);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_hit(1);
		struct made_report m;

		hit.insn.addr = cases[i].addr;
		hit.insn.size = cases[i].size;
		made_write(&m, &report_text, &start, &hit, 1, NULL);
		assert_holds(m.text, cases[i].line);
	}
}

TEST(prints_what_has_no_backtrace)
{
	struct ex_hit hit = made_hit(1);
	struct report_start start = start_with(1);
	struct made_report m;

	hit.stack = NULL;
	hit.insn = (struct ex_insn){.confidence = EX_UNKNOWN};
	hit.source = EX_VALUE_UNKNOWN;
	hit.old.known = 0;
	made_write(&m, &report_text, &start, &hit, 1, NULL);
	assert_string_equal(strstr(m.text, "#1 "),
	    "#1   write  counter (8 bytes at 0x404090)\n"
	    "     victim[4335/4340] cpu 1  +12.003417s\n"
	    "     0x401327  instruction unknown\n"
	    "     no backtrace: out of memory\n");
}

TEST(reports_events_as_they_come)
{
	struct report_start start = start_with(1);
	struct made_report m;

	made_open(&m, &report_text);
	assert_int_equal(report_text.start(&m.report, &start), 0);
	assert_int_equal(report_text.lost(&m.report, 1), 0);
	assert_int_equal(report_text.lost(&m.report, 12), 0);
	assert_int_equal(report_text.warning(&m.report, "late\n"), 0);
	assert_int_equal(report_text.last(&m.report, 1, "crash"), 0);
	assert_int_equal(report_text.last(&m.report, UINT64_MAX, "signal"), 0);
	assert_int_equal(report_text.flush(&m.report), 0);
	assert_string_equal(strchr(m.text, '\n'), "\n"
	    "lost 1 hit here\n"
	    "lost 12 hits here\n"
	    "warning: late\\n\n"
	    "the last 1 hit: the process was ended by a signal\n"
	    "the last hits: asked for by a signal\n");
	made_close(&m, NULL);
}

TEST(sums_up)
{
	const struct report_end end = {.hits = 7};
	struct ex_hit hits[7];
	struct report_start start = start_with(2);
	struct made_report m;
	const char *table;

	for (unsigned i = 0; i < 6; i++) {
		hits[i] = made_hit(i + 1);
		hits[i].tid = 4340 + (pid_t)i;
		hits[i].time += i * UINT64_C(1000000000);
	}
	hits[5].stack = &made_kernel;
	hits[6] = made_kernel_hit(7);
	made_write(&m, &report_text, &start, hits, 7, &end);
	table = strstr(m.text, "\ncounter: ");
	assert_non_null(table);
	assert_string_equal(table, "\n"
	    "counter: 6 hits, 2 backtraces\n"
	    "  hits  share  first..last      threads                "
	    "backtrace  where\n"
	    "     5  83.3%  12.003..16.003s  5: 4340 4341 4342 ...  "
	    "#1         write in bump victim.c:10\n"
	    "     1  16.7%  17.003..17.003s  1: 4345                "
	    "#6         write in 0x7f00000f0010 (libc.so.6+0xf0010)\n"
	    "\n"
	    "0x4040c0:64: 1 hit, 1 backtrace\n"
	    "  hits   share  first..last      threads  backtrace  where\n"
	    "     1  100.0%  12.003..12.003s  1: 4335  #6         "
	    "write by read(2) for 0x7f00000f0010 (libc.so.6+0xf0010)\n");
}

/* A row for each writer, and with -v below it one for each of its
   backtraces. */
TEST(joins_the_backtraces_of_a_writer)
{
	const struct ex_frame directly[] = {
		made_plain.frame[0], made_plain.frame[2],
	};
	const struct ex_stack another =
	    MADE_STACK(0x51, 5, directly, EX_END_OUTERMOST);
	const struct report_end end = {.hits = 7};
	struct report_start start = start_with(1);
	struct ex_hit hits[7];
	struct made_report m;
	const char *table;

	for (unsigned i = 0; i < 7; i++) {
		hits[i] = made_hit(i + 1);
		hits[i].tid = 4345 - (pid_t)i;
		hits[i].time += i * UINT64_C(1000000000);
		hits[i].stack = i == 1 || i == 4 ? &another : i == 6 ?
		    &made_kernel : &made_plain;
	}
	/* what is stray and what is not is in rows of its own */
	for (unsigned i = 0; i < 3; i++) {
		static const char *const tables[] = {
			"counter: 7 hits, 3 backtraces of 2 writers\n"
			"  hits  share  first..last      threads               "
			" backtrace  where\n"
			"     4  57.1%  12.003..17.003s  4: 4345 4343 4342 ... "
			" #1         write in bump victim.c:10\n"
			"     2  28.6%  13.003..16.003s  2: 4344 4341          "
			" #2         stray write in bump victim.c:10\n"
			"     1  14.3%  18.003..18.003s  1: 4339               "
			" #7         write in 0x7f00000f0010 "
			"(libc.so.6+0xf0010)\n",
			"counter: 7 hits, 3 backtraces of 2 writers\n"
			"  hits  share  first..last      threads               "
			" backtrace  where\n"
			"     6  85.7%  12.003..17.003s  6: 4340 4341 4342 ... "
			" #1 #2      write in bump victim.c:10\n"
			"     1  14.3%  18.003..18.003s  1: 4339               "
			" #7         write in 0x7f00000f0010 "
			"(libc.so.6+0xf0010)\n",
			"counter: 7 hits, 3 backtraces of 2 writers\n"
			"  hits  share  first..last      threads               "
			" backtrace  where\n"
			"     6  85.7%  12.003..17.003s  6: 4340 4341 4342 ... "
			" #1 #2      write in bump victim.c:10\n"
			"     4  57.1%  12.003..17.003s  4: 4345 4343 4342 ... "
			" #1           < ns::level<int, long> < main < "
			"__libc_start_call_main+0x79\n"
			"     2  28.6%  13.003..16.003s  2: 4344 4341          "
			" #2           < main\n"
			"     1  14.3%  18.003..18.003s  1: 4339               "
			" #7         write in 0x7f00000f0010 "
			"(libc.so.6+0xf0010)\n",
		};

		made_open(&m, &report_text);
		m.report.verbose = i == 2;
		hits[1].stray = hits[4].stray = i == 0;
		assert_int_equal(report_text.start(&m.report, &start), 0);
		made_hits(&m, hits, 7);
		made_close(&m, &end);
		table = strstr(m.text, "\ncounter: ");
		assert_non_null(table);
		assert_string_equal(table + 1, tables[i]);
	}
}

/* -o summary: the tables alone, with values, and the backtraces that they
   name. */
TEST(only_a_summary)
{
	const struct report_end end = {.hits = 5};
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3), made_hit(4),
		made_hit(5),
	};
	struct report_start start = start_with(2);
	struct made_report m;
	const char *table;

	hits[2].new.byte[0] = 0x50;
	hits[3].new.byte[0] = 0x30;
	hits[4].stack = &made_kernel;	/* that of another watch, too */
	made_open(&m, &report_text);
	m.report.summary_only = true;
	assert_int_equal(report_text.start(&m.report, &start), 0);
	made_hits(&m, hits, 5);
	assert_int_equal(report_text.lost(&m.report, 2), 0);
	made_close(&m, &end);
	assert_int_equal(m.report.written, 5);
	table = strchr(m.text, '\n');
	assert_non_null(table);
	table = strstr(table + 1, "\ncounter: ");
	assert_non_null(table);
	assert_string_equal(table, "\n"
	    "counter: 4 hits, 2 backtraces\n"
	    "  hits  share  first..last      threads  values                   "
	    "backtrace  where\n"
	    "     3  75.0%  12.003..12.003s  1: 4340  42 .. 48, from 42 to 80  "
	    "#1         write in bump victim.c:10\n"
	    "     1  25.0%  12.003..12.003s  1: 4340  42                       "
	    "#2         write in 0x7f00000f0010 (libc.so.6+0xf0010)\n"
	    "\n"
	    "0x4040c0:64: 1 hit, 1 backtrace\n"
	    "  hits   share  first..last      threads  values  backtrace  "
	    "where\n"
	    "     1  100.0%  12.003..12.003s  1: 4335          #2         "
	    "write by read(2) for 0x7f00000f0010 "
	    "(libc.so.6+0xf0010)\n"
	    "\n"
	    "#1  write in bump victim.c:10\n"
	    "     0  bump                         victim.c:10\n"
	    "     1  ns::level<int, long>         victim.c:11 (inlined)\n"
	    "     2  main                         victim.c:13\n"
	    "     3  __libc_start_call_main+0x79  (libc.so.6)\n"
	    "\n"
	    "#2  write by read(2) for 0x7f00000f0010 "
	    "(libc.so.6+0xf0010)\n"
	    "     0  ksys_read+0x10  (kernel)\n"
	    "     1  0x7f00000f0010  (libc.so.6+0xf0010)\n"
	    "     2  0x12340         (no module) (signal frame)\n"
	    "     stack truncated: end of copy\n");
}

/* Watches come with their hits; of one that came late the instruction is not
   known, and the words say why. */
TEST(reports_later_watches)
{
	const struct report_end end = {.hits = 1, .reported = 1};
	struct report_start start = made_start;
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	start.nwatches = 0;
	hit.watch = made_list[1];
	hit.late = true;
	made_open(&m, &report_text);
	assert_int_equal(report_text.start(&m.report, &start), 0);
	assert_int_equal(report_text.watch(&m.report, made_list, 2), 0);
	made_hits(&m, &hit, 1);
	made_close(&m, &end);
	assert_memory_equal(m.text, "#1   write  0x4040c0:64 ", 24);
	assert_holds(m.text, "\n     delivered late: ");
	assert_lacks(m.text, "mov ");
	assert_holds(m.text, "\n0x4040c0:64: 1 hit, 1 backtrace\n");
}

TEST(reports_what_becomes_of_watches)
{
	struct report_start start = start_with(2);
	const struct watch_event events[] = {
		{.what = WATCH_ARMED, .time = start.time + 1250000000,
		 .pid = 17, .addr = 0x404090, .len = 8, .gap = 310270},
		{.what = WATCH_RETARGET, .watch = 1, .time = start.time,
		 .addr = 0x4040c0, .len = 64, .gap = WATCH_NO_GAP},
		{.what = WATCH_RETARGET, .time = start.time,
		 .gap = WATCH_NO_GAP},
		{.what = WATCH_ARMED, .time = start.time, .addr = 0x404090,
		 .len = 8, .gap = WATCH_NO_GAP, .module = "lib\nfoo.so"},
	};
	struct made_report m;

	made_open(&m, &report_text);
	assert_int_equal(report_text.start(&m.report, &start), 0);
	for (size_t i = 0; i < COUNT(events); i++)
		assert_int_equal(report_text.event(&m.report, &events[i]), 0);
	made_close(&m, NULL);
	assert_holds(m.text, "\nwatch armed: counter (8 bytes at "
	    "0x404090) in process 17  +1.250000s  (not watched for 310.2 us "
	    "before that)\n"
	    "watch moved: 0x4040c0:64 (64 bytes at 0x4040c0)  +0.000000s\n"
	    "watch moved: counter to nowhere: a null pointer  +0.000000s\n"
	    "watch armed: counter (8 bytes at 0x404090) of lib\\nfoo.so  "
	    "+0.000000s\n");
}

TEST(reports_what_a_call_was_given)
{
	static const struct {
		struct ex_syscall call;
		const char *text;
	} cases[] = {
		{{.name = "read", .has_bytes = true, .bytes = 64, .has_fd =
		    true,
		    .fd = 3, .file = "/etc/hosts"},
		    "write by read(2), 8 of 64 bytes, fd 3 (/etc/hosts)  0x"},
		{{.name = "read", .has_bytes = true, .bytes = 1, .has_fd = true,
		    .fd = 3, .file = "/etc/hosts", .file_later = true},
		    "write by read(2), 8 of 1 byte, fd 3 (/etc/hosts) looked "
		    "up later  0x"},
		{{.name = "recvmsg", .has_fd = true},
		    "write by recvmsg(2), fd 0"
		    "  0x"},
		{{.name = "read", .has_fd = true, .fd = 1, .file = HOSTILE},
		    "write by read(2), fd 1 (a\\x1b[2Jb\\n\""},
		{{.work = "signal delivery"},
		    "write by the kernel (signal delivery)  0x"},
		{{.name = NULL}, "write by the kernel  0x"},
	};
	struct report_start start = start_with(2);

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_kernel_hit(1);
		struct made_report m;

		hit.call = cases[i].call;
		made_write(&m, &report_text, &start, &hit, 1, NULL);
		if (strstr(m.text, cases[i].text) == NULL)
			fail_msg("no \"%s\" in: %s", cases[i].text, m.text);
		assert_visible(m.text);
	}
}

/* Stray hits, and at the end who made them. */
TEST(reports_stray_writers)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2), made_kernel_hit(3)};
	struct report_start start = start_with(2);
	struct made_report m;

	for (size_t i = 0; i < 3; i++)
		hits[i].stray = true;
	made_write(&m, &report_text, &start, hits, 3, &made_judged);
	assert_holds(m.text, "\n#1   stray write  counter "
	    "(8 bytes at 0x404090)  41 -> 42\n");
	assert_holds(m.text, "\n#2   stray write  counter  41 -> 42  "
	    "victim[");
	assert_holds(m.text, "\n#3   stray write by read(2)  "
	    "0x4040c0:64 (8 of");
	assert_holds(m.text, "  stray write in bump victim.c:10\n");
	assert_string_equal(strstr(m.text, "\nstray: "), "\n"
	    "stray: 2 writers\n"
	    "  12x  bump     victim.c:10  counter  first #2\n"
	    "   1x  unknown               counter  first #9\n"
	    "\n"
	    "not judged: 1 writer\n"
	    "  1x  0x7f00000f0010  (libc.so.6+0xf0010)  0x4040c0:64  "
	    "first #5\n"
	    "  a caller that is allowed may be missing in their backtraces; "
	    "where these are truncated, --stack copies more\n");
}

/* Hits that came late are not those of the place that their backtraces show,
   nor is a caller missing. */
TEST(reports_late_hits)
{
	static const struct finding late = {
		.watch = &made_watches[0], .stack = &made_plain,
		.access = "write", .count = 2, .first_seq = 2,
		.incomplete = true, .late = true,
	};
	static const struct finding *const lates[] = {&late};
	static const struct report_end end = {
		.hits = 3, .reported = 3, .reason = "exit", .judged = true,
		.unjudged = 2, .doubts = lates, .ndoubts = 1,
	};
	struct ex_hit hits[] = {made_hit(1), made_hit(2), made_hit(3)};
	struct made_report m;

	hits[1].late = hits[1].unjudged = true;
	hits[2].late = hits[2].unjudged = true;
	made_write(&m, &report_text, &made_start, hits, 3, &end);
	assert_holds(m.text, "(delivered late, unblocked at the same "
	    "backtrace as #1)\n");
	assert_holds(m.text, "write, unblocked in bump " "victim.c:10\n");
	assert_holds(m.text, "write in bump victim.c:10\n");
	assert_string_equal(strstr(m.text, "\nnot judged: "), "\n"
	    "not judged: 1 writer\n"
	    "  2x  delivered late    counter  first #2\n");
}

TEST(reports_tail_calls)
{
	const struct ex_hit hit = made_tail_hit(1);
	struct made_report m;

	made_write(&m, &report_text, &made_start, &hit, 1, NULL);
	assert_holds(m.text, "\n#1   unjudged write  counter ");
	assert_holds(m.text, "\n" "     0  set          victim.c:3\n"
	    "     1  reload+0x15  (victim) (tail call)\n"
	    "     2  either       victim.c (tail call) (callees missing)\n"
	    "     3  main+0x0     (victim)\n"
	    "     stack incomplete: functions may be missing where it says "
	    "so\n");
}

TEST(reports_counts)
{
	const uint64_t counts[] = {100, 0};
	const struct report_end end = {.counts = counts};
	struct report_start start = start_with(2);
	struct made_report m;

	made_write(&m, &report_text, &start, NULL, 0, &end);
	assert_string_equal(strstr(m.text, "\n\n"), "\n\n"
	    "      hits  watch\n"
	    "       100  counter (8 bytes at 0x404090), writes\n"
	    "         0  0x4040c0:64 (64 bytes at 0x4040c0), any access\n");
}

/* As far as threads are known; of another process it is said which. */
TEST(reports_threads_counts)
{
	static const struct wp_thread_count threads[] = {
		{0, 4335, 4340, 60}, {0, 4335, 4335, 30}, {0, 77, 78, 4},
		{1, 4335, 4341, 5},
	};
	const uint64_t counts[] = {100, 5};
	const struct report_end end = {
		.counts = counts, .threads = threads, .nthreads = 4,
	};
	struct report_start start = start_with(2);
	struct made_report m;

	made_write(&m, &report_text, &start, NULL, 0, &end);
	assert_string_equal(strstr(m.text, "\n\n"), "\n\n"
	    "      hits  watch\n"
	    "       100  counter (8 bytes at 0x404090), writes\n"
	    "        60    thread 4340\n"
	    "        30    thread 4335\n"
	    "         4    thread 78 of process 77\n"
	    "         6    unknown threads\n"
	    "         5  0x4040c0:64 (64 bytes at 0x4040c0), any access\n"
	    "         5    thread 4341\n");
}

TEST(makes_hostile_names_visible)
{
	const struct ex_hit hits[] = {made_evil_hit(1), made_evil_hit(2)};
	const struct report_end end = {.hits = 2};
	struct made_report m;

	made_write(&m, &report_text, &made_start, hits, 2, &end);
	assert_visible(m.text);
	assert_holds(m.text, "a\\x1b[2Jb\\n\"\\c\\xff\\xc0\\xaf\\t"
	    "\\x7f\\u202e;d e");
}

/* With its colours taken out, a coloured report is the plain one. */
TEST(colours_change_no_text)
{
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_evil_hit(3), made_hit(4),
	};
	const struct report_end end = made_judged;
	struct made_report plain, coloured;
	char *to, *from;

	hits[0].stray = true;
	made_write(&plain, &report_text, &made_start, hits, 4, &end);
	made_open(&coloured, &report_text);
	coloured.report.screen.colour = true;
	assert_int_equal(report_text.start(&coloured.report, &made_start), 0);
	made_hits(&coloured, hits, 4);
	made_close(&coloured, &end);
	assert_holds(coloured.text, "\033[36mcounter\033[0m");
	assert_holds(coloured.text, "\033[31mstray write\033[0m");
	for (to = from = coloured.text; *from != '\0';) {
		if (*from == '\033')
			from = strchr(from, 'm') + 1;
		else
			*to++ = *from++;
	}
	*to = '\0';
	assert_string_equal(coloured.text, plain.text);
}

TEST(wants_colour_on_terminals_only)
{
	static const struct {
		const char *term, *no_colour;
		bool wanted;
	} cases[] = {
		{"xterm", NULL, true}, {"xterm", "", true},
		{"xterm", "1", false}, {"dumb", NULL, false},
		{"", NULL, false}, {NULL, NULL, false},
	};
	FILE *file = tmpfile(), *terminal;
	int master, slave;

	assert_non_null(file);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	terminal = fdopen(slave, "w");
	assert_non_null(terminal);
	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)unsetenv("TERM");
		(void)unsetenv("NO_COLOR");
		if (cases[i].term != NULL)
			(void)setenv("TERM", cases[i].term, 1);
		if (cases[i].no_colour != NULL)
			(void)setenv("NO_COLOR", cases[i].no_colour, 1);
		assert_int_equal(output_screen(terminal).colour,
		    cases[i].wanted);
		assert_false(output_screen(file).colour);
	}
	(void)fclose(terminal);
	(void)close(master);
	(void)fclose(file);
}

RUN_TESTS()
