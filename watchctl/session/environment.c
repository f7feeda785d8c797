/* environment: a hit as variables of a command's environment. */
#include "session/environment.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/change.h"
#include "util/visible.h"

struct environment_writer {
	struct buffer *to;
	size_t max;		/* bytes in it */
};

/* text is NULL if not known; "" is not set either. */
static void
set_text(struct environment_writer *e, const char *name, const char *text)
{
	struct buffer b = {0};

	if (text == NULL || *text == '\0')
		return;
	buffer_puts(&b, ENVIRONMENT_PREFIX);
	buffer_puts(&b, name);
	buffer_puts(&b, "=");
	visible_put(&b, text);
	buffer_put(&b, "", 1);
	if (!b.failed && b.len <= ENVIRONMENT_TEXT_MAX &&
	    b.len <= e->max - e->to->len)
		buffer_put(e->to, b.bytes, b.len);
	buffer_free(&b);
}

static void
set_dec(struct environment_writer *e, const char *name, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	set_text(e, name, text);
}

static void
set_hex(struct environment_writer *e, const char *name, uint64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, n);
	set_text(e, name, text);
}

static void
set_value(struct environment_writer *e, const char *name,
    const struct ex_hit *hit, const struct ex_value *value)
{
	struct buffer b = {0};

	change_put_hex(&b, hit, value);
	set_text(e, name, buffer_text(&b));
	buffer_free(&b);
}

/* The old and new values of the bytes. */
static void
set_change(struct environment_writer *e, const struct ex_hit *hit)
{
	if (hit->change.has_old)
		set_value(e, "OLD", hit, &hit->old);
	if (hit->change.has_new)
		set_value(e, "NEW", hit, &hit->new);
}

/* The innermost frame of the program itself: of the instruction or of the
   system call. */
static void
set_place(struct environment_writer *e, const struct ex_hit *hit)
{
	const struct ex_stack *stack = hit->stack;
	const unsigned i = stack == NULL ? 0 : ex_stack_user(stack);

	if (stack == NULL || i == stack->n) {
		set_hex(e, "PC", hit->pc);
		return;
	}
	set_hex(e, "PC", stack->frame[i].pc);
	set_text(e, "FUNCTION", stack->frame[i].function);
	set_text(e, "FILE", stack->frame[i].file);
	if (stack->frame[i].line > 0)
		set_dec(e, "LINE", (uint64_t)stack->frame[i].line);
	if (stack->frame[i].module != NULL)
		set_text(e, "MODULE", ex_module_path(stack->frame[i].module));
}

/* The hit as in -o json, without the newline. */
static void
set_json(struct environment_writer *e, const struct report_start *begin,
    const struct ex_hit *hit)
{
	struct report report = {.ops = &report_json};
	char *text = NULL;
	size_t len = 0, start;

	report.out = open_memstream(&text, &len);
	if (report.out == NULL)
		return;
	if (report_json.start(&report, begin) == 0) {
		start = len;
		if (report_json.hit(&report, hit) == 0 &&
		    report_json.flush(&report) == 0 && len > start) {
			text[len - 1] = '\0';
			set_text(e, "HIT", text + start);
		}
		(void)report_json.end(&report, NULL);
	}
	(void)fclose(report.out);
	free(text);
}

void
environment_put(struct buffer *to, const struct report_start *begin,
    const struct ex_hit *hit, size_t max)
{
	struct environment_writer own = {to, to->len + max}, *e = &own;

	set_dec(e, "SEQ", hit->seq);
	set_dec(e, "PID", (uint64_t)hit->pid);
	set_dec(e, "TID", (uint64_t)hit->tid);
	set_text(e, "COMM", hit->comm);
	set_text(e, "WATCH", hit->watch->spec);
	set_hex(e, "ADDR", hit->addr);
	if (hit->len > 0)
		set_dec(e, "LEN", hit->len);
	set_text(e, "ACCESS", hit->access);
	set_text(e, "ORIGIN", hit->kernel ? "kernel" : "user");
	if (hit->kernel)
		set_text(e, "SYSCALL", hit->call.name);
	set_place(e, hit);
	set_change(e, hit);
	set_json(e, begin, hit);
}
