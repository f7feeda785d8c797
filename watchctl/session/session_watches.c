/* session_watches: the watches of a session, and their slots. */
#include "session/session_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
free_watch(struct ex_watch *watch)
{
	if (watch == NULL)
		return;
	free((char *)(uintptr_t)watch->spec);
	free((char *)(uintptr_t)watch->symbol);
	free(watch);
}

/* Zero but for its strings; NULL: out of memory. */
static struct ex_watch *
new_watch(const char *spec, const char *symbol)
{
	struct ex_watch *watch = calloc(1, sizeof(*watch));

	if (watch == NULL)
		return NULL;
	watch->spec = strdup(spec);
	watch->symbol = symbol == NULL ? NULL : strdup(symbol);
	if (watch->spec != NULL && (symbol == NULL || watch->symbol != NULL))
		return watch;
	free_watch(watch);
	return NULL;
}

/* The report keeps what it was given; when that has moved, it gets the new
   one. */
static void
report_watch(struct session *s)
{
	if (s->of.silent) {
		s->report.begin.watches =
		    (const struct ex_watch *const *)s->watches;
		s->report.begin.nwatches = (unsigned)s->nwatches;
	} else if (session_reports(s) && s->report.ops->watch != NULL)
		session_note(s, s->report.ops->watch(&s->report,
		    (const struct ex_watch *const *)s->watches,
		    (unsigned)s->nwatches));
}

static void
put_watch(struct session *s, const struct ex_watch *watch, pid_t in)
{
	const struct journal_entry entry = {
		.what = JOURNAL_WATCH, .tid = in,
	};
	const size_t len = strlen(watch->spec) + 1;
	const size_t symbol = watch->symbol == NULL ? 0 :
	    strlen(watch->symbol) + 1;
	const size_t size = offsetof(struct journal_watch, text) + len;
	struct journal_watch *w = calloc(1, sizeof(*w) + len);

	if (w == NULL) {
		session_note(s, -ENOMEM);
		return;
	}
	*w = (struct journal_watch){
		.addr = watch->addr, .len = watch->len,
		.number = watch->number, .slots = watch->slots,
		.pid = watch->pid, .access = (int)watch->access,
		.pending = watch->pending, .local = watch->local,
		.moves = watch->moves, .since = watch->since,
		.whole = watch->whole != NULL ? watch->whole->id : 0,
		.block = watch->block, .object = watch->object,
		.freed = watch->freed, .freed_by = watch->freed_by,
		.symbol = symbol != 0 ? (uint32_t)len : 0,
	};
	memcpy(w->comm, watch->comm, sizeof(w->comm));
	memcpy(w->text, watch->spec, len);
	s->journal->put(s->journal, &entry, w, size, watch->symbol, symbol);
	free(w);
}

static void
put_slot(struct session *s, const struct ex_slot *slot)
{
	const struct journal_slot it = {
		.addr = slot->addr, .len = slot->len,
		.watch = slot->watch == NULL ? -1 : (int)slot->watch->id - 1,
	};

	session_put(s, JOURNAL_SLOT, &it, sizeof(it));
}

/* Whether a new watch goes into the journal at once.  Those that exist when all
   watches are requested go there then. */
static bool
is_put(const struct session *s)
{
	return s->journal != NULL && s->ready;
}

static int
add_watch(struct session *s, pid_t in, const char *spec, const char *symbol,
    uint64_t addr, uint64_t len, enum wp_access access, unsigned slots)
{
	struct ex_watch *watch = new_watch(spec, symbol), **more;

	if (watch == NULL)
		return -ENOMEM;
	more = reallocarray(s->watches, s->nwatches + 1, sizeof(*more));
	if (more == NULL) {
		free_watch(watch);
		return -ENOMEM;
	}
	watch->id = (unsigned)s->nwatches + 1;
	watch->addr = addr;
	watch->len = len;
	watch->access = access;
	watch->slots = slots;
	watch->number = s->of.number;
	watch->pid = s->of.pid;
	memcpy(watch->comm, s->of.comm, sizeof(watch->comm));
	watch->pending = s->of.pending;
	watch->local = s->of.local;
	watch->block = s->of.block;
	watch->moves = s->of.moves;
	watch->since = s->of.since;
	watch->whole = s->of.whole == 0 || s->of.whole > s->nwatches ? NULL :
	    more[s->of.whole - 1];
	watch->object = s->of.object;
	s->watches = more;
	s->watches[s->nwatches++] = watch;
	if (is_put(s))
		put_watch(s, watch, in);
	else if (s->started)
		report_watch(s);
	return 0;
}

void
session_of_process(struct session *s, unsigned number, pid_t pid,
    const char *comm)
{
	s->of.number = number;
	s->of.pid = pid;
	(void)snprintf(s->of.comm, sizeof(s->of.comm), "%.*s",
	    (int)sizeof(s->of.comm) - 1, comm);
}

void
session_pending(struct session *s, bool pending)
{
	s->of.pending = pending;
}

void
session_local(struct session *s, bool local, uint64_t block)
{
	s->of.local = local;
	s->of.block = block;
}

void
session_moves(struct session *s, bool moves, uint64_t since)
{
	s->of.moves = moves;
	s->of.since = since;
	s->of.silent = since != 0;
}

void
session_part(struct session *s, unsigned whole)
{
	session_moves(s, whole != 0, 0);
	s->of.silent = whole != 0;
	s->of.whole = whole;
	s->of.object = 0;
}

void
session_instance(struct session *s, uint64_t object, uint64_t since)
{
	session_moves(s, true, since);
	s->of.silent = true;
	s->of.object = object;
}

int
session_add_watch(struct session *s, const char *spec, const char *symbol,
    uint64_t addr, uint64_t len, enum wp_access access, unsigned slots)
{
	return add_watch(s, 0, spec, symbol, addr, len, access, slots);
}

int
session_add_place(struct session *s, pid_t pid, const char *spec, uint64_t addr,
    uint64_t len, enum wp_access access, unsigned slots)
{
	return add_watch(s, pid, spec, NULL, addr, len, access, slots);
}

int
session_add_slot(struct session *s, int watch, uint64_t addr, uint64_t len)
{
	struct ex_slot *slots = reallocarray(s->slots, s->nslots + 1,
	    sizeof(*slots));

	if (slots == NULL)
		return -ENOMEM;
	s->slots = slots;
	s->slots[s->nslots++] = (struct ex_slot){
		watch < 0 ? NULL : s->watches[watch], addr, len,
	};
	if (is_put(s))
		put_slot(s, &s->slots[s->nslots - 1]);
	else if (s->ops != NULL)
		s->ops->slot(s);
	return 0;
}

void
session_put_watches(struct session *s)
{
	for (size_t i = 0; i < s->nwatches; i++)
		put_watch(s, s->watches[i], 0);
	for (size_t i = 0; i < s->nslots; i++)
		put_slot(s, &s->slots[i]);
}

void
session_free_watches(struct session *s)
{
	for (size_t i = 0; i < s->nwatches; i++)
		free_watch(s->watches[i]);
	free(s->watches);
	free(s->slots);
}
