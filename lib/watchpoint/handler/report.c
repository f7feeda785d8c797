/*
 * report: puts hits into cells of the channel or, without a helper, prints them
 * by fallback_report.c.
 *
 * Signal safety: everything here is async-signal-safe.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "handler/capture.h"
#include "handler/trap_run.h"
#include "os/libc.h"
#include "os/trap_cpu.h"

enum { NAME_FRESH = 1000000 };	/* ns for which a thread's name is kept */

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	char *text;		/* the report, from mmap(2), or NULL */
	char name[16];		/* the thread's name when last asked for */
	uint64_t name_good;	/* time until which it is kept, in ns */
} self;

static bool
is_printed(const struct wp_match *match)
{
	return (match->watch->attr.action & WP_PRINT) != 0;
}

static bool
is_reported(const struct wp_match *match)
{
	return match->stray || is_printed(match);
}

static void
fill_watch(struct wp_cell_watch *to, const struct wp_match *match, bool late)
{
	const struct wp_watch *w = match->watch;

	memcpy(to->label, w->label, sizeof(to->label));
	to->addr = w->region.addr;
	to->len = w->region.len;
	to->serial = match->serial;
	to->access = (uint8_t)w->region.access;
	to->nslots = (uint8_t)w->nslots;
	to->index = (uint16_t)wp_watch_index(w);
	to->settled = atomic_load(&w->settled);
	to->slots = match->slots;
	to->times = late && match->watch->nslots == 1 ?
	    (uint32_t)match->times : 0;
}

static uint32_t
cell_flags(const struct wp_run *run)
{
	uint32_t flags = WP_CELL_QUIET | (run->late ? WP_CELL_LATE : 0);

	for (unsigned i = 0; i < run->n; i++) {
		const struct wp_match *match = &run->match[i];
		const struct wp_attr *attr = &match->watch->attr;

		if (!is_reported(match))
			continue;
		if (is_printed(match))
			flags &= ~(uint32_t)WP_CELL_QUIET;
		if (match->stray)
			flags |= WP_CELL_STRAY;
		if ((attr->action & WP_ABORT) != 0)
			flags |= WP_CELL_FATAL | WP_CELL_WAITS;
		if ((attr->flags & WP_ASYNC) != 0)
			continue;
		flags |= WP_CELL_WAITS;
		if (match->stray || (attr->action & WP_CALL) != 0)
			flags |= WP_CELL_REPLY;
	}
	return flags;
}

/* The name of a thread rarely changes, and reading it takes a large part of the
   time of a hit that does not wait.  So it is read at most once per
   millisecond. */
static void
put_name(struct wp_cell *cell, uint64_t now)
{
	if ((cell->flags & WP_CELL_WAITS) != 0 || now >= self.name_good) {
		(void)prctl(PR_GET_NAME, self.name);
		self.name_good = now + NAME_FRESH;
	}
	memcpy(cell->comm, self.name, sizeof(cell->comm));
}

/* The position of the hit among all accesses to its watch.  Accesses by other
   threads are counted only if the thread waits for the helper anyway, because
   counting doubles the time of a hit.  The bytes are read before the count: if
   no other access is counted, they are what this hit left, unless it has yet to
   be made. */
static void
put_order(struct wp_cell *cell, const struct wp_watch *w)
{
	bool looked;

	cell->suppressed = atomic_load(&w->suppressed);
	if (wp_libc_alone())
		cell->flags |= WP_CELL_ALONE;
	if ((cell->flags & WP_CELL_WAITS) == 0)
		return;
	looked = wp_look_at(w, cell->byte);
	atomic_signal_fence(memory_order_seq_cst);
	if (!wp_count_all(w, &cell->counted))
		return;
	cell->flags |= WP_CELL_COUNTED;
	if (looked && !wp_cpu_traps_before())
		cell->flags |= WP_CELL_BYTES;
}

/* run->match[0] is the hit that is reported; the others go with it. */
static void
fill(struct wp_cell *cell, const struct wp_run *run,
    const struct wp_channel *channel)
{
	const struct wp_match *match = &run->match[0];
	uint32_t stack = channel->stack & ~7u;
	struct wp_captured what = {
		.id = match->serial,
		.addr = wp_match_place(match).addr,
		.pid = atomic_load(&channel->program),
		.tid = run->tid,
		.stack = stack < WP_STACK_MAX ? stack : WP_STACK_MAX,
	};

	cell->flags = cell_flags(run);
	cell->nth = match->nth;
	put_order(cell, match->watch);
	fill_watch(&cell->watch, match, run->late);
	cell->nalso = 0;
	for (unsigned i = 1; i < run->n; i++)
		if (is_reported(&run->match[i]))
			fill_watch(&cell->also[cell->nalso++], &run->match[i],
			    run->late);
	if ((cell->flags & WP_CELL_REPLY) != 0)
		cell->reply[0] = '\0';
	put_name(cell, wp_capture(&cell->record, sizeof(cell->record), &what,
	    run->context));
}

/* The cell is used for another hit next, so the reply is copied. */
static void
keep_reply(const struct wp_cell *cell)
{
	char *text = mmap(NULL, WP_REPLY_MAX, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (text == MAP_FAILED)
		return;
	memcpy(text, cell->reply, WP_REPLY_MAX - 1);
	self.text = text;
}

void
wp_report_forget(void)
{
	if (self.text != NULL)
		(void)munmap(self.text, WP_REPLY_MAX);
	self.text = NULL;
}

enum posted {
	POSTED_NOT,		/* there is no helper, or it has died */
	POSTED,
	POSTED_REPLY		/* the report is in self.text */
};

static enum posted
post(const struct wp_run *run)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	struct wp_cell *cell;
	uint32_t ticket, flags;

	if (channel == NULL || !wp_channel_has_helper(channel))
		return POSTED_NOT;
	if (atomic_load(&channel->off) != 0)
		return POSTED;
	cell = wp_channel_take(channel, &ticket);
	if (cell == NULL)
		return POSTED_NOT;
	fill(cell, run, channel);
	flags = cell->flags;
	wp_channel_post(channel, cell, ticket);
	if ((flags & WP_CELL_WAITS) == 0)
		return POSTED;
	if (!wp_channel_wait(channel, cell, ticket))
		return POSTED_NOT;
	if ((flags & WP_CELL_REPLY) == 0)
		return POSTED;
	keep_reply(cell);
	wp_channel_give(cell, ticket);
	return POSTED_REPLY;
}

struct wp_hit
wp_report_hit(const struct wp_run *run, const struct wp_match *match)
{
	struct wp_watch *w = match->watch;
	const struct wp_region place = wp_match_place(match);

	return (struct wp_hit){
		.watch = w, .label = w->label,
		.addr = (void *)(uintptr_t)place.addr, .len = place.len,
		.pc = (const void *)(uintptr_t)wp_cpu_pc(run->context),
		.tid = run->tid, .nth = match->nth, .stray = match->stray,
		.late = run->late, .context = run->context,
		.text = self.text != NULL && is_printed(match) ? self.text : "",
	};
}

/* Hits that are not printed are for handlers only; the helper includes them in
   its summary. */
static void
count_handled(const struct wp_run *run)
{
	struct wp_channel *channel = atomic_load(&wp_state.channel);
	unsigned n = 0, printed = 0;

	for (unsigned i = 0; i < run->n; i++) {
		printed += is_printed(&run->match[i]);
		n += !is_reported(&run->match[i]);
	}
	if (printed == 0)  /* stray hits are explained to the handler only */
		n = run->n;
	if (n > 0 && channel != NULL && atomic_load(&channel->off) == 0)
		(void)atomic_fetch_add(&channel->handled, n);
}

void
wp_report(struct wp_run *run)
{
	enum posted posted;
	unsigned first = 0;

	count_handled(run);
	while (first < run->n && !is_reported(&run->match[first]))
		first++;
	if (first == run->n)
		return;
	if (first > 0) {
		struct wp_match other = run->match[0];

		run->match[0] = run->match[first];
		run->match[first] = other;
	}
	posted = post(run);
	for (unsigned i = 0; i < run->n; i++) {
		const struct wp_match *match = &run->match[i];

		if (posted == POSTED_REPLY && match->stray)
			wp_stray_note(self.text != NULL ? self.text : "");
		else if (is_reported(match) && (match->stray ||
		    posted == POSTED_NOT)) {
			struct wp_hit hit = wp_report_hit(run, match);

			wp_fallback_hit(match->watch, &hit,
			    posted == POSTED_NOT && is_printed(match));
		}
	}
}
