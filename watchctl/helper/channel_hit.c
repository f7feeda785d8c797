/*
 * channel_hit: takes a hit out of its cell and writes it to the journal.
 *
 * A cell is memory of the program, into which code that corrupts memory may
 * write at any time.  Therefore everything is copied before it is used, and the
 * copy is checked.
 */
#include <signal.h>
#include <string.h>

#include "remote/remote_session.h"
#include "helper/serve.h"
#include "os/clock.h"
#include "os/trap_cpu.h"
#include "proc/proc.h"
#include "watch/channel_hit.h"

_Static_assert(offsetof(struct channel_hit, watch) % 8 == 0 &&
    sizeof(struct channel_hit_watch) % 8 == 0, "a record follows");

struct taken_hit {
	struct channel_hit hit;
	struct ex_record record;	/* the next one, decoded */
	_Alignas(8) uint8_t bytes[WP_RECORD_MAX];
};

/* Add a copy of a cell's watch, unless it is invalid. */
static void
add_watch(struct channel_hit *hit, const struct wp_cell_watch *from)
{
	struct wp_cell_watch *w = &hit->watch[hit->nwatches].what;

	memcpy(w, from, sizeof(*w));
	w->label[WP_LABEL_MAX - 1] = '\0';
	w->index %= WP_WATCHES_MAX;
	w->len = wp_region_bytes((enum wp_access)w->access, w->len);
	if (w->access != '\0' && strchr("wrax", w->access) != NULL &&
	    w->len > 0 && w->addr + w->len > w->addr)
		hit->nwatches++;
}

static void
copy_watches(struct channel_hit *hit, const struct wp_cell *shared)
{
	const uint32_t nalso = shared->nalso;

	hit->nwatches = 0;
	add_watch(hit, &shared->watch);
	for (uint32_t i = 0; i < nalso && i < WP_ALSO_MAX; i++)
		if (hit->nwatches > 0)
			add_watch(hit, &shared->also[i]);
	hit->named = hit->nwatches;
}

/* Returns false if the cell holds no hit of this program. */
static bool
copy(struct taken_hit *t, const struct program *p, const struct wp_cell *shared)
{
	struct channel_hit *hit = &t->hit;
	struct perf_event_header header;

	memcpy(&header, &shared->record.header, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE ||
	    header.size > sizeof(t->bytes))
		return false;
	memcpy(t->bytes, shared->record.bytes, header.size);
	memcpy(t->bytes, &header, sizeof(header));
	hit->flags = shared->flags;
	hit->pid = p->pid;
	hit->nth = shared->nth;
	hit->counted = shared->counted;
	hit->suppressed = shared->suppressed;
	memcpy(hit->byte, shared->byte, sizeof(hit->byte));
	memcpy(hit->comm, shared->comm, sizeof(hit->comm) - 1);
	hit->comm[sizeof(hit->comm) - 1] = '\0';
	copy_watches(hit, shared);
	memset(&t->record, 0, sizeof(t->record));
	return hit->nwatches > 0 && ex_record_decode(p->serve->formats,
	    t->bytes, header.size, &t->record) == 1 &&
	    t->record.pid == p->pid;
}

static bool
has_watch(const struct channel_hit *hit, const struct wp_cell_watch *w)
{
	for (unsigned i = 0; i < hit->nwatches; i++)
		if (hit->watch[i].what.serial == w->serial)
			return true;
	return false;
}

/* Add the watches of a command that the cell does not name.  An instruction
   raises one signal, which names one watch, and counts are of all threads; so
   if threads touch several watches at the same time, one thread may have got
   the other's. */
static void
add_unnamed(struct channel_hit *hit, const struct program *p)
{
	if (!p->serve->ours || (hit->flags & WP_CELL_LATE) != 0)
		return;
	for (unsigned i = 0; i < WP_WATCHES_MAX; i++) {
		const struct wp_channel_watch *open = &p->channel->watch[i];
		struct wp_cell_watch w;

		if (atomic_load(&open->serial) == 0 ||
		    hit->nwatches == CHANNEL_HIT_WATCHES)
			continue;
		memcpy(&w, &open->what, sizeof(w));
		w.slots = w.times = 0;
		w.settled = 0;
		if (open->signal == SIGTRAP && open->exact != 0 &&
		    open->stray == 0 && !has_watch(hit, &w))
			add_watch(hit, &w);
	}
}

/* Whether the step can have touched only one debug register. */
static bool
is_only(const struct program *p, const struct channel_hit *hit)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WP_WATCHES_MAX; i++)
		n += atomic_load(&p->channel->watch[i].serial) != 0;
	return n == 1 && hit->nwatches == 1 && hit->watch[0].what.nslots == 1;
}

/* Add what is known of a watch besides the contents of the cell. */
static void
look_at_watch(struct program *p, struct channel_hit_watch *w)
{
	struct serve *serve = p->serve;
	const unsigned nth = program_watch_nth(p, w->what.index);

	hit_order_look(&w->open, &p->channel->watch[w->what.index]);
	w->gap = p->gap[w->what.index];
	w->slot = watch_registry_slots(&serve->registry, &serve->session,
	    p->pid, &w->what, nth, &w->nslots);
	w->unseen = p->lent || watch_registry_is_shared(&serve->registry,
	    &w->what, nth);
}

/* The code before the pc may differ from that in the file. */
static void
read_code(struct taken_hit *t)
{
	struct channel_hit *hit = &t->hit;

	hit->has_code = wp_proc_read(hit->pid,
	    t->record.sample.ip - sizeof(hit->code), hit->code,
	    sizeof(hit->code)) == (ssize_t)sizeof(hit->code);
}

/* The thread does not read a watch that sees reads, which would be a hit, and
   may be unable to count.  If it is the only one and waits, its access is still
   the last one, where it has been made before the trap. */
static void
read_left(struct channel_hit *hit)
{
	const uint32_t last = WP_CELL_ALONE | WP_CELL_WAITS;
	const struct wp_cell_watch *w = &hit->watch[0].what;

	if (!wp_cpu_traps_before() &&
	    (hit->flags & (last | WP_CELL_BYTES)) == last &&
	    w->access != WP_EXEC && w->len <= sizeof(hit->byte) &&
	    wp_proc_read(hit->pid, w->addr, hit->byte, w->len) ==
	    (ssize_t)w->len)
		hit->flags |= WP_CELL_BYTES;
}

/* Whether explainers know which code was mapped at the time of the hit. */
static bool
code_is_known(struct program *p, const struct channel_hit *hit)
{
	return sideband_knows_maps(&p->serve->sideband) && (!p->code_mapped ||
	    ((hit->flags & WP_CELL_WAITS) != 0 && program_learn_code(p)));
}

static void
complete(struct taken_hit *t, struct program *p)
{
	struct channel_hit *hit = &t->hit;

	hit->mapped = p->mapped;
	hit->code_known = code_is_known(p, hit);
	hit->gaps = atomic_load(&p->channel->gaps);
	add_unnamed(hit, p);
	hit->only = is_only(p, hit);
	for (unsigned i = 0; i < hit->nwatches; i++)
		look_at_watch(p, &hit->watch[i]);
	read_code(t);
	read_left(hit);
}

/* Before a hit is examined, find out what else may have written. */
static void
read_sideband(struct program *p)
{
	if (serve_read_sideband(p->serve))
		return;
	program_forget(p, wp_clock_ns());
	p->mapped++;
}

/* Put as many whole lines of a text as a reply can hold. */
static void
put_reply(char to[WP_REPLY_MAX], const char *text)
{
	size_t len = strlen(text);

	if (len >= WP_REPLY_MAX) {
		const char *end = memrchr(text, '\n', WP_REPLY_MAX - 1);

		len = end == NULL ? WP_REPLY_MAX - 1 : (size_t)(end + 1 - text);
	}
	memcpy(to, text, len);
	to[len] = '\0';
}

/* The account counts them separately, though the report has one hit for all. */
static void
add_merged(struct session *session, const struct channel_hit *hit)
{
	for (unsigned i = 0; i < hit->named; i++) {
		const uint32_t times = hit->watch[i].what.times;

		session->merged += times > 1 ? times - 1 : 0;
		session->late_unknown += times == 0;
	}
}

void
channel_hit_report(struct program *p, struct wp_cell *shared, bool wanted)
{
	struct session *session = &p->serve->session;
	struct taken_hit t;

	read_sideband(p);
	if (!copy(&t, p, shared)) {
		p->tally.unknown = true;
		if ((shared->flags & WP_CELL_REPLY) != 0)
			shared->reply[0] = '\0';
		return;
	}
	if (!wanted)
		t.hit.flags |= WP_CELL_QUIET;
	complete(&t, p);
	if ((t.hit.flags & (WP_CELL_LATE | WP_CELL_QUIET)) == WP_CELL_LATE)
		add_merged(session, &t.hit);
	session_channel_hit(session, &t.hit, channel_hit_size(t.hit.nwatches),
	    &t.record);
	if ((t.hit.flags & (WP_CELL_WAITS | WP_CELL_REPLY)) != 0)
		(void)session_flush(session, UINT64_MAX);
	if ((t.hit.flags & WP_CELL_REPLY) != 0)
		put_reply(shared->reply,
		    remote_session_reply(p->serve->remote));
}

void
channel_hit_account(struct program *p, const struct broker_channel_hit *hit)
{
	p->tally.unknown = p->tally.unknown || hit->unknown != 0;
	for (unsigned i = 0; i < hit->n && i < BROKER_TOUCHED_MAX; i++) {
		const struct wp_cell_watch w = {
			.serial = hit->touched[i].serial,
			.index = (uint16_t)(hit->touched[i].index %
			    WP_WATCHES_MAX),
		};

		access_tally_add(&p->tally, &w, hit->touched[i].times);
	}
}
