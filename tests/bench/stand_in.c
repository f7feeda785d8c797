/*
 * stand_in: recordings of what a victim writes, where breakpoints do not fire.
 *
 * Behind the write of a variable the registers and the stack are what they are
 * at the next instruction, which a uprobe stops at.  The records of its hits
 * become those of a watch: the event gets the variable's address, and each
 * sample a ticket with the value that was written, its number.
 */
#include "test.h"

#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "bpf/ticket.h"
#include "record/perfdata.h"

/* Where a function's last instruction is, which follows its write of counter,
   from its start, and where counter is, from that instruction. */
struct place {
	char spec[64];
	uint64_t to_counter;
};

static struct place
find_place(const char *program, const char *function)
{
	struct place place;
	struct outcome o;
	char choice[64];
	unsigned long long start, counter, last;
	const char *at;

	(void)snprintf(choice, sizeof(choice), "--disassemble=%s", function);
	run_status(&o, 0, LIST("/usr/bin/objdump", "-d", choice, program));
	(void)snprintf(choice, sizeof(choice), " <%s>:\n", function);
	assert_non_null(at = strstr(o.out, choice));
	while (at[-1] != '\n')
		at--;
	start = strtoull(at, NULL, 16);
	assert_non_null(at = strstr(at, " <counter>\n"));
	while (at[-1] != ' ')
		at--;
	counter = strtoull(at, NULL, 16);
	assert_non_null(at = strstr(at, "\tret"));
	while (at[-1] != '\n')
		at--;
	last = strtoull(at, NULL, 16);
	(void)snprintf(place.spec, sizeof(place.spec), "%s+%#llx", function,
	    last - start);
	place.to_counter = counter - last;
	return place;
}

static void
put_sample(struct ex_perfwriter *w, const struct ex_record *r, uint64_t addr,
    uint64_t number)
{
	static uint8_t bytes[UINT16_MAX];
	const struct wp_ticket ticket = {
		.magic = WP_TICKET_MAGIC, .number = number, .bytes = number,
		.version = WP_TICKET_VERSION, .len = 8, .call = -1,
	};
	const uint32_t raw_len = sizeof(ticket);
	const size_t before = (size_t)(r->sample.raw - r->bytes) -
	    sizeof(raw_len);
	const uint8_t *const after = r->sample.raw + r->sample.raw_len;
	const size_t rest = (size_t)(r->bytes + r->size - after);
	struct perf_event_header header;
	size_t n = before;

	assert_non_null(r->sample.raw);
	assert_true(before + sizeof(raw_len) + sizeof(ticket) + rest <=
	    sizeof(bytes));
	memcpy(bytes, r->bytes, before);
	memcpy(bytes + n, &raw_len, sizeof(raw_len));
	memcpy(bytes + (n += sizeof(raw_len)), &ticket, sizeof(ticket));
	memcpy(bytes + (n += sizeof(ticket)), after, rest);
	n += rest;
	memcpy(&header, bytes, sizeof(header));
	header.size = (uint16_t)n;
	memcpy(bytes, &header, sizeof(header));
	/* identifier, ip, tid, time, and the address */
	memcpy(bytes + sizeof(header) + 4 * sizeof(uint64_t), &addr,
	    sizeof(addr));
	assert_int_equal(ex_perfwriter_record(w, bytes), 0);
}

static void
put_build_id(void *w, const char *path, const uint8_t *id, size_t len)
{
	assert_int_equal(ex_perfwriter_build_id(w, path, id, len), 0);
}

/* Copy a recording of executions as one of writes.  Their number. */
static uint64_t
convert(const char *from, const char *to, const struct place *place)
{
	const int fd = open(to, O_RDWR | O_TRUNC | O_CLOEXEC);
	const struct ex_perf_event *events;
	struct ex_perf_event event;
	struct ex_perfdata *data;
	struct ex_perfwriter *w;
	struct ex_record record;
	uint64_t hits = 0;
	const char *why;
	int got;

	assert_true(fd >= 0);
	assert_int_equal(ex_perfdata_open(from, &data, &why), 0);
	assert_int_equal(ex_perfdata_events(data, &events), 1);
	event = *events;
	event.name = "counter";
	event.attr.bp_type = HW_BREAKPOINT_W;
	event.attr.bp_addr += place->to_counter;
	event.attr.bp_len = 8;
	assert_int_equal(ex_perfwriter_open(fd, &event, 1, &w), 0);
	ex_perfdata_build_ids(data, put_build_id, w);
	while ((got = ex_perfdata_next(data, &record)) > 0)
		if (record.type == PERF_RECORD_SAMPLE)
			put_sample(w, &record, event.attr.bp_addr, ++hits);
		else
			assert_int_equal(ex_perfwriter_record(w, record.bytes),
			    0);
	assert_int_equal(got, 0);
	ex_perfdata_close(data);
	assert_int_equal(ex_perfwriter_close(w), 0);
	return hits;
}

double
bench_stand_in(const char *file, const char *const argv[])
{
	const struct place place = find_place(victim(argv[0]),
	    strcmp(argv[0], "counter") == 0 ? "bump" : "level16");
	char executions[] = "/tmp/watchctl_bench.XXXXXX";
	const int fd = mkstemp(executions);
	const char *args[ARGS];
	struct running w;
	struct outcome o;
	double hits;
	size_t n = append(args, 0, LIST(watchctl(), "-x", place.spec, "-o",
	    "perf", "-O", executions, "--", victim(argv[0])));

	assert_true(fd >= 0);
	(void)close(fd);
	(void)append(args, n, argv + 1);
	start(&w, args);
	say(&w, "go\nend\n");
	finish(&w, &o);
	hits = (double)convert(executions, file, &place);
	(void)unlink(executions);
	return hits;
}
