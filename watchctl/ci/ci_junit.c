/*
 * ci_junit: JUnit's XML, which CI systems show as test results.
 *
 * XML 1.0 has no place for control characters, not even escaped ones, nor for
 * U+FFFE and U+FFFF: they are written as text reports have them, \x1b.
 */
#include <string.h>

#include "ci/ci.h"
#include "text/text.h"
#include "util/visible.h"

static void
put_character(struct buffer *b, char c)
{
	switch (c) {
	case '&':
		buffer_puts(b, "&amp;");
		break;
	case '<':
		buffer_puts(b, "&lt;");
		break;
	case '>':
		buffer_puts(b, "&gt;");
		break;
	case '"':
		buffer_puts(b, "&quot;");
		break;
	default:
		buffer_put(b, &c, 1);
	}
}

/* Put a text that has been made visible. */
static void
put_shown(struct buffer *b, struct buffer *shown)
{
	for (size_t i = 0; i < shown->len; i++) {
		const size_t left = shown->len - i;

		if (left >= 3 && (memcmp(shown->bytes + i, "\357\277\276",
		    3) == 0 || memcmp(shown->bytes + i, "\357\277\277",
		    3) == 0)) {
			buffer_puts(b, shown->bytes[i + 2] == '\276' ?
			    "\\ufffe" : "\\uffff");
			i += 2;
		} else
			put_character(b, shown->bytes[i]);
	}
	b->failed |= shown->failed;
	buffer_free(shown);
}

static void
put_text(struct buffer *b, const char *text)
{
	struct buffer shown = {0};

	visible_put(&shown, text);
	put_shown(b, &shown);
}

static void
put_attribute(struct buffer *b, const char *name, const char *text)
{
	buffer_printf(b, " %s=\"", name);
	put_text(b, text);
	buffer_puts(b, "\"");
}

static void
put_case(struct buffer *b, const char *program, const char *name)
{
	buffer_puts(b, "<testcase");
	put_attribute(b, "classname", *program != '\0' ? program : "program");
	put_attribute(b, "name", name);
}

/* Put the backtrace, one line for each frame. */
static void
put_stack(struct buffer *b, const struct ci *ci, const struct ex_stack *stack)
{
	for (unsigned i = 0; stack != NULL && i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];
		const char *path = ci_path(ci, frame);
		struct buffer line = {0};

		text_put_name(&line, frame);
		buffer_puts(&line, "  ");
		if (path != NULL)
			visible_put(&line, path);
		else if (frame->module != NULL)
			visible_put(&line, ex_module_name(frame->module));
		if (path != NULL && frame->line > 0)
			buffer_printf(&line, ":%d", frame->line);
		put_shown(b, &line);
		buffer_puts(b, "\n");
	}
}

static void
put_problem(struct buffer *b, const struct ci *ci, const struct ci_problem *p)
{
	const char *element = p->doubt ? "error" : "failure";

	put_case(b, p->program, p->subject);
	buffer_printf(b, ">\n<%s", element);
	put_attribute(b, "message", p->message);
	put_attribute(b, "type", p->rule->id);
	buffer_puts(b, ">");
	put_stack(b, ci, p->stack);
	buffer_printf(b, "</%s>\n</testcase>\n", element);
}

/* A test case that found no problem. */
static void
put_passed(struct buffer *b, const struct ci *ci, const char *name)
{
	put_case(b, ci->program, name);
	buffer_puts(b, "/>\n");
}

/* Whether a watch has a problem, or has been listed for another process. */
static bool
is_listed(const struct ci *ci, unsigned watch)
{
	const struct ex_watch *w = ci->watch[watch];

	for (size_t i = 0; i < ci->n; i++)
		if (ci->problem[i].spec != NULL && w->spec != NULL &&
		    strcmp(ci->problem[i].spec, w->spec) == 0)
			return true;
	for (unsigned i = 0; i < watch; i++)
		if (ex_watch_number(ci->watch[i]) == ex_watch_number(w))
			return true;
	return false;
}

void
ci_put_junit(const struct ci *ci, struct buffer *b)
{
	const bool sound = ci->nwatches == 0 && ci->n == 0;	/* a heap */
	size_t tests = ci->n + sound, errors = 0;

	for (unsigned i = 0; i < ci->nwatches; i++)
		tests += !is_listed(ci, i);
	for (size_t i = 0; i < ci->n; i++)
		errors += ci->problem[i].doubt;
	buffer_printf(b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<testsuites>\n<testsuite name=\"watchctl\" tests=\"%zu\" "
	    "failures=\"%zu\" errors=\"%zu\" time=\"%.3f\">\n", tests,
	    ci->n - errors, errors, ci->seconds);
	for (size_t i = 0; i < ci->n; i++)
		put_problem(b, ci, &ci->problem[i]);
	for (unsigned i = 0; i < ci->nwatches; i++) {
		const struct ex_watch *w = ci->watch[i];

		if (is_listed(ci, i))
			continue;
		put_passed(b, ci, w->spec != NULL ? w->spec : "?");
	}
	if (sound)
		put_passed(b, ci, "heap");
	buffer_puts(b, "</testsuite>\n</testsuites>\n");
}
