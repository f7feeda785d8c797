/*
 * remote_log: records about processes, without those of processes that have
 * ended.
 *
 * Each process that was forked, and each thread that was made, has a life in
 * the log: from that record to its end.  Numbers are given out again.  A
 * process has ended when all of its threads have.
 */
#include "remote/remote_log.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/table.h"
#include "session/journal.h"

/* Addresses that are mapped anew later. */
struct cover {
	struct span {
		uint64_t from, to;
	} *at;			/* n of them, sorted and disjoint */
	size_t n, cap;
};

struct task_life {
	struct cover cover;
	struct task_life *parent;	/* its parent or its process, or NULL */
	struct task_life *before;	/* had its id before it, or NULL */
	pid_t id;
	unsigned threads;	/* of a process; 0 for a thread */
	bool process;
	bool begun;		/* its start is in the log */
	bool ended;
	bool needed;
};

/* The current owner of an id. */
struct number {
	struct task_life *life;
};

struct lives {
	struct task_life *life;	/* n of them, children after their parents */
	size_t n;
	struct task_life **of;	/* of each entry, or NULL */
	size_t *at;	/* new offset of each entry; SIZE_MAX: dropped */
	struct ex_table processes, threads;	/* of struct number */
	bool failed;
};

/* The beginning of such records. */
struct task_record {
	struct perf_event_header header;
	uint32_t pid, second, tid, third;
};

static struct task_life *
find(const struct ex_table *table, uint32_t id)
{
	const struct number *number = ex_table_get(table, id);

	return number == NULL ? NULL : number->life;
}

static struct task_life *
begin(struct lives *lives, struct ex_table *table, uint32_t id,
    struct task_life *parent)
{
	struct number *number = ex_table_get(table, id);
	struct task_life *life = &lives->life[lives->n++];

	*life = (struct task_life){
		.before = number == NULL ? NULL : number->life,
		.parent = parent, .id = (pid_t)id, .threads = 1,
		.process = table == &lives->processes,
	};
	if (number == NULL && ex_table_reserve(table, 1) &&
	    (number = malloc(sizeof(*number))) != NULL)
		ex_table_put(table, id, number);
	if (number != NULL)
		number->life = life;
	else
		lives->failed = true;
	return life;
}

static struct task_life *
process_of(struct lives *lives, uint32_t pid)
{
	struct task_life *life = find(&lives->processes, pid);

	return life != NULL ? life : begin(lives, &lives->processes, pid,
	    NULL);
}

static struct task_life *
take_fork(struct lives *lives, const struct task_record *r)
{
	const bool thread = r->pid == r->second;
	struct task_life *maker = process_of(lives, r->second), *life;

	maker->threads += thread;
	life = begin(lives, thread ? &lives->threads : &lives->processes,
	    thread ? r->tid : r->pid, maker);
	life->begun = true;
	return life;
}

static struct task_life *
thread_of(struct lives *lives, uint32_t pid, uint32_t tid)
{
	struct task_life *thread = find(&lives->threads, tid);
	struct task_life *process = process_of(lives, pid);

	return thread != NULL && !thread->ended && thread->parent == process ?
	    thread : process;
}

static struct task_life *
take_exit(struct lives *lives, const struct task_record *r)
{
	struct task_life *life = thread_of(lives, r->pid, r->tid);
	struct task_life *process = life->process ? life : life->parent;

	if (!life->process)
		life->ended = true;
	process->threads -= process->threads > 0;
	process->ended = process->begun && process->threads == 0;
	return life;
}

/* The process or thread of an entry. */
static struct task_life *
take(struct lives *lives, const struct journal_entry *e)
{
	struct task_record r = {.pid = 0};

	if (e->what != JOURNAL_LEARN || e->len < sizeof(r.header) + 8)
		return NULL;
	memcpy(&r, e->bytes, e->len < sizeof(r) ? e->len : sizeof(r));
	switch (r.header.type) {
	case PERF_RECORD_FORK:
		return take_fork(lives, &r);
	case PERF_RECORD_EXIT:
		return take_exit(lives, &r);
	case PERF_RECORD_COMM:
		return thread_of(lives, r.pid, r.second);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return (int32_t)r.pid < 0 ? NULL : process_of(lives, r.pid);
	default:
		return NULL;
	}
}

/* Processes from which others have inherited are needed as long as those. */
static void
find_needed(struct lives *lives, const struct remote_log_calls *calls)
{
	for (size_t i = lives->n; i-- > 0;) {
		struct task_life *life = &lives->life[i];

		life->needed = life->needed || !life->ended ||
		    (life->process && calls->needs(calls->arg, life->id));
		if (life->needed && life->parent != NULL)
			life->parent->needed = true;
	}
}

static size_t
next(const struct buffer *log, size_t at, const struct journal_entry **e)
{
	*e = (const void *)(log->bytes + at);
	return at + (*e)->size;
}

/* --- mappings that are replaced --- */

/* The first span that does not end before an address. */
static size_t
first_from(const struct cover *cover, uint64_t addr)
{
	return addr == 0 ? 0 : EX_ARRAY_UPTO(cover->at, cover->n, to, addr - 1);
}

static bool
covers(const struct cover *cover, const struct span *span)
{
	const size_t i = first_from(cover, span->to);

	return i < cover->n && cover->at[i].from <= span->from;
}

/* Returns false if there is no memory. */
static bool
add_span(struct cover *cover, struct span span)
{
	const size_t i = first_from(cover, span.from);
	size_t n = 0;

	if (!EX_ARRAY_ROOM(cover, at, SIZE_MAX / sizeof(span)))
		return false;
	for (; i + n < cover->n && cover->at[i + n].from <= span.to; n++) {
		if (cover->at[i + n].from < span.from)
			span.from = cover->at[i + n].from;
		if (cover->at[i + n].to > span.to)
			span.to = cover->at[i + n].to;
	}
	memmove(&cover->at[i + 1], &cover->at[i + n],
	    (cover->n - i - n) * sizeof(span));
	cover->at[i] = span;
	cover->n += 1 - n;
	return true;
}

static bool
read_map(const struct journal_entry *e, struct span *span)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, len;
	} map;

	if (e->len < sizeof(map))
		return false;
	memcpy(&map, e->bytes, sizeof(map));
	*span = (struct span){map.addr, map.addr + map.len};
	return map.len > 0 && span->to > span->from;
}

static bool
is_exec(const struct perf_event_header *header)
{
	return header->type == PERF_RECORD_COMM &&
	    (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
}

/* Look at an entry; cover has what its process maps after it. */
static void
look_back(struct lives *lives, size_t i, const struct journal_entry *e)
{
	static const struct span all = {0, UINT64_MAX};
	struct task_life *life = lives->of[i];
	struct perf_event_header header;
	struct span span;

	if (life == NULL || !life->process)
		return;
	memcpy(&header, e->bytes, sizeof(header));
	if (header.type == PERF_RECORD_FORK && life->parent != NULL) {
		if (life->needed)
			life->parent->cover.n = 0;
	} else if (is_exec(&header)) {
		lives->failed |= !add_span(&life->cover, all);
	} else if ((header.type == PERF_RECORD_MMAP ||
	    header.type == PERF_RECORD_MMAP2) && read_map(e, &span)) {
		if (covers(&life->cover, &span))
			lives->at[i] = SIZE_MAX;
		else
			lives->failed |= !add_span(&life->cover, span);
	}
}

/* The mappings of the process are used here. */
static void
forget_cover(const struct lives *lives, pid_t pid)
{
	for (struct task_life *life = find(&lives->processes, (uint32_t)pid);
	    life != NULL; life = life->before)
		life->cover.n = 0;
}

/* From the last entry back to the first. */
static void
find_replaced(struct buffer *log, struct lives *lives, size_t n,
    const struct remote_log_calls *calls)
{
	size_t uses = calls->nuses;

	for (size_t i = n; i-- > 0 && !lives->failed;) {
		const struct journal_entry *e;

		(void)next(log, lives->at[i], &e);
		if (e->what != JOURNAL_LEARN)
			continue;
		while (uses > 0 && calls->use[uses - 1].time >= e->value[1])
			forget_cover(lives, calls->use[--uses].pid);
		look_back(lives, i, e);
	}
}

static void
drop(struct buffer *log, const struct lives *lives)
{
	const struct journal_entry *e;
	size_t to = 0, i = 0;

	for (size_t at = 0, end; at < log->len; at = end, i++) {
		end = next(log, at, &e);
		if (lives->at[i] == SIZE_MAX ||
		    (lives->of[i] != NULL && !lives->of[i]->needed))
			continue;
		memmove(log->bytes + to, log->bytes + at, end - at);
		to += end - at;
	}
	log->len = to;
}

static void
say_gone(const struct lives *lives, const struct remote_log_calls *calls)
{
	for (size_t i = 0; i < lives->n; i++) {
		const struct task_life *life = &lives->life[i];

		if (life->process && !life->needed &&
		    find(&lives->processes, (uint32_t)life->id) == life)
			calls->gone(calls->arg, life->id);
	}
}

void
remote_log_shrink(struct buffer *log, const struct remote_log_calls *calls)
{
	const struct journal_entry *e;
	struct lives lives = {0};
	size_t n = 0, i = 0;

	for (size_t at = 0; at < log->len; n++)
		at = next(log, at, &e);
	/* an entry starts at most one life and refers to at most one other */
	lives.life = calloc(2 * n + 1, sizeof(*lives.life));
	lives.of = calloc(n + 1, sizeof(struct task_life *));
	lives.at = calloc(n + 1, sizeof(*lives.at));
	lives.failed = lives.life == NULL || lives.of == NULL ||
	    lives.at == NULL;
	for (size_t at = 0; at < log->len && !lives.failed; i++) {
		lives.at[i] = at;
		at = next(log, at, &e);
		lives.of[i] = take(&lives, e);
	}
	if (!lives.failed) {
		find_needed(&lives, calls);
		find_replaced(log, &lives, n, calls);
	}
	if (!lives.failed) {
		drop(log, &lives);
		say_gone(&lives, calls);
	}
	while (lives.n > 0)
		free(lives.life[--lives.n].cover.at);
	free(lives.at);
	ex_table_free(&lives.processes, free);
	ex_table_free(&lives.threads, free);
	free(lives.life);
	free(lives.of);
}
