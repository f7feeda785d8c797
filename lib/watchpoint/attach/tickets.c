/*
 * tickets: numbers of hits, compared with counts.
 *
 * The kernel counts a hit before its program runs, and the trap lets nothing else
 * run on its processor.  An event is read where it counts, by an interrupt, or
 * else while its thread does not run there: so never in the middle of a hit.
 *
 *	numbers of a processor      counts of its events
 *	--------|----------------------|--------|--------|-----> time
 *	        n                      sum of them: n, too
 *
 * Then no hit was counted there in between.  Whatever its threads had accessed
 * by the first look was counted, so it is among the n that took a number.  If
 * that holds for each processor, it does so for what was accessed anywhere
 * before the looks began.
 */
#include "attach/tickets.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/bpf.h"
#include "os/clock.h"

enum { TRIES = 8 };	/* a thread that hits all the time, for a processor */

static size_t
size_of(unsigned rings)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t size = (size_t)(1 + rings) * WP_TICKET_LINE;

	return (size + page - 1) / page * page;
}

int
wp_tickets_open(struct wp_tickets *t, unsigned rings)
{
	void *lines;

	*t = (struct wp_tickets){.rings = rings};
	t->map = wp_bpf_shared((size_t)(1 + rings) * WP_TICKET_LINE);
	if (t->map < 0)
		return t->map;
	lines = mmap(NULL, size_of(rings), PROT_READ, MAP_SHARED, t->map, 0);
	t->lines = lines == MAP_FAILED ? NULL : lines;
	t->missed = calloc(rings, sizeof(*t->missed));
	if (t->lines != NULL && t->missed != NULL)
		return 0;
	wp_tickets_close(t);
	return -ENOMEM;
}

void
wp_tickets_loaded(struct wp_tickets *t)
{
	if (t->map >= 0)
		(void)close(t->map);
	t->map = -1;
}

void
wp_tickets_close(struct wp_tickets *t)
{
	wp_tickets_loaded(t);
	if (t->lines != NULL)
		(void)munmap((void *)(uintptr_t)t->lines, size_of(t->rings));
	free(t->missed);
	*t = (struct wp_tickets){.map = -1};
}

static uint64_t
line(const struct wp_tickets *t, unsigned i)
{
	return __atomic_load_n((const uint64_t *)(const void *)(t->lines +
	    (size_t)i * WP_TICKET_LINE), __ATOMIC_SEQ_CST);
}

uint64_t
wp_tickets_taken(const struct wp_tickets *t)
{
	return t->lines == NULL ? 0 : line(t, 0);
}

/* What was counted on a ring's processor. */
static uint64_t
counted(const struct wp_events *events, uint64_t format, size_t watch,
    unsigned ring)
{
	struct wp_perf_count one;
	uint64_t sum = 0;

	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].watch == watch &&
		    events->event[i].ring == ring &&
		    wp_perf_read(events->event[i].fd, format, &one) == 0)
			sum += one.value;
	return sum;
}

/* Whether all that was accessed on a processor took a number; what is newly known
   to have taken none is added to *missed. */
static bool
agrees(struct wp_tickets *t, const struct wp_events *events, uint64_t format,
    size_t watch, unsigned ring, uint64_t *missed)
{
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = line(t, 1 + ring);
		const uint64_t count = counted(events, format, watch, ring);
		const uint64_t known = before + t->missed[ring];

		if (count == known)
			return true;
		if (count < known)
			return false;
		if (line(t, 1 + ring) == before) {
			*missed += count - known;
			t->missed[ring] += count - known;
			return true;
		}
	}
	return false;
}

bool
wp_tickets_mark(struct wp_tickets *t, const struct wp_events *events,
    const struct wp_options *options, size_t watch, struct wp_ticket_mark *mark)
{
	const uint64_t format = wp_attr_format(options);

	*mark = (struct wp_ticket_mark){0};
	if (t->lines == NULL)
		return false;
	mark->all = wp_tickets_taken(t);
	for (unsigned i = 0; i < t->rings; i++)
		if (!agrees(t, events, format, watch, i, &mark->missed))
			return false;
	mark->upto = wp_tickets_taken(t);
	mark->time = wp_clock_ns();
	return true;
}
