/*
 * explain: records in, hits out.
 *
 * Overview: most samples are a hit by themselves.  Where values are not asked
 * for, or cannot wait, such a hit is delivered at once.  Hits that wait,
 * explained already, are in a queue in order of time: all until their values
 * are settled (value_tracker.h), and those that may get more samples (of a
 * watch of several slots, or from the kernel, whose copies trap once for each
 * step) until these are there:
 *
 *	head: oldest                     open, of thread 1   open, of thread 2
 *	 [hit] ----> [hit] ----> [hit] ----> [hit] ----> [hit] ----> [hit]
 *
 * A thread has one access at a time, so it has at most one open hit for each
 * watch: closed by its next sample that is not of the same access, or, once it
 * is the head, by time.  Hits are delivered from the head while the head is
 * closed and settled, so order is kept.
 */
#include "hit/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bpf/counter_reading.h"
#include "hit/stack_listener.h"
#include "hit/sample_group.h"
#include "space/space.h"
#include "syscall/syscall_wrapper.h"
#include "hit/value_tracker.h"

#define OPEN_LISTS 1024		/* lists of open hits, by the thread's tid
				   modulo this */
#define PLACES 256

struct pending {
	struct pending *next;
	struct pending *next_open;	/* in its list of open hits */
	struct ex_hit hit;
	bool open;		/* may get more samples, namely of: */
	struct ex_sample_group access;
	bool stepping;		/* it is a copy that is sampled at every byte */
	struct ex_tentative tentative;	/* its values so far */
	struct ex_arguments *args;  /* NULL if no hit here has needed any yet */
};

struct ex_explainer {
	struct ex_space *space;
	struct ex_stacks *stacks;
	const struct ex_slot *slots;
	size_t nslots;
	size_t found[PLACES];	/* index + 1 of places found before, by a
				   hash of their addresses; 0: none */
	int (*give)(void *, struct ex_hit *);
	void *arg;
	struct ex_tally tally;
	uint64_t begun, done;	/* counts of hits, in order */
	uint64_t last;		/* as passed to ex_explain_begun */
	struct pending *head, *tail;  /* queue of waiting hits; NULL if empty */
	struct pending *open[OPEN_LISTS];	/* those that may get more
						   samples, by thread */
	struct pending *spare;		/* free list */
	struct pending reserve;		/* used when out of memory; it is
					   given out at once */
	struct ex_value_options values;	/* as set by the options */
	struct ex_hints hints;		/* of the samples that are being fed */
	struct ex_value_tracker *tracker;
	struct ex_stack_listener notices;
};

struct ex_explainer *
ex_explainer_new(struct ex_space *space, const struct ex_slot *slots,
    size_t nslots, int (*give)(void *, struct ex_hit *), void *arg)
{
	struct ex_explainer *e = calloc(1, sizeof(*e));

	if (e == NULL)
		return NULL;
	e->stacks = ex_stacks_new(space);
	e->tracker = ex_tracker_new(NULL);
	if (e->stacks == NULL || e->tracker == NULL) {
		ex_explainer_free(e);
		return NULL;
	}
	e->space = e->notices.space = space;
	e->notices.stacks = e->stacks;
	e->notices.tracker = e->tracker;
	e->slots = slots;
	e->nslots = nslots;
	e->give = give;
	e->arg = arg;
	return e;
}

void
ex_explainer_slots(struct ex_explainer *e, const struct ex_slot *slots,
    size_t nslots)
{
	e->slots = slots;
	e->nslots = nslots;
	memset(e->found, 0, sizeof(e->found));
}

const struct ex_stack *
ex_explain_callers(struct ex_explainer *e, pid_t pid, const uint64_t *pc,
    unsigned n, bool whole)
{
	struct ex_process *process = ex_space_process(e->space, pid);

	return process == NULL ? NULL :
	    ex_stack_of_callers(e->stacks, process, pc, n, whole);
}

const struct ex_stack *
ex_explain_sample(struct ex_explainer *e, const struct ex_record *record,
    bool after)
{
	struct ex_process *process = ex_space_process(e->space, record->pid);

	return process == NULL ? NULL : ex_stack_of(e->stacks, process,
	    &record->sample, 0, after);
}

static void
free_list(struct pending *list)
{
	while (list != NULL) {
		struct pending *next = list->next;

		free(list->args);
		free(list);
		list = next;
	}
}

void
ex_explainer_free(struct ex_explainer *e)
{
	if (e == NULL)
		return;
	free_list(e->head);
	free_list(e->spare);
	free(e->reserve.args);
	ex_tracker_free(e->tracker);
	ex_stacks_free(e->stacks);
	ex_stack_listener_free(&e->notices);
	free(e);
}

int
ex_explainer_values(struct ex_explainer *e,
    const struct ex_value_options *values)
{
	struct ex_value_tracker *tracker;

	e->values = *values;
	if ((tracker = ex_tracker_new(&e->values)) == NULL)
		return -ENOMEM;
	ex_tracker_free(e->tracker);
	e->tracker = e->notices.tracker = tracker;
	return 0;
}

void
ex_explain_known(struct ex_explainer *e, const struct ex_watch *watch,
    pid_t pid, const uint8_t *bytes, size_t len, uint64_t time)
{
	ex_tracker_known(e->tracker, watch, pid, bytes, len, time);
}

void
ex_explain_doubt(struct ex_explainer *e, const struct ex_watch *watch,
    enum ex_doubt what)
{
	ex_tracker_doubt(e->tracker, watch, what);
}

const struct ex_tally *
ex_explain_tally(const struct ex_explainer *e)
{
	return &e->tally;
}

uint64_t
ex_explain_begun(const struct ex_explainer *e)
{
	return e->last;
}

uint64_t
ex_explain_done(const struct ex_explainer *e)
{
	return e->done;
}

static void
pending_put(struct ex_explainer *e, struct pending *p)
{
	ex_stack_let_go(p->hit.stack);
	if (p == &e->reserve)
		return;
	p->next = e->spare;
	e->spare = p;
}

static int
give_out(struct ex_explainer *e, struct pending *p)
{
	int result;

	ex_tracker_given(&p->tentative);
	e->done = p->hit.begun;
	if (!p->hit.kernel)
		p->hit.access = ex_access_text(&p->hit);
	if (!p->hit.kernel && ex_access_is_dropped(&p->hit)) {
		e->tally.dropped++;
		pending_put(e, p);
		return 0;
	}
	ex_hit_change(&p->hit);
	p->hit.seq = ++e->tally.hits;
	if (p->hit.watch->whole != NULL) {
		p->hit.part = p->hit.watch;
		p->hit.watch = p->hit.part->whole;
	}
	result = e->give(e->arg, &p->hit);
	pending_put(e, p);
	return result;
}

static void
close_hit(struct pending **link)
{
	struct pending *p = *link;

	p->open = false;
	*link = p->next_open;
}

static void
close_pending(struct ex_explainer *e, const struct pending *p)
{
	struct pending **link = &e->open[(unsigned)p->hit.tid % OPEN_LISTS];

	while (*link != NULL && *link != p)
		link = &(*link)->next_open;
	if (*link != NULL)
		close_hit(link);
}

/*
 * Returns the open hit that a sample belongs to, or NULL.  The sample shows
 * that other open hits of its thread are complete, except hits of other watches
 * that the same access may touch: they are closed.
 */
static struct pending *
open_hit_of(struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record)
{
	struct pending **link = &e->open[(unsigned)record->tid % OPEN_LISTS];
	struct pending *p, *found = NULL;

	while ((p = *link) != NULL) {
		const bool mine = p->hit.tid == record->tid;
		const bool same = mine && p->hit.watch == slot->watch;

		if (mine && !ex_group_goes_on(&p->access, record, same,
		    slot->addr, slot->len)) {
			close_hit(link);
			continue;
		}
		if (same)
			found = p;
		link = &p->next_open;
	}
	return found;
}

/* Give out hits from the head of the queue as long as they are complete. */
static int
give_complete(struct ex_explainer *e, uint64_t now)
{
	int result = 0;

	while (result == 0 && e->head != NULL) {
		struct pending *p = e->head;

		if ((p->open && !ex_group_over(&p->access, now)) ||
		    !ex_tracker_settled(e->tracker, &p->tentative, now))
			break;
		if (p->open)
			close_pending(e, p);
		e->head = p->next;
		if (e->head == NULL)
			e->tail = NULL;
		result = give_out(e, p);
	}
	return result;
}

/* An unused entry, in no list. */
static struct pending *
pending_take(struct ex_explainer *e)
{
	struct pending *p = e->spare;

	if (p != NULL)
		e->spare = p->next;
	else if ((p = calloc(1, sizeof(*p))) == NULL)
		p = &e->reserve;
	p->next = NULL;
	p->open = p->stepping = false;
	return p;
}

static void
pending_add(struct ex_explainer *e, struct pending *p)
{
	if (e->tail != NULL)
		e->tail->next = p;
	else
		e->head = p;
	e->tail = p;
}

/*
 * Returns the address that frame 0 shows: of the access's instruction if that
 * ends at the sampled pc or starts there; the sampled pc itself if a call led
 * there, since the instruction then belongs to the caller, frame 1.  0 stands
 * for the sampled pc, looked up by the byte before it.
 */
static uint64_t
first_pc(struct ex_process *process, const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	uint64_t vaddr, start;
	struct ex_module *module;

	if (hit->watch->access == WP_EXEC || insn->pc == hit->pc)
		return hit->pc;
	if (insn->confidence >= EX_ADDRESS_UNVERIFIED)
		return insn->pc + insn->len == hit->pc ? insn->pc : hit->pc;
	module = ex_process_module(process, hit->pc, &vaddr);
	return module != NULL && ex_symbol_function_start(module, vaddr,
	    &start) && start == vaddr ? hit->pc : 0;
}

/* The hints of the samples that are being fed, for this record. */
static const struct ex_hints *
hints_of(const struct ex_explainer *e, const struct ex_record *record)
{
	static const struct ex_hints none;

	return e->hints.tid == 0 || e->hints.tid == record->tid ? &e->hints :
	    &none;
}

/* The values that a stop has read, stored in *stop, or NULL if there are
   none. */
static const struct wp_stop_value *
read_at_stop(const struct ex_explainer *e, const struct ex_record *record,
    struct wp_stop_value *stop)
{
	const struct ex_hints *hints = hints_of(e, record);

	if (hints->read != NULL)
		return hints->read;
	return wp_stop_value_get(record->sample.raw, record->sample.raw_len,
	    stop) ? stop : NULL;
}

static bool
is_kernels(const struct ex_explainer *e, const struct ex_record *record)
{
	return ex_group_kernel(record) || hints_of(e, record)->kernel;
}

/* The system call made by the libc function in frame 0, or NULL. */
static const char *
call_of_wrapper(const struct ex_stack *stack)
{
	return stack == NULL || stack->n == 0 ||
	    stack->frame[0].function == NULL ? NULL :
	    ex_syscall_of_wrapper(stack->frame[0].function);
}

/* Explain the hit by the arguments of its system call.  At a stop, the number
   of the call comes with its last sample. */
static void
explain_call(const struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record, struct ex_hit *hit)
{
	const struct ex_sample *s = &record->sample;
	const struct ex_hints *hints = hints_of(e, record);
	struct wp_stop_value room;
	const struct wp_stop_value *stop = read_at_stop(e, record, &room);
	struct ex_syscall_sample sample = {
		.record = record, .stack = hit->stack,
		.addr = slot->addr, .len = slot->len,
		.access = slot->watch->access,
		.kernels = ex_watch_in_kernel(slot->watch),
		.reached = ex_group_reached(record, slot->addr, slot->len),
		.number = stop != NULL ? stop->call : -1,
		.process = hit->process,
		.live = ex_space_live(e->space),
		.stopped = hints->stopped,
	};

	sample.returned = sample.stopped && s->callchain_len == 0;
	/* the call has returned, so all of its work is done */
	if (sample.returned) {
		sample.addr = slot->watch->addr;
		sample.len = slot->watch->len;
	}
	ex_syscall_explain(&sample, &hit->call);
	if (hints->kernel && hit->call.name == NULL)
		hit->call.name = call_of_wrapper(hit->stack);
	hit->access = ex_access_text(hit);
}

void
ex_explain_listen(struct ex_explainer *e, const struct ex_listener *listener)
{
	e->notices.listener = listener;
}

bool
ex_explain_counted(const struct ex_explainer *e, const struct ex_watch *watch,
    pid_t pid, uint32_t stack, struct ex_hit *hit)
{
	return ex_stack_listener_counted(&e->notices, watch, pid, stack, hit);
}

/* Texts and lists are cleared by their counts only: most hits have none, and
   clearing all of them would take as long as the rest of the explanation. */
static void
clear(struct ex_hit *hit)
{
	struct ex_change *c = &hit->change;

	memset(hit, 0, offsetof(struct ex_hit, call.file));
	hit->call.file[0] = c->old_text[0] = c->new_text[0] = '\0';
	c->has_old = c->has_new = false;
	c->object = NULL;
	c->type = c->path = NULL;
}

static void
explain_insn(struct ex_process *process, const struct ex_sample *sample,
    const struct ex_watch *watch, struct ex_insn *insn)
{
	struct ex_sample known = *sample;

	known.block = watch->block;
	ex_insn_explain(process, &known, watch->addr, (uint32_t)watch->len,
	    watch->access, insn);
}

static void
explain_sample(struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record, struct ex_hit *hit)
{
	const struct ex_watch *watch = slot->watch;
	const struct ex_sample *sample = &record->sample;
	const struct ex_hints *hints = hints_of(e, record);
	struct ex_process *process = ex_space_process(e->space, record->pid);
	uint64_t first = 0;
	bool user;

	clear(hit);
	hit->watch = watch;
	hit->time = record->time;
	hit->pid = record->pid;
	hit->tid = record->tid;
	hit->cpu = record->cpu;
	hit->samples = 1;
	hit->process = process;
	hit->kernel = is_kernels(e, record);
	hit->late = hints->late;
	hit->accesses = hints->accesses;
	hit->stray = hints->stray;
	hit->pc = ex_group_pc(record);
	(void)strncpy(hit->comm, hints->comm != NULL ? hints->comm :
	    ex_space_comm(e->space, hit->pid, hit->tid),
	    sizeof(hit->comm) - 1);
	/* whether the pc is that of the access */
	user = !hit->kernel && !hit->late;
	hit->access = ex_access_text(hit);
	if (process == NULL)
		return;
	if (user) {
		explain_insn(process, sample, watch, &hit->insn);
		first = first_pc(process, hit);
	}
	hit->stack = ex_stack_of(e->stacks, process, sample, first,
	    first == 0 && user);
	ex_stack_hold(hit->stack);
	ex_stack_listener_hit(&e->notices, process, record, hit);
	hit->access = ex_access_text(hit);
	if (hit->kernel)
		explain_call(e, slot, record, hit);
}

/* The last sample of a stop has the number of the system call.  What earlier
   samples showed of the access is kept. */
static void
explain_again(const struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record, struct ex_hit *hit)
{
	const bool reads = hit->call.reads, writes = hit->call.writes;
	struct ex_syscall *call = &hit->call;

	explain_call(e, slot, record, hit);
	call->may_read = call->reads;
	call->may_write = call->writes;
	call->reads = reads;
	call->writes = writes;
}

static void
join(struct ex_explainer *e, struct pending *p, const struct ex_slot *slot,
    const struct ex_record *record)
{
	struct wp_stop_value room;
	const struct wp_stop_value *stop = read_at_stop(e, record, &room);

	p->hit.samples++;
	if (p->hit.kernel) {
		if (stop != NULL && stop->call >= 0)
			explain_again(e, slot, record, &p->hit);
		ex_access_kernel(&p->hit, e->space, slot, record, false,
		    &p->stepping);
		ex_access_check_buffer(&p->hit);
	} else if (p->hit.insn.confidence != EX_EXACT)
		ex_access_slot(&p->hit, slot);
	ex_tracker_joined(e->tracker, &p->tentative, record, stop);
}

/* Whether the access may make more samples. */
static bool
may_get_more(const struct ex_watch *watch, bool kernel)
{
	return kernel || watch->slots > 1;
}

static void
open_hit(struct ex_explainer *e, struct pending *p, const struct ex_slot *slot,
    const struct ex_record *record)
{
	struct pending **link = &e->open[(unsigned)record->tid % OPEN_LISTS];

	p->open = true;
	p->next_open = *link;
	*link = p;
	ex_group_begin(&p->access, record, slot->addr, slot->len);
}

static void
take_arguments(struct pending *p, const struct ex_record *record)
{
	struct ex_hit *hit = &p->hit;

	if (hit->process == NULL || hit->kernel || hit->late)
		return;
	if (p->args == NULL)
		p->args = malloc(sizeof(*p->args));
	if (p->args == NULL)
		return;
	ex_arguments_take(hit->process, &record->sample, hit->pc, p->args);
	hit->args = p->args->n > 0 ? p->args : NULL;
}

/* The counters that a BPF program has read. */
static void
take_counters(struct ex_hit *hit, const struct ex_sample *sample)
{
	struct wp_counter_reading reading;

	while (hit->nwith < WP_COUNTERS && wp_counter_reading_get(sample->raw,
	    sample->raw_len, hit->nwith, &reading) &&
	    reading.counter < WP_COUNTERS)
		hit->with[hit->nwith++] = (struct ex_counted){
			.name = wp_counter_name((unsigned)reading.counter),
			.count = reading.count,
			.is_time = wp_counter_is_time(
			    (unsigned)reading.counter),
		};
}

static void
explain_access(struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record, struct pending *p)
{
	const struct ex_sample *sample = &record->sample;
	struct ex_hit *hit = &p->hit;
	struct wp_stop_value stop;
	struct wp_ticket ticket;
	uint64_t vaddr;

	explain_sample(e, slot, record, hit);
	if (hit->kernel)
		ex_access_kernel(hit, e->space, slot, record, true,
		    &p->stepping);
	else
		ex_access_slot(hit, slot);
	ex_access_narrow(hit);
	if (hit->watch->access == WP_EXEC)
		take_arguments(p, record);
	take_counters(hit, sample);
	/* the data segments of modules are private to the process */
	if (ex_tracker_is_unmapped(e->tracker, hit->watch) &&
	    hit->process != NULL && ex_process_module(hit->process,
	    hit->watch->addr, &vaddr) != NULL)
		ex_tracker_mapped(e->tracker, hit->watch, false, 0);
	ex_tracker_hit(e->tracker, hit, read_at_stop(e, record, &stop),
	    wp_ticket_get(sample->raw, sample->raw_len, &ticket) ? &ticket :
	    NULL, &p->tentative);
	if (e->values.at_once)
		ex_tracker_look(e->tracker);
}

static int
explain_hit(struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record)
{
	const bool more = may_get_more(slot->watch, is_kernels(e, record));
	struct pending *p;

	if (slot->watch->access != WP_WRITE && ex_space_kernel(e->space) &&
	    ex_group_recording(record)) {
		e->tally.joined++;
		e->last = EX_BEGUN_JOINED;
		return 0;
	}
	p = open_hit_of(e, slot, record);
	if (p != NULL) {
		join(e, p, slot, record);
		e->tally.joined++;
		e->last = p->hit.begun;
		return 0;
	}
	p = pending_take(e);
	explain_access(e, slot, record, p);
	if (ex_access_is_dropped(&p->hit)) {
		e->tally.dropped++;
		e->last = EX_BEGUN_DROPPED;
		ex_tracker_given(&p->tentative);
		pending_put(e, p);
		return give_complete(e, record->time);
	}
	e->last = p->hit.begun = ++e->begun;
	if (p == &e->reserve || (e->head == NULL && !more &&
	    ex_tracker_settled(e->tracker, &p->tentative, record->time)))
		return give_out(e, p);
	pending_add(e, p);
	if (more)
		open_hit(e, p, slot, record);
	return give_complete(e, record->time);
}

void
ex_explain_hints(struct ex_explainer *e, const struct ex_hints *hints)
{
	e->hints = hints != NULL ? *hints : (struct ex_hints){0};
}

/* A new mapping, or one with a new protection. */
static void
learn_mapping(struct ex_explainer *e, const struct ex_record *record)
{
	const struct ex_mmap *map = &record->mmap;

	for (size_t i = 0; i < e->nslots; i++) {
		const struct ex_watch *watch = e->slots[i].watch;

		if (watch == NULL || watch->addr >= map->start + map->len ||
		    map->start >= watch->addr + watch->len ||
		    (watch->pid != 0 && watch->pid != record->pid &&
		    !e->values.follows))
			continue;
		ex_tracker_mapped(e->tracker, watch,
		    record->type == PERF_RECORD_MMAP ||
		    (map->flags & MAP_SHARED) != 0, record->time);
	}
}

/* A mark of tickets (bpf/ticket.h). */
static void
learn_mark(struct ex_explainer *e, const struct ex_record *record)
{
	const struct ex_watch *watch = record->attr < 0 ||
	    (size_t)record->attr >= e->nslots ? NULL :
	    e->slots[record->attr].watch;

	if (watch != NULL)
		ex_tracker_mark(e->tracker, watch, record->read.running,
		    record->read.value);
}

/* What records other than samples mean for the values. */
static void
learn(struct ex_explainer *e, const struct ex_record *record)
{
	ex_space_learn(e->space, record);
	ex_stack_listener_forget(&e->notices, record->pid);
	switch (record->type) {
	case PERF_RECORD_LOST:
		ex_tracker_lost(e->tracker, record->time);
		break;
	case PERF_RECORD_FORK:
		ex_tracker_born(e->tracker, record);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		learn_mapping(e, record);
		break;
	case PERF_RECORD_READ:
		learn_mark(e, record);
		break;
	default:
		break;
	}
}

/* Whether a watch that moves was at this place when it was hit. */
static bool
is_place(const struct ex_slot *place, const struct ex_watch *watch,
    const struct ex_record *record)
{
	return place->watch != NULL && place->watch->moves &&
	    place->addr == record->sample.addr &&
	    place->watch->since <= record->time &&
	    place->watch->pid == watch->pid &&
	    ex_watch_number(place->watch) == ex_watch_number(watch);
}

/* Returns the place of a watch that moves at the time of its hit; if it was
   there more than once, the latest. */
static const struct ex_slot *
slot_at(struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record)
{
	size_t *found = &e->found[record->sample.addr / 8 % PLACES];
	const struct ex_watch *watch = slot->watch;

	/* a watch of an object's parts does not leave them */
	if (*found > 0 && e->slots[*found - 1].watch->whole != NULL &&
	    e->slots[*found - 1].watch->object == 0 &&
	    is_place(&e->slots[*found - 1], watch, record))
		return &e->slots[*found - 1];
	for (size_t i = e->nslots; i > 0; i--)
		if (is_place(&e->slots[i - 1], watch, record)) {
			*found = i;
			return &e->slots[i - 1];
		}
	return slot;
}

int
ex_explain(struct ex_explainer *e, const struct ex_record *record)
{
	const struct ex_slot *slot;

	if (record->type != PERF_RECORD_SAMPLE) {
		learn(e, record);
		return 0;
	}
	if (record->attr < 0 || (size_t)record->attr >= e->nslots)
		return 0;
	slot = &e->slots[record->attr];
	if (slot->watch == NULL)
		return 0;
	if (slot->watch->moves)
		slot = slot_at(e, slot, record);
	e->tally.samples++;
	/* more may have been learnt about the process than is fed here; the
	   copy of the stack in this sample and in those on the way may be too
	   short, which the end of the backtrace shows */
	ex_stack_listener_forget(&e->notices, record->pid);
	return explain_hit(e, slot, record);
}

int
ex_explain_flush(struct ex_explainer *e, uint64_t now)
{
	if (now != UINT64_MAX || e->values.at_once)
		ex_tracker_look(e->tracker);
	return give_complete(e, now);
}
