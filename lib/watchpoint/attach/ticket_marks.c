/* ticket_marks: where tickets and counts agree.  See ticket_marks.h. */
#include "attach/ticket_marks.h"

#include <stdlib.h>

#include "attach/target.h"
#include "os/array.h"
#include "os/clock.h"

/*
 * ns between comparisons.  As a comparison interrupts the watched threads, all
 * of them take at most 1/PART of the time; and if one takes longer than MOST,
 * rings might fill in the meantime, so no more are made.
 */
enum { EACH = 4000000, PART = 20, MOST = 20000000 };

struct wp_ticket_marks {
	struct wp_target *target;
	uint64_t due;		/* time of the next comparison, ns */
	size_t current;		/* the watch whose mark is next */
	size_t n, cap;
	struct marked {	/* for each watch up to the last that had a mark */
		struct wp_ticket_mark mark;
		bool waiting;	/* the mark is to be returned, */
		bool lost;	/* preceded by a LOST record */
		uint64_t done;	/* tickets taken as of the last mark */
	} *watch;
};

struct wp_ticket_marks *
wp_ticket_marks_new(struct wp_target *target)
{
	struct wp_ticket_marks *marks = calloc(1, sizeof(*marks));

	if (marks != NULL)
		marks->target = target;
	return marks;
}

void
wp_ticket_marks_free(struct wp_ticket_marks *marks)
{
	if (marks == NULL)
		return;
	free(marks->watch);
	free(marks);
}

/* Make room up to this watch.  Returns false if there is no memory. */
static bool
reach(struct wp_ticket_marks *marks, size_t i)
{
	while (marks->n <= i) {
		if (WP_ARRAY_ROOM(marks, watch) < 0)
			return false;
		marks->watch[marks->n++] = (struct marked){.done = 0};
	}
	return true;
}

/* Returns false if there is no such watch or it cannot be compared now. */
static bool
look_at(struct wp_ticket_marks *marks, size_t i)
{
	struct wp_ticket_mark mark;
	int got;

	if (i < marks->n && marks->watch[i].waiting)
		return true;
	got = wp_target_mark(marks->target, i, i < marks->n ?
	    marks->watch[i].done : 0, &mark);
	if (got <= 0 || !reach(marks, i))
		return got == 0;
	marks->watch[i].mark = mark;
	marks->watch[i].waiting = true;
	marks->watch[i].lost = mark.missed > 0;
	return true;
}

void
wp_ticket_marks_look(struct wp_ticket_marks *marks, bool now)
{
	const uint64_t began = wp_clock_ns();
	uint64_t took;

	if (began < marks->due && !now)
		return;
	for (size_t i = 0; look_at(marks, i); i++)
		;
	took = wp_clock_ns() - began;
	marks->due = took > MOST ? UINT64_MAX : began + (took * PART > EACH ?
	    took * PART : EACH);
}

bool
wp_ticket_marks_wait(const struct wp_ticket_marks *marks)
{
	for (size_t i = 0; i < marks->n; i++)
		if (marks->watch[i].waiting)
			return true;
	return false;
}

const struct perf_event_header *
wp_ticket_marks_next(struct wp_ticket_marks *marks, uint64_t horizon)
{
	for (size_t i = 0; i < marks->n; i++) {
		const struct wp_ticket_mark *mark = &marks->watch[i].mark;

		if (!marks->watch[i].waiting || mark->time > horizon)
			continue;
		marks->current = i;
		return (const void *)(marks->watch[i].lost ? mark->lost :
		    mark->record);
	}
	return NULL;
}

void
wp_ticket_marks_take(struct wp_ticket_marks *marks)
{
	const size_t i = marks->current;

	if (!marks->watch[i].lost) {
		marks->watch[i].waiting = false;
		marks->watch[i].done = marks->watch[i].mark.taken;
	}
	marks->watch[i].lost = false;
}
