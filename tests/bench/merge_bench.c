/*
 * merge: what merging reports takes, compared with what jq takes to read them;
 * and how much memory.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "bench.h"
#include "scratch.h"

enum { FILES = 200, HITS = 5000, FRAMES = 5, MEMORY_MB = 100 };

static void
put_frames(FILE *out, unsigned first)
{
	for (unsigned i = 0; i < FRAMES; i++)
		(void)fprintf(out, "%s{\"pc\":\"0x%x\",\"function\":"
		    "\"function_%u\",\"offset\":%u,\"module\":\"solver\","
		    "\"build_id\":\"0123456789abcdef0123456789abcdef01234567\","
		    "\"file\":\"/home/me/solver/src/part_%u.c\",\"line\":%u,"
		    "\"column\":3,\"inlined\":false}", i == 0 ? "" : ",",
		    0x401320 + (first + i) * 77, first + i, i * 16, first + i,
		    100 + i);
}

/* As -o json writes them. */
static void
put_hit(FILE *out, unsigned seq)
{
	(void)fprintf(out, "{\"type\":\"hit\",\"seq\":%u,\"watch\":1,"
	    "\"time\":%u.%09u,\"pid\":1000,\"tid\":%u,\"comm\":\"solver\","
	    "\"cpu\":%u,\"access\":\"write\",\"origin\":\"user\","
	    "\"addr\":\"0x404090\",\"len\":8,\"pc\":\"0x401327\",\"insn\":{"
	    "\"pc\":\"0x401320\",\"text\":\"mov %%rdi,0x2d69(%%rip)\","
	    "\"confidence\":\"exact\"},\"value_type\":\"long\","
	    "\"old\":\"0x%x\","
	    "\"old_text\":\"%u\",\"new\":\"0x%x\",\"new_text\":\"%u\","
	    "\"value_source\":\"register\",\"stack\":\"%016x\",\"frames\":[",
	    seq, seq / 1000, seq % 1000 * 1000000, 1000 + seq % 4, seq % 8,
	    seq - 1, seq - 1, seq, seq, 0x9f3c0000 + seq % 5);
	put_frames(out, seq % 5);
	(void)fputs("]}\n", out);
}

static void
put_file(unsigned number)
{
	char name[32];
	FILE *out;

	(void)snprintf(name, sizeof(name), "%03u.jsonl", number);
	assert_non_null(out = fopen(scratch_path(name), "w"));
	(void)fprintf(out, "{\"type\":\"start\",\"schema\":\"watchctl/1\","
	    "\"host\":\"n%u\",\"rank\":%u,\"pid\":%u,\"wall\":"
	    "\"2026-11-23T18:00:00.%06uZ\",\"watches\":[{\"id\":1,\"spec\":"
	    "\"residual\",\"access\":\"w\",\"len\":8}]}\n", number / 4,
	    number % 4, 1000 + number, number);
	for (unsigned seq = 1; seq <= HITS; seq++)
		put_hit(out, seq);
	(void)fprintf(out, "{\"type\":\"end\",\"hits\":%u,\"reported\":%u,"
	    "\"lost\":0,\"status\":0}\n", HITS, HITS);
	assert_int_equal(fclose(out), 0);
}

/* Seconds of processor time of a shell command, and what it said. */
static double
time_of(const char *command, struct outcome *o)
{
	const double began = bench_cpu();

	run(o, LIST("/bin/sh", "-c", command));
	if (o->status != 0)
		fail_msg("%s: %s", command, o->err);
	return bench_cpu() - began;
}

int
main(void)
{
	struct outcome o;
	char command[2 * PATH_MAX], want[64];
	double merge, jq;
	struct rusage usage;

	assert_int_equal(scratch_make(NULL), 0);
	for (unsigned i = 0; i < FILES; i++)
		put_file(i);
	(void)snprintf(command, sizeof(command), "exec %s "
	    "report -o summary,json -O /dev/null %s/*.jsonl", watchctl(),
	    scratch_dir);
	merge = time_of(command, &o);
	(void)snprintf(want, sizeof(want), "%u runs: %u hits, %u reported",
	    FILES, FILES * HITS, FILES * HITS);
	assert_non_null(strstr(o.err, want));
	(void)getrusage(RUSAGE_CHILDREN, &usage);
	bench_tell("merging 200 files of 5,000 hits",
	    (double)usage.ru_maxrss / 1024, "MB", "of memory", MEMORY_MB, 0);
	(void)snprintf(command, sizeof(command), "jq -c .type %s/*.jsonl > "
	    "/dev/null", scratch_dir);
	jq = time_of(command, &o);
	bench_tell("merging 200 files of 5,000 hits", merge / jq, "x",
	    "the processor time of jq -c .type", 0.5, 0);
	(void)scratch_remove(NULL);
	return bench_status();
}
