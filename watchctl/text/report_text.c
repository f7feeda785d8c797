/*
 * report_text: for a reader at a terminal.  A backtrace is printed in full at
 * its first hit, and later hits refer to that one.
 */
#include <errno.h>
#include <string.h>

#include "policy/culprit.h"
#include "report/change.h"
#include "report/damage.h"
#include "text/short_name.h"
#include "report/summary.h"
#include "text/text.h"
#include "util/visible.h"

#define INDENT	"     "

int
text_flush(struct report *r)
{
	return text_write(r, 0, true);
}

/* The number of processes that have each watch; 0: this is not repeated for
   each watch. */
static unsigned
count_processes(const struct report_start *start)
{
	unsigned n = 0;

	for (unsigned i = 0; i < start->nwatches; i++)
		n += start->watches[i]->pid != 0 &&
		    start->watches[i]->whole == NULL &&
		    ex_watch_number(start->watches[i]) ==
		    ex_watch_number(start->watches[0]);
	return n;
}

static void
put_target(struct buffer *b, const struct report_start *start)
{
	const unsigned processes = count_processes(start);

	if (processes > 0) {
		buffer_printf(b, "%u process%s", processes,
		    processes == 1 ? "" : "es");
	} else if (start->pid > 0 && start->comm != NULL) {
		buffer_puts(b, "in ");
		visible_put(b, start->comm);
		buffer_printf(b, "[%d]", (int)start->pid);
	} else if (start->pid > 0)
		buffer_printf(b, "in process %d", (int)start->pid);
	else if (start->pid < 0)
		buffer_puts(b, "in all processes");
	else
		buffer_puts(b, "in a recording");
	if (start->threads > 0)
		buffer_printf(b, ", %u thread%s", start->threads,
		    start->threads == 1 ? "" : "s");
	if (start->frozen_ms >= 0)
		buffer_printf(b, ", frozen %.1f ms", start->frozen_ms);
	if (start->delivery != NULL && strcmp(start->delivery, "bpf") == 0)
		buffer_puts(b, ", delivered by BPF");
}

int
text_start(struct report *r, const struct report_start *start)
{
	struct text *text = text_new(r);

	r->begin = *start;
	r->summary = summary_new(SUMMARY_ROWS);
	if (text == NULL || r->summary == NULL) {
		text_free(r);
		return -ENOMEM;
	}
	if (start->nwatches == 0)	/* they come with their hits */
		return 0;
	for (unsigned i = 0; i < start->nwatches; i++) {
		const struct ex_watch *watch = start->watches[i];

		if (watch->whole != NULL)
			continue;
		buffer_puts(&text->out, i == 0 ? "watching " : ",\n         ");
		text_put_watch_name(r, &text->out, watch);
		buffer_puts(&text->out, " ");
		if (watch->pending)
			buffer_puts(&text->out, "(when it is there)");
		else
			text_put_bytes(r, &text->out, watch, watch->local ? 0 :
			    watch->addr, watch->len, NULL);
		buffer_puts(&text->out, " for ");
		buffer_puts(&text->out, text_access_words(watch->access));
		if (ex_watch_by_uprobe(watch))
			buffer_puts(&text->out, " by a uprobe");
		text_put_process(&text->out, watch);
	}
	/* parts over which slots move come after the other watches */
	buffer_puts(&text->out, start->nwatches > 1 &&
	    start->watches[1]->whole == NULL ? "\n         " : " ");
	put_target(&text->out, start);
	buffer_puts(&text->out, "\n");
	return text_write(r, 0, true);
}

int
text_watch(struct report *r, const struct ex_watch *const *watches,
    unsigned nwatches)
{
	r->begin.watches = watches;
	r->begin.nwatches = nwatches;
	return 0;
}

/* " in /bin/victim[4335]"; if the program is not known, the one of the watch;
   or " in process 4335". */
static void
put_event_process(struct buffer *b, const struct watch_event *event,
    const struct ex_watch *watch)
{
	const size_t start = b->len;

	if (*event->program != '\0') {
		buffer_puts(b, " in ");
		visible_put(b, event->program);
		if (event->pid > 0)
			buffer_printf(b, "[%d]", (int)event->pid);
		return;
	}
	text_put_process(b, watch);
	if (b->len == start && event->pid > 0)
		buffer_printf(b, " in process %d", (int)event->pid);
}

/* "watch armed: counter (8 bytes at 0x404090) in victim[4335]  +1.250000s  (not
   watched for 310.2 us before that)". */
int
text_event(struct report *r, const struct watch_event *event)
{
	const struct ex_watch *watch = r->begin.watches[event->watch];
	struct text *text = r->own;
	struct buffer *b = &text->out;
	const size_t start = b->len;

	/* there may be many threads, and each hit names its thread */
	if (watch->local && event->tid != 0 && event->gap == WATCH_NO_GAP)
		return 0;

	buffer_puts(b, event->what == WATCH_RETARGET ? "watch moved: " :
	    "watch ");
	if (event->what != WATCH_RETARGET) {
		buffer_puts(b, watch_event_text(event));
		buffer_puts(b, ": ");
	}
	text_put_watch_name(r, b, watch);
	if (event->len > 0) {
		buffer_puts(b, " ");
		text_put_bytes(r, b, watch, event->addr, event->len, NULL);
	} else if (event->what == WATCH_RETARGET)
		buffer_puts(b, " to nowhere: a null pointer");
	if (*event->module != '\0') {
		buffer_puts(b, " of ");
		visible_put(b, event->module);
	}
	put_event_process(b, event, watch);
	buffer_puts(b, "  ");
	text_put_time(r, b, event->time, "s");
	if (event->gap != WATCH_NO_GAP)
		buffer_printf(b, "  (not watched for %llu.%llu us before "
		    "that)", (unsigned long long)(event->gap / 1000),
		    (unsigned long long)(event->gap % 1000 / 100));
	buffer_puts(b, "\n");
	return text_write(r, start, false);
}

/* " in conn_close at server.c:41" */
static void
put_caller(struct report *r, struct buffer *b, const struct ex_stack *stack)
{
	const struct ex_frame *frame = stack == NULL ? NULL :
	    culprit_of(stack);

	if (frame != NULL) {
		buffer_puts(b, " in ");
		text_put_name(b, frame);
		if (frame->file != NULL) {
			buffer_puts(b, " at ");
			text_put_place(r->own, b, frame);
		}
	}
	buffer_puts(b, "  ");
}

/* "object 3 of alloc:conn_new+8:4 in victim[4335] at 0x55d0c0: new
   +1.250000s". */
static int
text_object(struct report *r, const struct object_event *event)
{
	const struct ex_watch *watch = r->begin.watches[event->watch];
	struct buffer *b = &((struct text *)r->own)->out;
	const size_t start = b->len;

	buffer_printf(b, "object %llu of ", (unsigned long long)event->object);
	text_put_watch_name(r, b, watch);
	text_put_process(b, watch);
	buffer_printf(b, " at %#llx: %s by thread %d",
	    (unsigned long long)event->addr, event->what == OBJECT_NEW ?
	    "made" : event->what == OBJECT_FREED ? "freed" :
	    "its memory is handed out again", (int)event->tid);
	put_caller(r, b, event->stack);
	text_put_time(r, b, event->time, "s");
	buffer_puts(b, "\n");
	return text_write(r, start, false);
}

/* ", 8 of 64 bytes, fd 3 (/etc/hosts)". */
static void
put_call(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_syscall *call = &hit->call;

	if (call->has_bytes)
		buffer_printf(b, ", %llu of %llu byte%s",
		    (unsigned long long)hit->len,
		    (unsigned long long)call->bytes,
		    call->bytes == 1 ? "" : "s");
	if (call->has_fd)
		buffer_printf(b, ", fd %d", call->fd);
	if (call->has_fd && *call->file != '\0') {
		buffer_puts(b, " (");
		visible_put(b, call->file);
		buffer_puts(b, call->file_later ? ") looked up later" : ")");
	}
}

/* "  41 -> 42"; if the value is that of a part of the watch, with its name: "
   conn.state: OPEN -> CLOSED". */
static void
put_change(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	if (!c->has_old && !c->has_new)
		return;
	buffer_puts(b, "  ");
	change_put_path(b, hit);
	change_put(b, hit);
}

/* "  n = -5, s = 0x4040 <name>": the arguments of a function. */
static void
put_arguments(struct buffer *b, const struct ex_arguments *args)
{
	for (unsigned i = 0; i < args->n; i++) {
		const struct ex_argument *arg = &args->arg[i];

		buffer_puts(b, i == 0 ? "  " : ", ");
		if (*arg->name != '\0') {
			visible_put(b, arg->name);
			buffer_puts(b, " = ");
		}
		if (*arg->text != '\0')
			visible_put(b, arg->text);
		else
			buffer_hex(b, arg->value);
	}
}

/* "#12  write  counter (long, 8 bytes at 0x404090)  41 -> 42" */
static void
put_what(struct report *r, struct buffer *b, const struct ex_hit *hit,
    bool full)
{
	const struct ex_watch *watch = ex_hit_object(hit);

	buffer_printf(b, "#%-3llu ", (unsigned long long)hit->seq);
	if (hit->stray || hit->unjudged)
		text_paint(r, b, PAINT_BAD);
	text_put_access(b, text_verdict(hit->stray, hit->unjudged), hit->access,
	    hit->kernel, hit->call.name,
	    hit->call.work);
	if (hit->kernel)
		put_call(b, hit);
	if (hit->stray || hit->unjudged)
		text_paint(r, b, PAINT_PLAIN);
	buffer_puts(b, "  ");
	text_put_watch_name(r, b, watch);
	if (ex_hit_after_free(hit))
		buffer_puts(b, ", freed");
	if (full || (hit->len != 0 && hit->len < watch->len)) {
		buffer_puts(b, " ");
		text_put_bytes(r, b, watch, hit->addr, hit->len,
		    hit->change.type);
	}
	if (hit->args != NULL)
		put_arguments(b, hit->args);
	put_change(b, hit);
	if (hit->unsure)
		buffer_puts(b, " (--if: not known)");
}

/* "victim[4335/4340] cpu 1  +12.003417s" */
static void
put_thread(struct report *r, struct buffer *b, const struct ex_hit *hit)
{
	visible_put(b, hit->comm);
	buffer_printf(b, "[%d/%d]", (int)hit->pid, (int)hit->tid);
	if (hit->cpu != UINT32_MAX)
		buffer_printf(b, " cpu %u", (unsigned)hit->cpu);
	buffer_puts(b, "  ");
	text_put_time(r, b, hit->time, "s");
}

/* Put a frame's place, and what kind of frame it is. */
static void
put_frame_place(struct report *r, struct buffer *b,
    const struct ex_frame *frame)
{
	text_paint(r, b, PAINT_DIM);
	text_put_place(r->own, b, frame);
	text_paint(r, b, PAINT_PLAIN);
	text_put_kind(b, frame);
}

/* The frame of the function that contains the instruction: an inlined one has
   no start of its own. */
static const struct ex_frame *
real_frame(const struct ex_stack *stack)
{
	for (unsigned i = 0; i < stack->n; i++) {
		if (!stack->frame[i].inlined)
			return &stack->frame[i];
	}
	return NULL;
}

/* Put the bytes that an instruction touched, if they are more than the watched
   ones. */
static void
put_reach(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_watch *watch = ex_hit_object(hit);

	if (insn->confidence != EX_EXACT || insn->size == 0 ||
	    (insn->addr - watch->addr < watch->len &&
	    insn->size <= watch->len - (insn->addr - watch->addr)))
		return;
	buffer_printf(b, "  (%u bytes at ", insn->size);
	buffer_hex(b, insn->addr);
	buffer_puts(b, ")");
}

/* "bump+0x0  mov %rdi,0x2d69(%rip)   victim.c:10" */
static void
put_insn(struct report *r, struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_stack *stack = hit->stack;
	const struct ex_frame *frame = stack == NULL ? NULL : real_frame(stack);

	buffer_puts(b, INDENT);
	if (frame != NULL && frame->function != NULL) {
		text_painted(r, b, PAINT_FUNCTION, frame->function);
		buffer_puts(b, "+");
		buffer_hex(b, frame->offset);
	} else
		buffer_hex(b, insn->pc != 0 ? insn->pc : hit->pc);
	buffer_puts(b, "  ");
	if (insn->confidence == EX_UNKNOWN)
		buffer_puts(b, "instruction unknown");
	else
		visible_put(b, insn->text);
	if (stack != NULL && stack->n > 0 && stack->frame[0].file != NULL) {
		buffer_puts(b, "   ");
		put_frame_place(r, b, &stack->frame[0]);
	}
	if (insn->confidence == EX_AMBIGUOUS)
		buffer_puts(b, "  (instruction ambiguous)");
	else if (insn->confidence == EX_ADDRESS_UNVERIFIED)
		buffer_puts(b, "  (address unverified)");
	put_reach(b, hit);
	buffer_puts(b, "\n");
}

static void
put_frame(struct report *r, unsigned i, const struct ex_frame *frame,
    size_t width)
{
	struct text *text = r->own;

	buffer_printf(&text->out, INDENT "%-2u ", i);
	text->scratch.len = 0;
	text_put_name(&text->scratch, frame);
	text_paint(r, &text->out, PAINT_FUNCTION);
	text_put_cell(text, width, false);
	text_paint(r, &text->out, PAINT_PLAIN);
	buffer_puts(&text->out, "  ");
	put_frame_place(r, &text->out, frame);
	buffer_puts(&text->out, "\n");
}

void
text_put_stack(struct report *r, const struct ex_stack *stack)
{
	struct text *text = r->own;
	const char *end = ex_end_text(stack->end);
	size_t width = 0;

	for (unsigned i = 0; i < stack->n; i++) {
		const struct buffer *s = &text->scratch;
		size_t columns;

		text->scratch.len = 0;
		text_put_name(&text->scratch, &stack->frame[i]);
		columns = visible_columns(s->bytes, s->len);
		if (columns > width && columns <= SHORT_NAME_COLUMNS)
			width = columns;
	}
	for (unsigned i = 0; i < stack->n; i++)
		put_frame(r, i, &stack->frame[i], width);
	if (stack->gap)
		buffer_puts(&text->out, INDENT "stack incomplete: functions "
		    "may be missing where it says so\n");
	if (end != NULL)
		buffer_printf(&text->out, INDENT "%s\n", end);
}

/* "since this thread's last hit: page-faults 3, task-clock 40.210345 ms" */
static void
put_counters(struct buffer *b, const struct ex_hit *hit)
{
	if (hit->nwith == 0)
		return;
	buffer_puts(b, INDENT "since this thread's last hit:");
	for (unsigned i = 0; i < hit->nwith; i++) {
		const struct ex_counted *it = &hit->with[i];

		buffer_printf(b, "%s %s ", i == 0 ? "" : ",", it->name);
		if (!it->is_time) {
			buffer_dec(b, it->count);
			continue;
		}
		buffer_fixed(b, it->count, 6);
		buffer_puts(b, " ms");
	}
	buffer_puts(b, "\n");
}

/* Put where the object that was hit had been freed. */
static void
put_freed(struct report *r, struct buffer *b, const struct ex_hit *hit,
    bool full)
{
	const struct ex_stack *at;

	if (!ex_hit_after_free(hit))
		return;
	at = hit->part->freed_at;
	buffer_printf(b, INDENT "freed by thread %d", (int)hit->part->freed_by);
	put_caller(r, b, at);
	text_put_time(r, b, hit->part->freed, "s");
	buffer_puts(b, "\n");
	if (full && at != NULL)
		text_put_stack(r, at);
}

static void
put_hit_again(struct report *r, struct buffer *b, const struct ex_hit *hit,
    uint64_t seq)
{
	put_what(r, b, hit, false);
	buffer_puts(b, "  ");
	put_thread(r, b, hit);
	buffer_puts(b, "  (");
	if (hit->accesses > 1)
		buffer_printf(b, "%u accesses, ", hit->accesses);
	buffer_printf(b, "%ssame backtrace as #%llu)\n", hit->late ?
	    "delivered late, unblocked at the " : "",
	    (unsigned long long)seq);
	put_counters(b, hit);
	put_freed(r, b, hit, false);
}

static void
put_late(struct buffer *b, unsigned accesses)
{
	buffer_puts(b, INDENT "delivered late: the signal was blocked; this is "
	    "where it was unblocked");
	if (accesses > 1)
		buffer_printf(b, "; %u accesses were counted", accesses);
	buffer_puts(b, "\n");
}

static void
put_hit(struct report *r, struct buffer *b, const struct ex_hit *hit)
{
	put_what(r, b, hit, true);
	buffer_puts(b, "\n" INDENT);
	put_thread(r, b, hit);
	buffer_puts(b, "\n");
	put_counters(b, hit);
	if (hit->late)
		put_late(b, hit->accesses);
	else if (!hit->kernel)
		put_insn(r, b, hit);
	if (hit->stack != NULL)
		text_put_stack(r, hit->stack);
	else
		buffer_puts(b, INDENT "no backtrace: out of memory\n");
	put_freed(r, b, hit, true);
}

int
text_hit(struct report *r, const struct ex_hit *hit)
{
	struct text *text = r->own;
	struct buffer *b = &text->out;
	size_t start = b->len;
	uint64_t *seq = NULL;
	int rc, written;

	if (r->summary_only)
		return report_count(r, hit);
	rc = summary_add(r->summary, hit, NULL);
	if (hit->stack != NULL)
		seq = text_printed_at(text, hit->stack->index);
	if (seq != NULL && *seq != 0)
		put_hit_again(r, b, hit, *seq);
	else
		put_hit(r, b, hit);
	if (seq != NULL && *seq == 0)
		*seq = hit->seq;
	visible_cut(b, start, r->screen.columns);
	if (!b->failed)
		report_hit_ends(r, b);
	written = text_write(r, start, false);
	return written != 0 ? written : rc;
}

int
text_lost(struct report *r, uint64_t count)
{
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	if (r->summary_only)
		return 0;
	buffer_printf(b, "lost %llu hit%s here\n", (unsigned long long)count,
	    count == 1 ? "" : "s");
	return text_write(r, start, false);
}

static void
put_callers(struct report *r, const char *what, const struct ex_stack *stack)
{
	if (stack == NULL)
		return;
	buffer_puts(&((struct text *)r->own)->out, what);
	text_put_stack(r, stack);
}

/* "written by #1, #2" */
static void
put_hits(struct buffer *b, const struct hg_finding *f)
{
	for (uint32_t i = 0; i < f->nhits; i++)
		buffer_printf(b, "%s#%llu", i == 0 ? INDENT "written by " :
		    ", ", (unsigned long long)f->hit[i]);
	if (f->nhits > 0)
		buffer_puts(b, "\n");
}

/* "overflow  1 byte, 3 bytes past the end of a 40-byte block at 0x4052a0: 61
   "a"" */
static int
text_damage(struct report *r, const struct report_damage *it)
{
	struct buffer *b = &((struct text *)r->own)->out;
	const struct hg_finding *f = it->found;
	const size_t start = b->len;

	text_painted(r, b, PAINT_BAD, damage_kind(f));
	buffer_puts(b, "  ");
	damage_put(b, f);
	buffer_puts(b, "\n" INDENT);
	visible_put(b, f->program);
	buffer_printf(b, "[%d/%d]", (int)f->pid, (int)f->tid);
	buffer_printf(b, "  noticed at %s\n", damage_when_words(f));
	put_callers(r, INDENT "allocated by\n", it->stack[HG_STACK_ALLOC]);
	put_callers(r, f->kind == HG_DOUBLE_FREE ? INDENT "first freed by\n" :
	    INDENT "freed by\n", it->stack[HG_STACK_FREE]);
	put_callers(r, f->kind == HG_DOUBLE_FREE ? INDENT "freed again by\n" :
	    f->kind >= HG_INVALID_FREE ? INDENT "freed by\n" :
	    f->when == HG_AT_WRITE ? INDENT "written by the kernel, for\n" :
	    INDENT "noticed by\n", it->stack[HG_STACK_NOTICED]);
	put_hits(b, f);
	if (it->stack[HG_STACK_OTHER] != NULL)
		buffer_printf(b, INDENT "in front of it, after %llu bytes, is "
		    "the end of %s %llu-byte block, which may have been "
		    "overrun\n", (unsigned long long)f->other_gap,
		    hg_article(f->other_size),
		    (unsigned long long)f->other_size);
	put_callers(r, INDENT "that one allocated by\n",
	    it->stack[HG_STACK_OTHER]);
	return text_write(r, start, false);
}

int
text_warning(struct report *r, const char *warning)
{
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	buffer_puts(b, "warning: ");
	visible_put(b, warning);
	buffer_puts(b, "\n");
	return text_write(r, start, false);
}

static int
text_last(struct report *r, uint64_t count, const char *reason)
{
	static const char *const why[][2] = {
		{"crash", "the process was ended by a signal"},
		{"exit", "the process ended"},
		{"signal", "asked for by a signal"},
		{"time", "the time is over"},
		{"until", "the condition holds"},
	};
	struct buffer *b = &((struct text *)r->own)->out;
	size_t start = b->len;

	for (size_t i = 0; i < sizeof(why) / sizeof(why[0]); i++)
		if (strcmp(reason, why[i][0]) == 0)
			reason = why[i][1];
	if (count == UINT64_MAX)
		buffer_printf(b, "the last hits: %s\n", reason);
	else
		buffer_printf(b, "the last %llu hit%s: %s\n",
		    (unsigned long long)count, count == 1 ? "" : "s", reason);
	return text_write(r, start, false);
}

int
text_end(struct report *r, const struct report_end *end)
{
	int rc;

	if (r->own == NULL)
		return 0;
	rc = end != NULL ? text_tables(r, end) : 0;
	rc = report_ended(r, end, rc, text_flush(r));
	text_free(r);
	return rc;
}

const struct report_ops report_text = {
	.name = "text", .start = text_start, .watch = text_watch,
	.event = text_event, .object = text_object, .hit = text_hit,
	.damage = text_damage,
	.lost = text_lost, .warning = text_warning,
	.last = text_last, .flush = text_flush, .end = text_end,
};
