/* text: the wording of hits and tables in the text report. */
#include "text/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/short_name.h"
#include "util/visible.h"

void
text_look_around(struct text *text)
{
	if (getcwd(text->directory, sizeof(text->directory)) == NULL)
		*text->directory = '\0';
}

struct text *
text_new(struct report *r)
{
	struct text *text = calloc(1, sizeof(*text));

	r->own = text;
	if (text != NULL)
		text_look_around(text);
	return text;
}

void
text_free(struct report *r)
{
	struct text *text = r->own;

	report_done(r);
	if (text == NULL)
		return;
	buffer_free(&text->out);
	buffer_free(&text->scratch);
	by_stack_free(&text->printed, sizeof(uint64_t));
	free(text);
}

void
text_paint(struct report *r, struct buffer *b, enum paint what)
{
	static const char *const codes[] = {
		[PAINT_PLAIN] = "\033[0m", [PAINT_WATCH] = "\033[36m",
		[PAINT_FUNCTION] = "\033[1m", [PAINT_DIM] = "\033[2m",
		[PAINT_BAD] = "\033[31m",
	};

	if (r->screen.colour)
		buffer_puts(b, codes[what]);
}

void
text_painted(struct report *r, struct buffer *b, enum paint what,
    const char *text)
{
	text_paint(r, b, what);
	visible_put(b, text);
	text_paint(r, b, PAINT_PLAIN);
}

int
text_write(struct report *r, size_t start, bool always)
{
	struct text *text = r->own;
	int rc = buffer_commit(&text->out, start);

	if (rc != 0)
		return rc;
	return always ? report_write(r, &text->out) :
	    report_write_full(r, &text->out);
}

void
text_widen(const struct text *text, size_t *width)
{
	const struct buffer *s = &text->scratch;
	size_t columns = visible_columns(s->bytes, s->len);

	if (columns > *width)
		*width = columns;
}

void
text_put_cell(struct text *text, size_t width, bool right)
{
	struct buffer *s = &text->scratch;
	size_t columns = visible_columns(s->bytes, s->len);
	size_t pad = columns < width ? width - columns : 0;

	text->out.failed |= s->failed;
	s->failed = false;
	buffer_fill(&text->out, ' ', right ? pad : 0);
	buffer_put(&text->out, s->bytes, s->len);
	buffer_fill(&text->out, ' ', right ? 0 : pad);
}

void
text_put_watch(struct buffer *b, const struct ex_watch *watch)
{
	if (watch->symbol != NULL)
		visible_put(b, watch->symbol);
	else if (watch->spec != NULL)
		visible_put(b, watch->spec);
	else
		buffer_hex(b, watch->addr);
	if (watch->object != 0)
		buffer_printf(b, ", object %llu",
		    (unsigned long long)watch->object);
}

void
text_put_watch_name(struct report *r, struct buffer *b,
    const struct ex_watch *watch)
{
	text_paint(r, b, PAINT_WATCH);
	text_put_watch(b, watch);
	text_paint(r, b, PAINT_PLAIN);
}

void
text_put_time(const struct report *r, struct buffer *b, uint64_t time,
    const char *unit)
{
	const bool before = time < r->begin.time;

	buffer_puts(b, before ? "-" : "+");
	buffer_fixed(b, (before ? r->begin.time - time :
	    time - r->begin.time) / 1000, 6);
	buffer_puts(b, unit);
}

void
text_put_process(struct buffer *b, const struct ex_watch *watch)
{
	if (watch->pid == 0)
		return;
	buffer_puts(b, " in ");
	visible_put(b, watch->comm[0] != '\0' ? watch->comm : "process");
	buffer_printf(b, "[%d]", (int)watch->pid);
}

bool
text_has_number(const struct ex_watch *const *watches, unsigned n,
    unsigned number)
{
	for (unsigned i = 0; i < n; i++)
		if (ex_watch_number(watches[i]) == number)
			return true;
	return false;
}

void
text_put_bytes(struct report *r, struct buffer *b, const struct ex_watch *watch,
    uint64_t addr, uint64_t len, const char *type)
{
	unsigned long long n = len, all = watch->len;

	text_paint(r, b, PAINT_DIM);
	buffer_puts(b, "(");
	if (type != NULL) {
		visible_put(b, type);
		buffer_puts(b, ", ");
	}
	if (watch->access == WP_EXEC)
		buffer_printf(b, "at %#llx)", (unsigned long long)addr);
	else if (watch->local && addr == 0)
		buffer_printf(b, "%llu byte%s, each thread's own)", all,
		    all == 1 ? "" : "s");
	else if (n == 0 || n >= all)
		buffer_printf(b, "%llu byte%s at %#llx)", all,
		    all == 1 ? "" : "s", (unsigned long long)(n >= all ? addr :
		    watch->addr));
	else
		buffer_printf(b, "%llu of %llu bytes, at %#llx)", n, all,
		    (unsigned long long)addr);
	text_paint(r, b, PAINT_PLAIN);
}

const char *
text_access_words(enum wp_access access)
{
	switch (access) {
	case WP_WRITE:
		return "writes";
	case WP_READ:
		return "reads";
	case WP_EXEC:
		return "execution";
	default:
		return "any access";
	}
}

const char *
text_verdict(bool stray, bool unjudged)
{
	return stray ? "stray " : unjudged ? "unjudged " : "";
}

void
text_put_access(struct buffer *b, const char *verdict, const char *access,
    bool kernel, const char *syscall, const char *work)
{
	buffer_puts(b, verdict);
	buffer_puts(b, access);
	if (kernel && syscall != NULL) {
		buffer_puts(b, " by ");
		visible_put(b, syscall);
		buffer_puts(b, "(2)");
	} else if (kernel)
		buffer_puts(b, " by the kernel");
	if (kernel && work != NULL)
		buffer_printf(b, " (%s)", work);
}

void
text_put_name(struct buffer *b, const struct ex_frame *frame)
{
	char *name;

	if (frame->function == NULL) {
		buffer_hex(b, frame->pc);
		return;
	}
	name = short_name(frame->function);
	visible_put(b, name != NULL ? name : frame->function);
	free(name);
	if (frame->line <= 0 && !frame->inlined && frame->pc != 0) {
		buffer_puts(b, "+");
		buffer_hex(b, frame->offset);
	}
}

const char *
text_from_directory(const char *directory, const char *path)
{
	const size_t len = strlen(directory);

	return len > 1 && strncmp(path, directory, len) == 0 &&
	    path[len] == '/' ? path + len + 1 : path;
}

void
text_put_place(const struct text *text, struct buffer *b,
    const struct ex_frame *frame)
{
	if (frame->file != NULL) {
		visible_put(b, text_from_directory(text->directory,
		    frame->file));
		if (frame->line > 0)
			buffer_printf(b, ":%d", frame->line);
	} else if (frame->kernel)
		buffer_puts(b, "(kernel)");
	else if (frame->module == NULL)
		buffer_puts(b, "(no module)");
	else {
		buffer_puts(b, "(");
		visible_put(b, ex_module_name(frame->module));
		if (frame->function == NULL) {
			buffer_puts(b, "+");
			buffer_hex(b, frame->vaddr);
		}
		buffer_puts(b, ")");
	}
}

uint64_t *
text_printed_at(struct text *text, unsigned index)
{
	return by_stack_at(&text->printed, index, sizeof(uint64_t));
}

void
text_put_kind(struct buffer *b, const struct ex_frame *frame)
{
	if (frame->inlined)
		buffer_puts(b, " (inlined)");
	if (frame->signal)
		buffer_puts(b, " (signal frame)");
	if (frame->tail)
		buffer_puts(b, " (tail call)");
	if (frame->gap)
		buffer_puts(b, " (callees missing)");
}
