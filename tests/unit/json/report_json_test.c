/* report_json: every line is an object of schema "watchctl/1". */
#include "test.h"

#include <errno.h>
#include <jansson.h>

#include "made_hits.h"

enum { LINES_MAX = 64 };

struct lines {
	json_t *line[LINES_MAX];
	size_t n;
};

TEST_KEEPS(kept, json_t *, json_decref)

/* Every line parsed; a line that is no JSON object fails the test. */
static struct lines
parse(const char *text)
{
	struct lines lines = {.n = 0};

	assert_visible(text);
	while (*text != '\0') {
		const char *end = strchr(text, '\n');
		json_error_t error;
		json_t *json;

		assert_non_null(end);
		json = json_loadb(text, (size_t)(end - text),
		    JSON_REJECT_DUPLICATES, &error);
		if (json == NULL)
			fail_msg("%s: %.*s", error.text, (int)(end - text),
			    text);
		assert_true(json_is_object(json));
		assert_true(lines.n < LINES_MAX);
		lines.line[lines.n++] = kept(json);
		text = end + 1;
	}
	return lines;
}

/* The line is this object, in single quotes, and nothing else. */
static void
assert_line(const json_t *line, const char *want)
{
	char *text = strdup(want);
	json_t *json;

	for (char *p = text; *p != '\0'; p++)
		*p = *p == '\'' ? '"' : *p;
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	if (!json_equal(line, json)) {
		char *got = json_dumps(line, 0);

		print_error("got  %s\n", got);
		free(got);
		fail_msg("want %s", text);
	}
	json_decref(json);
	free(text);
}

static const struct report_end ended = {
	.hits = 100, .reported = 98, .lost = 2, .reason = "exit", .status = 3,
};

#define PLAIN_STACK "'stack'" PLAIN_FRAMES
#define PLAIN_FRAMES ":'9f3c000000000001','frames':["			\
	"{'pc':'0x401320','function':'bump','offset':0,'module':'victim'," \
	"'build_id':'c0ffee','file':'victim.c','line':10,'column':3,"	\
	"'inlined':false},"						\
	"{'pc':'0x401355','function':'ns::level<int, long>',"		\
	"'module':'victim','build_id':'c0ffee','file':'victim.c','line':11," \
	"'inlined':true},"						\
	"{'pc':'0x401355','function':'main','offset':37,"		\
	"'module':'victim','build_id':'c0ffee','file':'victim.c','line':13," \
	"'inlined':false},"						\
	"{'pc':'0x7f0000027249','function':'__libc_start_call_main',"	\
	"'offset':121,'module':'libc.so.6','inlined':false}]"

static const char plain_hit[] =
    "{'type':'hit','seq':1,'watch':1,'time':12.003417,'pid':4335,"
    "'tid':4340,'comm':'victim','cpu':1,'access':'write','origin':'user',"
    "'addr':'0x404090','len':8,'pc':'0x401327','insn':{'pc':'0x401320',"
    "'text':'mov %rdi,0x2d69(%rip)','confidence':'exact',"
    "'addr':'0x404090','size':8},'old':'0x29','new':'0x2a',"
    "'value_source':'register'," PLAIN_STACK "}";

#define KERNEL_FRAMES ":'000000000000002b','frames':["			\
	"{'pc':'0xffffffff81000010','function':'ksys_read','offset':16," \
	"'inlined':false,'kernel':true},"				\
	"{'pc':'0x7f00000f0010','module':'libc.so.6','inlined':false}," \
	"{'pc':'0x12340','inlined':false,'signal':true}],"		\
	"'truncated':'stack truncated: end of copy'"

static const char kernel_hit[] =
    "{'type':'hit','seq':2,'watch':2,'time':12.0034175,'pid':4335,"
    "'tid':4335,'access':'write','origin':'kernel','syscall':'read',"
    "'addr':'0x4040c8','len':8,'samples':8,'pc':'0x7f00000f0010',"
    "'stack'" KERNEL_FRAMES "}";

TEST(writes_the_schema)
{
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3), made_hit(4),
	};
	struct made_report m;
	struct lines lines;

	/* an immediate; and nothing known but that it happened */
	hits[2].source = EX_VALUE_IMMEDIATE;
	hits[3].source = EX_VALUE_UNKNOWN;
	hits[3].old.known = 0;
	hits[3].insn = (struct ex_insn){.confidence = EX_UNKNOWN};
	hits[3].stack = NULL;
	hits[3].pc = 0;
	hits[3].time = 500000000;
	made_open(&m, &report_json);
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 4);
	assert_int_equal(report_json.lost(&m.report, 2), 0);
	assert_int_equal(report_json.thread(&m.report, false, 4341), 0);
	assert_int_equal(report_json.thread(&m.report, true, 4341), 0);
	assert_int_equal(report_json.warning(&m.report, "a \"b\"\n"), 0);
	assert_int_equal(report_json.last(&m.report, 3, "crash"), 0);
	assert_int_equal(report_json.last(&m.report, UINT64_MAX, "exit"), 0);
	made_close(&m, &ended);
	lines = parse(m.text);
	assert_int_equal(lines.n, 15);

	assert_line(lines.line[0], "{'type':'start','schema':'watchctl/1',"
	    "'pid':4335,'comm':'victim','mode':'ring','threads':3,"
	    "'frozen_ms':0.8,'watches':["
	    "{'id':1,'spec':'counter','symbol':'counter','addr':'0x404090',"
	    "'len':8,'access':'w','slots':1},"
	    "{'id':2,'spec':'0x4040c0:64','addr':'0x4040c0','len':64,"
	    "'access':'a','slots':8},"
	    "{'id':3,'spec':'a\\u001b[2Jb\\n\\\"\\\\c\\ufffd\\ufffd\\ufffd"
	    "\\t\\u007f\\u202e;d e','symbol':'a\\u001b[2Jb\\n\\\"\\\\c\\ufffd"
	    "\\ufffd\\ufffd\\t\\u007f\\u202e;d e','addr':'0x404200','len':4,"
	    "'access':'r'}]}");
	assert_line(lines.line[1], plain_hit);
	assert_line(lines.line[2], kernel_hit);
	assert_string_equal(json_string_value(json_object_get(lines.line[3],
	    "value_source")), "immediate");
	assert_line(lines.line[4], "{'type':'hit','seq':4,'watch':1,"
	    "'time':-0.5,'pid':4335,'tid':4340,'comm':'victim','cpu':1,"
	    "'access':'write','origin':'user','addr':'0x404090','len':8,"
    "'insn':{'confidence':'unknown'}}");
	assert_line(lines.line[5], "{'type':'lost','count':2}");
	assert_line(lines.line[6],
	    "{'type':'thread','event':'new','tid':4341}");
	assert_line(lines.line[7],
	    "{'type':'thread','event':'exit','tid':4341}");
	assert_line(lines.line[8],
	    "{'type':'warning','text':'a \\\"b\\\"\\n'}");
	assert_line(lines.line[9],
	    "{'type':'last','count':3,'reason':'crash'}");
	assert_line(lines.line[10], "{'type':'last','reason':'exit'}");
	assert_line(lines.line[11], "{'type':'summary','watch':1,"
	    "'stack':'9f3c000000000001','access':'write','count':2,"
	    "'first':12.003417,'last':12.003417,'threads':[4340],"
	    "'values':{'first':'0x2a','last':'0x2a','min':'0x2a',"
	    "'max':'0x2a'}}");
	assert_line(lines.line[12], "{'type':'summary','watch':2,"
	    "'stack':'000000000000002b','access':'write','count':1,"
	    "'first':12.0034175,'last':12.0034175,'threads':[4335]}");
	assert_line(lines.line[13], "{'type':'summary','watch':1,"
	    "'access':'write','count':1,'first':-0.5,'last':-0.5,"
	    "'threads':[4340]}");
	assert_line(lines.line[14], "{'type':'end','hits':100,"
	    "'reported':98,'lost':2,'reason':'exit','status':3}");
}

/* A hit's fields of values, as of its line. */
TEST(reports_values)
{
	static const struct {
		struct ex_value old, new;
		enum ex_value_source source;
		uint64_t from, len;
		bool unchanged;
		const char *text;
	} cases[] = {
		{{{0x29}, 0xff}, {{0x2a}, 0xff}, EX_VALUE_DERIVED, 0, 8, false,
		    "\"old\":\"0x29\",\"new\":\"0x2a\","
		    "\"value_source\":\"derived\","},
		{{{0}, 0}, {{1, 2, 3, 4, 5, 6, 7, 8}, 0xff}, EX_VALUE_LATER, 2,
		    2, false, "\"new\":\"0x403\",\"value_source\":\"later\","},
		{{{7}, 0xff}, {{7}, 0xff}, EX_VALUE_STOP, 0, 8, true,
		    "\"old\":\"0x7\",\"new\":\"0x7\","
		    "\"value_source\":\"stop\",\"unchanged\":true,"},
		{{{7}, 0xff}, {{7}, 0xff}, EX_VALUE_UNKNOWN, 0, 8, false,
		    "\"old\":\"0x7\",\"stack\""},
		/* not all that was touched is known */
		{{{7}, 0xfe}, {{7}, 0x7f}, EX_VALUE_REGISTER, 0, 8, false,
		    "\"size\":8},\"stack\""},
		/* more than a number holds; nothing of it is kept */
		{{{0}, UINT32_MAX}, {{[9] = 1, [10] = 0xab}, UINT32_MAX},
		    EX_VALUE_STOP, 0, 16, false, "\"old\":\"0x0\","
		    "\"new\":\"0xab01000000000000000000\","},
		{{{0}, UINT32_MAX}, {{0}, UINT32_MAX}, EX_VALUE_STOP, 32, 8,
		    false, "\"size\":8},\"stack\""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_hit(1);
		struct made_report m;

		hit.watch = &made_watches[1];
		hit.addr = hit.watch->addr + cases[i].from;
		hit.len = cases[i].len;
		hit.old = cases[i].old;
		hit.new = cases[i].new;
		hit.source = cases[i].source;
		hit.unchanged = cases[i].unchanged;
		made_write(&m, &report_json, &made_start, &hit, 1, &ended);
		if (strstr(m.text, cases[i].text) == NULL)
			fail_msg("no %s in %s", cases[i].text, m.text);
	}
}

/* Of an old value that is reported. */
TEST(reports_an_old_value_that_is_inferred)
{
	static const struct {
		uint32_t known;
		bool inferred;
		const char *text;
	} cases[] = {
		{0xff, true, "\"old\":\"0x7\",\"old_inferred\":true,\"new\""},
		{0xff, false, "\"old\":\"0x7\",\"new\""},
		{0x7f, true, "\"size\":8},\"new\""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_hit(1);
		struct made_report m;

		hit.old = (struct ex_value){{7}, cases[i].known};
		hit.new = (struct ex_value){{8}, 0xff};
		hit.source = EX_VALUE_IMMEDIATE;
		hit.old_inferred = cases[i].inferred;
		made_write(&m, &report_json, &made_start, &hit, 1, &ended);
		if (strstr(m.text, cases[i].text) == NULL)
			fail_msg("no %s in %s", cases[i].text, m.text);
	}
}

/* What is kept of one hit is not said of the next. */
TEST(reports_that_a_condition_is_not_judged)
{
	const struct report_end end = {.hits = 9, .reported = 2,
	    .conditional = true, .rejected = 3, .thinned = true, .skipped = 4};
	struct ex_hit hits[] = {made_hit(1), made_hit(2)};
	const char *p;
	struct made_report m;

	hits[0].unsure = true;
	made_write(&m, &report_json, &made_start, hits, 2, &end);
	p = strstr(m.text, "\"access\":\"write\",\"if\":\"unknown\",");
	assert_non_null(p);
	assert_lacks(p + 20, "\"if\"");
	assert_holds(p, "\"lost\":0,\"rejected\":3," "\"skipped\":4,");
}

/* The whole object's bytes are needed for a value of its type. */
TEST(reports_types)
{
	static const struct {
		struct ex_object object;
		uint32_t known;
		const char *text;
	} cases[] = {
		{{"c.n", "int", 0, 4}, 0xff, "\"value_type\":\"int\","
		    "\"path\":\"c.n\",\"old\":\"0x29\",\"old_text\":\"<41>\","
		    "\"new\":\"0x2a\",\"new_text\":\"<42>\",\"value_source\""},
		{{"c.n", "long", -4, 8}, 0xff, "\"old_text\":\"<41>\""},
		{{"c.n", "long", -4, 8}, 0xf0, "\"old\":\"0x0\","
		    "\"new\":\"0x0\",\"value_source\""},
		{{"c.n", "long", -8, 16}, 0xff, "\"new\":\"0x0\","
		    "\"value_source\""},
		{{"c", "struct c", -4, 8}, 0xff, "\"value_type\":\"struct c\","
		    "\"path\":\"c\",\"old\":\"0x0\",\"new\":\"0x0\",\"val"},
		{{HOSTILE, HOSTILE, 0, 4}, 0xff, "\\u001b[2Jb"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_hit(1);
		struct made_report m;

		made_object = cases[i].object;
		hit.process = MADE_PROCESS;
		hit.addr += 4;
		hit.len = 4;
		hit.old.known = hit.new.known = cases[i].known;
		if (cases[i].object.offset == 0) {
			hit.old = (struct ex_value){{[4] = 41}, cases[i].known};
			hit.new = (struct ex_value){{[4] = 42}, cases[i].known};
		}
		made_write(&m, &report_json, &made_start, &hit, 1, &ended);
		assert_visible(m.text);
		(void)parse(m.text);
		if (strstr(m.text, cases[i].text) == NULL)
			fail_msg("no %s in %s", cases[i].text, m.text);
	}
	made_object = (struct ex_object){"counter", "long", 0, 8};
}

/* Times keep their nanoseconds, which a double of jansson's would hide. */
TEST(keeps_nanoseconds)
{
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	hit.time = 1000000000 + 86400ULL * 1000000000 + 7;
	made_write(&m, &report_json, &made_start, &hit, 1, &ended);
	assert_holds(m.text, "\"time\":86400.000000007,");
}

TEST(survives_hostile_names)
{
	const struct ex_hit hits[] = {
		made_evil_hit(1), made_hit(2), made_evil_hit(3),
	};
	struct made_report m;
	struct lines lines;
	const char *text;
	json_t *frame;

	made_open(&m, &report_json);
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 3);
	assert_int_equal(report_json.warning(&m.report, HOSTILE), 0);
	made_close(&m, &ended);
	lines = parse(m.text);
	assert_int_equal(lines.n, 8);

	/* all but the bytes that are not UTF-8 come back as they were */
	frame = json_array_get(json_object_get(lines.line[3], "frames"), 0);
	text = json_string_value(json_object_get(frame, "function"));
	assert_string_equal(text, "a\033[2Jb\n\"\\c\xef\xbf\xbd\xef\xbf\xbd"
	    "\xef\xbf\xbd\t\x7f\xe2\x80\xae;d e");
	assert_string_equal(json_string_value(json_object_get(frame, "file")),
	    text);
	assert_string_equal(json_string_value(json_object_get(frame,
	    "module")), text);
	assert_string_equal(json_string_value(json_object_get(lines.line[1],
	    "comm")), text);
}

TEST(leaves_out_what_is_unknown)
{
	const struct report_start start = {.frozen_ms = -1};
	const struct report_end end = {.hits = 0};
	struct made_report m;
	struct lines lines;

	made_write(&m, &report_json, &start, NULL, 0, &end);
	lines = parse(m.text);
	assert_int_equal(lines.n, 2);
	assert_line(lines.line[0], "{'type':'start','schema':'watchctl/1',"
	    "'watches':[]}");
	assert_line(lines.line[1], "{'type':'end','hits':0,'reported':0,"
	    "'lost':0,'status':0}");
}

/* A watch that was opened meanwhile, and its hit, which came late. */
TEST(reports_later_watches)
{
	struct report_start start = made_start;
	struct ex_hit hit = made_hit(1);
	struct made_report m;
	struct lines lines;

	start.nwatches = 1;
	hit.watch = made_list[1];
	hit.late = true;
	made_open(&m, &report_json);
	assert_int_equal(report_json.start(&m.report, &start), 0);
	assert_int_equal(report_json.watch(&m.report, made_list, 2), 0);
	made_hits(&m, &hit, 1);
	made_close(&m, NULL);
	lines = parse(m.text);
	assert_line(lines.line[1], "{'type':'watch','id':2,"
	    "'spec':'0x4040c0:64','addr':'0x4040c0','len':64,'access':'a',"
	    "'slots':8}");
	assert_int_equal(json_integer_value(json_object_get(lines.line[2],
	    "watch")), 2);
	assert_true(json_is_true(json_object_get(lines.line[2], "late")));
}

TEST(reports_arguments)
{
	const struct ex_arguments args = {.n = 3, .arg = {
		{.name = "n", .type = "int", .has_value = true,
		 .value = 0xfffffffb, .text = "-5"},
		{.name = "", .type = "struct \"p\"", .text = "{1, 2}"},
		{.name = "u", .type = "union u", .has_value = true,
		 .value = 9},
	}};
	struct ex_hit hit = made_hit(1);
	struct made_report m;
	struct lines lines;

	hit.args = &args;
	made_write(&m, &report_json, &made_start, &hit, 1, NULL);
	lines = parse(m.text);
	assert_line(json_object_get(lines.line[1], "args"), "[{'name':'n',"
	    "'type':'int','text':'-5','value':'0xfffffffb'},"
	    "{'type':'struct \\'p\\'','text':'{1, 2}'},"
	    "{'name':'u','type':'union u','value':'0x9'}]");
	made_write(&m, &report_text, &made_start, &hit, 1, NULL);
	assert_holds(m.text, "  n = -5, {1, 2}, u = 0x9");
}

TEST(reports_counters)
{
	struct ex_hit hit = made_hit(1);
	struct made_report m;
	struct lines lines;

	hit.with[0] = (struct ex_counted){"page-faults", 3, false};
	hit.with[1] = (struct ex_counted){"task-clock", 40210345, true};
	hit.nwith = 2;
	made_write(&m, &report_json, &made_start, &hit, 1, NULL);
	lines = parse(m.text);
	assert_line(json_object_get(lines.line[1], "with"),
	    "{'page-faults':3,'task-clock':40210345}");
	made_write(&m, &report_text, &made_start, &hit, 1, NULL);
	assert_holds(m.text, "\n     since this thread's last hit: "
	    "page-faults 3, task-clock 40.210345 ms\n");
	hit.nwith = 0;
	made_write(&m, &report_json, &made_start, &hit, 1, NULL);
	assert_lacks(m.text, "\"with\"");
}

/* What became of a watch: only what is known of it. */
TEST(reports_what_becomes_of_watches)
{
	const uint64_t time = made_start.time + 1250000000;
	const struct watch_event events[] = {
		{.what = WATCH_ARMED, .time = time, .pid = 17, .tid = 18,
		 .addr = 0x5000, .len = 8, .gap = 310200,
		 .module = "lib\nfoo.so", .program = "/bin/sh"},
		{.what = WATCH_RETARGET, .watch = 1, .time = time,
		 .gap = WATCH_NO_GAP},
		{.what = WATCH_MISSING, .time = time, .gap = WATCH_NO_GAP},
		{.what = WATCH_DISARMED, .time = time, .gap = 5},
	};
	struct made_report m;
	struct lines lines;

	made_open(&m, &report_json);
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	for (size_t i = 0; i < COUNT(events); i++)
		assert_int_equal(report_json.event(&m.report, &events[i]), 0);
	made_close(&m, NULL);
	lines = parse(m.text);
	assert_line(lines.line[1], "{'type':'watch','event':'armed','id':1,"
	    "'time':1.25,'pid':17,'tid':18,'addr':'0x5000','len':8,"
	    "'module':'lib\\nfoo.so','program':'/bin/sh','gap_us':310.2}");
	assert_line(lines.line[2], "{'type':'watch','event':'retarget','id':2,"
	    "'time':1.25}");
	assert_line(lines.line[3], "{'type':'watch','event':'missing','id':1,"
	    "'time':1.25}");
	assert_line(lines.line[4], "{'type':'watch','event':'disarmed','id':1,"
	    "'time':1.25,'gap_us':0.005}");
}

/* A stray hit says so, others nothing; findings come before the end. */
TEST(reports_stray_writers)
{
	struct ex_hit hits[] = {made_hit(1), made_hit(2)};
	struct made_report m;
	struct lines lines;

	hits[1].stray = true;
	made_write(&m, &report_json, &made_start, hits, 2, &made_judged);
	lines = parse(m.text);
	assert_int_equal(lines.n, 8);
	assert_line(lines.line[1], plain_hit);
	assert_true(json_is_true(json_object_get(lines.line[2], "stray")));
	assert_line(lines.line[4], "{'type':'finding','stray':true,'watch':1,"
	    "'count':12,'first_seq':2,'access':'write','function':'bump',"
	    "'file':'victim.c','line':10,'module':'victim','pc':'0x401320',"
	    "'stack':'9f3c000000000001'}");
	assert_line(lines.line[5], "{'type':'finding','stray':true,'watch':1,"
	    "'count':1,'first_seq':9,'access':'write'}");
	assert_line(lines.line[6], "{'type':'finding','unjudged':true,"
	    "'watch':2,'count':1,'first_seq':5,'access':'write',"
	    "'module':'libc.so.6','pc':'0x7f00000f0010',"
	    "'stack':'000000000000002b'}");
	assert_line(lines.line[7], "{'type':'end','hits':20,'reported':20,"
	    "'lost':0,'stray':13,'unjudged':1,'reason':'exit','status':66}");
}

TEST(reports_late_findings)
{
	static const struct finding late = {
		.watch = &made_watches[0], .access = "write", .count = 2,
		.first_seq = 2, .incomplete = true, .late = true,
	};
	static const struct finding *const lates[] = {&late};
	static const struct report_end end = {
		.reason = "exit", .judged = true, .doubts = lates,
		.ndoubts = 1,
	};
	struct made_report m;
	struct lines lines;

	made_write(&m, &report_json, &made_start, NULL, 0, &end);
	lines = parse(m.text);
	assert_line(lines.line[1], "{'type':'finding','unjudged':true,"
	    "'late':true,'watch':1,'count':2,'first_seq':2,"
	    "'access':'write'}");
}

/* What ended in a tail call has no address unless its jump is known; what is
   not judged is neither stray nor fine. */
TEST(reports_tail_calls)
{
	const struct ex_hit hit = made_tail_hit(1);
	struct made_report m;

	made_write(&m, &report_json, &made_start, &hit, 1, NULL);
	assert_holds(m.text, "\"unjudged\":true");
	assert_holds(m.text, "{\"pc\":\"0x401355\",\"function\":"
	    "\"reload\",\"offset\":21,\"module\":\"victim\",\"build_id\":"
	    "\"c0ffee\",\"inlined\":false,\"tail_call\":true},{\"function\":"
	    "\"either\",\"module\":\"victim\",\"build_id\":\"c0ffee\","
	    "\"file\":\"victim.c\",\"inlined\":false,\"tail_call\":true,"
	    "\"gap\":true},{\"pc\":\"0x401365\",");
	assert_holds(m.text, "}],\"incomplete\":true");
}

TEST(reports_counts)
{
	const uint64_t counts[] = {7, 0, UINT64_C(1) << 40};
	struct report_end end = ended;
	struct made_report m;
	struct lines lines;

	end.counts = counts;
	made_write(&m, &report_json, &made_start, NULL, 0, &end);
	lines = parse(m.text);
	assert_int_equal(lines.n, 5);
	assert_line(lines.line[1], "{'type':'count','watch':1,'count':7}");
	assert_line(lines.line[3],
	    "{'type':'count','watch':3,'count':1099511627776}");
}

/* A line for each thread, and one for those that are not known. */
TEST(reports_threads_counts)
{
	static const struct wp_thread_count threads[] = {
		{0, 4335, 4340, 60}, {0, 4335, 4335, 30}, {1, 4335, 4341, 5},
		{2, 4335, 4341, 9},
	};
	const uint64_t counts[] = {100, 5, 0};
	struct report_end end = ended;
	struct made_report m;
	struct lines lines;

	end.counts = counts;
	end.threads = threads;
	end.nthreads = 4;
	made_write(&m, &report_json, &made_start, NULL, 0, &end);
	lines = parse(m.text);
	assert_int_equal(lines.n, 7);
	assert_line(lines.line[1], "{'type':'count','watch':1,'pid':4335,"
	    "'tid':4340,'count':60}");
	assert_line(lines.line[2], "{'type':'count','watch':1,'pid':4335,"
	    "'tid':4335,'count':30}");
	assert_line(lines.line[3], "{'type':'count','watch':1,'count':10}");
	assert_line(lines.line[4], "{'type':'count','watch':2,'pid':4335,"
	    "'tid':4341,'count':5}");
	/* more than there were: that cannot be */
	assert_line(lines.line[5], "{'type':'count','watch':3,'count':0}");
}

TEST(reports_for_how_long)
{
	static const char *const told[] = {
		"{'type':'end','hits':100,'reported':98,'lost':2,'threads':3,"
		    "'watched_ns':70,'gap_ns':20,'reason':'exit','status':3}",
		"{'type':'end','hits':100,'reported':98,'lost':2,"
		    "'watched_ns':70,'gap_ns':20,'reason':'exit','status':3}",
	};

	for (unsigned i = 0; i < 2; i++) {
		struct report_end end = ended;
		struct made_report m;
		struct lines lines;

		end.uptime = (struct wp_uptime){
			.known = true, .threads = i == 0 ? 3 : 0, .ran = 90,
			.off = 20,
		};
		made_write(&m, &report_json, &made_start, NULL, 0, &end);
		lines = parse(m.text);
		assert_line(lines.line[lines.n - 1], told[i]);
	}
}

/* A backtrace's text is copied, also when others came between; and lines are
   whole in the stream after a flush. */
TEST(repeats_backtraces)
{
	struct made_report m;
	struct lines lines;
	json_t *first, *later;

	made_open(&m, &report_json);
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	for (uint64_t i = 0; i < 20; i++) {
		const struct ex_hit hits[] = {
			made_hit(2 * i), made_kernel_hit(2 * i + 1),
		};

		made_hits(&m, hits, 2);
	}
	assert_int_equal(report_json.flush(&m.report), 0);
	lines = parse(m.text);
	assert_int_equal(lines.n, 41);
	for (size_t i = 3; i < 41; i++) {
		first = lines.line[2 - i % 2];
		later = lines.line[i];
		assert_true(json_equal(json_object_get(first, "frames"),
		    json_object_get(later, "frames")));
	}
	made_close(&m, NULL);
}

/* A hit that is unlike the plain one in one thing. */
static struct ex_hit
unlike(unsigned thing)
{
	static struct ex_stack other, alike;
	struct ex_hit hit = made_hit(1);
	struct ex_insn *insn = &hit.insn;

	other = alike = made_plain;
	other.id = 7;
	other.index = 1;
	alike.id = 8;
	alike.index = 1 << 20;	/* kept where the plain one is */
	switch (thing) {
	case 0: hit.pid++; break;
	case 1: hit.tid++; break;
	case 2: hit.tid += 64; break;
	case 3: (void)strcpy(hit.comm, "victims"); break;
	case 4: (void)strcpy(hit.comm, ""); break;
	case 5: hit.cpu++; break;
	case 6: hit.cpu = UINT32_MAX; break;
	case 7: hit.watch++; break;
	case 8: hit.time++; break;
	case 9: hit.access = "read-write"; break;
	case 10: hit.stray = true; break;
	case 11: hit.unjudged = true; break;
	case 12: hit.late = true; break;
	case 13: hit.kernel = true; break;
	case 14: hit.addr++; break;
	case 15: hit.len--; break;
	case 16: hit.samples = 2; break;
	case 17: hit.pc++; break;
	case 18: insn->confidence = EX_AMBIGUOUS; break;
	case 19: insn->pc++; break;
	case 20: insn->addr++; break;
	case 21: insn->size++; break;
	case 22: insn->text[strlen(insn->text) - 1] = '}'; break;
	case 23: hit.process = MADE_PROCESS; break;
	case 24: hit.new.byte[0]++; break;
	case 25: hit.old.known = 0; break;
	case 26: hit.unchanged = true; break;
	case 27: hit.source = EX_VALUE_LATER; break;
	case 28: hit.stack = NULL; break;
	case 29: hit.stack = &other; break;
	case 30: hit.stack = &alike; break;
	default: hit.seq = 0; break;	/* there are no more */
	}
	return hit;
}

/* The last line of a report of some hits. */
static char *
last_line(const struct ex_hit *hits, size_t n, bool once)
{
	struct made_report m;
	char *line;

	made_open(&m, &report_json);
	m.report.stacks_once = once;
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	made_hits(&m, hits, n);
	assert_int_equal(report_json.flush(&m.report), 0);
	m.text[strlen(m.text) - 1] = '\0';
	line = strdup(strrchr(m.text, '\n') + 1);
	made_close(&m, NULL);
	return line;
}

/* Text that is kept of one hit is another's only if it says what that is. */
TEST(says_of_each_hit_what_it_is)
{
	for (unsigned thing = 0; unlike(thing).seq != 0; thing++) {
		const struct ex_hit hits[] = {
			made_hit(1), made_hit(1), unlike(thing), made_hit(1),
			unlike(thing),
		};

		for (unsigned once = 0; once <= 1; once++) {
			char *plain = last_line(hits, 1, once);
			char *alone = last_line(&hits[2], 1, once);
			char *third = last_line(hits, 3, once);
			char *fourth = last_line(hits, 4, once);
			char *fifth = last_line(hits, 5, once);

			assert_string_not_equal(alone, plain);
			assert_string_equal(third, alone);
			assert_string_equal(fourth, plain);
			assert_string_equal(fifth, alone);
			free(plain);
			free(alone);
			free(third);
			free(fourth);
			free(fifth);
		}
	}
}

/* --stacks once: a line for each backtrace before its first hit, which has its
   name only; what is not known of it is on that line. */
TEST(backtraces_once)
{
	struct ex_stack other = made_plain;
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3), made_hit(4),
		made_hit(5), made_hit(6),
	};
	struct made_report m;
	struct lines lines;

	other.index = 2;	/* the same in another process */
	other.variant = 1;
	hits[3].stack = &other;
	hits[4].stack = NULL;
	made_open(&m, &report_json);
	m.report.stacks_once = true;
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 6);
	made_close(&m, &made_judged);
	lines = parse(m.text);
	assert_int_equal(lines.n, 18);
	assert_line(lines.line[1], "{'type':'stack','id'" PLAIN_FRAMES "}");
	assert_string_equal(json_string_value(json_object_get(lines.line[2],
	    "stack")), "9f3c000000000001");
	assert_line(lines.line[3], "{'type':'stack','id'" KERNEL_FRAMES "}");
	for (size_t i = 2; i < 10; i++)
		if (strcmp(json_string_value(json_object_get(lines.line[i],
		    "type")), "hit") == 0)
			assert_null(json_object_get(lines.line[i], "frames"));
	assert_null(json_object_get(lines.line[4], "truncated"));
	assert_string_equal(json_string_value(json_object_get(lines.line[6],
	    "id")), "9f3c000000000001");
	assert_string_equal(json_string_value(json_object_get(lines.line[7],
	    "stack")), "9f3c000000000001");
	for (size_t i = 6; i < 8; i++)
		assert_int_equal(json_integer_value(json_object_get(
		    lines.line[i], "variant")), 2);
	assert_null(json_object_get(lines.line[1], "variant"));
	assert_null(json_object_get(lines.line[2], "variant"));
	assert_null(json_object_get(lines.line[8], "stack"));
	assert_string_equal(json_string_value(json_object_get(lines.line[9],
	    "stack")), "9f3c000000000001");
}

/* With very many backtraces, one is written again before it is used again. */
TEST(very_many_backtraces)
{
	struct ex_stack far = made_kernel;
	const struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3),
	};
	struct ex_hit between = made_kernel_hit(2);
	struct made_report m;
	struct lines lines;

	far.index = made_plain.index + (1 << 16);
	between.stack = &far;
	made_open(&m, &report_json);
	m.report.stacks_once = true;
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 3);
	made_hits(&m, &between, 1);
	made_hits(&m, hits, 2);
	made_close(&m, NULL);
	lines = parse(m.text);
	/* start, 4 backtraces, of which one twice, 6 hits */
	assert_int_equal(lines.n, 11);
	assert_line(lines.line[8], "{'type':'stack','id'" PLAIN_FRAMES "}");
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
		    "\"origin\":\"kernel\",\"syscall\":\"read\","
		    "\"syscall_bytes\":64,\"fd\":3,\"file\":\"/etc/hosts\","
		    "\"file_source\":\"stop\",\"addr\""},
		{{.name = "read", .has_fd = true, .fd = 0, .file = "\033",
		    .file_later = true},
		    "\"syscall\":\"read\",\"fd\":0,\"file\":\"\\u001b\","
		    "\"file_source\":\"later\",\"addr\""},
		{{.name = "read", .has_fd = true, .fd = 7},
		    "\"syscall\":\"read\",\"fd\":7,\"addr\""},
		{{.work = "signal delivery"},
		    "\"origin\":\"kernel\",\"work\":\"signal delivery\","
		    "\"addr\""},
		{{.name = NULL}, "\"origin\":\"kernel\",\"addr\""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_hit hit = made_kernel_hit(1);
		struct made_report m;

		hit.call = cases[i].call;
		made_write(&m, &report_json, &made_start, &hit, 1, NULL);
		if (strstr(m.text, cases[i].text) == NULL)
			fail_msg("no %s in: %s", cases[i].text, m.text);
	}
}

/* A read leaves nothing new, whatever is known of it. */
TEST(a_read_has_an_old_value_only)
{
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	hit.access = "read";
	made_write(&m, &report_json, &made_start, &hit, 1, NULL);
	assert_holds(m.text, "\"old\":\"0x29\"");
	assert_lacks(m.text, "\"new\"");
	assert_lacks(m.text, "\"value_source\"");
}

/* Time 0 by the time of day; where it is not known, there is none. */
TEST(the_time_of_day)
{
	static const struct {
		uint64_t wall;
		const char *line;
	} cases[] = {
		{0, "{'type':'start','schema':'watchctl/1','watches':[]}"},
		{1700000000123456789, "{'type':'start','schema':'watchctl/1',"
		    "'wall':'2023-11-14T22:13:20.123456Z','watches':[]}"},
		{1700000000000001000, "{'type':'start','schema':'watchctl/1',"
		    "'wall':'2023-11-14T22:13:20.000001Z','watches':[]}"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct report_start start = {
			.frozen_ms = -1, .wall = cases[i].wall,
		};
		struct lines lines;
		struct made_report m;

		made_write(&m, &report_json, &start, NULL, 0, &ended);
		lines = parse(m.text);
		assert_line(lines.line[0], cases[i].line);
	}
}

/* -o summary,json: what each backtrace did, behind the line that it is, and
   nothing of what happened meanwhile. */
TEST(only_a_summary)
{
	const struct report_end end = {.hits = 4, .reported = 4};
	struct ex_hit hits[] = {
		made_hit(1), made_kernel_hit(2), made_hit(3), made_hit(4),
	};
	struct made_report m;
	struct lines lines;

	hits[2].new.byte[0] = 0x50;
	hits[3].new.byte[0] = 0x30;
	made_open(&m, &report_json);
	m.report.stacks_once = m.report.summary_only = true;
	assert_int_equal(report_json.start(&m.report, &made_start), 0);
	made_hits(&m, hits, 4);
	assert_int_equal(report_json.lost(&m.report, 2), 0);
	assert_int_equal(report_json.thread(&m.report, true, 7), 0);
	assert_int_equal(m.report.written, 0);
	made_close(&m, &end);
	assert_int_equal(m.report.written, 4);
	lines = parse(m.text);
	assert_int_equal(lines.n, 6);
	assert_line(lines.line[1], "{'type':'stack','id'" PLAIN_FRAMES "}");
	assert_line(lines.line[2], "{'type':'summary','watch':1,"
	    "'stack':'9f3c000000000001','access':'write','count':3,"
	    "'first':12.003417,'last':12.003417,'threads':[4340],"
	    "'values':{'first':'0x2a','last':'0x30','min':'0x2a',"
	    "'max':'0x50'}}");
	assert_line(lines.line[3], "{'type':'stack','id'" KERNEL_FRAMES "}");
	assert_line(lines.line[4], "{'type':'summary','watch':2,"
	    "'stack':'000000000000002b','access':'write','count':1,"
	    "'first':12.0034175,'last':12.0034175,'threads':[4335]}");
	assert_line(lines.line[5], "{'type':'end','hits':4,'reported':4,"
	    "'lost':0,'status':0}");
}

TEST(what_is_not_there_yet_is_pending_and_what_has_no_slot_a_uprobe)
{
	const struct ex_watch pending = {
		.id = 1, .spec = "later", .access = WP_WRITE, .pending = true,
	}, uprobe = {
		.id = 2, .spec = "run", .addr = 0x401000, .len = 1,
		.access = WP_EXEC,
	};
	const struct ex_watch *const watches[] = {&pending, &uprobe};
	struct report_start start = made_start;
	struct lines lines;
	struct made_report m;

	start.watches = watches;
	start.nwatches = 2;
	made_open(&m, &report_json);
	assert_int_equal(report_json.start(&m.report, &start), 0);
	made_close(&m, &ended);
	lines = parse(m.text);
	assert_line(json_array_get(json_object_get(lines.line[0], "watches"),
	    0), "{'id':1,'spec':'later','pending':true,'access':'w'}");
	assert_line(json_array_get(json_object_get(lines.line[0], "watches"),
	    1), "{'id':2,'spec':'run','addr':'0x401000','len':1,"
	    "'access':'x','uprobe':true}");
}

RUN_TESTS()
