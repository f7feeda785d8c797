/* trace_stacks: identifies each frame of a trace by its name, module and
   caller. */
#include "trace/trace_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "policy/culprit.h"
#include "util/field.h"

enum { FRAMES_BYTES_MAX = 64 << 20 };

/* A frame that is in the text. */
struct trace_frame {
	unsigned id, parent;
	char text[];		/* its name and its category, each with NUL */
};

/* Append a frame to the text.  Result: its id; 0: there is no room. */
static unsigned
add_frame(struct trace_stacks *s, uint64_t key, const char *name,
    const char *category, unsigned parent)
{
	const size_t len = strlen(name) + 1, more = strlen(category) + 1;
	struct buffer *b = &s->frames;
	const size_t start = b->len;
	struct trace_frame *frame = malloc(sizeof(*frame) + len + more);

	buffer_puts(b, s->n == 0 ? "\"" : ",\n\"");
	buffer_dec(b, s->n + 1);
	buffer_puts(b, "\":{");
	field_text(b, "name", name);
	field_text(b, "category", category);
	if (parent != 0)
		field_dec(b, "parent", parent);
	buffer_puts(b, "}");
	if (b->failed || b->len > FRAMES_BYTES_MAX || frame == NULL ||
	    !ex_table_reserve(&s->by_text, 1)) {
		b->failed = false;
		b->len = start;
		free(frame);
		return 0;
	}
	*frame = (struct trace_frame){++s->n, parent};
	memcpy(frame->text, name, len);
	memcpy(frame->text + len, category, more);
	ex_table_put(&s->by_text, key, frame);
	return frame->id;
}

/* The id of a frame with this name, called by another one (0: by none). */
static unsigned
put_frame(struct trace_stacks *s, const char *name, const char *category,
    unsigned parent)
{
	const uint64_t key = ex_hash_bytes(ex_hash_bytes(parent, name,
	    strlen(name)), category, strlen(category));
	const struct trace_frame *frame;
	size_t i = 0;

	while ((frame = ex_table_next(&s->by_text, key, &i)) != NULL)
		if (frame->parent == parent &&
		    strcmp(frame->text, name) == 0 &&
		    strcmp(frame->text + strlen(name) + 1, category) == 0)
			return frame->id;
	return add_frame(s, key, name, category, parent);
}

static const char *
module_of(const struct ex_frame *frame)
{
	return frame->kernel ? "[kernel]" : frame->module == NULL ?
	    "[unknown]" : ex_module_name(frame->module);
}

static const char *
name_of(const struct ex_frame *frame)
{
	return frame->function != NULL && *frame->function != '\0' ?
	    frame->function : module_of(frame);
}

/* The id of the innermost frame of a backtrace; 0: there is no room. */
static unsigned
put_frames(struct trace_stacks *s, const struct ex_stack *stack)
{
	unsigned id = stack->end == EX_END_OUTERMOST ? 0 :
	    put_frame(s, "[truncated]", "", 0);

	for (unsigned i = stack->n; i-- > 0;) {
		id = put_frame(s, name_of(&stack->frame[i]),
		    module_of(&stack->frame[i]), id);
		if (id == 0)
			return 0;
	}
	return id != 0 ? id : put_frame(s, "[no backtrace]", "", 0);
}

/* A name as a JSON string; NULL: no memory. */
static char *
quote(const char *name)
{
	struct buffer b = {0};

	visible_put_json(&b, name);
	buffer_put(&b, "", 1);
	if (!b.failed)
		return b.bytes;
	buffer_free(&b);
	return NULL;
}

static void
forget(void *item)
{
	struct trace_stack *known = item;

	free(known->name);
}

const struct trace_stack *
trace_stacks_of(struct trace_stacks *s, const struct ex_hit *hit)
{
	static struct trace_stack nowhere;
	const bool none = hit->stack == NULL || hit->late;
	const char *why = hit->late ? "[late]" : "[no backtrace]";
	static char text[2][20] = {"\"[late]\"", "\"[no backtrace]\""};
	const struct ex_frame *culprit;
	struct trace_stack *known;

	if (none) {
		nowhere = (struct trace_stack){
			put_frame(s, why, "", 0), text[!hit->late],
		};
		return &nowhere;
	}
	s->known.forget = forget;
	known = by_stack_at(&s->known, hit->stack->index, sizeof(*known));
	if (known == NULL || known->name != NULL)
		return known;
	culprit = culprit_of(hit->stack);
	known->frame = put_frames(s, hit->stack);
	known->name = quote(culprit == NULL ? "[no backtrace]" :
	    name_of(culprit));
	return known->name == NULL ? NULL : known;
}

void
trace_stacks_free(struct trace_stacks *s)
{
	buffer_free(&s->frames);
	ex_table_free(&s->by_text, free);
	by_stack_free(&s->known, sizeof(struct trace_stack));
	s->n = 0;
}
