/*
 * tickets: numbers of hits, compared with counts.
 *
 * The kernel counts a hit before its program runs, and the trap lets nothing
 * else run on its processor.  An event is read where it counts, by an
 * interrupt, or else while its thread does not run there: so never in the
 * middle of a hit.
 *
 *	numbers of a processor      counts of its events
 *	--------|----------------------|--------|--------|-----> time
 *	        n                      sum of them: n, too
 *
 * Then no hit was counted there in between.  Whatever its threads had accessed
 * by the first look was counted, so it is among the n that took a number.  If
 * that holds for each processor, it does so for what was accessed anywhere
 * before the looks began.
 *
 * Events are switched off one after another.  From then on some accesses are
 * seen and others are not, so no mark vouches for tickets that are taken later.
 */
#include "attach/tickets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/bpf.h"
#include "os/clock.h"

enum { TRIES = 8 };  /* for a processor on which a thread hits all the time */

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

/* Unmap the shared memory, as the number of mappings of a process is
   limited. */
static void
release(struct wp_tickets *t)
{
	if (t->lines != NULL)
		(void)munmap((void *)(uintptr_t)t->lines, size_of(t->rings));
	free(t->missed);
	t->lines = NULL;
	t->missed = NULL;
}

void
wp_tickets_close(struct wp_tickets *t)
{
	wp_tickets_loaded(t);
	release(t);
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
	return t->lines == NULL ? t->last.taken : line(t, 0);
}

void
wp_tickets_closing(struct wp_tickets *t)
{
	if (t == NULL || t->closing)
		return;
	t->closed = wp_tickets_taken(t);
	t->closing = true;
}

/* The sum of the events' counts on a ring's processor. */
static uint64_t
counted(const struct wp_events *events, uint64_t format, size_t watch,
    unsigned ring)
{
	struct wp_perf_count one;
	uint64_t sum = 0;

	for (size_t i = 0; i < events->n; i++)
		if (events->event[i].watch == watch &&
		    events->event[i].ring == ring &&
		    wp_event_read(&events->event[i], format, &one) == 0)
			sum += one.value;
	return sum;
}

/* The number of a ring's hits that have taken a ticket, or need not take
   one. */
static uint64_t
explained(const struct wp_tickets *t, unsigned ring)
{
	return line(t, 1 + ring) + (t->others == NULL ? 0 :
	    __atomic_load_n(&t->others[ring], __ATOMIC_SEQ_CST));
}

/* Whether every access on a processor has taken a ticket.  Those now known to
   have taken none are added to *missed. */
static bool
agrees(struct wp_tickets *t, const struct wp_events *events, uint64_t format,
    size_t watch, unsigned ring, uint64_t *missed)
{
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = explained(t, ring);
		const uint64_t count = counted(events, format, watch, ring);
		const uint64_t known = before + t->missed[ring];

		if (count == known)
			return true;
		if (count < known)
			return false;
		if (explained(t, ring) == before) {
			*missed += count - known;
			t->missed[ring] += count - known;
			return true;
		}
	}
	return false;
}

/* Put a record of n words and a trailer. */
static void
put_record(uint8_t *to, uint32_t type, const uint64_t *words, size_t n,
    const struct wp_trailer *trailer)
{
	const size_t size = n * sizeof(*words);
	const struct perf_event_header header = {
		type, 0, (uint16_t)(sizeof(header) + size + sizeof(*trailer)),
	};

	memcpy(to, &header, sizeof(header));
	memcpy(to + sizeof(header), words, size);
	memcpy(to + sizeof(header) + size, trailer, sizeof(*trailer));
}

/* The LOST record has a count of 0, as the number is known only at the end. */
static void
put_records(struct wp_ticket_mark *mark, uint64_t format, uint64_t id)
{
	const struct wp_trailer trailer = {.time = mark->time, .id = id};
	const uint64_t lost[] = {id, 0};
	const uint64_t read[] = {0, mark->upto, mark->all, 0};
	const size_t n = (format & PERF_FORMAT_LOST) != 0 ? 4 : 3;

	_Static_assert(sizeof(struct perf_event_header) + sizeof(lost) +
	    sizeof(trailer) <= sizeof(mark->lost), "it has room");
	_Static_assert(sizeof(struct perf_event_header) + sizeof(read) +
	    sizeof(trailer) <= sizeof(mark->record), "it has room");
	put_record(mark->lost, PERF_RECORD_LOST, lost, 2, &trailer);
	put_record(mark->record, PERF_RECORD_READ, read, n, &trailer);
}

static bool
compare(struct wp_tickets *t, const struct wp_events *events, uint64_t format,
    size_t watch, struct wp_ticket_mark *mark)
{
	*mark = (struct wp_ticket_mark){.taken = wp_tickets_taken(t)};
	for (unsigned i = 0; i < t->rings; i++)
		if (!agrees(t, events, format, watch, i, &mark->missed))
			return false;
	mark->upto = wp_tickets_taken(t);
	mark->all = t->closing && mark->taken > t->closed ? t->closed :
	    mark->taken;
	return true;
}

bool
wp_tickets_mark(struct wp_tickets *t, const struct wp_events *events,
    const struct wp_options *options, size_t watch, uint64_t id,
    struct wp_ticket_mark *mark)
{
	const uint64_t format = wp_attr_format(options);

	if (t->ended)
		*mark = t->last;
	if (t->ended ? !t->known : t->lines == NULL ||
	    !compare(t, events, format, watch, mark))
		return false;
	mark->time = wp_clock_ns();
	put_records(mark, format, id);
	return true;
}

void
wp_tickets_end(struct wp_tickets *t, const struct wp_events *events,
    const struct wp_options *options, size_t watch, uint64_t id)
{
	struct wp_ticket_mark mark;

	if (t == NULL || t->ended)
		return;
	t->known = wp_tickets_mark(t, events, options, watch, id, &mark);
	t->last = mark;
	t->ended = true;
	release(t);
}
