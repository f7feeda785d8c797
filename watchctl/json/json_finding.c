/* json_finding: the lines of findings: stray writers, and damage in heaps. */
#include "json/json.h"

#include "report/damage.h"

int
json_put_finding(struct report *r, const struct finding *finding)
{
	struct buffer *b = json_line_begin(r, "finding");
	const struct ex_frame *frame = finding->culprit;

	field_bool(b, finding->incomplete ? "unjudged" : "stray", true);
	field_flag(b, "late", finding->late);
	field_dec(b, "watch", ex_watch_number(finding->watch));
	field_dec(b, "count", finding->count);
	field_dec(b, "first_seq", finding->first_seq);
	field_text(b, "access", finding->access);
	if (frame != NULL) {
		if (frame->function != NULL)
			field_text(b, "function", frame->function);
		json_field_place(b, frame);
		if (frame->module != NULL)
			field_text(b, "module", ex_module_name(frame->module));
		if (frame->pc != 0)
			field_hex(b, "pc", frame->pc);
	}
	if (finding->stack != NULL)
		json_field_stack(b, "stack", r, finding->stack);
	return json_line_end(r);
}

static void
field_hex_bytes(struct buffer *b, const char *name, const uint8_t *bytes,
    size_t n)
{
	static const char digits[] = "0123456789abcdef";

	field(b, name);
	buffer_put(b, "\"", 1);
	for (size_t i = 0; i < n; i++) {
		buffer_put(b, &digits[bytes[i] >> 4], 1);
		buffer_put(b, &digits[bytes[i] & 15], 1);
	}
	buffer_put(b, "\"", 1);
}

static void
field_callers(struct buffer *b, const char *name, const struct report *r,
    const struct ex_stack *stack)
{
	if (stack == NULL)
		return;
	field(b, name);
	buffer_put(b, "{", 1);
	json_put_stack(b, r, stack);
	buffer_put(b, "}", 1);
}

static void
field_signed(struct buffer *b, const char *name, int64_t value)
{
	field(b, name);
	buffer_printf(b, "%lld", (long long)value);
}

/* Put what is known about the block. */
static void
put_block(struct buffer *b, const struct report_damage *it)
{
	const struct hg_finding *f = it->found;

	if (it->stack[HG_STACK_ALLOC] != NULL)
		field_dec(b, "size", f->size);
	if (f->nbytes > 0 || f->offset != 0)
		field_signed(b, "offset", f->offset);
	if (f->nbytes > 0)
		field_hex_bytes(b, "bytes", f->bytes,
		    damage_bytes(f));
	field_hex(b, "addr", f->addr);
	if (f->kind == HG_MISMATCH) {
		field_text(b, "allocated_by", damage_allocator(f));
		field_text(b, "freed_by", damage_freer(f));
	}
}

static void
put_damage_hits(struct buffer *b, const struct hg_finding *f)
{
	if (f->nhits == 0)
		return;
	field(b, "hits");
	for (uint32_t i = 0; i < f->nhits; i++) {
		buffer_puts(b, i == 0 ? "[" : ",");
		buffer_dec(b, f->hit[i]);
	}
	buffer_puts(b, "]");
}

int
json_damage(struct report *r, const struct report_damage *it)
{
	struct buffer *b = json_line_begin(r, "finding");
	const struct hg_finding *f = it->found;

	field_text(b, "kind", damage_kind(f));
	field_dec(b, "pid", (uint64_t)f->pid);
	field_dec(b, "tid", (uint64_t)f->tid);
	if (*f->program != '\0')
		field_text(b, "program", f->program);
	put_block(b, it);
	put_damage_hits(b, f);
	field_text(b, "noticed", damage_when(f));
	field_callers(b, "alloc", r, it->stack[HG_STACK_ALLOC]);
	field_callers(b, "free", r, it->stack[HG_STACK_FREE]);
	if (it->stack[HG_STACK_OTHER] != NULL) {
		field(b, "in_front");
		buffer_put(b, "{", 1);
		field_dec(b, "size", f->other_size);
		field_dec(b, "gap", f->other_gap);
		field_callers(b, "alloc", r, it->stack[HG_STACK_OTHER]);
		buffer_put(b, "}", 1);
	}
	if (it->stack[HG_STACK_NOTICED] != NULL)
		json_put_stack(b, r, it->stack[HG_STACK_NOTICED]);
	return json_line_end(r);
}
