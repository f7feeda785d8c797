/*
 * values: measures what the values and types of a hot loop's hits cost: a
 * recording is explained and written as JSON Lines, with and without them.
 * Passes of the two alternate, with warm caches.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "bpf/ticket.h"
#include "record/perfdata.h"
#include "report/report.h"
#include "space/space.h"

enum { PASSES = 31, HITS = 10000 };

/* Explains a recording, again and again. */
struct alternative {
	struct ex_space *space;
	struct ex_explainer *explainer;
	struct ex_watch watch;
	struct ex_slot slot;
	struct report report;
	bool values;
	uint64_t hits, known;
};

static int
give(void *arg, struct ex_hit *hit)
{
	struct alternative *side = arg;

	if (!side->values) {
		memset(&hit->change, 0, sizeof(hit->change));
		hit->source = EX_VALUE_UNKNOWN;
		hit->old.known = hit->new.known = 0;
	}
	side->hits++;
	side->known += hit->source != EX_VALUE_UNKNOWN && hit->old.known != 0;
	return side->report.ops->hit(&side->report, hit);
}

static void
side_open(struct alternative *side, const char *file, bool values)
{
	static const struct ex_value_options found = {.read = NULL};
	const struct report_start start = {.frozen_ms = -1};
	const struct ex_perf_event *events;
	struct ex_perfdata *data;
	const char *why;

	*side = (struct alternative){.values = values};
	assert_int_equal(ex_perfdata_open(file, &data, &why), 0);
	assert_int_equal(ex_perfdata_events(data, &events), 1);
	side->watch = (struct ex_watch){
		.id = 1, .spec = "counter", .addr = events[0].attr.bp_addr,
		.len = 8, .access = 'w', .slots = 1,
	};
	side->slot = (struct ex_slot){&side->watch, side->watch.addr, 8};
	ex_perfdata_close(data);
	side->space = ex_space_new(EX_RECORDED);
	assert_non_null(side->space);
	side->explainer = ex_explainer_new(side->space, &side->slot, 1, give,
	    side);
	assert_non_null(side->explainer);
	if (values)
		assert_int_equal(ex_explainer_values(side->explainer, &found),
		    0);
	side->report.ops = &report_json;
	side->report.out = fopen("/dev/null", "w");
	assert_non_null(side->report.out);
	assert_int_equal(report_json.start(&side->report, &start), 0);
}

static void
side_close(struct alternative *side)
{
	(void)report_json.end(&side->report, NULL);
	(void)fclose(side->report.out);
	ex_explainer_free(side->explainer);
	ex_space_free(side->space);
}

static double
cpu_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Make a record one of a later pass, with a later time and later tickets
   (bpf/ticket.h). */
static void
move_on(struct ex_record *record, struct wp_ticket *ticket, unsigned n)
{
	const uint64_t numbers = (uint64_t)n * HITS;

	record->time += n * UINT64_C(1000000000000);
	if (record->type == PERF_RECORD_READ) {
		record->read.value += numbers;
		record->read.running += numbers;
	} else if (record->type == PERF_RECORD_SAMPLE &&
	    wp_ticket_get(record->sample.raw, record->sample.raw_len, ticket)) {
		ticket->number += numbers;
		record->sample.raw = (const void *)ticket;
	}
}

/* Explain it all once more.  CPU seconds. */
static double
pass(struct alternative *side, const char *file, unsigned n)
{
	struct ex_perfdata *data;
	struct ex_record record;
	struct wp_ticket ticket;
	const char *why;
	double began;

	assert_int_equal(ex_perfdata_open(file, &data, &why), 0);
	began = cpu_now();
	while (ex_perfdata_next(data, &record) > 0) {
		if (record.type != PERF_RECORD_SAMPLE &&
		    record.type != PERF_RECORD_READ && n > 0)
			continue;
		move_on(&record, &ticket, n);
		assert_int_equal(ex_explain(side->explainer, &record), 0);
	}
	began = cpu_now() - began;
	ex_perfdata_close(data);
	return began;
}

int
main(void)
{
	char file[] = "/tmp/watchctl_bench.XXXXXX";
	double with[PASSES], ratio[PASSES], plain[PASSES];
	struct alternative values, none;
	struct running w;
	struct outcome o;
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	(void)close(fd);
	start(&w, (const char *[]){watchctl(), "-w", "counter", "-o", "perf",
	    "-O", file, "--", victim("counter"), "1", "10000", NULL});
	say(&w, "go\nend\n");
	finish(&w, &o);
	side_open(&values, file, true);
	side_open(&none, file, false);
	(void)pass(&values, file, 0);
	(void)pass(&none, file, 0);
	values.hits = values.known = 0;
	for (unsigned i = 0; i < PASSES; i++) {
		plain[i] = pass(&none, file, i + 1);
		with[i] = pass(&values, file, i + 1);
		ratio[i] = with[i] / plain[i];
	}
	(void)unlink(file);
	printf("a hit explained and written in %.2f us, with its values in "
	    "%.2f us\n", bench_median(plain, PASSES) * 1e6 * PASSES /
	    (double)values.hits, bench_median(with, PASSES) * 1e6 * PASSES /
	    (double)values.hits);
	bench_tell("hits with their values", 100.0 * (double)values.known /
	    (double)values.hits, "%", "of all", 99, 1);
	bench_tell("values and types", bench_median(ratio, PASSES), "x",
	    "without", 1.4, 0);
	side_close(&values);
	side_close(&none);
	return bench_status();
}
