/* policy_file: the file that lists the allowed writers of each watch. */
#include "option/policy_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/array.h"
#include "proc/regular_file.h"
#include "util/complain.h"

enum { SIZE_MAX_READ = 64 << 20 };	/* bytes: more is no policy */

static const char *const keys[] = {
	[POLICY_WATCH] = "[watch]", [POLICY_SPEC] = "spec",
	[POLICY_ACCESS] = "access", [POLICY_WRITER] = "writer",
	[POLICY_ALLOW] = "allow",
};
static const struct {
	const char *name;
	enum wp_access access;
} accesses[] = {
	{"write", WP_WRITE}, {"read", WP_READ}, {"access", WP_ACCESS},
	{"execute", WP_EXEC},
};

enum { ACCESSES = sizeof(accesses) / sizeof(accesses[0]) };

/* A line of a text, or a part of one. */
struct text_part {
	const char *at;
	size_t len;
};

static struct text_part
trim(struct text_part p)
{
	static const char blanks[] = " \t\r\f\v";

	while (p.len > 0 && memchr(blanks, p.at[p.len - 1], 5) != NULL)
		p.len--;
	for (; p.len > 0 && memchr(blanks, *p.at, 5) != NULL; p.len--)
		p.at++;
	return p;
}

static bool
is(struct text_part p, const char *word)
{
	return p.len == strlen(word) && memcmp(p.at, word, p.len) == 0;
}

/* Add a line, whose malloc'd texts the file owns from then on.  NULL: out of
   memory. */
static struct policy_line *
add_line(struct policy_watch *watch, const struct policy_line *line)
{
	if (line->before == NULL || line->value == NULL ||
	    WP_ARRAY_ROOM(watch, line) < 0) {
		free(line->before);
		free(line->value);
		return NULL;
	}
	watch->line[watch->n] = *line;
	return &watch->line[watch->n++];
}

static struct policy_watch *
add_watch(struct policy_file *f)
{
	if (WP_ARRAY_ROOM(f, watch) < 0)
		return NULL;
	f->watch[f->n] = (struct policy_watch){.access = WP_WRITE};
	return &f->watch[f->n++];
}

/* --- reading --- */

/* Check a line that sets a value.  NULL, or what is wrong. */
static const char *
check_value(struct policy_watch *watch, const struct policy_line *line)
{
	const char *bang = strchr(line->value, '!');
	size_t i = 0;

	switch (line->key) {
	case POLICY_SPEC:
		if (watch->spec != NULL)
			return "this [watch] has a spec already: begin another "
			    "[watch]";
		watch->spec = line->value;
		watch->spec_line = line->number;
		return NULL;
	case POLICY_ACCESS:
		while (i < ACCESSES &&
		    strcmp(line->value, accesses[i].name) != 0)
			i++;
		if (i == ACCESSES)
			return "no such access; there are write, read, access "
			    "and execute";
		watch->access = accesses[i].access;
		return NULL;
	case POLICY_WRITER:
		return bang == NULL || bang == line->value || bang[1] == '\0' ?
		    "a writer is FILE!FUNCTION" : NULL;
	default:
		return NULL;
	}
}

static const char no_memory[] = "out of memory";

/* Take a line that is not empty.  NULL, or what is wrong. */
static const char *
take_line(struct policy_file *f, struct text_part before, struct text_part text)
{
	struct policy_watch *watch = f->n > 0 ? &f->watch[f->n - 1] : NULL;
	const char *equals = memchr(text.at, '=', text.len);
	struct text_part name = text, value = {text.at + text.len, 0};
	enum policy_key key = POLICY_WATCH;
	const struct policy_line *line;

	if (memchr(text.at, '\0', text.len) != NULL)
		return "a NUL byte: this is no policy";
	if (*text.at != '[' && equals != NULL) {
		name = trim((struct text_part){text.at, (size_t)(equals -
		    text.at)});
		value = trim((struct text_part){equals + 1,
		    text.len - (size_t)(equals + 1 - text.at)});
	}
	while (key <= POLICY_ALLOW && !is(name, keys[key]))
		key++;
	if (key > POLICY_ALLOW)
		return *text.at == '[' ? "no such section; there is [watch]" :
		    equals == NULL ? "neither [watch] nor NAME = VALUE" :
		    "no such name; there are spec, access, writer and allow";
	if (key == POLICY_WATCH && (watch = add_watch(f)) == NULL)
		return no_memory;
	if (watch == NULL)
		return "it comes before the first [watch]";
	if (key != POLICY_WATCH && value.len == 0)
		return equals == NULL ? "it has no '='" : "it has no value";
	line = add_line(watch, &(struct policy_line){
		key, strndup(before.at, before.len),
		strndup(value.at, value.len), f->lines,
	});
	return line == NULL ? no_memory : check_value(watch, line);
}

/* Watches with the same SPEC and access are neighbours, in the order of their
   lines. */
static int
compare_watches(const void *a, const void *b)
{
	const struct policy_watch *x = *(const struct policy_watch *const *)a;
	const struct policy_watch *y = *(const struct policy_watch *const *)b;
	int order = (x->access > y->access) - (x->access < y->access);

	if (order == 0)
		order = strcmp(x->spec, y->spec);
	return order != 0 ? order :
	    (x->spec_line > y->spec_line) - (x->spec_line < y->spec_line);
}

static int
check_twins(const struct policy_file *f)
{
	const struct policy_watch **w = calloc(f->n + 1, sizeof(*w));
	int err = 0;

	if (w == NULL)
		return complain("%s", no_memory);
	for (size_t i = 0; i < f->n; i++)
		w[i] = &f->watch[i];
	qsort(w, f->n, sizeof(*w), compare_watches);
	for (size_t i = 1; i < f->n && err == 0; i++)
		if (w[i - 1]->access == w[i]->access &&
		    strcmp(w[i - 1]->spec, w[i]->spec) == 0)
			err = complain("%s:%u: %s has a [watch] already, with "
			    "the spec in line %u: join them", f->path,
			    w[i]->spec_line, w[i]->spec, w[i - 1]->spec_line);
	free(w);
	return err;
}

/* Check what only the whole file shows. */
static int
check_watches(const struct policy_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->watch[i].spec == NULL)
			return complain("%s:%u: this [watch] has no spec",
			    f->path, f->watch[i].line[0].number);
	return check_twins(f);
}

int
policy_file_parse(struct policy_file *f, const char *path, const char *text,
    size_t len)
{
	struct text_part before = {NULL, 0}, line;
	const char *why = NULL, *end;

	*f = (struct policy_file){
		.path = strdup(path), .text = malloc(len + 1),
	};
	if (f->path == NULL || f->text == NULL)
		return complain("%s", no_memory);
	if (len > 0)
		memcpy(f->text, text, len);
	f->len = len;
	before.at = f->text;
	for (size_t at = 0; at < len && why == NULL; at += line.len + 1) {
		line.at = f->text + at;
		end = memchr(line.at, '\n', len - at);
		line.len = end == NULL ? len - at : (size_t)(end - line.at);
		f->lines++;
		before.len = (size_t)(line.at - before.at);
		if (trim(line).len == 0 || strchr("#;", *trim(line).at) != NULL)
			continue;
		why = take_line(f, before, trim(line));
		before.at = line.at + line.len + (end != NULL);
	}
	if (why != NULL)
		return complain("%s:%u: %s", path, f->lines, why);
	f->after = strndup(before.at, (size_t)(f->text + len - before.at));
	return f->after == NULL ? complain("%s", no_memory) : check_watches(f);
}

int
policy_file_read(struct policy_file *f, const char *path)
{
	struct buffer text = {0};
	int fd = wp_open_regular(path), err = fd < 0 ? fd : 0;
	ssize_t n = 1;

	*f = (struct policy_file){.path = NULL};
	while (err == 0 && n > 0 && text.len <= SIZE_MAX_READ &&
	    buffer_room(&text, 1 << 16)) {
		n = pread(fd, text.bytes + text.len, 1 << 16, (off_t)text.len);
		if (n < 0)
			err = -errno;
		else
			text.len += (size_t)n;
	}
	if (fd >= 0)
		(void)close(fd);
	if (err == -ESTALE)
		err = complain("%s: not a regular file, as a policy is", path);
	else if (err < 0)
		err = complain("%s: cannot be read: %s", path, strerror(-err));
	else if (text.failed || text.len > SIZE_MAX_READ)
		err = complain("%s: too large for a policy", path);
	else
		err = policy_file_parse(f, path, text.bytes, text.len);
	buffer_free(&text);
	return err;
}

void
policy_file_free(struct policy_file *f)
{
	for (size_t i = 0; i < f->n; i++) {
		for (size_t k = 0; k < f->watch[i].n; k++) {
			free(f->watch[i].line[k].before);
			free(f->watch[i].line[k].value);
		}
		free(f->watch[i].line);
	}
	free(f->watch);
	free(f->after);
	free(f->text);
	free(f->path);
	*f = (struct policy_file){.path = NULL};
}

/* --- adding and writing --- */

struct policy_watch *
policy_file_find(const struct policy_file *f, const char *spec,
    enum wp_access access)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->watch[i].access == access &&
		    strcmp(f->watch[i].spec, spec) == 0)
			return &f->watch[i];
	return NULL;
}

static struct policy_line *
add_new(struct policy_watch *watch, enum policy_key key, const char *before,
    const char *value)
{
	return add_line(watch, &(struct policy_line){
		key, strdup(before), strdup(value), 0,
	});
}

static const char made_by[] =
"# who writes what; made by watchctl --learn\n";

/* Add the lines before a new [watch]; before the first one, these are the whole
   file so far. */
static struct policy_line *
begin_watch(struct policy_file *f, struct policy_watch *watch)
{
	const bool comments = f->n == 1 && f->after != NULL &&
	    *f->after != '\0';
	struct policy_line *line = add_new(watch, POLICY_WATCH, f->n > 1 ?
	    "\n" : comments ? f->after : made_by, "");

	if (comments)
		*f->after = '\0';
	return line;
}

static struct policy_watch *
add_new_watch(struct policy_file *f, const char *spec, enum wp_access access)
{
	struct policy_watch *watch = add_watch(f);
	const struct policy_line *line;
	size_t i = 0;

	while (i < ACCESSES - 1 && accesses[i].access != access)
		i++;
	if (watch == NULL || begin_watch(f, watch) == NULL ||
	    (line = add_new(watch, POLICY_SPEC, "", spec)) == NULL)
		return NULL;
	watch->spec = line->value;
	watch->access = access;
	return add_new(watch, POLICY_ACCESS, "", accesses[i].name) == NULL ?
	    NULL : watch;
}

int
policy_file_add(struct policy_file *f, const char *spec, enum wp_access access,
    const char *writer)
{
	struct policy_watch *watch = policy_file_find(f, spec, access);

	if (watch != NULL && writer == NULL)
		return 0;
	for (size_t i = 0; watch != NULL && i < watch->n; i++)
		if (watch->line[i].key == POLICY_WRITER &&
		    strcmp(watch->line[i].value, writer) == 0)
			return 0;
	if (watch == NULL)
		watch = add_new_watch(f, spec, access);
	return watch == NULL || (writer != NULL &&
	    add_new(watch, POLICY_WRITER, "", writer) == NULL) ? -ENOMEM : 1;
}

int
policy_file_join(struct policy_file *f, const struct policy_file *from)
{
	int added = 0;

	for (size_t i = 0; i < from->n; i++) {
		const struct policy_watch *w = &from->watch[i];

		for (size_t k = 0; k < w->n; k++) {
			const bool writer = w->line[k].key == POLICY_WRITER;
			const int one = !writer && k > 0 ? 0 :
			    policy_file_add(f, w->spec, w->access, writer ?
			    w->line[k].value : NULL);

			if (one < 0)
				return one;
			added += one;
		}
	}
	return added;
}

static void
put_line(struct buffer *b, const struct policy_line *line)
{
	const size_t len = strlen(line->before);

	buffer_puts(b, line->before);
	if (len > 0 && line->before[len - 1] != '\n')
		buffer_puts(b, "\n");
	buffer_puts(b, keys[line->key]);
	if (line->key != POLICY_WATCH) {
		buffer_puts(b, " = ");
		buffer_puts(b, line->value);
	}
	buffer_puts(b, "\n");
}

static int
compare_lines(const void *a, const void *b)
{
	const struct policy_line *x = *(const struct policy_line *const *)a;
	const struct policy_line *y = *(const struct policy_line *const *)b;

	return strcmp(x->value, y->value);
}

static void
put_watch(struct buffer *b, const struct policy_watch *watch)
{
	const struct policy_line **writer = calloc(watch->n + 1,
	    sizeof(*writer));
	size_t n = 0;

	b->failed |= writer == NULL;
	for (size_t i = 0; i < watch->n && writer != NULL; i++) {
		if (watch->line[i].key == POLICY_WRITER)
			writer[n++] = &watch->line[i];
		else
			put_line(b, &watch->line[i]);
	}
	if (n > 0)
		qsort(writer, n, sizeof(*writer), compare_lines);
	for (size_t i = 0; i < n; i++)
		put_line(b, writer[i]);
	free(writer);
}

void
policy_file_put(const struct policy_file *f, struct buffer *b)
{
	for (size_t i = 0; i < f->n; i++)
		put_watch(b, &f->watch[i]);
	if (f->after != NULL)
		buffer_puts(b, f->after);
}
