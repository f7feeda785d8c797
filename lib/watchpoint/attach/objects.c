/* objects: the objects that a function returns.  See objects.h. */
#include "attach/objects.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/bpf_ring.h"
#include "attach/uprobes.h"
#include "bpf/bpf.h"
#include "os/clock.h"
#include "proc/proc.h"

enum {
	OBJECTS_MAX = 1 << 17,	/* that are not ended */
	CALLS_MAX = 1 << 14,	/* threads */
	RING = 1 << 20,		/* bytes; a place has three records at most,
				   each with a sample */
	PROBES_MAX = 1 + WP_OBJECT_ENDS + 2 * WP_OBJECT_CALLS,
};

struct wp_objects {
	struct wp_object_maps maps;
	struct wp_object_table *table;
	struct wp_bpf_ring ring;
	bool taken;		/* a record is */
	pid_t tid;		/* that they are opened on */
	int programs;		/* turns them off at execve(2) */
	int fd[PROBES_MAX];	/* the uprobes */
	unsigned nfds;
};

void
wp_objects_close(struct wp_objects *o)
{
	if (o == NULL)
		return;
	if (o->table != NULL)
		wp_objects_turn(o, false);
	while (o->nfds > 0)
		(void)close(o->fd[--o->nfds]);
	if (o->programs >= 0)
		(void)close(o->programs);
	if (o->table != NULL)
		(void)munmap(o->table, sizeof(*o->table));
	wp_bpf_ring_close(&o->ring);
	if (o->maps.table >= 0)
		(void)close(o->maps.table);
	if (o->maps.objects >= 0)
		(void)close(o->maps.objects);
	if (o->maps.calls >= 0)
		(void)close(o->maps.calls);
	free(o);
}

/* 0 or -errno. */
static int
make_maps(struct wp_objects *o)
{
	struct wp_uprobe_guard guard = {.pid = o->maps.pid};
	void *table;

	if ((o->maps.table = wp_bpf_shared(sizeof(*o->table))) < 0)
		return o->maps.table;
	table = mmap(NULL, sizeof(*o->table), PROT_READ | PROT_WRITE,
	    MAP_SHARED, o->maps.table, 0);
	if (table == MAP_FAILED)
		return -errno;
	o->table = table;
	if ((o->maps.objects = wp_bpf_hash(sizeof(uint64_t), sizeof(uint64_t),
	    OBJECTS_MAX)) < 0)
		return o->maps.objects;
	if ((o->maps.calls = wp_bpf_hash(sizeof(uint64_t),
	    WP_OBJECT_CALLED, CALLS_MAX)) < 0)
		return o->maps.calls;
	if (wp_bpf_ring_open(&o->ring, RING) < 0)
		return -ENOMEM;
	o->maps.ring = o->ring.map;
	/* what turns them off is where a guarded place has it */
	guard.map = o->maps.table;
	o->programs = wp_uprobe_guard_programs(&guard, 1);
	return o->programs < 0 ? o->programs : 0;
}

_Static_assert(offsetof(struct wp_object_table, on) == 0 &&
    offsetof(struct wp_guarded, on) == 0, "one program turns off either");

/* A uprobe with its program, which is closed; 0 or -errno. */
static int
add_uprobe(struct wp_objects *o, uint64_t addr, bool returns, int program)
{
	int fd, err;

	if (program < 0)
		return program;
	fd = wp_uprobe_open(o->tid, addr, returns);
	err = fd < 0 ? fd : wp_perf_set_bpf(fd, program);
	(void)close(program);
	if (err < 0 && fd >= 0)
		(void)close(fd);
	if (err >= 0)
		o->fd[o->nfds++] = fd;
	return err < 0 ? err : 0;
}

/* Add the uprobes of the functions that free first, so that no object is
   noticed whose end would not be. */
static int
add_uprobes(struct wp_objects *o, const struct wp_objects_what *what)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < what->nends; i++)
		err = add_uprobe(o, what->end[i].addr, false,
		    wp_object_load_end(&o->maps, what->end[i].arguments));
	for (size_t i = 0; err == 0 && i < what->ncalls; i++) {
		err = add_uprobe(o, what->call[i].addr, false,
		    wp_object_load_call(&o->maps, what->call[i].which));
		if (err == 0)
			err = add_uprobe(o, what->call[i].addr, true,
			    wp_object_load_handed(&o->maps,
			    what->call[i].which));
	}
	return err < 0 ? err : add_uprobe(o, what->function, true,
	    wp_object_load_begin(&o->maps));
}

int
wp_objects_open(struct wp_objects **out, pid_t pid,
    const struct wp_objects_what *what, struct wp_cause *cause)
{
	struct wp_objects *o = calloc(1, sizeof(*o));
	int err;

	if (o == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	o->maps = (struct wp_object_maps){
		.table = -1, .objects = -1, .calls = -1, .ring = -1,
		.pid = pid, .attr = what->attr,
	};
	o->ring.map = o->programs = -1;
	o->tid = wp_proc_living(pid);
	if ((err = make_maps(o)) == 0) {
		o->table->only = what->only;
		o->table->part = what->part;
		o->table->len = what->len;
		o->table->stays = what->stays;
		for (unsigned i = what->places; i < WP_OBJECT_PLACES; i++)
			o->table->place[i].addr = WP_OBJECT_CLOSED;
		err = add_uprobes(o, what);
	}
	if (err == 0) {
		*out = o;
		return 0;
	}
	wp_objects_close(o);
	return wp_cause_set(cause, WP_CAUSE_NO_OBJECTS,
	    wp_uprobe_why_not(err));
}

void
wp_objects_turn(struct wp_objects *o, bool on)
{
	__atomic_store_n(&o->table->on, on, __ATOMIC_SEQ_CST);
}

int
wp_objects_fd(const struct wp_objects *o)
{
	return o->ring.map;
}

const struct perf_event_header *
wp_objects_next(struct wp_objects *o)
{
	const struct perf_event_header *header;

	if (o->taken)
		wp_bpf_ring_advance(&o->ring);
	o->taken = false;
	if ((header = wp_bpf_ring_record(&o->ring)) == NULL) {
		wp_bpf_ring_look(&o->ring);
		header = wp_bpf_ring_record(&o->ring);
	}
	o->taken = header != NULL;
	return header;
}

bool
wp_objects_go_on(struct wp_objects *o, unsigned place)
{
	uint64_t before = 0;

	return __atomic_compare_exchange_n(&o->table->place[place].armed,
	    &before, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void
wp_objects_reuse(struct wp_objects *o, unsigned place, bool kept)
{
	struct wp_object_place *it = &o->table->place[place];

	if (kept)
		__atomic_sub_fetch(&o->table->kept, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&it->ended, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&it->reused, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&it->armed, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&it->addr, 0, __ATOMIC_SEQ_CST);
}

/* The time in `at' that belongs to the object with this number, 0 if it is
   another one's. */
static uint64_t
time_of(const struct wp_object_place *it, const uint64_t *at, uint64_t number)
{
	const uint64_t time = __atomic_load_n(at, __ATOMIC_SEQ_CST);

	return __atomic_load_n(&it->number, __ATOMIC_SEQ_CST) == number ?
	    time : 0;
}

uint64_t
wp_objects_ended(const struct wp_objects *o, unsigned place, uint64_t number)
{
	const struct wp_object_place *it = &o->table->place[place];

	return time_of(it, &it->ended, number);
}

uint64_t
wp_objects_reused(const struct wp_objects *o, unsigned place, uint64_t number)
{
	const struct wp_object_place *it = &o->table->place[place];

	return time_of(it, &it->reused, number);
}

void
wp_objects_sum(const struct wp_objects *o, struct wp_objects_sum *sum)
{
	const struct wp_object_table *t = o->table;

	*sum = (struct wp_objects_sum){
		.seen = __atomic_load_n(&t->seen, __ATOMIC_SEQ_CST),
		.missed = __atomic_load_n(&t->missed, __ATOMIC_SEQ_CST),
	};
	/* modulo 2^64: the sums are of times since the machine started */
	sum->lives = __atomic_load_n(&t->ended, __ATOMIC_SEQ_CST) +
	    __atomic_load_n(&t->live, __ATOMIC_SEQ_CST) * wp_clock_ns() -
	    __atomic_load_n(&t->born, __ATOMIC_SEQ_CST);
}

bool
wp_objects_have_ended(const struct wp_objects *o)
{
	return wp_proc_exiting(o->tid);
}
