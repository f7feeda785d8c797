/*
 * channel_hit: one hit, from its cell to the report.
 *
 * A cell is memory of the program, into which code that corrupts memory may
 * write at any time.  Therefore everything is copied before it is used, and the
 * copy is checked.
 */
#include <linux/hw_breakpoint.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "helper/serve.h"
#include "insn/insn.h"
#include "os/proc.h"
#include "stop/value_sample.h"

/* Watches that one instruction can have touched, at most. */
enum { TOUCHED_MAX = 1 + WP_ALSO_MAX };

struct cell {
	uint32_t flags;		/* enum wp_cell_flags */
	bool kernel;		/* made by the kernel, for a system call */
	uint64_t nth;		/* the first's hits, with this one, */
	uint64_t counted, suppressed;	/* and accesses */
	uint8_t byte[WP_BASELINE_MAX];	/* as they were before that */
	bool exact;		/* its instruction and bytes are known */
	bool whole;		/* of all watches, and it is not repeated */
	unsigned nwatches;	/* whose hit it may be: surely the first's */
	struct wp_cell_watch watch[TOUCHED_MAX];	/* and their slots */
	char comm[16];
	struct ex_record record;	/* decoded from the next */
	_Alignas(8) uint8_t bytes[WP_RECORD_MAX];
};

/* Add a copy of a watch, unless it makes no sense. */
static void
add_watch(struct cell *c, const struct wp_cell_watch *from)
{
	struct wp_cell_watch *w = &c->watch[c->nwatches];

	memcpy(w, from, sizeof(*w));
	w->label[WP_LABEL_MAX - 1] = '\0';
	w->len = wp_region_bytes((enum wp_access)w->access, w->len);
	if (w->access != '\0' && strchr("wrax", w->access) != NULL &&
	    w->len > 0 && w->addr + w->len > w->addr)
		c->nwatches++;
}

/* False: it holds no hit of this program. */
static bool
copy(struct cell *c, const struct program *p, const struct wp_cell *shared)
{
	struct perf_event_header header;
	uint32_t nalso = shared->nalso;

	memcpy(&header, &shared->record.header, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE ||
	    header.size > sizeof(c->bytes))
		return false;
	memcpy(c->bytes, shared->record.bytes, header.size);
	memcpy(c->bytes, &header, sizeof(header));
	c->flags = shared->flags;
	c->nth = shared->nth;
	c->counted = shared->counted;
	c->suppressed = shared->suppressed;
	memcpy(c->byte, shared->byte, sizeof(c->byte));
	c->nwatches = 0;
	add_watch(c, &shared->watch);
	for (uint32_t i = 0; i < nalso && i < WP_ALSO_MAX; i++)
		if (c->nwatches > 0)
			add_watch(c, &shared->also[i]);
	memcpy(c->comm, shared->comm, sizeof(c->comm) - 1);
	c->comm[sizeof(c->comm) - 1] = '\0';
	memset(&c->record, 0, sizeof(c->record));
	return c->nwatches > 0 && ex_record_decode(p->serve->formats, c->bytes,
	    header.size, &c->record) == 1 && c->record.pid == p->pid;
}

/*
 * Whether the kernel made the access for a system call: then the program goes
 * on behind the instruction that called it, which touches no memory itself.
 */
static bool
is_kernels(struct program *p, const struct cell *c)
{
#ifdef __x86_64__
	static const uint8_t syscall[] = {0x0f, 0x05};
	struct ex_process *process =
	    ex_space_process(p->serve->session.space, p->pid);
	const uint64_t pc = c->record.sample.ip - sizeof(syscall);
	uint8_t code[sizeof(syscall)] = {0};
	struct ex_module *module;
	uint64_t vaddr;

	if (c->watch[0].access == WP_EXEC || process == NULL)
		return false;
	module = ex_process_module(process, pc, &vaddr);
	if (module == NULL ||
	    ex_module_bytes(module, vaddr, code, sizeof(code)) != sizeof(code))
		(void)wp_proc_read(p->pid, pc, code, sizeof(code));
	return memcmp(code, syscall, sizeof(code)) == 0;
#else
	(void)p;
	(void)c;
	return false;
#endif
}

/* Whether the instruction shows which bytes of a watch were touched. */
static bool
find_insn(const struct cell *c, struct program *p,
    const struct wp_cell_watch *w, struct ex_insn *insn)
{
	struct ex_process *process =
	    ex_space_process(p->serve->session.space, p->pid);

	insn->pc = 0;
	if (c->kernel || (c->flags & WP_CELL_LATE) != 0 || process == NULL ||
	    w->access == WP_EXEC)
		return false;
	ex_insn_explain(process, &c->record.sample, w->addr, (uint32_t)w->len,
	    (enum wp_access)w->access, insn);
	return insn->confidence == EX_EXACT && insn->size > 0;
}

static unsigned
slots_of_bytes(const struct wp_slot *slot, int n, uint64_t addr, uint64_t size)
{
	unsigned slots = 0;

	for (int i = 0; i < n; i++)
		if (addr < slot[i].addr + slot[i].len &&
		    slot[i].addr < addr + size)
			slots |= 1u << i;
	return slots;
}

/* Which slots of a watch were touched, a bit for each: by the bytes that its
   instruction touched, where they are known; else as the program found by their
   counts.  0: not known. */
static unsigned
find_slots(const struct wp_cell_watch *w, const struct ex_insn *insn,
    bool exact)
{
	const struct wp_region region = {
		.addr = w->addr, .len = w->len,
		.access = (enum wp_access)w->access,
	};
	struct wp_slot slot[WP_SLOTS_MAX];
	const int n = wp_slot_plan(&region, &wp_slot_usual, slot, NULL);

	if (n != w->nslots)
		return 0;
	return exact ? slots_of_bytes(slot, n, insn->addr, insn->size) |
	    slots_of_bytes(slot, n, insn->other, insn->other_size) :
	    w->slots >> n != 0 ? 0 : w->slots;
}

static bool
has_watch(const struct cell *c, const struct wp_cell_watch *w)
{
	for (unsigned i = 0; i < c->nwatches; i++)
		if (c->watch[i].serial == w->serial)
			return true;
	return false;
}

/* Add the watches of a command's that the cell does not name.  When threads
   touch several at the same time, one may have got another's: the one
   signal of an instruction names one watch, and counts are of all threads. */
static void
add_unnamed(struct cell *c, const struct program *p)
{
	if (!p->serve->ours || (c->flags & WP_CELL_LATE) != 0 || c->kernel)
		return;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_channel_watch *open = &p->channel->watch[i];
		struct wp_cell_watch w;

		if (atomic_load(&open->serial) == 0 ||
		    c->nwatches == TOUCHED_MAX)
			continue;
		memcpy(&w, &open->what, sizeof(w));
		w.slots = 0;
		w.settled = 0;
		if (open->signal == SIGTRAP && open->exact != 0 &&
		    open->stray == 0 && !has_watch(c, &w))
			add_watch(c, &w);
	}
}

/* Which watches it touched, and how: the bytes decide, where they are known;
   else the watches' counts, as the program found them.  Execution has a signal
   of its own, before the instruction. */
static void
find_touched(struct cell *c, struct program *p)
{
	const unsigned named = c->nwatches;
	const bool execution = c->watch[0].access == WP_EXEC;
	struct ex_insn first, insn;
	unsigned n = 0;

	add_unnamed(c, p);
	for (unsigned i = 0; i < c->nwatches; i++) {
		struct wp_cell_watch *w = &c->watch[i];
		const bool exact = find_insn(c, p, w, &insn);

		if (i == 0) {
			first = insn;
			c->exact = exact;
		} else if ((w->access == WP_EXEC) != execution ||
		    (execution && w->addr != c->watch[0].addr) ||
		    (c->exact && insn.pc != first.pc) ||
		    (i >= named && !(c->exact && exact))) {
			continue;
		}
		c->whole = (i == 0 || c->whole) && exact &&
		    !insn.effect.repeated;
		w->slots = find_slots(w, &insn, exact);
		c->watch[n++] = *w;
	}
	c->nwatches = n;
}

/* How often an access was counted: once for each debug register that it
   touched; 0: not known. */
static unsigned
times_of(const struct cell *c, const struct wp_cell_watch *w)
{
	if (c->kernel || (c->flags & WP_CELL_LATE) != 0)
		return 0;
	if (w->nslots == 1)
		return w == &c->watch[0] || c->exact;
	return (unsigned)__builtin_popcount(w->slots);
}

/* Whether there is but one debug register that a step can have touched. */
static bool
is_only(const struct program *p, const struct cell *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		n += atomic_load(&p->channel->watch[i].serial) != 0;
	return n == 1 && c->nwatches == 1 && c->watch[0].nslots == 1;
}

static void
take_tally(struct program *p, const struct cell *c)
{
	if (c->kernel || (c->flags & WP_CELL_LATE) != 0 ||
	    (!c->whole && !is_only(p, c)))
		p->tally.unknown = true;
	for (unsigned i = 0; i < c->nwatches; i++)
		tally_add(&p->tally, &c->watch[i], c->watch[i].nslots == 1 ?
		    1 : (unsigned)__builtin_popcount(c->watch[i].slots));
}

static enum ordered
take_order(struct program *p, const struct cell *c,
    const struct wp_cell_watch *w, uint8_t bytes[WP_BASELINE_MAX])
{
	const bool first = w == &c->watch[0];
	const struct hit_order_hit hit = {
		.watch = w, .flags = first ? c->flags :
		    c->flags & ~(uint32_t)WP_CELL_COUNTED,
		.nth = first ? c->nth : 0,
		.counted = first ? c->counted : 0,
		.suppressed = first ? c->suppressed : 0,
		.times = times_of(c, w), .time = c->record.time,
		.unseen = watch_registry_is_shared(&p->serve->registry, w),
	};

	return hit_order_take(&p->order, p->channel, &hit, bytes);
}

/* Before a hit is looked at: what else may have written. */
static void
read_sideband(struct program *p)
{
	if (!serve_read_sideband(p->serve))
		program_forget(p, wp_clock_ns());
}

/* What the thread read after its access, in the form of a stop's value: if it
   was the next one, and no other access was counted then, it is what this one
   left; else it is not known whose it is.  The only thread of a program,
   which waits, is alone with it. */
static bool
put_left(const struct cell *c, const struct wp_cell_watch *w,
    enum ordered ordered, struct wp_stop_value *left)
{
	const uint32_t wanted = WP_CELL_COUNTED | WP_CELL_BYTES;

	if ((c->flags & (WP_CELL_ALONE | WP_CELL_WAITS)) ==
	    (WP_CELL_ALONE | WP_CELL_WAITS))
		return false;
	*left = (struct wp_stop_value){.addr = w->addr, .call = -1};
	if (ordered == ORDER_UNKNOWN || w != &c->watch[0] ||
	    (c->flags & wanted) != wanted || w->len > sizeof(c->byte))
		return true;
	left->flags = WP_STOP_LEFT;
	left->len = (uint32_t)w->len;
	memcpy(left->new, c->byte, w->len);
	return true;
}

/* One access makes a sample for each slot, as the kernel's would. */
static void
record_each(struct program *p, const struct wp_cell_watch *w,
    struct ex_record *record)
{
	for (unsigned slots = w->slots; slots != 0; slots &= slots - 1) {
		record->attr = watch_registry_slot(&p->serve->registry,
		    &p->serve->session, p->pid, w, __builtin_ctz(slots));
		(void)session_record(&p->serve->session, record);
	}
	if (w->slots == 0)
		(void)session_record(&p->serve->session, record);
}

/* Whether this watch is one of those that the cell's hit is stray for. */
static bool
is_stray(const struct program *p, const struct cell *c,
    const struct wp_cell_watch *w)
{
	const struct wp_channel_watch *open =
	    &p->channel->watch[w->index % WP_WATCHES_MAX];

	return (c->flags & WP_CELL_STRAY) != 0 && (c->nwatches == 1 ||
	    atomic_load(&open->serial) != w->serial || open->stray != 0);
}

/* Report it as a hit of one of its watches.  When threads race it is not
   known which was the last, nor was what is read later read before the next
   hit. */
static void
report_as(struct program *p, struct cell *c, const struct wp_cell_watch *w)
{
	struct ex_explainer *explainer = p->serve->session.explainer;
	const bool alone = (c->flags & WP_CELL_ALONE) != 0;
	struct ex_record record = c->record;
	struct ex_hints hints = {
		.late = (c->flags & WP_CELL_LATE) != 0, .kernel = c->kernel,
		/* the thread waits behind its call until this is done */
		.stopped = c->kernel,
		.stray = is_stray(p, c, w), .comm = c->comm,
	};
	uint8_t bytes[WP_BASELINE_MAX];
	const struct ex_watch *watch;
	struct wp_stop_value left;
	enum ordered ordered;

	record.attr = watch_registry_slot(&p->serve->registry,
	    &p->serve->session, p->pid, w, -1);
	ordered = take_order(p, c, w, bytes);
	if (put_left(c, w, ordered, &left))
		hints.read = &left;
	watch = record.attr < 0 ? NULL :
	    p->serve->session.slots[record.attr].watch;
	if (watch != NULL && ordered != ORDER_AFTER_HIT)
		ex_explain_doubt(explainer, watch, EX_MISSED);
	if (watch != NULL && ordered == ORDER_AFTER_BASELINE)
		ex_explain_known(explainer, watch, p->pid, bytes,
		    w->len < sizeof(bytes) ? w->len : sizeof(bytes), 0);
	ex_explain_hints(explainer, &hints);
	record_each(p, w, &record);
	(void)session_flush(&p->serve->session, UINT64_MAX);
	ex_explain_hints(explainer, NULL);
	if (watch != NULL && !alone && ordered == ORDER_UNKNOWN)
		ex_explain_doubt(explainer, watch, EX_MISSED);
	else if (watch != NULL && !alone)
		ex_explain_doubt(explainer, watch, EX_UNREAD);
}

/* As much of a text as a reply holds, in whole lines. */
static void
put_reply(char to[WP_REPLY_MAX], char *text, size_t len)
{
	if (len >= WP_REPLY_MAX) {
		const char *end = memrchr(text, '\n', WP_REPLY_MAX - 1);

		len = end == NULL ? WP_REPLY_MAX - 1 : (size_t)(end + 1 - text);
	}
	memcpy(to, text, len);
	to[len] = '\0';
}

static void
report_all(struct program *p, struct cell *c)
{
	p->serve->session.reply_only = (c->flags & WP_CELL_QUIET) != 0;
	for (unsigned i = 0; i < c->nwatches; i++)
		report_as(p, c, &c->watch[i]);
	p->serve->session.reply_only = false;
}

/* A report of its own, which holds each backtrace in full. */
static void
report_with_reply(struct program *p, struct cell *c, char to[WP_REPLY_MAX])
{
	const struct report_start start = {.time = p->serve->began};
	struct report reply = {.ops = &report_text};
	char *text = NULL;
	size_t len = 0;

	to[0] = '\0';
	reply.out = open_memstream(&text, &len);
	if (reply.out != NULL && reply.ops->start(&reply, &start) == 0)
		p->serve->session.reply = &reply;
	report_all(p, c);
	if (p->serve->session.reply != NULL)
		(void)reply.ops->flush(&reply);
	p->serve->session.reply = NULL;
	(void)reply.ops->end(&reply, NULL);
	if (reply.out != NULL && fclose(reply.out) == 0)
		put_reply(to, text, len);
	free(text);
}

void
channel_hit_report(struct program *p, struct wp_cell *shared, bool wanted)
{
	struct cell c;

	read_sideband(p);
	if (!copy(&c, p, shared)) {
		p->tally.unknown = true;
		if ((shared->flags & WP_CELL_REPLY) != 0)
			shared->reply[0] = '\0';
		return;
	}
	if (!wanted)
		c.flags |= WP_CELL_QUIET;
	live_maps_check(&p->mapped, &c.record.sample);
	c.kernel = (c.flags & WP_CELL_LATE) == 0 && is_kernels(p, &c);
	find_touched(&c, p);
	take_tally(p, &c);
	if ((c.flags & WP_CELL_REPLY) != 0)
		report_with_reply(p, &c, shared->reply);
	else
		report_all(p, &c);
}
