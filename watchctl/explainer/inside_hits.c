/*
 * inside_hits: explains the hits that programs which watch themselves handed
 * over.
 *
 * One signal stands for one step of a thread, which may have touched several
 * watches; the bytes that its instruction touched show which.
 */
#include "explainer/inside_hits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insn/insn.h"
#include "space/space.h"
#include "stop/value_sample.h"

/* The findings about a hit. */
struct hit_findings {
	struct session *session;
	const struct channel_hit *hit;
	const struct ex_record *record;
	bool kernel;		/* made by the kernel in a system call */
	bool exact;		/* the instruction and its bytes are known */
	bool whole;		/* the instruction is not repeated and
				   touches all of the watch */
	unsigned n;		/* number of watches touched: */
	const struct channel_hit_watch *watch[CHANNEL_HIT_WATCHES];
	unsigned slots[CHANNEL_HIT_WATCHES];	/* of each, a bit for each
						   slot; 0: not known */
};

static bool
is_late(const struct hit_findings *f)
{
	return (f->hit->flags & WP_CELL_LATE) != 0;
}

static struct ex_process *
process_of(const struct hit_findings *f)
{
	return ex_space_process(f->session->space, f->hit->pid);
}

/*
 * Whether the kernel made the access in a system call.  The program is then
 * right behind the system call instruction, which does not access memory
 * itself.
 */
static bool
is_kernels(const struct hit_findings *f)
{
#ifdef __x86_64__
	static const uint8_t calls[][2] = {{0x0f, 0x05}, {0xcd, 0x80}};
	/* a 32-bit program's, as the vDSO returns from it */
	const uint8_t *syscall = calls[f->record->sample.user.abi ==
	    PERF_SAMPLE_REGS_ABI_32];
	struct ex_process *process = process_of(f);
	uint8_t code[sizeof(calls[0])] = {0};
	const uint64_t pc = f->record->sample.ip - sizeof(code);
	struct ex_module *module;
	uint64_t vaddr;

	_Static_assert(sizeof(code) == sizeof(f->hit->code), "read there");
	if (is_late(f) || f->hit->watch[0].what.access == WP_EXEC ||
	    process == NULL)
		return false;
	module = ex_process_module(process, pc, &vaddr);
	if (module != NULL && ex_module_bytes(module, vaddr, code,
	    sizeof(code)) == sizeof(code))
		return memcmp(code, syscall, sizeof(code)) == 0;
	return f->hit->has_code &&
	    memcmp(f->hit->code, syscall, sizeof(code)) == 0;
#else
	(void)f;
	return false;
#endif
}

/* Whether the instruction shows which bytes of a watch it touched. */
static bool
find_insn(const struct hit_findings *f, const struct wp_cell_watch *w,
    struct ex_insn *insn)
{
	struct ex_process *process = process_of(f);

	insn->pc = 0;
	if (f->kernel || is_late(f) || process == NULL || w->access == WP_EXEC)
		return false;
	ex_insn_explain(process, &f->record->sample, w->addr, (uint32_t)w->len,
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

/* The slots of a watch that were touched, a bit for each: according to the
   bytes touched by the instruction if they are known, else to the counts found
   by the program.  0 if not known. */
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

/* Find the watches that were touched, and their slots: by the bytes if they are
   known, else by the watches' counts as found by the program.  Execution has a
   signal of its own, before the instruction. */
static void
find_touched(struct hit_findings *f)
{
	const struct channel_hit_watch *all = f->hit->watch;
	const bool execution = all[0].what.access == WP_EXEC;
	const unsigned n = f->kernel ? f->hit->named : f->hit->nwatches;
	struct ex_insn first = {0}, insn;

	for (unsigned i = 0; i < n; i++) {
		const struct wp_cell_watch *w = &all[i].what;
		const bool exact = find_insn(f, w, &insn);

		if (i == 0) {
			first = insn;
			f->exact = exact;
		} else if ((w->access == WP_EXEC) != execution ||
		    (execution && w->addr != all[0].what.addr) ||
		    (f->exact && insn.pc != first.pc) ||
		    (i >= f->hit->named && !(f->exact && exact))) {
			continue;
		}
		f->whole = (i == 0 || f->whole) && exact &&
		    !insn.effect.repeated;
		f->watch[f->n] = &all[i];
		f->slots[f->n++] = find_slots(w, &insn, exact);
	}
}

/* How often the access was counted: once for each debug register touched; 0 if
   not known. */
static unsigned
times_of(const struct hit_findings *f, unsigned i)
{
	if (f->kernel || is_late(f))
		return 0;
	if (f->watch[i]->what.nslots == 1)
		return i == 0 || f->exact;
	return (unsigned)__builtin_popcount(f->slots[i]);
}

static void
put_tally(const struct hit_findings *f, struct broker_channel_hit *to)
{
	_Static_assert((int)BROKER_TOUCHED_MAX >= (int)CHANNEL_HIT_WATCHES,
	    "room for all");
	to->unknown = f->kernel || is_late(f) ||
	    (!f->whole && !(f->hit->only && f->n == 1));
	to->n = f->n;
	for (unsigned i = 0; i < f->n; i++) {
		const struct wp_cell_watch *w = &f->watch[i]->what;

		to->touched[i].serial = w->serial;
		to->touched[i].index = w->index;
		to->touched[i].times = w->nslots == 1 ? 1 :
		    (uint32_t)__builtin_popcount(f->slots[i]);
	}
}

static enum ordered
take_order(struct hit_order *order, const struct hit_findings *f, unsigned i,
    uint8_t bytes[WP_BASELINE_MAX])
{
	const struct channel_hit *from = f->hit;
	const bool first = i == 0;
	const struct hit_order_hit hit = {
		.watch = &f->watch[i]->what, .open = &f->watch[i]->open,
		.gaps = from->gaps, .gap = f->watch[i]->gap,
		.flags = first ? from->flags :
		    from->flags & ~(uint32_t)WP_CELL_COUNTED,
		.nth = first ? from->nth : 0,
		.counted = first ? from->counted : 0,
		.suppressed = first ? from->suppressed : 0,
		.times = times_of(f, i), .time = f->record->time,
		.unseen = f->watch[i]->unseen,
	};

	return hit_order_take(order, &hit, bytes);
}

static bool
is_alone(const struct hit_findings *f)
{
	return (f->hit->flags & WP_CELL_ALONE) != 0;
}

static bool
waits(const struct hit_findings *f)
{
	return (f->hit->flags & WP_CELL_WAITS) != 0;
}

/* Whether a program with one thread is not seen when the kernel writes the
   bytes for it.  At the hit it does not: so they are what the access left. */
static bool
is_alone_unordered(const struct hit_findings *f, unsigned i)
{
	const struct channel_hit_watch *w = f->watch[i];

	return is_alone(f) && waits(f) && !is_late(f) && !w->unseen &&
	    w->open.kernel == 0 && f->record->time > w->gap;
}

/* The value read by the thread after its access, in the form of a stop's value.
   If no other access was counted in between, it is what this access left;
   otherwise it may be another's.  In a program with one thread, which waits,
   there is no other.  There it serves for what the kernel wrote, which no
   instruction shows, as the thread may not wait until memory is read. */
static bool
put_left(const struct hit_findings *f, unsigned i, enum ordered ordered,
    struct wp_stop_value *left)
{
	const struct wp_cell_watch *w = &f->watch[i]->what;
	const bool unordered = is_alone_unordered(f, i);
	const uint32_t wanted = WP_CELL_BYTES |
	    (unordered ? 0 : WP_CELL_COUNTED);
	const bool is_left = (ordered != ORDER_UNKNOWN || unordered) &&
	    i == 0 && (f->hit->flags & wanted) == wanted &&
	    w->len <= sizeof(f->hit->byte);

	if (is_alone(f) && waits(f) && !(is_left && (f->kernel || unordered)))
		return false;
	*left = (struct wp_stop_value){.addr = w->addr, .call = -1};
	if (!is_left)
		return true;
	left->flags = WP_STOP_LEFT;
	left->len = (uint32_t)w->len;
	memcpy(left->new, f->hit->byte, w->len);
	return true;
}

/* Record one sample for each slot touched, as the kernel does. */
static void
record_each(const struct hit_findings *f, unsigned i)
{
	const struct channel_hit_watch *w = f->watch[i];
	struct ex_record record = *f->record;

	for (unsigned slots = f->slots[i]; slots != 0; slots &= slots - 1) {
		const unsigned slot = (unsigned)__builtin_ctz(slots) + 1;

		record.attr = w->slot + (slot < w->nslots ? (int)slot : 0);
		(void)session_record(f->session, &record);
	}
	record.attr = w->slot;
	if (f->slots[i] == 0)
		(void)session_record(f->session, &record);
}

/* Whether the hit is stray for this watch. */
static bool
is_stray(const struct hit_findings *f, unsigned i)
{
	const struct wp_channel_watch *open = &f->watch[i]->open;

	return (f->hit->flags & WP_CELL_STRAY) != 0 && (f->n == 1 ||
	    atomic_load(&open->serial) != f->watch[i]->what.serial ||
	    open->stray != 0);
}

static struct ex_hints
hints_of(const struct hit_findings *f, unsigned i)
{
	return (struct ex_hints){
		.late = is_late(f), .kernel = f->kernel,
		.accesses = is_late(f) ? f->watch[i]->what.times : 0,
		/* the thread waits in its system call until this is done */
		.stopped = f->kernel && waits(f),
		.stray = is_stray(f, i), .comm = f->hit->comm,
	};
}

static const struct ex_watch *
watch_of(const struct hit_findings *f, unsigned i)
{
	const int slot = f->watch[i]->slot;

	return slot < 0 || (size_t)slot >= f->session->nslots ? NULL :
	    f->session->slots[slot].watch;
}

/* Report the hit for one of its watches.  If threads race, it is not known
   which hit was the last, nor was memory read before the next one. */
static void
report_as(const struct hit_findings *f, struct hit_order *order, unsigned i)
{
	struct ex_explainer *explainer = f->session->explainer;
	const struct wp_cell_watch *w = &f->watch[i]->what;
	const struct ex_watch *watch = watch_of(f, i);
	struct ex_hints hints = hints_of(f, i);
	uint8_t bytes[WP_BASELINE_MAX];
	struct wp_stop_value left;
	const enum ordered ordered = take_order(order, f, i, bytes);

	if (watch == NULL)
		return;
	if (put_left(f, i, ordered, &left))
		hints.read = &left;
	if (ordered != ORDER_AFTER_HIT)
		ex_explain_doubt(explainer, watch, EX_MISSED);
	if (ordered == ORDER_AFTER_BASELINE)
		ex_explain_known(explainer, watch, f->hit->pid, bytes,
		    w->len < sizeof(bytes) ? w->len : sizeof(bytes), 0);
	ex_explain_hints(explainer, &hints);
	record_each(f, i);
	(void)ex_explain_flush(explainer, UINT64_MAX);
	ex_explain_hints(explainer, NULL);
	if (!is_alone(f) && ordered == ORDER_UNKNOWN)
		ex_explain_doubt(explainer, watch, EX_MISSED);
	else if (!is_alone(f))
		ex_explain_doubt(explainer, watch, EX_UNREAD);
}

static void
report_all(const struct hit_findings *f, struct hit_order *order)
{
	struct session *s = f->session;

	s->reply_only = (f->hit->flags & WP_CELL_QUIET) != 0;
	for (unsigned i = 0; i < f->n; i++)
		report_as(f, order, i);
	s->reply_only = false;
}

/* Make a report of its own, with every backtrace in full. */
static void
report_with_reply(const struct hit_findings *f, struct hit_order *order,
    uint64_t began, char to[BROKER_BYTES_MAX])
{
	const struct report_start start = {.time = began};
	struct session *s = f->session;
	struct report reply = {.ops = &report_text};
	char *text = NULL;
	size_t len = 0;

	reply.out = open_memstream(&text, &len);
	if (reply.out != NULL && reply.ops->start(&reply, &start) == 0)
		s->reply = &reply;
	report_all(f, order);
	if (s->reply != NULL)
		(void)reply.ops->flush(&reply);
	s->reply = NULL;
	(void)reply.ops->end(&reply, NULL);
	if (reply.out != NULL && fclose(reply.out) == 0)
		(void)snprintf(to, BROKER_BYTES_MAX, "%s", text);
	free(text);
}

void
inside_hits_report(struct session *session, struct hit_order *order,
    const struct channel_hit *hit, const struct ex_record *record,
    uint64_t began, struct broker_channel_hit *found,
    char reply[BROKER_BYTES_MAX])
{
	const struct ex_tally *tally = ex_explain_tally(session->explainer);
	const uint64_t dropped = tally->dropped;
	struct hit_findings f = {
		.session = session, .hit = hit, .record = record,
	};

	reply[0] = '\0';
	f.kernel = is_kernels(&f);
	find_touched(&f);
	put_tally(&f, found);
	if ((hit->flags & WP_CELL_REPLY) != 0)
		report_with_reply(&f, order, began, reply);
	else
		report_all(&f, order);
	found->begun = ex_explain_done(session->explainer);
	found->dropped = (uint32_t)(tally->dropped - dropped);
}

void
inside_hits_recall(struct session *session, const struct channel_hit *hit,
    const struct ex_record *record, uint64_t watch)
{
	struct hit_findings f = {
		.session = session, .hit = hit, .record = record,
	};

	f.kernel = is_kernels(&f);
	find_touched(&f);
	for (unsigned i = 0; i < f.n; i++) {
		const struct ex_watch *of = watch_of(&f, i);
		struct ex_hints hints = hints_of(&f, i);

		if (of == NULL || of->id != watch + 1)
			continue;
		hints.stopped = false;
		ex_explain_hints(session->explainer, &hints);
		record_each(&f, i);
		ex_explain_hints(session->explainer, NULL);
		return;
	}
}
