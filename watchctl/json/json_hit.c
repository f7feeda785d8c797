/*
 * json_hit: the lines of hits.
 *
 * Most of what is not the backtrace is the same as for the last hit with that
 * backtrace, or of that thread: this text is kept together with all that it was
 * made of, and copied if that is equal.
 *
 *	seq, watch, time | thread | access | values | stack
 *	      made	   copied   copied   made     copied
 */
#include "json/json.h"

#include "report/change.h"

static void
hit_insn(struct buffer *b, const struct ex_insn *insn)
{
	field(b, "insn");
	buffer_put(b, "{", 1);
	if (insn->confidence != EX_UNKNOWN) {
		field_hex(b, "pc", insn->pc);
		field_text(b, "text", insn->text);
	}
	field_text(b, "confidence", ex_confidence_text(insn->confidence));
	if (insn->confidence == EX_EXACT && insn->size != 0) {
		field_hex(b, "addr", insn->addr);
		field_dec(b, "size", insn->size);
	}
	buffer_put(b, "}", 1);
}

static void
field_value(struct buffer *b, const char *name, const struct ex_hit *hit,
    const struct ex_value *value)
{
	field(b, name);
	buffer_put(b, "\"", 1);
	change_put_hex(b, hit, value);
	buffer_put(b, "\"", 1);
}

static void
hit_values(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	if (c->has_old)
		field_value(b, "old", hit, &hit->old);
	if (*c->old_text != '\0')
		field_text(b, "old_text", c->old_text);
	field_flag(b, "old_inferred", c->has_old && hit->old_inferred);
	if (!c->has_new)
		return;
	field_value(b, "new", hit, &hit->new);
	if (*c->new_text != '\0')
		field_text(b, "new_text", c->new_text);
	field_text(b, "value_source", ex_value_source_text(hit->source));
	field_flag(b, "unchanged", hit->unchanged);
}

/* Whether the text is complete; otherwise it is dropped. */
static bool
is_whole(struct buffer *text)
{
	return buffer_commit(text, 0) == 0;
}

static void
put_thread(struct buffer *b, const struct json_thread_key *thread)
{
	if (thread->pid >= 0)
		field_dec(b, "pid", (uint64_t)thread->pid);
	if (thread->tid >= 0)
		field_dec(b, "tid", (uint64_t)thread->tid);
	if (*thread->comm != '\0')
		field_text(b, "comm", thread->comm);
	if (thread->cpu != UINT32_MAX)
		field_dec(b, "cpu", thread->cpu);
}

static void
hit_thread(struct json *json, const struct ex_hit *hit)
{
	struct json_thread *kept =
	    &json->thread[(unsigned)hit->tid % JSON_THREADS_MAX];
	struct json_thread_key key = {
		.pid = hit->pid, .tid = hit->tid, .cpu = hit->cpu,
	};

	memcpy(key.comm, hit->comm, sizeof(key.comm));
	if (memcmp(&kept->of, &key, sizeof(key)) != 0) {
		kept->of = key;
		kept->text.len = 0;
	}
	if (kept->text.len == 0)
		put_thread(&kept->text, &key);
	if (is_whole(&kept->text))
		buffer_put(&json->out, kept->text.bytes, kept->text.len);
	else
		put_thread(&json->out, &key);
}

static void
hit_call(struct buffer *b, const struct ex_syscall *call)
{
	if (call->name != NULL)
		field_text(b, "syscall", call->name);
	if (call->work != NULL)
		field_text(b, "work", call->work);
	if (call->has_bytes)
		field_dec(b, "syscall_bytes", call->bytes);
	if (!call->has_fd)
		return;
	field_dec(b, "fd", (uint64_t)call->fd);
	if (*call->file == '\0')
		return;
	field_text(b, "file", call->file);
	field_text(b, "file_source", call->file_later ? "later" : "stop");
}

static void
put_access(struct buffer *b, const struct ex_hit *hit)
{
	const struct ex_change *c = &hit->change;

	field_text(b, "access", hit->access);
	field_flag(b, "stray", hit->stray);
	field_flag(b, "unjudged", hit->unjudged);
	if (hit->unsure)
		field_text(b, "if", "unknown");
	field_text(b, "origin", hit->kernel ? "kernel" : "user");
	if (hit->kernel)
		hit_call(b, &hit->call);
	field_hex(b, "addr", hit->addr);
	if (hit->len > 0)
		field_dec(b, "len", hit->len);
	if (hit->samples > 1)
		field_dec(b, "samples", hit->samples);
	field_flag(b, "late", hit->late);
	if (hit->accesses > 0)
		field_dec(b, "accesses", hit->accesses);
	if (hit->pc != 0)
		field_hex(b, "pc", hit->pc);
	if (!hit->kernel)
		hit_insn(b, &hit->insn);
	if (c->type != NULL)
		field_text(b, "value_type", c->type);
	if (c->path != NULL)
		field_text(b, "path", c->path);
}

/* Everything in a hit that put_access() reads, unless the kernel made the
   access. */
static struct json_access_key
access_key_of(const struct ex_hit *hit)
{
	struct json_access_key key = {
		.access = hit->access, .type = hit->change.type,
		.path = hit->change.path,
		.addr = hit->addr, .len = hit->len, .pc = hit->pc,
		.insn_pc = hit->insn.pc, .insn_addr = hit->insn.addr,
		.insn_size = (uint16_t)hit->insn.size,
		.confidence = (uint16_t)hit->insn.confidence,
		.samples = hit->samples, .accesses = hit->accesses,
		.is = (uint32_t)hit->stray | (uint32_t)hit->unjudged << 1 |
		    (uint32_t)hit->late << 2 | (uint32_t)hit->unsure << 3,
	};

	memcpy(key.insn_text, hit->insn.text, sizeof(key.insn_text));
	return key;
}

static void
hit_access(struct json *json, const struct ex_hit *hit)
{
	struct json_access *kept;
	struct json_access_key key;

	if (hit->kernel || hit->stack == NULL) {
		put_access(&json->out, hit);
		return;
	}
	kept = &json->access[hit->stack->index % JSON_PLACES_MAX];
	key = access_key_of(hit);
	if (memcmp(&kept->of, &key, sizeof(key)) != 0) {
		kept->of = key;
		kept->text.len = 0;
	}
	if (kept->text.len == 0)
		put_access(&kept->text, hit);
	if (is_whole(&kept->text))
		buffer_put(&json->out, kept->text.bytes, kept->text.len);
	else
		put_access(&json->out, hit);
}

static void
hit_arguments(struct buffer *b, const struct ex_arguments *args)
{
	field(b, "args");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < args->n; i++) {
		const struct ex_argument *arg = &args->arg[i];

		buffer_puts(b, i > 0 ? ",{" : "{");
		if (*arg->name != '\0')
			field_text(b, "name", arg->name);
		field_text(b, "type", arg->type);
		if (*arg->text != '\0')
			field_text(b, "text", arg->text);
		if (arg->has_value)
			field_hex(b, "value", arg->value);
		buffer_put(b, "}", 1);
	}
	buffer_put(b, "]", 1);
}

static void
hit_counters(struct buffer *b, const struct ex_hit *hit)
{
	field(b, "with");
	buffer_put(b, "{", 1);
	for (unsigned i = 0; i < hit->nwith; i++) {
		buffer_printf(b, "%s\"%s\":", i == 0 ? "" : ",",
		    hit->with[i].name);
		buffer_dec(b, hit->with[i].count);
	}
	buffer_put(b, "}", 1);
}

/* Put where the object that was hit had been freed. */
static void
hit_freed(struct report *r, const struct ex_watch *object)
{
	struct json *json = r->own;
	struct buffer *b = &json->out;

	field_flag(b, "after_free", true);
	field(b, "freed");
	buffer_put(b, "{", 1);
	json_field_time(b, "time", r, object->freed);
	field_dec(b, "tid", (uint64_t)object->freed_by);
	if (object->freed_at != NULL)
		json_hit_stack(r, object->freed_at);
	buffer_put(b, "}", 1);
}

int
json_hit(struct report *r, const struct ex_hit *hit)
{
	struct json *json = r->own;
	struct buffer *b;
	int rc = report_count(r, hit), written;

	if (r->summary_only)
		return rc;
	written = r->stacks_once && hit->stack != NULL ?
	    json_name_stack(r, hit->stack) : 0;
	if (written == 0 && r->stacks_once && ex_hit_after_free(hit) &&
	    hit->part->freed_at != NULL)
		written = json_name_stack(r, hit->part->freed_at);
	if (written != 0)	/* without its backtrace it is no hit */
		return written;
	b = json_line_begin(r, "hit");
	field_dec(b, "seq", hit->seq);
	field_dec(b, "watch", ex_watch_number(hit->watch));
	if (hit->part != NULL && hit->part->object != 0)
		field_dec(b, "object", hit->part->object);
	if (ex_hit_after_free(hit))
		hit_freed(r, hit->part);
	json_field_time(b, "time", r, hit->time);
	hit_thread(json, hit);
	hit_access(json, hit);
	hit_values(b, hit);
	if (hit->args != NULL)
		hit_arguments(b, hit->args);
	if (hit->nwith > 0)
		hit_counters(b, hit);
	if (hit->stack != NULL)
		json_hit_stack(r, hit->stack);
	written = json_line_end_of(r, true);
	return written != 0 ? written : rc;
}
