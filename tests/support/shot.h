/*
 * shot: opens events as the library does, does something under them, and
 * collects what the kernel reported.
 */
#ifndef SHOT_H
#define SHOT_H

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "ring/event_table.h"
#include "live.h"
#include "record/record.h"

enum {
	SHOT_KEPT = 64,		/* number of first samples that are kept */
	SHOT_RING = 64 << 10,	/* bytes: the smallest ring of wp_rings_open */
};

struct shot {
	struct wp_rings *rings;
	struct wp_events events;
	struct ex_formats *formats;
	struct wp_perf_count count;	/* by the events' counters */
	unsigned samples;	/* in the rings */
	unsigned throttles, maps, comms;	/* other records there */
	uint64_t lost;		/* hits that LOST records count */
	unsigned kept;		/* samples below */
	struct ex_record sample[SHOT_KEPT];
	size_t used;		/* of shot_bytes */
};

/* The bytes of the kept samples.  There is one shot at a time. */
static _Alignas(8) uint8_t shot_bytes[1 << 20];

static inline struct wp_slot
slot(uint32_t type, volatile const void *addr, uint64_t len)
{
	return (struct wp_slot){(uintptr_t)addr, len, type};
}

/* The attribute of a slot's event, with options as they can be had here. */
static inline struct perf_event_attr
attr_of(struct wp_slot s, struct wp_options options)
{
	struct perf_event_attr attr;

	wp_options_fit(&options, &live_features);
	wp_attr_watch(&attr, &s, &options, false);
	return attr;
}

/* A write watch on a word, as the library opens it. */
static inline struct perf_event_attr
write_attr(volatile const void *addr)
{
	return attr_of(slot(HW_BREAKPOINT_W, addr, 8), (struct wp_options){0});
}

static inline void
shot_begin(struct shot *s)
{
	struct wp_cause cause;

	*s = (struct shot){0};
	if (wp_rings_open(&s->rings, SHOT_RING, &cause) < 0)
		fail_msg("%s", cause.text);
	assert_non_null(s->formats = ex_formats_new());
}

/* Arm one event in a thread. */
static inline void
shot_arm(struct shot *s, struct perf_event_attr attr, pid_t tid)
{
	size_t first = s->events.n;
	uint64_t id;
	int format = -1;

	assert_int_equal(wp_events_open(&s->events, &attr, 0, 0, tid,
	    s->rings), 0);
	for (size_t i = first; i < s->events.n; i++) {
		assert_int_equal(wp_perf_id(s->events.event[i].fd, &id), 0);
		if (format < 0)
			format = ex_formats_add(s->formats, &attr, &id, 1);
		else
			assert_int_equal(ex_formats_ids(s->formats, format,
			    &id, 1), 0);
		assert_true(format >= 0);
	}
}

static inline void
shot_count(struct shot *s)
{
	s->count = (struct wp_perf_count){0};
	for (size_t i = 0; i < s->events.n; i++) {
		struct wp_perf_count one;

		assert_int_equal(wp_perf_read(s->events.event[i].fd,
		    live_format(), &one), 0);
		s->count.value += one.value;
		s->count.lost += one.lost;
	}
}

static inline void
shot_keep(struct shot *s, const struct perf_event_header *header)
{
	uint8_t *to = shot_bytes + s->used;

	if (s->kept == SHOT_KEPT || header->size > sizeof(shot_bytes) - s->used)
		return;
	memcpy(to, header, header->size);
	s->used += header->size;
	assert_int_equal(ex_record_decode(s->formats, to, header->size,
	    &s->sample[s->kept++]), 1);
}

/* Take the records of the rings. */
static inline void
shot_read(struct shot *s)
{
	const struct perf_event_header *header;
	struct ex_record record;

	while ((header = wp_rings_next(s->rings, UINT64_MAX)) != NULL) {
		s->throttles += header->type == PERF_RECORD_THROTTLE;
		s->maps += header->type == PERF_RECORD_MMAP2;
		s->comms += header->type == PERF_RECORD_COMM;
		if (header->type == PERF_RECORD_LOST) {
			assert_int_equal(ex_record_decode(s->formats, header,
			    header->size, &record), 1);
			s->lost += record.lost.count;
		}
		if (header->type != PERF_RECORD_SAMPLE)
			continue;
		s->samples++;
		shot_keep(s, header);
	}
}

/* Disarm, read the count, and take the records of the rings. */
static inline void
shot_take(struct shot *s)
{
	for (size_t i = 0; i < s->events.n; i++)
		assert_int_equal(wp_perf_disable(s->events.event[i].fd), 0);
	shot_count(s);
	shot_read(s);
}

static inline void
shot_end(struct shot *s)
{
	wp_events_close(&s->events, 0);
	wp_rings_close(s->rings);
	ex_formats_free(s->formats);
}

/* Arm one event in this thread, do one action, and collect the result. */
static inline void
shoot(struct shot *s, struct perf_event_attr attr, void (*act)(void *),
    void *arg)
{
	shot_begin(s);
	shot_arm(s, attr, gettid());
	act(arg);
	shot_take(s);
}

/* What a program executed under an event does: store at an address that
   programs leave free.  Result: its exit status. */
enum { FIXED = 0x10000000 };

static inline int
store_at_fixed(void)
{
	volatile uint64_t *at = mmap((void *)FIXED, 4096,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
	    MAP_FIXED_NOREPLACE, -1, 0);

	if (at != (void *)FIXED)
		return 1;
	*at = 1;
	return 0;
}

static inline uint64_t
user_reg(const struct ex_record *r, unsigned reg)
{
	uint64_t value = 0;

	assert_true(ex_regs_get(&r->sample.user, reg, &value));
	return value;
}

/* Keep this thread on one processor, so that one ring has everything; and undo
   that. */
static inline void
stay_here(cpu_set_t *before)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

#endif
