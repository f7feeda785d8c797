/* bpf_ring: a BPF ring buffer, read in place.  See bpf_ring.h. */
#include "ring/bpf_ring.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/bpf.h"

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void
wp_bpf_ring_close(struct wp_bpf_ring *ring)
{
	if (ring->map < 0)
		return;
	if (ring->taken != NULL)
		(void)munmap(ring->taken, page_size());
	if (ring->made != NULL)
		(void)munmap((void *)(uintptr_t)ring->made, page_size());
	if (ring->data != NULL)
		(void)munmap((void *)(uintptr_t)ring->data, 2 * ring->size);
	(void)close(ring->map);
	ring->map = -1;
}

/* The data follows one page that we write and one that the kernel writes. */
int
wp_bpf_ring_open(struct wp_bpf_ring *ring, size_t size)
{
	void *taken, *made, *data;

	*ring = (struct wp_bpf_ring){
		.size = size, .map = wp_bpf_ringbuf(size),
	};
	if (ring->map < 0)
		return ring->map;
	taken = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
	    ring->map, 0);
	made = mmap(NULL, page_size(), PROT_READ, MAP_SHARED, ring->map,
	    (off_t)page_size());
	data = mmap(NULL, 2 * size, PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ring->taken = taken == MAP_FAILED ? NULL : taken;
	ring->made = made == MAP_FAILED ? NULL : made;
	ring->data = data == MAP_FAILED ? NULL : data;
	if (ring->taken == NULL || ring->made == NULL || ring->data == NULL) {
		wp_bpf_ring_close(ring);
		return -ENOMEM;
	}
	return 0;
}

/* The size of a part in bytes. */
static size_t
part_size(const struct wp_bpf_ring *ring)
{
	const size_t part = ring->size / WP_BPF_RING_PARTS;

	return part < page_size() ? page_size() : part;
}

/* Returns false if there is no memory. */
static bool
map_part(struct wp_bpf_ring *ring, size_t i)
{
	const size_t size = part_size(ring);
	uint8_t *at = (uint8_t *)(uintptr_t)ring->data + i * size;

	if (!ring->mapped[i])
		ring->mapped[i] = mmap(at, size, PROT_READ,
		    MAP_SHARED | MAP_FIXED, ring->map,
		    (off_t)(2 * page_size() + i * size)) != MAP_FAILED;
	return ring->mapped[i];
}

/* Map the parts that have received data.  Returns false if there is no
   memory. */
static bool
map_upto(struct wp_bpf_ring *ring, uint64_t head)
{
	const size_t size = part_size(ring);
	const uint64_t from = ring->at & (ring->size - 1);
	const uint64_t end = from + (head - ring->at);
	bool all = true;

	for (size_t i = from / size; i * size < end && all; i++)
		all = map_part(ring, i);
	return all;
}

static void
release(struct wp_bpf_ring *ring)
{
	if (*ring->taken != ring->at)
		__atomic_store_n(ring->taken, ring->at, __ATOMIC_RELEASE);
}

void
wp_bpf_ring_look(struct wp_bpf_ring *ring)
{
	uint64_t head;

	if (ring->map < 0)
		return;
	release(ring);
	head = __atomic_load_n(ring->made, __ATOMIC_ACQUIRE);
	if (map_upto(ring, head))
		ring->head = head;
}

const struct perf_event_header *
wp_bpf_ring_record(const struct wp_bpf_ring *ring)
{
	const uint8_t *at;

	if (ring->map < 0 || ring->at >= ring->head)
		return NULL;
	at = ring->data + (ring->at & (ring->size - 1));
	if ((__atomic_load_n((const uint32_t *)(const void *)at,
	    __ATOMIC_ACQUIRE) & BPF_RINGBUF_BUSY_BIT) != 0)
		return NULL;
	return (const void *)(at + BPF_RINGBUF_HDR_SZ);
}

/* The consumer position is written only now and then, as for the kernel's
   rings. */
void
wp_bpf_ring_advance(struct wp_bpf_ring *ring)
{
	const uint64_t size = wp_bpf_ring_record(ring)->size;

	ring->at += BPF_RINGBUF_HDR_SZ + ((size + 7) & ~(uint64_t)7);
	if (ring->at - *ring->taken >= ring->size / 8)
		release(ring);
}
