/*
 * heap: measures what the guard of --heap costs, in processor time and memory
 * over those of the same command alone: one that does nothing but allocate and
 * free, beside AddressSanitizer and valgrind, and programs as they are.  What
 * watchctl takes to begin and to end is left out.  The limits are what the
 * manual says.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { ROUNDS = 3 };
#define TIMES "4000000"

static char source[] = "/tmp/heap_bench.XXXXXX";

static void
write_source(void)
{
	const int fd = mkstemp(source);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	for (int i = 0; i < 600; i++)
		(void)fprintf(f, "int f%d(int a, int *b) { int s = a; for (int "
		    "i = 0; i < a; i++) { s += b[i] * %d; if (s > %d) s -= "
		    "f%d(i, b); } return s; }\n", i, i, i * 7, i);
	(void)fclose(f);
}

/* Seconds of processor time. */
static double
take(const char *const prefix[], const char *const command[])
{
	const char *argv[ARGS];
	const double began = bench_cpu();
	struct outcome o;
	size_t n = append(argv, 0, prefix);

	n = append(argv, n, command);
	argv[n] = NULL;
	run(&o, argv);
	if (o.status != 0)
		fail_msg("%s: %d %s", command[0], o.status, o.err);
	return bench_cpu() - began;
}

/* A way to run a command. */
struct way {
	const char *name;
	const char *prefix[8];
	double begins;		/* seconds that it takes by itself */
	double least;		/* seconds, of a command */
};

static double
least(const struct way *w, const char *const command[], double before,
    int round)
{
	const double took = take(w->prefix, command) - w->begins;

	return round == 0 || took < before ? took : before;
}

/* One after the other, since the machine may be busy. */
static void
compare(struct way *way, size_t n, const char *const command[])
{
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < n; i++)
			way[i].least = least(&way[i], command, way[i].least,
			    round);
}

static void
tell(const char *what, const struct way *w, const struct way *plain,
    double limit)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%s, %s", what, w->name);
	bench_tell(name, w->least / plain->least, "x",
	    "the processor time that it takes alone", limit, 0);
}

enum { ALONE, GUARDED, CANARIES, SAMPLED, WAYS };

static struct way ways[WAYS] = {
	{"alone", {NULL}}, {"guarded", {NULL}}, {"canaries", {NULL}},
	{"sampled", {NULL}},
};

static void
begin(void)
{
	static const char *const nothing[] = {"/bin/true", NULL};
	const char *const guarded[] = {watchctl(), "--heap", "--heap-runs",
		"0", "--", NULL};
	const char *const sampled[] = {watchctl(), "--heap=sample", "--",
		NULL};
	const char *const canaries[] = {watchctl(), "--heap", "--heap-runs",
		"0", "--heap-quarantine", "0", "--", NULL};

	memcpy(ways[GUARDED].prefix, guarded, sizeof(guarded));
	memcpy(ways[CANARIES].prefix, canaries, sizeof(canaries));
	memcpy(ways[SAMPLED].prefix, sampled, sizeof(sampled));
	for (size_t i = 0; i < WAYS; i++) {
		compare(&ways[i], 1, nothing);
		ways[i].begins = i == 0 ? 0 : ways[i].least - ways[0].least;
	}
}

static const struct {
	const char *act;
	double limit;
} loops[] = {{"lifo", 10}, {"random", 7}};

/* Of a twentieth of the blocks, since it takes so long; without its own
   beginning. */
static void
measure_valgrind(const char *act)
{
	static const char *const places[] = {"/usr/bin/valgrind", "-q", NULL};
	struct way valgrind = {"with valgrind", {"/usr/bin/valgrind", "-q"}};
	char name[64];

	if (access(places[0], X_OK) != 0)
		return;
	compare(&valgrind, 1, (const char *const[]){"/bin/true", NULL});
	valgrind.begins = valgrind.least;
	compare(&valgrind, 1, (const char *const[]){victim("allocates"), act,
	    "200000", NULL});
	(void)snprintf(name, sizeof(name), "%s, guarded", act);
	bench_tell(name, ways[GUARDED].least / 20 / valgrind.least, "x",
	    "what valgrind takes", 0.2, 0);
}

static void
measure_loops(void)
{
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++) {
		const char *const command[] = {victim("allocates"),
			loops[i].act, TIMES, NULL};
		struct way asan = {"with AddressSanitizer", {NULL}};
		char name[64];

		compare(ways, WAYS, command);
		tell(loops[i].act, &ways[GUARDED], &ways[ALONE],
		    loops[i].limit);
		tell(loops[i].act, &ways[SAMPLED], &ways[ALONE],
		    loops[i].limit * 1.2);
		measure_valgrind(loops[i].act);
		if (access(victim("allocates_asan"), X_OK) != 0)
			continue;
		compare(&asan, 1, (const char *const[]){
		    victim("allocates_asan"), loops[i].act, TIMES, NULL});
		(void)snprintf(name, sizeof(name), "%s, guarded",
		    loops[i].act);
		bench_tell(name, ways[GUARDED].least / asan.least, "x",
		    "what AddressSanitizer takes", 0.5, 0);
	}
}

static const struct {
	const char *name;
	const char *command[8];
	double limit, canaries, memory;
} programs[] = {
	{"python3", {"python3", "-c", "import json, re\nfor i in range(60):\n"
	    " s = json.dumps([{str(k): [k] * 9} for k in range(2000)])\n"
	    " json.loads(s); re.findall('[0-9]+', s)"}, 1.6, 1.3, 1.5},
	{"gcc", {"gcc", "-x", "c", "-O1", "-S", "-o/dev/null"}, 2.1, 1.5, 1.5},
	{"sqlite3", {"sqlite3", ":memory:", "create table t(a, b); with "
	    "recursive c(x) as (select 1 union all select x + 1 from c where "
	    "x < 200000) insert into t select x, hex(randomblob(8)) from c; "
	    "create index i on t(b); select count(*) from t;"}, 2.1, 0, 1.5},
	{"perl", {"perl", "-e", "for (1..8) { my %h; $h{\"k$_\"} = [$_, "
	    "\"v$_\"] for 1..50000; my @k = sort keys %h }"}, 2.1, 0, 1.5},
};

/* --- memory --- */

enum { QUARANTINE = 1024 };	/* KiB */

/* KiB that one of a command's processes had at most. */
static double
peak(const char *const prefix[], const char *const command[])
{
	char file[] = "/tmp/heap_bench.XXXXXX";
	const char *const peaks[] = {victim("peak"), file, NULL};
	const char *argv[ARGS];
	const int fd = mkstemp(file);
	size_t n = append(argv, 0, peaks);
	double kib = 0;
	FILE *f;

	n = append(argv, n, command);
	argv[n] = NULL;
	(void)take(prefix, argv);
	f = fdopen(fd, "r");
	assert_true(f != NULL && fscanf(f, "%lf", &kib) == 1);
	(void)fclose(f);
	(void)unlink(file);
	return kib;
}

static void
measure_memory(const char *what, const char *const command[], double limit)
{
	const double alone = peak(ways[ALONE].prefix, command);
	char name[64];

	(void)snprintf(name, sizeof(name), "%s, memory", what);
	bench_tell(name, (peak(ways[GUARDED].prefix, command) - QUARANTINE) /
	    alone, "x", "what it has alone, beyond the quarantine", limit, 0);
}

static void
measure_blocks(void)
{
	const char *const command[] = {victim("allocates"), "keep", "1000000",
		NULL};

	bench_tell("a block", (peak(ways[GUARDED].prefix, command) -
	    peak(ways[ALONE].prefix, command)) * 1024 / 1e6, "bytes",
	    "more than alone", 64, 0);
}

/* --- redis --- */

/* What it says of itself after a benchmark: seconds, and bytes. */
static const char redis[] =
    "d=$(mktemp -d); \"$@\" redis-server --port 0 --unixsocket $d/s "
    "--save '' >/dev/null 2>&1 & "
    "c=\"redis-cli -s $d/s\"; "
    "for i in $(seq 200); do $c ping >/dev/null 2>&1 && break; sleep 0.05; "
    "done; redis-benchmark -s $d/s -n 20000 -q -d 64 -r 20000 -t "
    "set,get,incr,lpush,rpop,sadd,hset >/dev/null; "
    "$c info cpu | tr -d '\\r' | awk -F: '/^used_cpu_(user|sys):/ "
    "{ s += $2 } END { print s }'; "
    "$c info memory | tr -d '\\r' | awk -F: '/^used_memory_rss:/ "
    "{ print $2 }'; $c shutdown nosave; wait; rm -r $d";

static void
run_redis(const char *const prefix[], double *seconds, double *bytes)
{
	const char *argv[ARGS] = {"/bin/sh", "-c", redis, "sh"};
	struct outcome o;

	argv[append(argv, 4, prefix)] = NULL;
	run(&o, argv);
	if (sscanf(o.out, "%lf %lf", seconds, bytes) != 2)
		fail_msg("redis: %s%s", o.out, o.err);
}

static void
measure_redis(void)
{
	double least[2] = {1e9, 1e9}, bytes[2], seconds;

	if (access("/usr/bin/redis-server", X_OK) != 0)
		return;
	for (int round = 0; round < ROUNDS; round++)
		for (int i = ALONE; i <= GUARDED; i++) {
			run_redis(ways[i].prefix, &seconds, &bytes[i]);
			least[i] = seconds < least[i] ? seconds : least[i];
		}
	bench_tell("redis, guarded", least[GUARDED] / least[ALONE], "x",
	    "the processor time that it takes alone", 1.5, 0);
	bench_tell("redis, memory", (bytes[GUARDED] - QUARANTINE * 1024) /
	    bytes[ALONE], "x", "what it has alone, beyond the quarantine", 1.7,
	    0);
}

/* --- programs --- */

/* The program's path, without what users put in front of it. */
static bool
find(const char *program, char path[64])
{
	static const char *const places[] = {"/usr/bin", "/usr/local/bin"};

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, 64, "%s/%s", places[i], program);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static void
measure_program(size_t i, const char *path)
{
	const char *command[ARGS] = {path};
	size_t n = append(command, 1, programs[i].command + 1);

	if (strcmp(programs[i].name, "gcc") == 0)
		command[n++] = source;
	command[n] = NULL;
	compare(ways, WAYS, command);
	tell(programs[i].name, &ways[GUARDED], &ways[ALONE],
	    programs[i].limit);
	tell(programs[i].name, &ways[SAMPLED], &ways[ALONE],
	    programs[i].limit + 0.5);
	if (programs[i].canaries > 0)
		tell(programs[i].name, &ways[CANARIES], &ways[ALONE],
		    programs[i].canaries);
	measure_memory(programs[i].name, command, programs[i].memory);
}

int
main(void)
{
	char path[64];

	begin();
	write_source();
	measure_loops();
	measure_blocks();
	measure_redis();
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (find(programs[i].name, path))
			measure_program(i, path);
	(void)unlink(source);
	return bench_status();
}
