/*
 * explain: records in, hits out.
 *
 * Overview: most samples are a hit by themselves and are given out at once.  A
 * sample that others may belong to (of a watch of several slots, or from the
 * kernel, whose copies trap once for each step) waits, explained already, in a
 * short queue in order of time:
 *
 *	head: oldest                     open, of thread 1   open, of thread 2
 *	 [hit] ----> [hit] ----> [hit] ----> [hit] ----> [hit] ----> [hit]
 *
 * A thread has one access at a time, so it has at most one open hit: closed by
 * its next sample that is not of the same access, or, once it is the head, by
 * time.  Hits are given out from the head while the head is closed, so order is
 * kept.
 */
#include "hit.h"

#include <asm/perf_regs.h>
#include <stdlib.h>
#include <string.h>

/* Samples of one access are no further apart than this, in ns; a thread may be
   off its processor in between. */
#define ACCESS_SPAN 100000000u

#define OPEN_LISTS 1024		/* a thread's: by its tid, modulo */

struct pending {
	struct pending *next;
	struct pending *next_open;	/* in a list of open ones */
	struct ex_hit hit;
	bool open;		/* may get more samples */
	uint64_t last;		/* ns: of its last sample */
	uint64_t slots;		/* bit n: attr first_attr + n has hit */
	int first_attr;		/* of the watch's formats, the first that hit */
	uint64_t reached;	/* kernel: how far its copy was, an address */
	uint64_t regs;		/* user registers, as a hash: one access has one */
};

struct ex_explainer {
	struct ex_space *space;
	struct ex_stacks *stacks;
	const struct ex_slot *slots;
	size_t nslots;
	int (*give)(void *, const struct ex_hit *);
	void *arg;
	struct ex_tally tally;
	struct pending *head, *tail;	/* waiting; NULL: none */
	struct pending *open[OPEN_LISTS];	/* may get more, by thread */
	struct pending *spare;		/* to be used again */
};

struct ex_explainer *
ex_explainer_new(struct ex_space *space, const struct ex_slot *slots,
    size_t nslots, int (*give)(void *, const struct ex_hit *), void *arg)
{
	struct ex_explainer *e = calloc(1, sizeof(*e));

	if (e == NULL || (e->stacks = ex_stacks_new(space)) == NULL) {
		free(e);
		return NULL;
	}
	e->space = space;
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
}

static void
free_list(struct pending *list)
{
	while (list != NULL) {
		struct pending *next = list->next;

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
	ex_stacks_free(e->stacks);
	free(e);
}

const struct ex_tally *
ex_explain_tally(const struct ex_explainer *e)
{
	return &e->tally;
}

static int
give_out(struct ex_explainer *e, struct ex_hit *hit)
{
	hit->seq = ++e->tally.hits;
	return e->give(e->arg, hit);
}

/* The link to a thread's open hit; it holds NULL when there is none. */
static struct pending **
open_of(struct ex_explainer *e, pid_t tid)
{
	struct pending **link = &e->open[(unsigned)tid % OPEN_LISTS];

	while (*link != NULL && (*link)->hit.tid != tid)
		link = &(*link)->next_open;
	return link;
}

static void
close_hit(struct pending **link)
{
	struct pending *p = *link;

	if (p == NULL)
		return;
	p->open = false;
	*link = p->next_open;
}

/* Whether a sample of this time is too late to be of the same access;
   UINT64_MAX is too late for any. */
static bool
is_over(const struct pending *p, uint64_t time)
{
	return time == UINT64_MAX ||
	    (time > p->last && time - p->last > ACCESS_SPAN);
}

/* Give out hits from the head on, as far as they are complete by now. */
static int
give_complete(struct ex_explainer *e, uint64_t now)
{
	int result = 0;

	while (result == 0 && e->head != NULL) {
		struct pending *p = e->head;

		if (p->open && !is_over(p, now))
			break;
		if (p->open)
			close_hit(open_of(e, p->hit.tid));
		e->head = p->next;
		if (e->head == NULL)
			e->tail = NULL;
		result = give_out(e, &p->hit);
		p->next = e->spare;
		e->spare = p;
	}
	return result;
}

static struct pending *
pending_add(struct ex_explainer *e)
{
	struct pending *p = e->spare;

	if (p != NULL)
		e->spare = p->next;
	else if ((p = malloc(sizeof(*p))) == NULL)
		return NULL;
	memset(p, 0, sizeof(*p));
	if (e->tail != NULL)
		e->tail->next = p;
	else
		e->head = p;
	e->tail = p;
	return p;
}

static uint64_t
hash_regs(const struct ex_perf_regs *regs)
{
	size_t n = regs->values == NULL ? 0 :
	    (size_t)__builtin_popcountll(regs->mask) * sizeof(uint64_t);
	uint64_t hash = 14695981039346656037u;	/* FNV-1a */

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ regs->values[i]) * 1099511628211u;
	return hash;
}

/* Where a copy by the kernel has come to: its destination register. */
static uint64_t
copy_reached(const struct ex_sample *sample)
{
	uint64_t reached = 0;

#ifdef __x86_64__
	(void)ex_regs_get(&sample->intr, PERF_REG_X86_DI, &reached);
#else
	(void)sample;
#endif
	return reached;
}

/* The pc in the program: of the sample, or of the system call's return. */
static uint64_t
user_pc(const struct ex_record *record, bool kernel)
{
	uint64_t pc = record->sample.ip;

#ifdef __x86_64__
	if (kernel)
		(void)ex_regs_get(&record->sample.user, PERF_REG_X86_IP, &pc);
#elif defined(__aarch64__)
	if (kernel)
		(void)ex_regs_get(&record->sample.user, PERF_REG_ARM64_PC, &pc);
#endif
	return pc;
}

static const char *
access_text(const struct ex_watch *watch, const struct ex_insn *insn)
{
	if (watch->access == 'w')
		return "write";
	if (watch->access == 'x')
		return "execute";
	if (insn->confidence < EX_ADDRESS_UNVERIFIED ||
	    (!insn->reads && !insn->writes))
		return "access";
	return !insn->reads ? "write" : !insn->writes ? "read" : "read-write";
}

/*
 * What frame 0 shows.  The instruction, when it is the one before the sampled
 * pc (or at it); the sampled pc itself, when a call led there: then the
 * instruction is the caller's, which is frame 1.  0: the sampled pc, looked up
 * by the byte before it.
 */
static uint64_t
first_pc(struct ex_process *process, const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	uint64_t vaddr, start;
	struct ex_module *module;

	if (hit->watch->access == 'x' || insn->pc == hit->pc)
		return hit->pc;
	if (insn->confidence >= EX_ADDRESS_UNVERIFIED)
		return insn->pc + insn->len == hit->pc ? insn->pc : hit->pc;
	module = ex_process_module(process, hit->pc, &vaddr);
	return module != NULL && ex_symbol_function_start(module, vaddr,
	    &start) && start == vaddr ? hit->pc : 0;
}

static void
explain_sample(struct ex_explainer *e, const struct ex_watch *watch,
    const struct ex_record *record, struct ex_hit *hit)
{
	const struct ex_sample *sample = &record->sample;
	struct ex_process *process = ex_space_process(e->space, record->pid);
	uint64_t first;

	memset(hit, 0, sizeof(*hit));
	hit->watch = watch;
	hit->time = record->time;
	hit->pid = record->pid;
	hit->tid = record->tid;
	hit->cpu = record->cpu;
	hit->samples = 1;
	hit->kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL;
	hit->pc = user_pc(record, hit->kernel);
	(void)strncpy(hit->comm, ex_space_comm(e->space, hit->pid, hit->tid),
	    sizeof(hit->comm) - 1);
	hit->access = access_text(watch, &hit->insn);
	if (process == NULL)
		return;
	if (!hit->kernel)
		ex_insn_explain(process, sample, watch->addr,
		    (uint32_t)watch->len, watch->access, &hit->insn);
	first = hit->kernel ? 0 : first_pc(process, hit);
	hit->stack = ex_stack_of(e->stacks, process, sample, first,
	    first == 0 && !hit->kernel);
	if (hit->kernel)
		ex_call_explain(process, sample, hit->stack, hit->addr,
		    false, &hit->call);
	hit->access = access_text(watch, &hit->insn);
}

/* The watched bytes that a sample is about: its slot's, within the watch. */
static void
touch(struct ex_hit *hit, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len, had = hit->addr + hit->len;

	if (hit->len == 0) {
		hit->addr = addr;
		hit->len = len;
		return;
	}
	if (addr < hit->addr)
		hit->addr = addr;
	hit->len = (end > had ? end : had) - hit->addr;
}

/* The bytes that an exactly known instruction touched are those, and no
   more. */
static void
narrow(struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_watch *watch = hit->watch;
	uint64_t from = insn->addr, to = insn->addr + insn->size;

	if (insn->confidence != EX_EXACT || insn->size == 0 ||
	    watch->access == 'x' || to < from)
		return;
	if (from < watch->addr)
		from = watch->addr;
	if (to > watch->addr + watch->len)
		to = watch->addr + watch->len;
	if (from < to) {
		hit->addr = from;
		hit->len = to - from;
	}
}

/* Whether a sample of its thread is one more of an open hit's access. */
static bool
same_access(const struct pending *p, const struct ex_record *record,
    const struct ex_watch *watch, bool kernel)
{
	unsigned bit = (unsigned)(record->attr - p->first_attr) & 63;
	bool slot_hit = (p->slots >> bit & 1) != 0;
	uint64_t reached = copy_reached(&record->sample);

	if (p->hit.watch != watch || p->hit.kernel != kernel ||
	    p->hit.pc != user_pc(record, kernel) ||
	    is_over(p, record->time) ||
	    p->regs != hash_regs(&record->sample.user))
		return false;
	if (!kernel)
		return !slot_hit;
	return slot_hit ? reached > p->reached : reached >= p->reached;
}

static void
join(struct pending *p, const struct ex_slot *slot,
    const struct ex_record *record)
{
	p->hit.samples++;
	p->last = record->time;
	p->slots |= 1ull << ((unsigned)(record->attr - p->first_attr) & 63);
	p->reached = copy_reached(&record->sample);
	if (p->hit.insn.confidence != EX_EXACT)
		touch(&p->hit, slot->addr, slot->len);
}

/* Whether other samples may be of the same access as this one. */
static bool
may_get_more(const struct ex_watch *watch, bool kernel)
{
	return kernel || watch->slots > 1;
}

static bool
is_dropped(const struct ex_hit *hit)
{
	return hit->watch->access == 'r' && !hit->kernel &&
	    hit->insn.confidence >= EX_ADDRESS_UNVERIFIED &&
	    hit->insn.writes && !hit->insn.reads;
}

static void
open_hit(struct pending **link, struct pending *p,
    const struct ex_record *record)
{
	p->open = true;
	p->next_open = *link;
	*link = p;
	p->last = record->time;
	p->first_attr = record->attr;
	p->slots = 1;
	p->reached = copy_reached(&record->sample);
	p->regs = hash_regs(&record->sample.user);
}

static int
explain_hit(struct ex_explainer *e, const struct ex_slot *slot,
    const struct ex_record *record)
{
	const struct ex_watch *watch = slot->watch;
	bool kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
	    PERF_RECORD_MISC_KERNEL;
	struct pending *p, **link = open_of(e, record->tid);
	struct ex_hit hit;
	bool more = may_get_more(watch, kernel);

	if (*link != NULL && same_access(*link, record, watch, kernel)) {
		join(*link, slot, record);
		e->tally.joined++;
		return 0;
	}
	close_hit(link);
	explain_sample(e, watch, record, &hit);
	touch(&hit, slot->addr, slot->len);
	narrow(&hit);
	if (is_dropped(&hit)) {
		e->tally.dropped++;
		return give_complete(e, record->time);
	}
	if (e->head == NULL && !more)
		return give_out(e, &hit);
	if ((p = pending_add(e)) == NULL)
		return give_out(e, &hit);
	p->hit = hit;
	if (more)
		open_hit(link, p, record);
	return give_complete(e, record->time);
}

int
ex_explain(struct ex_explainer *e, const struct ex_record *record)
{
	const struct ex_slot *slot;

	if (record->type != PERF_RECORD_SAMPLE) {
		ex_space_learn(e->space, record);
		return 0;
	}
	if (record->attr < 0 || (size_t)record->attr >= e->nslots)
		return 0;
	slot = &e->slots[record->attr];
	if (slot->watch == NULL)
		return 0;
	e->tally.samples++;
	return explain_hit(e, slot, record);
}

int
ex_explain_flush(struct ex_explainer *e, uint64_t now)
{
	return give_complete(e, now);
}
