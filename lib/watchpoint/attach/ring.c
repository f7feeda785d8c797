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
 */
#include "attach/ring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/attr.h"
#include "os/cpus.h"
#include "os/perf.h"

enum { RING_MIN = 64 << 10, RING_MAX = 32 << 20, RINGS_TOTAL = 64 << 20 };

/* A poller is woken at a quarter of a ring, but at no more bytes than it can
   copy in a fraction of a millisecond. */
enum { WAKE_MAX = 1 << 20 };

struct wp_ring {
	struct perf_event_mmap_page *page;	/* the kernel's; data follows */
	const uint8_t *data;
	uint64_t head;		/* the kernel's, when last looked at */
	uint64_t at;		/* the next record */
	uint64_t tail;		/* what the kernel knows to be free */
	uint64_t time;		/* of the next record; valid while at < head */
	int cpu, fd;
	uint8_t *whole;		/* a record that wrapped, of up to 64 KiB */
};

struct wp_rings {
	size_t size;		/* bytes of data in each */
	unsigned n;
	struct wp_ring *current;	/* whose record was delivered; NULL */
	const struct perf_event_header *record;	/* that record */
	bool looked;		/* heads are fresh enough to go on with */
	struct wp_cpus without;	/* processors that could not have a ring */
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
	if (ring->page != NULL)
		wp_perf_unmap(ring->page, size);
	(void)close(ring->fd);
	free(ring->whole);
}

/* One ring for one processor, also for one that is offline, if the kernel lets
   it.  -ENODEV: it does not. */
static int
ring_open(struct wp_ring *ring, int cpu, size_t size)
{
	struct perf_event_attr attr;
	int err;

	wp_attr_ring(&attr, (uint32_t)(size / 4 < WAKE_MAX ? size / 4 :
	    WAKE_MAX));
	*ring = (struct wp_ring){.cpu = cpu};
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
    size_t size)
{
	int err;

	rings->size = size;
	rings->n = 0;
	rings->without = (struct wp_cpus){.end = cpus->end};
	for (unsigned cpu = 0; cpu < cpus->end; cpu++) {
		if (!cpus->has[cpu])
			continue;
		err = ring_open(&rings->ring[rings->n], (int)cpu, size);
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

int
wp_rings_open(struct wp_rings **out, size_t size, struct wp_cause *cause)
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
	while ((err = rings_open_sized(rings, &cpus, fit)) < 0) {
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

void
wp_rings_close(struct wp_rings *rings)
{
	if (rings == NULL)
		return;
	for (unsigned i = 0; i < rings->n; i++)
		ring_close(&rings->ring[i], rings->size);
	free(rings);
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

static void
rings_look(struct wp_rings *rings)
{
	for (unsigned i = 0; i < rings->n; i++) {
		struct wp_ring *ring = &rings->ring[i];
		bool waited = ring->at < ring->head;

		if (ring->tail != ring->at)
			ring_release(ring);
		ring->head = __atomic_load_n(&ring->page->data_head,
		    __ATOMIC_ACQUIRE);
		if (!waited)
			ring_read_time(rings, ring);
	}
}

/* Leave the delivered record. */
static void
rings_advance(struct wp_rings *rings)
{
	struct wp_ring *ring = rings->current;

	if (ring == NULL)
		return;
	ring->at += rings->record->size;
	if (ring->at - ring->tail >= rings->size / 8)
		ring_release(ring);
	ring_read_time(rings, ring);
	rings->current = NULL;
}

const struct perf_event_header *
wp_rings_next(struct wp_rings *rings, uint64_t horizon)
{
	struct wp_ring *oldest = NULL;

	rings_advance(rings);
	if (!rings->looked)
		rings_look(rings);
	for (unsigned i = 0; i < rings->n; i++) {
		struct wp_ring *ring = &rings->ring[i];

		if (ring->at < ring->head && ring->time <= horizon &&
		    (oldest == NULL || ring->time < oldest->time))
			oldest = ring;
	}
	rings->looked = oldest != NULL;
	if (oldest == NULL)
		return NULL;
	rings->current = oldest;
	rings->record = ring_record(rings, oldest);
	return rings->record;
}
