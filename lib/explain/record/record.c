/*
 * record: the decoder of perf records.
 *
 * Every part of a record is taken by a cursor that ends where the record does;
 * the verdict is asked for once, when all parts have been taken.
 */
#include "record/record.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "record/cursor.h"
#include "base/array.h"
#include "base/bytes.h"
#include "base/table.h"

static_assert(sizeof(struct perf_event_header) == 8, "header of a record");
static_assert(sizeof(struct perf_branch_entry) == 24, "a branch's entry");

/* Since Linux 6.8: a u64 of counters for each branch follows all branches. */
#define BRANCH_COUNTERS (1ULL << 19)

/* The bits that this decoder knows. */
#define KNOWN_SAMPLE ((PERF_SAMPLE_WEIGHT_STRUCT << 1) - 1ULL)
#define KNOWN_READ ((PERF_FORMAT_LOST << 1) - 1ULL)
#define KNOWN_BRANCH ((BRANCH_COUNTERS << 1) - 1)

/* Fields that end all records except samples, with sample_id_all. */
#define TRAILER (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | \
	PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

#define BUILD_ID_MAX 20
#define BPF_TAG_LEN 8

/* An event: its attribute, the number of registers in its samples, and whether
   any of its ids is known. */
struct event {
	struct perf_event_attr attr;
	unsigned user_regs, intr_regs;
	bool has_ids;
};

struct ex_formats {
	struct event *events;
	size_t count, cap;
	bool uniform;		/* all events have the same layout */
	int sample_id, trailer_id;	/* offsets of the ids in samples and
					   in other records; -1: none */
	struct ex_table ids;	/* by id: event number + 1 */
};

static unsigned
bits(uint64_t mask)
{
	return (unsigned)__builtin_popcountll(mask);
}

static void
take_pids(struct cursor *c, pid_t *pid, pid_t *tid)
{
	*pid = (pid_t)take32(c);
	*tid = (pid_t)take32(c);
}

/*
 * The formats.
 */

struct ex_formats *
ex_formats_new(void)
{
	struct ex_formats *f = calloc(1, sizeof(*f));

	if (f != NULL)
		f->uniform = true;
	return f;
}

void
ex_formats_free(struct ex_formats *f)
{
	if (f == NULL)
		return;
	free(f->events);
	ex_table_free(&f->ids, NULL);
	free(f);
}

int
ex_formats_find(const struct ex_formats *f, uint64_t id)
{
	return (int)(uintptr_t)ex_table_get(&f->ids, id) - 1;
}

/* Whether an event can have these ids, and there is room for them. */
static int
check_ids(struct ex_formats *f, int attr, const uint64_t *ids, size_t nids)
{
	size_t i;

	for (i = 0; i < nids; i++) {
		int owner = ex_formats_find(f, ids[i]);

		if (owner >= 0 && owner != attr)
			return -EINVAL;
	}
	return ex_table_reserve(&f->ids, nids) ? 0 : -ENOMEM;
}

static void
put_ids(struct ex_formats *f, int attr, const uint64_t *ids, size_t nids)
{
	for (size_t i = 0; i < nids; i++) {
		if (ids[i] == 0)
			continue;
		if (ex_formats_find(f, ids[i]) < 0)
			ex_table_put(&f->ids, ids[i],
			    (void *)(uintptr_t)(attr + 1));
		f->events[attr].has_ids = true;
	}
}

int
ex_formats_ids(struct ex_formats *f, int attr, const uint64_t *ids,
    size_t nids)
{
	int err;

	if (attr < 0 || (size_t)attr >= f->count)
		return -EINVAL;
	err = check_ids(f, attr, ids, nids);
	if (err == 0)
		put_ids(f, attr, ids, nids);
	return err;
}

/* The offset of a sample's id: u64s after the header; -1 if it has none. */
static int
sample_id_at(const struct perf_event_attr *attr)
{
	if (attr->sample_type & PERF_SAMPLE_IDENTIFIER)
		return 0;
	if (!(attr->sample_type & PERF_SAMPLE_ID))
		return -1;
	return (int)bits(attr->sample_type & (PERF_SAMPLE_IP |
	    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

/* The offset in other records: u64s before the end; -1 if they have none. */
static int
trailer_id_at(const struct perf_event_attr *attr)
{
	if (!attr->sample_id_all)
		return -1;
	if (attr->sample_type & PERF_SAMPLE_IDENTIFIER)
		return 1;
	if (!(attr->sample_type & PERF_SAMPLE_ID))
		return -1;
	return 1 + (int)bits(attr->sample_type & (PERF_SAMPLE_STREAM_ID |
	    PERF_SAMPLE_CPU));
}

static bool
same_layout(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	const uint64_t parts = PERF_SAMPLE_BRANCH_HW_INDEX | BRANCH_COUNTERS;

	return a->sample_type == b->sample_type &&
	    a->read_format == b->read_format &&
	    a->sample_id_all == b->sample_id_all &&
	    a->sample_regs_user == b->sample_regs_user &&
	    a->sample_regs_intr == b->sample_regs_intr &&
	    ((a->branch_sample_type ^ b->branch_sample_type) & parts) == 0;
}

/* Whether the id of any record of both events can be found before its event is
   known. */
static bool
same_id_place(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return sample_id_at(a) >= 0 && sample_id_at(a) == sample_id_at(b) &&
	    trailer_id_at(a) >= 0 && trailer_id_at(a) == trailer_id_at(b);
}

static bool
is_known(const struct perf_event_attr *attr)
{
	return (attr->sample_type & ~KNOWN_SAMPLE) == 0 &&
	    (attr->read_format & ~KNOWN_READ) == 0 &&
	    (!(attr->sample_type & PERF_SAMPLE_BRANCH_STACK) ||
	    (attr->branch_sample_type & ~KNOWN_BRANCH) == 0);
}

int
ex_formats_add(struct ex_formats *f, const struct perf_event_attr *attr,
    const uint64_t *ids, size_t nids)
{
	const int event = (int)f->count;
	bool uniform;
	int err;

	if (!is_known(attr))
		return -ENOTSUP;
	uniform = f->count == 0 || (f->uniform &&
	    same_layout(attr, &f->events[0].attr));
	if (!uniform && !same_id_place(attr, &f->events[0].attr))
		return -EINVAL;
	if (!ex_array_room(&f->events, f->count, 1, &f->cap,
	    sizeof(*f->events), INT_MAX))
		return -ENOMEM;
	err = check_ids(f, event, ids, nids);
	if (err < 0)
		return err;
	f->events[f->count++] = (struct event){.attr = *attr,
	    .user_regs = bits(attr->sample_regs_user),
	    .intr_regs = bits(attr->sample_regs_intr)};
	f->sample_id = sample_id_at(&f->events[0].attr);
	f->trailer_id = trailer_id_at(&f->events[0].attr);
	put_ids(f, event, ids, nids);
	f->uniform = uniform;
	return event;
}

/* The event of a record, which may have an id; -1 if unknown. */
static int
event_of(const struct ex_formats *f, bool carried, uint64_t id)
{
	if (f->count == 1 && !(carried && f->events[0].has_ids))
		return 0;
	return carried ? ex_formats_find(f, id) : -1;
}

/*
 * Samples.
 */

/* Take the n registers of the mask. */
static void
take_regs(struct cursor *c, uint64_t mask, unsigned n,
    struct ex_perf_regs *regs)
{
	regs->abi = take64(c);
	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	if (regs->abi > PERF_SAMPLE_REGS_ABI_64)
		cursor_fail(c);	/* the layout of a newer kernel */
	regs->mask = mask;
	regs->values = take(c, n, sizeof(uint64_t));
}

/* The values of read(2) on an event. */
struct counts {
	uint64_t value, enabled, running, id, lost;
};

static void
take_counts(struct cursor *c, uint64_t format, struct counts *counts)
{
	bool group = format & PERF_FORMAT_GROUP;
	size_t entry = sizeof(uint64_t) *
	    (1 + bits(format & (PERF_FORMAT_ID | PERF_FORMAT_LOST)));
	uint64_t n = group ? take64(c) : 1;

	memset(counts, 0, sizeof(*counts));
	if (!group)
		counts->value = take64(c);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		counts->enabled = take64(c);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		counts->running = take64(c);
	if (n == 0)
		return;
	if (group)
		counts->value = take64(c);
	if (format & PERF_FORMAT_ID)
		counts->id = take64(c);
	if (format & PERF_FORMAT_LOST)
		counts->lost = take64(c);
	(void)take(c, n - 1, entry);
}

static void
take_branches(struct cursor *c, uint64_t type, struct ex_sample *s)
{
	s->branch_len = take64(c);
	if (type & PERF_SAMPLE_BRANCH_HW_INDEX)
		s->branch_hw_idx = take64(c);
	s->branch = take(c, s->branch_len, sizeof(struct perf_branch_entry));
	if (type & BRANCH_COUNTERS)
		s->branch_counters = take(c, s->branch_len, sizeof(uint64_t));
}

static void
take_stack(struct cursor *c, struct ex_sample *s)
{
	s->stack_asked = take64(c);
	s->stack = take(c, s->stack_asked, 1);
	if (s->stack_asked > 0)
		s->stack_len = take64(c);
	if (s->stack_len > s->stack_asked)
		cursor_fail(c);
}

/* The fields up to PERIOD, one number each.  The id is known already. */
static void
take_numbers(struct cursor *c, uint64_t type, struct ex_record *r)
{
	if (type & PERF_SAMPLE_IDENTIFIER)
		(void)take64(c);
	if (type & PERF_SAMPLE_IP)
		r->sample.ip = take64(c);
	if (type & PERF_SAMPLE_TID)
		take_pids(c, &r->pid, &r->tid);
	if (type & PERF_SAMPLE_TIME)
		r->time = take64(c);
	if (type & PERF_SAMPLE_ADDR)
		r->sample.addr = take64(c);
	if (type & PERF_SAMPLE_ID)
		(void)take64(c);
	if (type & PERF_SAMPLE_STREAM_ID)
		r->stream_id = take64(c);
	if (type & PERF_SAMPLE_CPU)
		r->cpu = (uint32_t)take64(c);
	if (type & PERF_SAMPLE_PERIOD)
		r->sample.period = take64(c);
}

/* READ to STACK_USER: fields of variable length. */
static void
take_parts(struct cursor *c, const struct event *event, struct ex_sample *s)
{
	const struct perf_event_attr *attr = &event->attr;
	uint64_t type = attr->sample_type;

	if (type & PERF_SAMPLE_READ) {
		struct counts counts;

		take_counts(c, attr->read_format, &counts);
		s->value = counts.value;
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		s->callchain_len = take64(c);
		s->callchain = take(c, s->callchain_len, sizeof(uint64_t));
	}
	if (type & PERF_SAMPLE_RAW) {
		/* the length includes padding to 8 bytes */
		s->raw_len = take32(c);
		s->raw = take(c, s->raw_len, 1);
	}
	if (type & PERF_SAMPLE_BRANCH_STACK)
		take_branches(c, attr->branch_sample_type, s);
	if (type & PERF_SAMPLE_REGS_USER)
		take_regs(c, attr->sample_regs_user, event->user_regs,
		    &s->user);
	if (type & PERF_SAMPLE_STACK_USER)
		take_stack(c, s);
}

/* From WEIGHT on.  AUX comes last: the kernel writes it there, contrary to the
   comment in its header. */
static void
take_rest(struct cursor *c, const struct event *event, struct ex_sample *s)
{
	uint64_t type = event->attr.sample_type;

	if (type & PERF_SAMPLE_WEIGHT_TYPE)
		s->weight = take64(c);
	if (type & PERF_SAMPLE_DATA_SRC)
		s->data_src = take64(c);
	if (type & PERF_SAMPLE_TRANSACTION)
		s->transaction = take64(c);
	if (type & PERF_SAMPLE_REGS_INTR)
		take_regs(c, event->attr.sample_regs_intr, event->intr_regs,
		    &s->intr);
	if (type & PERF_SAMPLE_PHYS_ADDR)
		s->phys_addr = take64(c);
	if (type & PERF_SAMPLE_CGROUP)
		s->cgroup = take64(c);
	if (type & PERF_SAMPLE_DATA_PAGE_SIZE)
		s->data_page_size = take64(c);
	if (type & PERF_SAMPLE_CODE_PAGE_SIZE)
		s->code_page_size = take64(c);
	if (type & PERF_SAMPLE_AUX) {
		s->aux_len = take64(c);
		s->aux = take(c, s->aux_len, 1);
	}
}

static int
decode_sample(const struct ex_formats *f, struct cursor c, struct ex_record *r)
{
	const struct event *event;
	const int at = f->sample_id;

	if (f->count == 0)
		return -ENOENT;
	event = &f->events[0];
	if (at >= 0) {
		struct cursor id = c;

		(void)take(&id, (uint64_t)at, sizeof(uint64_t));
		r->id = take64(&id);
		if (id.bad)
			return -EBADMSG;
	}
	r->attr = event_of(f, at >= 0, r->id);
	if (r->attr >= 0)
		event = &f->events[r->attr];
	else if (at >= 0)
		return -ENOENT;
	take_numbers(&c, event->attr.sample_type, r);
	take_parts(&c, event, &r->sample);
	take_rest(&c, event, &r->sample);
	return c.bad || c.left > 0 ? -EBADMSG : 1;
}

/*
 * Records of other types: a body, possibly with fields added by newer kernels,
 * followed by the trailer.
 */

static void
take_mmap(struct cursor *c, struct ex_record *r)
{
	take_pids(c, &r->pid, &r->tid);
	r->mmap.start = take64(c);
	r->mmap.len = take64(c);
	r->mmap.pgoff = take64(c);
}

static void
decode_mmap(struct cursor *c, struct ex_record *r)
{
	take_mmap(c, r);
	r->mmap.path = take_string(c);
	if (!(r->misc & PERF_RECORD_MISC_MMAP_DATA))
		r->mmap.prot = PROT_EXEC;
}

static void
decode_mmap2(struct cursor *c, struct ex_record *r)
{
	struct ex_mmap *m = &r->mmap;

	take_mmap(c, r);
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		const uint8_t *size = take(c, 1, 4);

		m->build_id = take(c, 1, BUILD_ID_MAX);
		m->build_id_len = size != NULL ? *size : 0;
		if (m->build_id_len > BUILD_ID_MAX)
			cursor_fail(c);
		if (m->build_id_len == 0)
			m->build_id = NULL;
	} else {
		m->maj = take32(c);
		m->min = take32(c);
		m->ino = take64(c);
		m->ino_generation = take64(c);
	}
	m->prot = take32(c);
	m->flags = take32(c);
	m->path = take_string(c);
}

static void
decode_lost(struct cursor *c, struct ex_record *r)
{
	if (r->type == PERF_RECORD_LOST)
		r->lost.id = take64(c);
	r->lost.count = take64(c);
}

static void
decode_comm(struct cursor *c, struct ex_record *r)
{
	take_pids(c, &r->comm.pid, &r->comm.tid);
	r->comm.name = take_string(c);
	r->pid = r->comm.pid;
	r->tid = r->comm.tid;
}

static void
decode_task(struct cursor *c, struct ex_record *r)
{
	take_pids(c, &r->task.pid, &r->task.ppid);
	take_pids(c, &r->task.tid, &r->task.ptid);
	r->task.time = take64(c);
	r->pid = r->task.pid;
	r->tid = r->task.tid;
	if (r->time == 0)
		r->time = r->task.time;
}

static void
decode_throttle(struct cursor *c, struct ex_record *r)
{
	r->throttle.time = take64(c);
	r->throttle.id = take64(c);
	r->throttle.stream = take64(c);
	if (r->time == 0)
		r->time = r->throttle.time;
}

static void
decode_aux(struct cursor *c, struct ex_record *r)
{
	r->aux.offset = take64(c);
	r->aux.size = take64(c);
	r->aux.flags = take64(c);
}

static void
decode_itrace_start(struct cursor *c, struct ex_record *r)
{
	take_pids(c, &r->pid, &r->tid);
}

static void
decode_hw_id(struct cursor *c, struct ex_record *r)
{
	r->aux.hw_id = take64(c);
}

static void
decode_switch(struct cursor *c, struct ex_record *r)
{
	r->sw.out = r->misc & PERF_RECORD_MISC_SWITCH_OUT;
	r->sw.other_pid = -1;
	r->sw.other_tid = -1;
	if (r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		take_pids(c, &r->sw.other_pid, &r->sw.other_tid);
}

static void
decode_namespaces(struct cursor *c, struct ex_record *r)
{
	take_pids(c, &r->ns.pid, &r->ns.tid);
	r->ns.count = take64(c);
	r->ns.links = take(c, r->ns.count, sizeof(struct perf_ns_link_info));
	r->pid = r->ns.pid;
	r->tid = r->ns.tid;
}

static void
decode_ksymbol(struct cursor *c, struct ex_record *r)
{
	r->ksymbol.addr = take64(c);
	r->ksymbol.len = take32(c);
	r->ksymbol.ksym_type = take16(c);
	r->ksymbol.flags = take16(c);
	r->ksymbol.name = take_string(c);
}

static void
decode_bpf(struct cursor *c, struct ex_record *r)
{
	r->bpf.what = take16(c);
	r->bpf.flags = take16(c);
	r->bpf.prog = take32(c);
	r->bpf.tag = take(c, 1, BPF_TAG_LEN);
}

static void
decode_cgroup(struct cursor *c, struct ex_record *r)
{
	r->cgroup.cgroup = take64(c);
	r->cgroup.path = take_string(c);
}

static void
decode_poke(struct cursor *c, struct ex_record *r)
{
	r->poke.addr = take64(c);
	r->poke.old_len = take16(c);
	r->poke.new_len = take16(c);
	r->poke.bytes = take(c, (uint64_t)r->poke.old_len + r->poke.new_len, 1);
}

/* The body of READ depends on its event. */
static void
decode_read(struct cursor *c, uint64_t format, struct ex_record *r)
{
	struct counts counts;

	take_pids(c, &r->read.pid, &r->read.tid);
	take_counts(c, format, &counts);
	r->pid = r->read.pid;
	r->tid = r->read.tid;
	r->read.value = counts.value;
	r->read.enabled = counts.enabled;
	r->read.running = counts.running;
	r->read.id = counts.id;
	r->read.lost = counts.lost;
}

/* Decodes the body of any other type. */
typedef void body_decoder(struct cursor *, struct ex_record *);

static body_decoder *const bodies[] = {
	[PERF_RECORD_MMAP] = decode_mmap,
	[PERF_RECORD_LOST] = decode_lost,
	[PERF_RECORD_COMM] = decode_comm,
	[PERF_RECORD_EXIT] = decode_task,
	[PERF_RECORD_THROTTLE] = decode_throttle,
	[PERF_RECORD_UNTHROTTLE] = decode_throttle,
	[PERF_RECORD_FORK] = decode_task,
	[PERF_RECORD_MMAP2] = decode_mmap2,
	[PERF_RECORD_AUX] = decode_aux,
	[PERF_RECORD_ITRACE_START] = decode_itrace_start,
	[PERF_RECORD_LOST_SAMPLES] = decode_lost,
	[PERF_RECORD_SWITCH] = decode_switch,
	[PERF_RECORD_SWITCH_CPU_WIDE] = decode_switch,
	[PERF_RECORD_NAMESPACES] = decode_namespaces,
	[PERF_RECORD_KSYMBOL] = decode_ksymbol,
	[PERF_RECORD_BPF_EVENT] = decode_bpf,
	[PERF_RECORD_CGROUP] = decode_cgroup,
	[PERF_RECORD_TEXT_POKE] = decode_poke,
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = decode_hw_id,
};

static bool
is_known_type(uint32_t type)
{
	return type == PERF_RECORD_READ ||
	    (type < sizeof(bodies) / sizeof(bodies[0]) && bodies[type] != NULL);
}

/* The attribute that determines the layout of the record's trailer, or NULL if
   unknown. */
static const struct perf_event_attr *
layout_of(const struct ex_formats *f, const struct ex_record *r)
{
	if (r->attr >= 0)
		return &f->events[r->attr].attr;
	/* records that perf made up have id 0 and the layout of the first
	   event */
	return f->uniform || r->id == 0 ? &f->events[0].attr : NULL;
}

/* Read the trailer and remove it from the body. */
static void
split_trailer(struct cursor *body, const struct perf_event_attr *attr,
    struct ex_record *r)
{
	uint64_t type = attr->sample_id_all ? attr->sample_type & TRAILER : 0;
	size_t len = bits(type) * sizeof(uint64_t);
	struct cursor c;

	if (body->left < len) {
		cursor_fail(body);
		return;
	}
	body->left -= len;
	c = (struct cursor){body->p + body->left, len, false};
	if (type & PERF_SAMPLE_TID)
		take_pids(&c, &r->pid, &r->tid);
	if (type & PERF_SAMPLE_TIME)
		r->time = take64(&c);
	if (type & PERF_SAMPLE_ID)
		r->id = take64(&c);
	if (type & PERF_SAMPLE_STREAM_ID)
		r->stream_id = take64(&c);
	if (type & PERF_SAMPLE_CPU)
		r->cpu = (uint32_t)take64(&c);
	if (type & PERF_SAMPLE_IDENTIFIER)
		r->id = take64(&c);
	if (trailer_id_at(attr) >= 0 && r->id == 0) {
		/* made up by perf; of such zeros only the time counts */
		r->pid = r->tid = -1;
		r->cpu = UINT32_MAX;
	}
}

static int
decode_other(const struct ex_formats *f, struct cursor c, struct ex_record *r)
{
	static const struct perf_event_attr none;
	const struct perf_event_attr *attr = &none;
	const int at = f->trailer_id;

	if (f->count > 0) {
		if (at >= 0) {
			size_t back = (size_t)at * sizeof(uint64_t);

			if (c.left < back)
				return -EBADMSG;
			r->id = ex_u64(c.p + (c.left - back));
		}
		r->attr = event_of(f, at >= 0, r->id);
		attr = layout_of(f, r);
	}
	if (attr == NULL)
		return -ENOENT;
	split_trailer(&c, attr, r);
	if (r->type == PERF_RECORD_READ)
		decode_read(&c, attr->read_format, r);
	else
		bodies[r->type](&c, r);
	return c.bad ? -EBADMSG : 1;
}

int
ex_record_decode(const struct ex_formats *f, const void *bytes, size_t len,
    struct ex_record *out)
{
	struct perf_event_header header;
	struct cursor payload;

	memset(out, 0, sizeof(*out));
	out->attr = -1;
	out->pid = out->tid = -1;
	out->cpu = UINT32_MAX;
	if (len < sizeof(header))
		return -EBADMSG;
	memcpy(&header, bytes, sizeof(header));
	if (header.size < sizeof(header) || header.size > len)
		return -EBADMSG;
	out->type = header.type;
	out->misc = header.misc;
	out->size = header.size;
	out->bytes = bytes;
	payload = (struct cursor){out->bytes + sizeof(header),
	    header.size - sizeof(header), false};
	if (header.type == PERF_RECORD_SAMPLE)
		return decode_sample(f, payload, out);
	if (is_known_type(header.type))
		return decode_other(f, payload, out);
	return 0;
}

bool
ex_regs_get(const struct ex_perf_regs *regs, unsigned reg, uint64_t *value)
{
	uint64_t bit, before;

	if (regs->values == NULL || reg >= EX_REGS_MAX)
		return false;
	bit = (uint64_t)1 << reg;
	if (!(regs->mask & bit))
		return false;
	before = regs->mask & (bit - 1);
	*value = ex_u64(regs->values + sizeof(*value) *
	    (before == bit - 1 ? reg : bits(before)));
	return true;
}

uint64_t
ex_callchain_at(const struct ex_sample *s, uint64_t i)
{
	return ex_u64(s->callchain + i * sizeof(uint64_t));
}
