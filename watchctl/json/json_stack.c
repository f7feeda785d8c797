/*
 * json_stack: backtraces, in hits or on lines of their own.
 *
 * Most hits repeat one, and it is most of a line's bytes: the text of each is
 * made once and copied from then on.
 */
#include "json/json.h"

enum { KEPT_MAX = 16 << 20 };	/* bytes of backtraces kept at most */

void
json_field_stack(struct buffer *b, const char *name, const struct report *r,
    const struct ex_stack *stack)
{
	field_id(b, name, stack->id);
	if (r->stacks_once && stack->variant > 0)
		field_dec(b, "variant", stack->variant + 1);
}

static void
forget_stack(void *kept)
{
	buffer_free(kept);
}

void
json_forget_stacks(struct json *json)
{
	by_stack_free(&json->stacks, sizeof(struct buffer));
	json->kept = 0;
}

void
json_field_place(struct buffer *b, const struct ex_frame *frame)
{
	if (frame->file != NULL)
		field_text(b, "file", frame->file);
	if (frame->line > 0)
		field_dec(b, "line", (uint64_t)frame->line);
}

static void
put_frame(struct buffer *b, const struct ex_frame *frame)
{
	const char *build_id;

	buffer_put(b, "{", 1);
	if (frame->pc != 0)
		field_hex(b, "pc", frame->pc);
	if (frame->function != NULL) {
		field_text(b, "function", frame->function);
		if (!frame->inlined && frame->pc != 0)
			field_dec(b, "offset", frame->offset);
	}
	if (frame->module != NULL) {
		field_text(b, "module", ex_module_name(frame->module));
		build_id = ex_module_build_id(frame->module);
		if (*build_id != '\0')
			field_text(b, "build_id", build_id);
	}
	json_field_place(b, frame);
	if (frame->column > 0)
		field_dec(b, "column", (uint64_t)frame->column);
	field(b, "inlined");
	buffer_puts(b, frame->inlined ? "true" : "false");
	field_flag(b, "signal", frame->signal);
	field_flag(b, "kernel", frame->kernel);
	field_flag(b, "tail_call", frame->tail);
	field_flag(b, "gap", frame->gap);
	buffer_put(b, "}", 1);
}

/* Put the fields of a backtrace, except its id. */
static void
put_frames(struct buffer *b, const struct ex_stack *stack)
{
	const char *end = ex_end_text(stack->end);

	field(b, "frames");
	buffer_put(b, "[", 1);
	for (unsigned i = 0; i < stack->n; i++) {
		if (i > 0)
			buffer_put(b, ",", 1);
		put_frame(b, &stack->frame[i]);
	}
	buffer_put(b, "]", 1);
	field_flag(b, "incomplete", stack->gap);
	if (end != NULL)
		field_text(b, "truncated", end);
}

void
json_put_stack(struct buffer *b, const struct report *r,
    const struct ex_stack *stack)
{
	json_field_stack(b, "stack", r, stack);
	put_frames(b, stack);
}

int
json_name_stack(struct report *r, const struct ex_stack *stack)
{
	struct json *json = r->own;
	unsigned *named = &json->named[stack->index % JSON_NAMED_MAX];
	struct buffer *b;
	int rc;

	if (*named == stack->index + 1)
		return 0;
	b = json_line_begin(r, "stack");
	json_field_stack(b, "id", r, stack);
	put_frames(b, stack);
	rc = json_line_end(r);
	*named = rc == 0 ? stack->index + 1 : 0;
	return rc;
}

/* Put a backtrace's fields into a hit.  They are formatted once, and copied for
   later hits. */
void
json_hit_stack(struct report *r, const struct ex_stack *stack)
{
	struct json *json = r->own;
	struct buffer *kept;

	if (r->stacks_once) {
		json_field_stack(&json->out, "stack", r, stack);
		return;
	}
	if (json->kept > KEPT_MAX)
		json_forget_stacks(json);
	json->stacks.forget = forget_stack;
	kept = by_stack_at(&json->stacks, stack->index, sizeof(*kept));
	if (kept != NULL && kept->len == 0) {
		json_put_stack(kept, r, stack);
		(void)buffer_commit(kept, 0);
		json->kept += kept->cap;
	}
	if (kept != NULL && kept->len > 0)
		buffer_put(&json->out, kept->bytes, kept->len);
	else
		json_put_stack(&json->out, r, stack);
}
