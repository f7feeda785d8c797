/* jit: names of code that a running process has generated. */
#include "space/jit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "module/module_private.h"
#include "os/clock.h"
#include "proc/perf_map.h"
#include "base/array.h"

#define TEXT_MAX ((off_t)64 << 20)	/* bytes read of one process's files */
#define NAME_MAX_ 1024			/* of a name */
#define LOOKS_NS 1000000u		/* ns between checks of the file */

/* The lines read at one time. */
struct map_text {
	struct map_text *next;
	char bytes[];
};

/* A function of generated code. */
struct jit_function {
	uint64_t start, end;
	const char *name;	/* points into a text */
};

struct ex_jit {
	struct wp_perf_map file;
	struct ex_module *module;
	uint64_t looked;	/* ns, last check of the file */
	uint64_t edition;
	dev_t dev;		/* identify the file that was read; */
	ino_t ino;		/* 0 if none was */
	off_t done;		/* offset read up to */
	off_t held;		/* bytes of all texts */
	struct map_text *texts;
	struct jit_function *entry;	/* in the order of the file */
	size_t n, cap;
};

struct ex_jit *
ex_jit_new(pid_t pid, int root)
{
	static const struct ex_file_id none = {0};
	struct ex_jit *jit = calloc(1, sizeof(*jit));
	char path[48];

	if (jit == NULL)
		return NULL;
	if (wp_perf_map_find(&jit->file, pid, root) < 0) {
		free(jit);
		return NULL;
	}
	(void)snprintf(path, sizeof(path), "/tmp/%s", jit->file.name);
	if ((jit->module = ex_module_new(path, &none)) != NULL)
		return jit;
	free(jit);
	return NULL;
}

void
ex_jit_free(struct ex_jit *jit)
{
	struct map_text *text;

	if (jit == NULL)
		return;
	while ((text = jit->texts) != NULL) {
		jit->texts = text->next;
		free(text);
	}
	ex_module_free(jit->module);
	free(jit->entry);
	free(jit);
}

/* Add the entry of a line.  Returns false if there is no memory. */
static bool
take_line(struct ex_jit *jit, char *line)
{
	struct jit_function e;
	uint64_t size;
	char *end;

	errno = 0;
	e.start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return true;
	line = end + 1;
	size = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || end[1] == '\0' || errno != 0 ||
	    size == 0 || e.start + size < e.start)
		return true;
	e.end = e.start + size;
	e.name = end + 1;
	end[1 + strnlen(e.name, NAME_MAX_)] = '\0';
	if (!EX_ARRAY_ROOM(jit, entry, SIZE_MAX))
		return false;
	jit->entry[jit->n++] = e;
	return true;
}

/* Only whole lines: the last one may be incomplete. */
static void
take_text(struct ex_jit *jit, struct map_text *text, size_t len)
{
	char *at = text->bytes, *end = at + len, *stop;

	for (; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL;
	    at = stop + 1) {
		*stop = '\0';
		if (!take_line(jit, at))
			break;
	}
	jit->done += at - text->bytes;
	text->next = jit->texts;
	jit->texts = text;
	jit->edition++;
}

/* Read what has been appended. */
static void
read_more(struct ex_jit *jit, int fd, off_t size)
{
	struct map_text *text;
	ssize_t n;

	if (size > jit->done + (TEXT_MAX - jit->held))
		size = jit->done + (TEXT_MAX - jit->held);
	if (size <= jit->done ||
	    (text = malloc(sizeof(*text) + (size_t)(size - jit->done))) == NULL)
		return;
	n = pread(fd, text->bytes, (size_t)(size - jit->done), jit->done);
	if (n <= 0 || memrchr(text->bytes, '\n', (size_t)n) == NULL) {
		free(text);
		return;
	}
	jit->held += n;
	take_text(jit, text, (size_t)n);
}

void
ex_jit_look(struct ex_jit *jit)
{
	const uint64_t now = wp_clock_ns();
	struct stat st;
	int fd;

	if (jit->looked != 0 && now - jit->looked < LOOKS_NS)
		return;
	jit->looked = now;
	if ((fd = wp_perf_map_open(&jit->file)) < 0)
		return;
	if (fstat(fd, &st) < 0) {
		(void)close(fd);
		return;
	}
	if (st.st_dev != jit->dev || st.st_ino != jit->ino ||
	    st.st_size < jit->done) {
		jit->dev = st.st_dev;
		jit->ino = st.st_ino;
		jit->done = 0;
		jit->n = 0;
	}
	read_more(jit, fd, st.st_size);
	(void)close(fd);
}

/* NULL if there is none, or more than one. */
static const struct jit_function *
find(const struct ex_jit *jit, uint64_t addr)
{
	const struct jit_function *found = NULL;

	for (size_t i = 0; i < jit->n; i++) {
		const struct jit_function *e = &jit->entry[i];

		if (addr < e->start || addr >= e->end)
			continue;
		if (found != NULL && strcmp(found->name, e->name) != 0)
			return NULL;
		found = e;
	}
	return found;
}

const char *
ex_jit_find(struct ex_jit *jit, uint64_t addr, uint64_t *start)
{
	const struct jit_function *e = find(jit, addr);
	const uint64_t edition = jit->edition;

	if (e == NULL) {
		ex_jit_look(jit);
		if (jit->edition != edition)
			e = find(jit, addr);
	}
	if (e == NULL)
		return NULL;
	*start = e->start;
	return e->name;
}

uint64_t
ex_jit_edition(const struct ex_jit *jit)
{
	return jit->edition;
}

const struct ex_module *
ex_jit_module(const struct ex_jit *jit)
{
	return jit->module;
}
