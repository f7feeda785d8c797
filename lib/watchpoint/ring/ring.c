/*
 * ring: the kernel's ring buffers, merged by time.
 *
 * Overview, for one ring (positions only grow; modulo size they are offsets):
 *
 *	     tail          at              head
 *	------|~~~~~~~~~~~~~|===============|----------
 *	      given out      waiting         the kernel writes on
 *	      before
 *
 * The kernel learns of tail only now and then, because each update is a store
 * to a cache line that its processor holds.  A record that wraps around the end
 * is copied to be whole.
 *
 * Beside it there may be a BPF ring buffer, for samples that a program writes.
 * What finds no room there goes into the kernel's ring, and what finds none
 * there either is lost.  The kernel reports that in front of the next record of
 * the same ring, which may be long in coming while records of the others go
 * on.  But a ring that loses records is full until it is read, so:
 *
 *	look            look: it is full          look
 *	--|-----------------|------------------------|-----> time of records
 *	  [<------ what was made here is in doubt -->]
 *
 * and before samples in doubt, and the first one after them, a record is given
 * that says that some were lost, and counts none.
 */
#include "ring/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ring/bpf_ring.h"
#include "os/attr.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "os/perf.h"

enum { RING_MIN = 64 << 10, RING_MAX = 32 << 20, RINGS_TOTAL = 64 << 20 };

/* A poller is woken at a quarter of a ring, but at no more bytes than it can
   copy in a fraction of a millisecond. */
enum { WAKE_MAX = 1 << 20 };

/* The shortest time between two records that some were lost, ns. */
enum { DOUBT_EACH = 10000000 };

struct wp_ring {
	struct wp_bpf_ring bpf;
	struct perf_event_mmap_page *page;	/* the kernel's; data follows */
	const uint8_t *data;
	uint64_t head;		/* the kernel's, when last looked at */
	uint64_t at;		/* the next record */
	uint64_t tail;		/* what the kernel knows to be free */
	uint64_t time;		/* of the next record; valid while at < head */
	int cpu, fd;
	uint8_t *whole;		/* a record that wrapped, of up to 64 KiB */
	bool from_bpf;		/* which of the two has the older record */
};

/* When records were made that others may be missing among, ns. */
struct doubt {
	uint64_t from, to;	/* to 0: none were */
	uint64_t given;		/* the time of the last record of it */
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		struct wp_trailer trailer;
	} record;
};

struct wp_rings {
	size_t size;		/* bytes of data in each */
	unsigned n;
	struct wp_ring *current;	/* whose record was delivered; NULL */
	const struct perf_event_header *record;	/* that record */
	bool looked;		/* heads are fresh enough to go on with */
	uint64_t look;		/* when that was, ns */
	struct doubt doubt;
	bool was_full;		/* one of them, at a look */
	pid_t only;		/* side records are of this one; 0: of all */
	struct wp_cpus without;	/* processors that have no ring or no events, */
	struct wp_cpus returned;	/* and that have events again */
	struct wp_ring ring[];
};

size_t
wp_rings_usual_size(void)
{
	struct wp_cpus cpus;
	size_t size = RINGS_TOTAL / (size_t)wp_cpus_possible(&cpus);

	return size > RING_MAX ? RING_MAX : size < RING_MIN ? RING_MIN : size;
}

static void
ring_close(struct wp_ring *ring, size_t size)
{
	wp_bpf_ring_close(&ring->bpf);
	if (ring->page != NULL)
		wp_perf_unmap(ring->page, size);
	(void)close(ring->fd);
	free(ring->whole);
}

/* One ring for one processor, also for one that is offline, if the kernel lets
   it.  -ENODEV: it does not. */
static int
ring_open(struct wp_ring *ring, int cpu, size_t size, bool eager)
{
	struct perf_event_attr attr;
	int err;

	wp_attr_ring(&attr, eager ? 1 : (uint32_t)(size / 4 < WAKE_MAX ?
	    size / 4 : WAKE_MAX));
	*ring = (struct wp_ring){.cpu = cpu, .bpf.map = -1};
	if ((ring->fd = wp_perf_open(&attr, 0, cpu)) < 0)
		return ring->fd;
	ring->whole = malloc(UINT16_MAX + 1);
	err = ring->whole == NULL ? -ENOMEM :
	    wp_perf_map(ring->fd, size, &ring->page);
	if (err < 0) {
		ring_close(ring, size);
		return err;
	}
	ring->data = (const uint8_t *)ring->page + sysconf(_SC_PAGESIZE);
	return 0;
}

static int
rings_open_sized(struct wp_rings *rings, const struct wp_cpus *cpus,
    size_t size, bool eager)
{
	int err;

	rings->size = size;
	rings->n = 0;
	rings->look = wp_clock_ns();
	rings->without = (struct wp_cpus){.end = cpus->end};
	for (unsigned cpu = 0; cpu < cpus->end; cpu++) {
		if (!cpus->has[cpu])
			continue;
		err = ring_open(&rings->ring[rings->n], (int)cpu, size,
		    eager);
		if (err == 0) {
			rings->n++;
		} else if (err == -ENODEV) {
			rings->without.has[cpu] = true;
		} else {
			while (rings->n > 0)
				ring_close(&rings->ring[--rings->n], size);
			return err;
		}
	}
	return 0;
}

static int
rings_open(struct wp_rings **out, size_t size, bool eager,
    struct wp_cause *cause)
{
	struct wp_cpus cpus;
	struct wp_rings *rings = calloc(1, sizeof(*rings) +
	    (size_t)wp_cpus_possible(&cpus) * sizeof(rings->ring[0]));
	size_t fit = RING_MIN;
	int err;

	if (rings == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	while (fit * 2 <= size)
		fit *= 2;
	while ((err = rings_open_sized(rings, &cpus, fit, eager)) < 0) {
		if ((err != -EPERM && err != -ENOMEM) || fit <= RING_MIN) {
			free(rings);
			return err == -EPERM || err == -ENOMEM ?
			    wp_cause_set(cause, WP_CAUSE_RING,
			    (size_t)RING_MIN / 1024) :
			    wp_cause_errno(cause, "opening a ring buffer",
			    -err);
		}
		fit /= 2;
	}
	if (rings->n == 0) {
		free(rings);
		return wp_cause_errno(cause, "opening a ring buffer", ENODEV);
	}
	*out = rings;
	return 0;
}

int
wp_rings_open(struct wp_rings **out, size_t size, struct wp_cause *cause)
{
	return rings_open(out, size, false, cause);
}

int
wp_rings_open_eager(struct wp_rings **out, size_t size, struct wp_cause *cause)
{
	return rings_open(out, size > 0 ? size : RING_MIN, true, cause);
}

void
wp_rings_close(struct wp_rings *rings)
{
	if (rings == NULL)
		return;
	for (unsigned i = 0; i < rings->n; i++)
		ring_close(&rings->ring[i], rings->size);
	free(rings);
}

int
wp_rings_add_bpf(struct wp_rings *rings, size_t size)
{
	size_t fit = RING_MIN;
	int err = 0;

	while (fit * 2 <= size)
		fit *= 2;

	for (unsigned i = 0; i < rings->n && err == 0; i++)
		err = wp_bpf_ring_open(&rings->ring[i].bpf, fit);
	return err;
}

int
wp_rings_bpf(const struct wp_rings *rings, unsigned i)
{
	return rings == NULL ? -1 : rings->ring[i].bpf.map;
}

unsigned
wp_rings_count(const struct wp_rings *rings)
{
	return rings == NULL ? 0 : rings->n;
}

int
wp_rings_cpu(const struct wp_rings *rings, unsigned i)
{
	return rings->ring[i].cpu;
}

int
wp_rings_fd(const struct wp_rings *rings, unsigned i)
{
	return rings->ring[i].fd;
}

void
wp_rings_leave_out(struct wp_rings *rings, unsigned ring, bool out)
{
	const int cpu = rings->ring[ring].cpu;

	rings->returned.has[cpu] = !out &&
	    (rings->without.has[cpu] || rings->returned.has[cpu]);
	rings->without.has[cpu] = out;
}

int
wp_rings_returned(struct wp_rings *rings)
{
	for (unsigned cpu = 0; rings != NULL && cpu < rings->without.end; cpu++)
		if (rings->returned.has[cpu]) {
			rings->returned.has[cpu] = false;
			return (int)cpu;
		}
	return -1;
}

int
wp_rings_uncovered(const struct wp_rings *rings)
{
	struct wp_cpus online;
	bool known = false;
	int asked = 0;

	for (unsigned cpu = 0; rings != NULL && cpu < rings->without.end;
	    cpu++) {
		if (!rings->without.has[cpu])
			continue;
		if (asked++ == 0)
			known = wp_cpus_online(&online) > 0;
		if (!known || online.has[cpu])
			return (int)cpu;
	}
	return -1;
}

void
wp_rings_only(struct wp_rings *rings, pid_t pid)
{
	__atomic_store_n(&rings->only, pid, __ATOMIC_RELEASE);
}

/* Whether a record says something of a process that is left out. */
static bool
is_left_out(const struct wp_rings *rings,
    const struct perf_event_header *header)
{
	const pid_t only = __atomic_load_n(&rings->only, __ATOMIC_ACQUIRE);
	uint32_t id[2];		/* the process's, and its maker's */

	switch (only == 0 ? PERF_RECORD_SAMPLE : header->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_FORK:
		memcpy(id, header + 1, sizeof(id));
		return id[0] != (uint32_t)only &&
		    (header->type != PERF_RECORD_FORK ||
		    id[1] != (uint32_t)only);
	default:
		return false;
	}
}

bool
wp_rings_were_full(const struct wp_rings *rings)
{
	return rings->was_full;
}

size_t
wp_rings_size(const struct wp_rings *rings)
{
	return rings->size;
}

/* Copy len bytes at a position, around the end. */
static void
ring_copy(const struct wp_rings *rings, const struct wp_ring *ring,
    uint64_t at, void *to, size_t len)
{
	size_t offset = at & (rings->size - 1);
	size_t first = rings->size - offset < len ? rings->size - offset : len;

	memcpy(to, ring->data + offset, first);
	memcpy((uint8_t *)to + first, ring->data, len - first);
}

/* The next record's header; records are multiples of 8, so it never wraps. */
static const struct perf_event_header *
ring_header(const struct wp_rings *rings, const struct wp_ring *ring)
{
	return (const struct perf_event_header *)
	    (const void *)(ring->data + (ring->at & (rings->size - 1)));
}

static void
ring_read_time(const struct wp_rings *rings, struct wp_ring *ring)
{
	if (ring->at < ring->head)
		ring_copy(rings, ring, ring->at +
		    wp_attr_time_offset(ring_header(rings, ring)),
		    &ring->time, sizeof(ring->time));
}

/* The record at the ring's position, in one piece. */
static const struct perf_event_header *
ring_record(const struct wp_rings *rings, struct wp_ring *ring)
{
	const struct perf_event_header *header = ring_header(rings, ring);
	size_t offset = ring->at & (rings->size - 1);

	if (offset + header->size <= rings->size)
		return header;
	ring_copy(rings, ring, ring->at, ring->whole, header->size);
	return (const struct perf_event_header *)(const void *)ring->whole;
}

static void
ring_release(struct wp_ring *ring)
{
	ring->tail = ring->at;
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

/* Whether records may have been lost since the last look: then it had less than
   this in it, and since then no more has been given back. */
static bool
is_full(const struct wp_rings *rings, const struct wp_ring *ring)
{
	return ring->head - ring->tail > rings->size / 8 * 3;
}

/* See what is in doubt.  A record's time may be taken a little before it is in
   its ring. */
static void
rings_doubt(struct wp_rings *rings, bool full)
{
	struct doubt *doubt = &rings->doubt;
	const uint64_t before = rings->look;

	rings->look = wp_clock_ns();
	if (doubt->to == UINT64_MAX)
		doubt->to = rings->look;
	if (!full)
		return;
	rings->was_full = true;
	if (doubt->to == 0)
		doubt->from = before - DOUBT_EACH;
	doubt->to = UINT64_MAX;
}

static void
rings_look(struct wp_rings *rings)
{
	bool full = false;

	for (unsigned i = 0; i < rings->n; i++) {
		struct wp_ring *ring = &rings->ring[i];
		bool waited = ring->at < ring->head;

		wp_bpf_ring_look(&ring->bpf);
		ring->head = __atomic_load_n(&ring->page->data_head,
		    __ATOMIC_ACQUIRE);
		full = full || is_full(rings, ring);
		if (ring->tail != ring->at)
			ring_release(ring);
		if (!waited)
			ring_read_time(rings, ring);
	}
	rings_doubt(rings, full);
}

/* Leave the delivered record. */
static void
rings_advance(struct wp_rings *rings)
{
	struct wp_ring *ring = rings->current;

	if (ring == NULL)
		return;
	rings->current = NULL;
	if (ring->from_bpf) {
		wp_bpf_ring_advance(&ring->bpf);
		return;
	}
	ring->at += rings->record->size;
	if (ring->at - ring->tail >= rings->size / 8)
		ring_release(ring);
	ring_read_time(rings, ring);
}

/* When the older record of a ring's two was made, ns; UINT64_MAX: there is
   none. */
static uint64_t
ring_next_time(struct wp_ring *ring)
{
	const struct perf_event_header *other =
	    wp_bpf_ring_record(&ring->bpf);
	const uint64_t time = ring->at < ring->head ? ring->time : UINT64_MAX;

	ring->from_bpf = other != NULL && wp_attr_time(other) < time;
	return ring->from_bpf ? wp_attr_time(other) : time;
}

/* The record in front of this one, if some may be missing there; or NULL. */
static const struct perf_event_header *
doubt_next(struct doubt *doubt, const struct perf_event_header *next,
    uint64_t time)
{
	const struct wp_sample *sample = (const void *)next;

	if (doubt->to == 0 || next->type != PERF_RECORD_SAMPLE ||
	    time < doubt->from)
		return NULL;
	if (time > doubt->to)
		doubt->to = 0;	/* the last one */
	else if (time < doubt->given + DOUBT_EACH)
		return NULL;
	doubt->given = time;
	doubt->record.header = (struct perf_event_header){
		PERF_RECORD_LOST, 0, sizeof(doubt->record),
	};
	doubt->record.id = sample->id;
	doubt->record.trailer = (struct wp_trailer){
		.pid = sample->pid, .tid = sample->tid, .time = time,
		.cpu = sample->cpu, .id = sample->id,
	};
	return &doubt->record.header;
}

/* The ring with the oldest record that is not younger than horizon; or NULL. */
static struct wp_ring *
rings_oldest(struct wp_rings *rings, uint64_t horizon, uint64_t *time)
{
	struct wp_ring *oldest = NULL;

	*time = UINT64_MAX;
	for (unsigned i = 0; i < rings->n; i++) {
		struct wp_ring *ring = &rings->ring[i];
		const uint64_t next = ring_next_time(ring);

		if (next <= horizon && next < *time) {
			oldest = ring;
			*time = next;
		}
	}
	return oldest;
}

/* The ring with the oldest record that is not left out, which is found. */
static struct wp_ring *
rings_find(struct wp_rings *rings, uint64_t horizon, uint64_t *time)
{
	struct wp_ring *oldest;

	while ((oldest = rings_oldest(rings, horizon, time)) != NULL) {
		rings->record = oldest->from_bpf ?
		    wp_bpf_ring_record(&oldest->bpf) :
		    ring_record(rings, oldest);
		if (!is_left_out(rings, rings->record))
			break;
		rings->current = oldest;
		rings_advance(rings);
	}
	return oldest;
}

const struct perf_event_header *
wp_rings_next(struct wp_rings *rings, uint64_t horizon)
{
	const struct perf_event_header *doubt;
	struct wp_ring *oldest;
	uint64_t time;

	rings_advance(rings);
	if (!rings->looked)
		rings_look(rings);
	oldest = rings_find(rings, horizon, &time);
	rings->looked = oldest != NULL;
	if (oldest == NULL)
		return NULL;
	if ((doubt = doubt_next(&rings->doubt, rings->record, time)) != NULL)
		return doubt;
	rings->current = oldest;
	return rings->record;
}
