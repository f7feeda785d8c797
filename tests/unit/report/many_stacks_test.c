/*
 * many_stacks: a recording of more distinct backtraces than there is memory for
 * is reported to its end, with every hit and its backtrace; the table at the
 * end says of how many hits it knows no more than their number.
 *
 * That memory holds some 25,000 of them.
 */
#include "test.h"

#include <stdlib.h>

#include "command.h"
#include "made_recording.h"
#include "scratch.h"

#define ADDR	UINT64_C(0x404090)
#define MEMORY	"48M"

enum { FRAMES = 20, STACKS_USUAL = 40000,
	STACKS_THOROUGH = SANITIZED ? 200000 : 1000000 };

struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time, addr;
	uint32_t cpu, res;
	uint64_t nchain, chain[1 + FRAMES];
};

static unsigned stacks;

/* Hit i, from 0 on: no two have the same callers, but the last hit's are the
   first one's. */
static void
put_sample(struct ex_perfwriter *w, uint64_t i)
{
	const uint64_t number = i == stacks ? 0 : i;
	struct sample s = {
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
		    sizeof(s)},
		.id = 1, .ip = 0x100000, .pid = 7, .tid = 7,
		.time = (i + 1) * 1000000,
		.addr = ADDR, .nchain = 1 + FRAMES,
		.chain = {PERF_CONTEXT_USER, 0x100000},
	};

	for (unsigned f = 1; f < FRAMES; f++)
		s.chain[1 + f] = 0x200000 + 0x100 * f +
		    (number >> 2 * (f - 1) & 3);
	assert_int_equal(ex_perfwriter_record(w, &s), 0);
}

static void
make_recording(const char *name)
{
	struct ex_perfwriter *w = made_recording(scratch_path(name), ADDR,
	    PERF_SAMPLE_CALLCHAIN);

	for (uint64_t i = 0; i <= stacks; i++)
		put_sample(w, i);
	assert_int_equal(ex_perfwriter_close(w), 0);
}

/* Report in a form; what it says on standard error. */
static void
report(const char *form, const char *more, FILE **out)
{
	char account[64], path[PATH_MAX + 256];
	struct outcome o;

	(void)snprintf(path, sizeof(path), "%s", scratch_path("report"));
	run(&o, LIST(watchctl(), "report", "--explain-memory", MEMORY, "-o",
	    form, "-O", path, scratch_path("recording"), more));
	(void)snprintf(account, sizeof(account), "%u hits, %u reported, 0 lost",
	    stacks + 1, stacks + 1);
	if (o.status != 0 || strstr(o.err, account) == NULL)
		fail_msg("%d: %s", o.status, o.err);
	assert_non_null(*out = fopen(path, "r"));
}

static bool
begins(const char *line, const char *text)
{
	return strncmp(line, text, strlen(text)) == 0;
}

/* Each is printed in full, that of the first hit once more. */
TEST(text)
{
	unsigned hits = 0, frames = 0;
	size_t size = 0;
	char *line = NULL, total[64];
	bool has_total = false, has_others = false;
	FILE *f;

	report("text", NULL, &f);
	(void)snprintf(total, sizeof(total), "%u hits, at least ", stacks + 1);
	while (getline(&line, &size, f) > 0) {
		hits += line[0] == '#';
		frames += begins(line, "     19 ");
		has_total |= strstr(line, total) != NULL;
		has_others |= strstr(line, "other backtraces") != NULL;
	}
	assert_int_equal(hits, stacks + 1);
	assert_int_equal(frames, stacks + 1);
	assert_true(has_total && has_others);
	free(line);
	(void)fclose(f);
}

/* The text in quotation marks behind a name; "": none. */
static const char *
field_of(const char *line, const char *name, char value[32])
{
	const char *at = strstr(line, name);

	value[0] = '\0';
	if (at != NULL)
		(void)sscanf(at + strlen(name), "%31[^\"]", value);
	return value;
}

/* The line of a backtrace comes before the hit with it; what the summary counts
   is all hits. */
TEST(json_with_stacks_once)
{
	char stack[32] = "", id[32], *line = NULL;
	unsigned hits = 0, others = 0;
	uint64_t counted = 0;
	size_t size = 0;
	const char *at;
	FILE *f;

	report("json", "--stacks=once", &f);
	while (getline(&line, &size, f) > 0) {
		if (begins(line, "{\"type\":\"stack\""))
			(void)field_of(line, "\"id\":\"", stack);
		if (begins(line, "{\"type\":\"hit\"")) {
			hits++;
			assert_string_equal(field_of(line, "\"stack\":\"", id),
			    stack);
		}
		if (begins(line, "{\"type\":\"summary\"")) {
			assert_non_null(at = strstr(line, "\"count\":"));
			counted += strtoull(at + strlen("\"count\":"), NULL,
			    10);
			others += strstr(line, "\"others\":true") != NULL;
		}
	}
	assert_int_equal(hits, stacks + 1);
	assert_int_equal(counted, stacks + 1);
	assert_int_equal(others, 1);
	free(line);
	(void)fclose(f);
}

/* The most frequent are printed, and no other. */
TEST(summary)
{
	unsigned named = 0, frames = 0, first = 0;
	size_t size = 0;
	char *line = NULL;
	bool has_others = false;
	FILE *f;

	report("summary", NULL, &f);
	while (getline(&line, &size, f) > 0) {
		named += line[0] == '#';
		first += begins(line, "#1 ");
		frames += begins(line, "     19 ");
		has_others |= strstr(line, "other backtraces") != NULL;
	}
	assert_in_range(named, 4096, 8192);
	assert_int_equal(frames, named);
	assert_true(has_others && first <= 1);
	free(line);
	(void)fclose(f);
}

static int
make(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	stacks = getenv("THOROUGH") != NULL ? STACKS_THOROUGH : STACKS_USUAL;
	make_recording("recording");
	return 0;
}

RUN_TESTS(.before_all = make, .after_all = scratch_remove)
