/* objects: slots on the objects that a function returned. */
#include "setup/objects.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attach/objects.h"
#include "os/array.h"
#include "os/clock.h"
#include "proc/proc.h"
#include "run/initial_values.h"
#include "run/run.h"
#include "setup/allocator_functions.h"
#include "util/complain.h"

#define PAUSE	UINT64_C(10000000)	/* ns between two objects of a slot, at
					   least */

enum {
	SHARE = 20,		/* threads wait for all slots at most one part
				   of the time in so many */
	THREADS = 2,
	OUT_OF_LINE = 4096,	/* bytes of a process */
	SAMPLES = 3 * WP_SLOTS_MAX,	/* that are not taken yet, at most */
};

/* A sample that came before its record; or which a life has: malloc'd, NULL:
   none. */
struct sample {
	struct perf_event_header *at;
	pid_t tid;
};

/* An object that was given to a slot. */
struct object_life {
	uint64_t addr;		/* of the bytes that are watched */
	uint64_t number;
	uint64_t born, armed, ended, reused;	/* ns; 0: not yet */
	uint64_t gap;		/* ns; WATCH_NO_GAP: none */
	uint64_t cost;		/* ns that it has taken of a processor */
	unsigned slot;
	pid_t tid, freed_by, reused_by;
	bool kept;		/* when it had ended */
	bool failed;		/* the slot could not be moved there */
	enum { GIVEN, ARMED, ENDED, DONE } reported;	/* of it, so far */
	struct perf_event_header *at[OBJECT_REUSED + 1];	/* samples */
	int place;		/* its watch of the session; < 0: none */
	size_t before;		/* the one that its slot had before it, from 1;
				   0: none */
};

struct objects {
	struct run *run;
	struct wp_objects *probes;
	struct wp_objects_what what;
	struct sample sample[SAMPLES];	/* whose records have not come */
	uint64_t size;		/* of each; 0: not known */
	pid_t pid;
	size_t spec, first;	/* its first watch in the target */
	struct wp_region region;	/* from an object's start on */
	unsigned slots;
	uint64_t due[WP_SLOTS_MAX];	/* when a slot is to be given the next
					   one, ns; 0: it has one */
	pthread_t thread[THREADS];
	unsigned threads;
	int stop;		/* an eventfd: they are to end */
	pthread_mutex_t take;	/* one takes records at a time */
	pthread_mutex_t lock;	/* of what follows */
	struct object_life *life;	/* nlives, in order of the returns */
	size_t nlives, cap;
	size_t last[WP_SLOTS_MAX];	/* of each slot, from 1; 0: none */
	size_t *open;		/* nopen, in their order: those that are not
				   reported to their end, of the first ntaken */
	size_t nopen, open_cap, ntaken;
	atomic_bool any;	/* there is something to report */
	uint64_t foreign;	/* records that are no hits */
	uint64_t out_of_line;	/* where the kernel executes instructions that
				   uprobes are on; 0: not known */
	uint64_t ended;		/* ns; 0: not yet */
	struct wp_objects_sum sum;	/* as of then */
	bool warned, blind;
};

int
objects_open(struct objects **out, struct run *run)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return complain("out of memory");
	o->run = run;
	o->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&o->take, NULL);
	(void)pthread_mutex_init(&o->lock, NULL);
	if (o->stop < 0) {
		objects_close(o);
		return complain_errno(errno, "watching objects");
	}
	*out = o;
	return 0;
}

static void
forget_samples(struct object_life *life)
{
	for (unsigned i = 0; i <= OBJECT_REUSED; i++) {
		free(life->at[i]);
		life->at[i] = NULL;
	}
}

void
objects_close(struct objects *o)
{
	if (o == NULL)
		return;
	objects_end(o);
	wp_objects_close(o->probes);
	if (o->stop >= 0)
		(void)close(o->stop);
	(void)pthread_mutex_destroy(&o->take);
	(void)pthread_mutex_destroy(&o->lock);
	for (size_t i = 0; i < o->nlives; i++)
		forget_samples(&o->life[i]);
	for (unsigned i = 0; i < SAMPLES; i++)
		free(o->sample[i].at);
	free(o->life);
	free(o->open);
	free(o);
}

/* --- before they are armed --- */

int
objects_resolve(struct objects *o, const struct process *process,
    const struct spec *spec, bool early, struct spec_place *place,
    struct wp_cause *cause)
{
	int err = live_broker_resolve(&o->run->live, process->pid, spec, early,
	    place, cause);

	if (err < 0)
		return err;
	o->pid = process->pid;
	o->what = (struct wp_objects_what){
		.function = place->addr, .part = place->more[0],
		.stays = o->run->options->after_free,
	};
	o->size = place->more[1];
	free(place->symbol);
	*place = (struct spec_place){.len = place->len, .rotates = true};
	return allocator_functions_find(o->run, o->pid, early, &o->what,
	    cause);
}

int
objects_plan(struct objects *o, struct process *process,
    struct wp_region *regions, size_t *n, struct wp_cause *cause)
{
	const struct wp_slot_caps *caps;
	struct wp_slot slot[WP_SLOTS_MAX];
	int each;

	if (o == NULL)
		return 0;
	if (o->probes != NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_OBJECTS,
		    "they are watched in one process: give one");
	caps = &o->run->features.caps;
	o->region = (struct wp_region){
		.addr = o->what.part, .len = regions->len,
		.access = regions->access,
	};
	/* as if an object began at 0 */
	if ((each = wp_slot_plan(&o->region, caps, slot, cause)) <= 0)
		return each;
	o->slots = caps->slots / (unsigned)each;
	o->pid = process->pid;
	process->rotates = true;
	for (unsigned i = 0; i < o->slots; i++) {
		regions[i] = o->region;
		process->spec[i] = 0;
	}
	*n = o->slots;
	return 0;
}

int
objects_open_probes(struct objects *o, size_t first, struct wp_cause *cause)
{
	struct wp_objects_what *what = &o->what;
	uint64_t *ids;

	what->only = o->run->options->spec->instance;
	what->places = o->slots;
	what->len = o->region.len;
	if (wp_target_slot_ids(o->run->target, first, 0, &what->attr, &ids) < 0)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	free(ids);
	return wp_objects_open(&o->probes, o->pid, what, cause);
}

/* --- the threads --- */

static int
move(struct objects *o, unsigned slot, uint64_t addr)
{
	const struct wp_region region = {
		.addr = addr, .len = o->region.len, .access = o->region.access,
	};

	return o->run->ops->move(o->run, o->pid, o->run->target,
	    o->first + slot, &region);
}

/* The object of a slot, which is to have this number. */
static struct object_life *
life_of(struct objects *o, unsigned slot, uint64_t number)
{
	const size_t last = o->last[slot];

	return last == 0 || o->life[last - 1].number != number ? NULL :
	    &o->life[last - 1];
}

/* A sample, for the record of its thread. */
static void
take_sample(struct objects *o, const struct perf_event_header *header)
{
	const struct wp_sample *sample = (const void *)header;

	for (unsigned i = 0; i < SAMPLES; i++) {
		struct sample *s = &o->sample[i];

		if (s->at != NULL && s->tid != (pid_t)sample->tid)
			continue;
		free(s->at);
		s->tid = (pid_t)sample->tid;
		if ((s->at = malloc(header->size)) != NULL)
			memcpy(s->at, header, header->size);
		return;
	}
}

/* The one that came before a record; malloc'd, NULL: there is none. */
static struct perf_event_header *
sample_of(struct objects *o, const struct wp_object_record *r)
{
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct perf_event_header *at = o->sample[i].at;

		if (at == NULL || o->sample[i].tid != (pid_t)r->tid)
			continue;
		o->sample[i].at = NULL;
		return at;
	}
	return NULL;
}

/* A slot has an object. */
static void
take_new(struct objects *o, const struct wp_object_record *r)
{
	const struct object_life life = {
		.addr = r->addr + o->region.addr, .number = r->number,
		.born = r->time, .gap = WATCH_NO_GAP, .slot = r->place,
		.tid = (pid_t)r->tid, .place = -1,
		.at = {[OBJECT_NEW] = sample_of(o, r)},
		.before = o->last[r->place],
	};
	struct object_life *it;
	uint64_t began, now;
	bool room, good;

	if (o->ended != 0) {
		free(life.at[OBJECT_NEW]);
		return;
	}
	(void)pthread_mutex_lock(&o->lock);
	room = wp_array_room(&o->life, o->nlives, &o->cap,
	    sizeof(*o->life)) == 0;
	if (room) {
		o->life[o->nlives++] = life;
		o->last[r->place] = o->nlives;
	} else {
		free(life.at[OBJECT_NEW]);
	}
	atomic_store(&o->any, true);
	(void)pthread_mutex_unlock(&o->lock);
	began = wp_clock_ns();
	good = room && move(o, r->place, life.addr) == 0;
	now = wp_clock_ns();
	o->due[r->place] = 0;
	(void)pthread_mutex_lock(&o->lock);
	if ((it = life_of(o, r->place, r->number)) != NULL) {
		it->failed = !good;
		it->armed = now;
		it->cost = now - r->time < WP_OBJECT_WAIT ? now - r->time :
		    WP_OBJECT_WAIT;
		if (it->cost < now - began)
			it->cost = now - began;
	}
	if (!wp_objects_go_on(o->probes, r->place) && it != NULL)
		it->gap = now - r->time;
	atomic_store(&o->any, true);
	(void)pthread_mutex_unlock(&o->lock);
}

/* A slot is done with its object.  The longer a thread has waited for it, or
   its move has taken, the longer none needs to for the next. */
static void
leave(struct objects *o, unsigned slot)
{
	const uint64_t parts = (uint64_t)SHARE * o->slots;
	uint64_t pause = PAUSE;

	(void)pthread_mutex_lock(&o->lock);
	if (o->last[slot] != 0 &&
	    o->life[o->last[slot] - 1].cost * parts > pause)
		pause = o->life[o->last[slot] - 1].cost * parts;
	(void)pthread_mutex_unlock(&o->lock);
	(void)move(o, slot, 0);
	o->due[slot] = wp_clock_ns() + pause;
}

/* A slot may be given another one. */
static void
reuse(struct objects *o, unsigned slot)
{
	bool kept;

	(void)pthread_mutex_lock(&o->lock);
	kept = o->last[slot] != 0 && o->life[o->last[slot] - 1].kept;
	(void)pthread_mutex_unlock(&o->lock);
	o->due[slot] = 0;
	wp_objects_reuse(o->probes, slot, kept);
}

/* The object of a slot is freed. */
static void
take_ended(struct objects *o, const struct wp_object_record *r)
{
	struct perf_event_header *at = sample_of(o, r);
	struct object_life *it;
	bool kept = false;

	(void)pthread_mutex_lock(&o->lock);
	if ((it = life_of(o, r->place, r->number)) != NULL) {
		it->ended = r->time;
		it->freed_by = (pid_t)r->tid;
		it->at[OBJECT_FREED] = at;
		at = NULL;
		/* what is returned anew was not free */
		it->kept = kept = o->what.stays && wp_objects_reused(o->probes,
		    r->place, r->number) != r->time;
	}
	atomic_store(&o->any, true);
	(void)pthread_mutex_unlock(&o->lock);
	free(at);
	if (!kept)
		leave(o, r->place);
}

/* Memory of what slots have is handed out again. */
static void
take_reused(struct objects *o, const struct wp_object_record *r)
{
	struct perf_event_header *at = sample_of(o, r);

	for (unsigned i = 0; i < o->slots; i++) {
		struct object_life *it;
		bool kept = false;

		if ((r->place >> i & 1) == 0)
			continue;
		(void)pthread_mutex_lock(&o->lock);
		it = o->last[i] == 0 ? NULL : &o->life[o->last[i] - 1];
		if (it != NULL && it->kept && it->reused == 0) {
			kept = true;
			it->reused = r->time;
			it->reused_by = (pid_t)r->tid;
			it->at[OBJECT_REUSED] = at;
			at = NULL;
		}
		atomic_store(&o->any, true);
		(void)pthread_mutex_unlock(&o->lock);
		if (kept)
			leave(o, i);
	}
	free(at);
}

static void
take_records(struct objects *o)
{
	const struct perf_event_header *header;
	const uint64_t now = wp_clock_ns();

	(void)pthread_mutex_lock(&o->take);
	while ((header = wp_objects_next(o->probes)) != NULL)
		if (header->type == PERF_RECORD_SAMPLE)
			take_sample(o, header);
		else if (header->type == WP_OBJECT_REUSED)
			take_reused(o, (const void *)header);
		else if (header->type == WP_OBJECT_NEW)
			take_new(o, (const void *)header);
		else
			take_ended(o, (const void *)header);
	for (unsigned i = 0; i < o->slots; i++)
		if (o->due[i] != 0 && o->due[i] <= now)
			reuse(o, i);
	(void)pthread_mutex_unlock(&o->take);
}

static void *
objects_thread(void *arg)
{
	const struct sched_param first = {.sched_priority = 1};
	struct objects *o = arg;
	struct pollfd p[] = {
		{.fd = o->stop, .events = POLLIN},
		{.fd = wp_objects_fd(o->probes), .events = POLLIN},
	};

	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	while (p->revents == 0) {
		take_records(o);
		(void)poll(p, 2, (int)(PAUSE / 1000000));
	}
	return NULL;
}

/* A thread that waits for its object to be armed keeps its processor, so two
   are ready to do that, on two of them. */
static int
start_threads(struct objects *o)
{
	cpu_set_t allowed, one;
	int cpu = 0, err = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	while (o->threads < THREADS && err == 0 && cpu < CPU_SETSIZE) {
		pthread_attr_t attr;

		if (!CPU_ISSET(cpu++, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu - 1, &one);
		(void)pthread_attr_init(&attr);
		(void)pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
		err = pthread_create(&o->thread[o->threads], &attr,
		    objects_thread, o);
		(void)pthread_attr_destroy(&attr);
		o->threads += err == 0;
	}
	return o->threads > 0 ? 0 : -err;
}

void
objects_expect(struct objects *o)
{
	if (o != NULL)
		wp_objects_turn(o->probes, true);
}

int
objects_begin(struct objects *o)
{
	sigset_t all, before;
	int err;

	if (o == NULL)
		return 0;
	o->first = o->run->process->first;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	err = start_threads(o);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

void
objects_end(struct objects *o)
{
	if (o == NULL || o->ended != 0)
		return;
	o->ended = wp_clock_ns();
	if (o->probes == NULL)
		return;
	o->blind = wp_objects_have_ended(o->probes) &&
	    !wp_proc_exiting(o->pid);
	wp_objects_sum(o->probes, &o->sum);
	wp_objects_turn(o->probes, false);
	/* none was watched: it could not begin, and there may be no target */
	if (o->threads == 0)
		return;
	(void)eventfd_write(o->stop, 1);
	while (o->threads > 0)
		(void)pthread_join(o->thread[--o->threads], NULL);
	take_records(o);
}

/* --- the report --- */

/* It is about to be watched: no hit has come yet. */
static void
describe(struct objects *o, struct object_life *life)
{
	struct run *run = o->run;
	struct session *s = &run->session;
	const struct ex_watch *whole = run_watch(run, o->first);
	const struct wp_region region = {
		.addr = life->addr, .len = o->region.len,
		.access = o->region.access,
	};
	struct wp_slot slot[WP_SLOTS_MAX];
	const int n = wp_slot_plan(&region, &run->features.caps, slot, NULL);
	int err;

	session_of_process(s, ex_watch_number(whole), whole->pid, whole->comm);
	session_pending(s, false);
	session_part(s, whole->id);
	session_instance(s, life->number, life->born);
	err = session_add_watch(s, whole->spec, whole->symbol, life->addr,
	    o->region.len, o->region.access, whole->slots);
	session_part(s, 0);
	if (err == 0)
		life->place = (int)s->nwatches - 1;
	for (int i = 0; i < n && err == 0; i++)
		err = run_describe_place(run, life->place,
		    o->first + life->slot, &slot[i]);
	session_note(s, err);
}

static void
report(struct objects *o, const struct object_life *life,
    enum object_event_what what)
{
	struct perf_event_header *at = life->at[what];
	struct object_event event = {
		.what = what, .watch = run_watch(o->run, o->first)->id - 1,
		.part = (unsigned)life->place, .object = life->number,
		.pid = o->pid, .time = life->born, .tid = life->tid,
		.addr = life->addr - o->region.addr, .size = o->size,
	};

	if (what == OBJECT_FREED) {
		event.time = life->ended;
		event.tid = life->freed_by;
	} else if (what == OBJECT_REUSED) {
		event.time = life->reused;
		event.tid = life->reused_by;
	}
	session_object_event(&o->run->session, &event, at, at == NULL ? 0 :
	    at->size);
}

static void
report_armed(struct objects *o, const struct object_life *life)
{
	struct session *s = &o->run->session;

	if (life->failed) {
		if (!o->warned)
			session_warn(s, "object %llu could not be watched: it "
			    "takes more slots where it is, or the kernel "
			    "refused", (unsigned long long)life->number);
		o->warned = true;
		return;
	}
	initial_place_report(o->run, s->watches[life->place], o->pid);
	report(o, life, OBJECT_NEW);
	if (life->gap != WATCH_NO_GAP)
		session_event(s, &(struct watch_event){
			.what = WATCH_ARMED, .watch = (unsigned)life->place,
			.time = life->armed, .pid = o->pid, .addr = life->addr,
			.len = o->region.len, .gap = life->gap,
		});
}

/* Report the next stage in the life of an object, if it has been reached.
   Result: the last stage that has been reported. */
static int
report_stage(struct objects *o, const struct object_life *life)
{
	switch (life->reported) {
	case GIVEN:
		if (life->armed == 0)
			return GIVEN;
		report_armed(o, life);
		return ARMED;
	case ARMED:
		if (life->ended == 0)
			return ARMED;
		if (!life->failed)
			report(o, life, OBJECT_FREED);
		return life->kept ? ENDED : DONE;
	case ENDED:
		if (life->reused == 0)
			return ENDED;
		if (!life->failed)
			report(o, life, OBJECT_REUSED);
		return DONE;
	default:
		return DONE;
	}
}

/* Report one stage of an object.  False: there is none to report. */
static bool
report_next(struct objects *o, size_t i)
{
	struct object_life life;
	int reported;

	(void)pthread_mutex_lock(&o->lock);
	life = o->life[i];
	(void)pthread_mutex_unlock(&o->lock);
	reported = (int)life.reported;
	if (life.place < 0)
		describe(o, &life);
	else if ((reported = report_stage(o, &life)) == (int)life.reported)
		return false;
	(void)pthread_mutex_lock(&o->lock);
	if (o->life[i].place < 0)
		o->life[i].place = life.place;
	o->life[i].reported = reported;
	if (reported == DONE)
		forget_samples(&o->life[i]);
	(void)pthread_mutex_unlock(&o->lock);
	return o->run->session.err == 0;
}

static bool
is_done(struct objects *o, size_t i)
{
	bool is;

	(void)pthread_mutex_lock(&o->lock);
	is = o->life[i].reported == DONE;
	(void)pthread_mutex_unlock(&o->lock);
	return is;
}

void
objects_report(struct objects *o)
{
	size_t n, kept = 0;

	if (o == NULL || !atomic_exchange(&o->any, false))
		return;
	(void)pthread_mutex_lock(&o->lock);
	n = o->nlives;
	(void)pthread_mutex_unlock(&o->lock);
	for (; o->ntaken < n; o->open[o->nopen++] = o->ntaken++)
		if (wp_array_room(&o->open, o->nopen, &o->open_cap,
		    sizeof(*o->open)) < 0) {
			session_note(&o->run->session, -ENOMEM);
			return;
		}
	for (size_t i = 0; i < o->nopen; i++) {
		while (report_next(o, o->open[i]))
			;
		if (!is_done(o, o->open[i]))
			o->open[kept++] = o->open[i];
	}
	o->nopen = kept;
}

/* --- hits --- */

/* Whether it was freed by then.  That is known here at once. */
static bool
is_freed(const struct objects *o, const struct object_life *life, uint64_t time)
{
	const uint64_t ended = life->ended != 0 ? life->ended :
	    wp_objects_ended(o->probes, life->slot, life->number);

	return ended != 0 && time >= ended;
}

/* Whether it was not, or its memory was not handed out again. */
static bool
was_there(const struct objects *o, const struct object_life *life,
    uint64_t time)
{
	uint64_t reused;

	if (!is_freed(o, life, time))
		return true;
	if (!o->what.stays || (life->ended != 0 && !life->kept))
		return false;
	reused = life->reused != 0 ? life->reused :
	    wp_objects_reused(o->probes, life->slot, life->number);
	return reused == 0 || time < reused;
}

static int
find_out_of_line(void *arg, const struct wp_proc_map *map)
{
	struct objects *o = arg;

	if (strcmp(map->path, "[uprobes]") == 0)
		o->out_of_line = map->start;
	return o->out_of_line != 0;
}

/* Whether a hit is of the first instruction of a function that frees. */
static bool
is_of_uprobe(struct objects *o, const struct ex_record *record)
{
	if (o->out_of_line == 0)
		(void)wp_proc_maps(o->pid, find_out_of_line, o);
	return o->out_of_line != 0 &&
	    record->sample.ip - o->out_of_line < OUT_OF_LINE;
}

/* The object that a slot had then; NULL: none yet. */
static const struct object_life *
life_at(const struct objects *o, unsigned slot, uint64_t time)
{
	size_t i = o->last[slot];

	while (i > 0 && o->life[i - 1].born > time)
		i = o->life[i - 1].before;
	return i == 0 ? NULL : &o->life[i - 1];
}

/* The object that a hit is of, from 1; 0: of none. */
static size_t
hit_life(struct objects *o, const struct ex_record *record)
{
	for (unsigned i = 0; i < o->slots; i++) {
		const struct object_life *life = life_at(o, i, record->time);

		if (life != NULL && record->sample.addr >= life->addr &&
		    record->sample.addr < life->addr + o->region.len &&
		    was_there(o, life, record->time) &&
		    (!is_freed(o, life, record->time) ||
		    !is_of_uprobe(o, record)))
			return (size_t)(life - o->life) + 1;
	}
	return 0;
}

/* A new mapping in place of memory that a slot watches is other memory. */
static void
take_mapping(struct objects *o, const struct ex_record *record)
{
	const struct ex_mmap *map = &record->mmap;

	(void)pthread_mutex_lock(&o->take);
	for (unsigned i = 0; i < o->slots; i++) {
		struct object_life *it;
		bool over;

		(void)pthread_mutex_lock(&o->lock);
		it = o->last[i] == 0 ? NULL : &o->life[o->last[i] - 1];
		over = it != NULL && it->kept && it->reused == 0 &&
		    record->time >= it->ended && it->addr - map->start <
		    map->len;
		if (over) {
			it->reused = record->time;
			it->reused_by = record->tid;
			atomic_store(&o->any, true);
		}
		(void)pthread_mutex_unlock(&o->lock);
		if (over)
			leave(o, i);
	}
	(void)pthread_mutex_unlock(&o->take);
}

bool
objects_take(struct objects *o, const struct ex_record *record)
{
	const uint64_t late = wp_clock_ns() + PAUSE;
	bool unreported = true;
	size_t life = 0;

	if (o == NULL)
		return true;
	if (o->what.stays && record->pid == o->pid &&
	    (record->type == PERF_RECORD_MMAP ||
	    record->type == PERF_RECORD_MMAP2))
		take_mapping(o, record);
	if (!session_is_sample(&o->run->session, record))
		return true;
	while (unreported && wp_clock_ns() <= late) {
		(void)pthread_mutex_lock(&o->lock);
		life = hit_life(o, record);
		unreported = life != 0 && o->life[life - 1].reported < ENDED &&
		    is_freed(o, &o->life[life - 1], record->time);
		(void)pthread_mutex_unlock(&o->lock);
		if (unreported) {	/* its record may still be written */
			take_records(o);
			objects_report(o);
		}
	}
	o->foreign += life == 0 || unreported;
	return life != 0 && !unreported;
}

uint64_t
objects_foreign(const struct objects *o)
{
	return o == NULL ? 0 : o->foreign;
}

/* --- the account --- */

int
objects_account(struct objects *o)
{
	struct session *s = &o->run->session;
	struct coverage c = {
		.watch = run_watch(o->run, o->first)->id - 1,
		.objects = o->sum.seen, .all = o->sum.lives, .instances = true,
	};

	c.place = (int)c.watch;
	for (size_t i = 0; i < o->nlives; i++) {
		const struct object_life *life = &o->life[i];
		const uint64_t ended = life->ended != 0 ? life->ended :
		    o->ended;

		/* it may have been freed before its slot was there */
		if (life->failed || life->armed == 0 || ended <= life->armed)
			continue;
		c.watched++;
		c.on += ended - life->armed;
	}
	c.unknown = o->sum.missed > 0 || c.objects == 0;
	if (o->sum.missed > 0)
		session_warn(s, "%llu object%s returned anew without free or "
		    "realloc, or when too many lived to be noted: for how long "
		    "they lived is not known",
		    (unsigned long long)o->sum.missed, o->sum.missed == 1 ?
		    " was" : "s were");
	if (o->blind) {
		session_warn(s, "the thread by which uprobes were on process "
		    "%d has ended: objects were not seen since", o->pid);
		session_doubt(s, "objects were not seen to the end");
	}
	if (c.watched == 0)
		session_doubt(s, "no object was ever watched");
	return session_coverage(s, &c, 1);
}
