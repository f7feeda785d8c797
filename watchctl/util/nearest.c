/* nearest: edit distance, given up as soon as it is too large. */
#include "util/nearest.h"

#include <stdlib.h>

#include "util/visible.h"

enum {
	WANT_MAX = 256,		/* longer names have no likeness */
	PART_MIN = 3,		/* shorter ones are part of too much */
	NAME_MAX_BYTES = 4096,	/* nor have longer candidates */
};

void
nearest_begin(struct nearest *near, const char *want)
{
	size_t len = strnlen(want, WANT_MAX + 1);

	memset(near, 0, sizeof(*near));
	near->want = want;
	near->len = len;
	near->head = strcspn(want, "(");
	near->limit = len < 4 ? 1 : len < 9 ? 2 : 3;
	if (len == 0 || len > WANT_MAX)
		near->limit = 0;
	near->part = near->limit;
}

void
nearest_free(struct nearest *near)
{
	for (unsigned i = 0; i < near->n; i++)
		free(near->best[i].name);
	near->n = 0;
}

/* The number of letters to insert, delete or replace to turn one text into the
   other (Levenshtein); limit + 1: more than limit. */
static unsigned
edits_between(const char *a, size_t alen, const char *b, size_t blen,
    unsigned limit)
{
	unsigned row[WANT_MAX + 1];	/* edits from a[..i] to b[..j] */

	for (size_t j = 0; j <= blen; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= alen; i++) {
		unsigned diagonal = row[0], least;

		row[0] = least = (unsigned)i;
		for (size_t j = 1; j <= blen; j++) {
			unsigned edits = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < edits)
				edits = row[j] + 1;
			if (row[j - 1] + 1 < edits)
				edits = row[j - 1] + 1;
			row[j] = edits;
			if (edits < least)
				least = edits;
		}
		if (least > limit)
			return limit + 1;
	}
	return row[blen] > limit ? limit + 1 : row[blen];
}

/* The number of edits that a name counts as; more than limit: it is not
   similar. */
static unsigned
edits_to(const struct nearest *near, const char *name)
{
	size_t len = strnlen(name, NAME_MAX_BYTES);
	unsigned edits = near->limit + 1;

	if (len == 0 || len == NAME_MAX_BYTES)
		return edits;
	if (len > near->len + 2 &&
	    memcmp(name + len - near->len - 2, "::", 2) == 0 &&
	    memcmp(name + len - near->len, near->want, near->len) == 0)
		return 1;
	if (near->head > 0 && near->head < near->len && near->head < len &&
	    memcmp(name, near->want, near->head + 1) == 0)
		return 1;
	if (len <= near->len + near->limit && near->len <= len + near->limit)
		edits = edits_between(name, len, near->want, near->len,
		    near->limit);
	if (edits > near->part && near->len >= PART_MIN &&
	    memmem(name, len, near->want, near->len) != NULL)
		return near->part;
	return edits;
}

/* Whether a candidate comes before another. */
static bool
before(unsigned edits, const char *name, unsigned edits2, const char *name2)
{
	return edits != edits2 ? edits < edits2 : strcmp(name, name2) < 0;
}

void
nearest_offer(struct nearest *near, const char *name)
{
	unsigned last = NEAREST_MAX - 1, at, edits;
	char *copy;

	if (near->limit == 0)
		return;
	edits = edits_to(near, name);
	if (edits > near->limit)
		return;
	for (at = 0; at < near->n && !before(edits, name,
	    near->best[at].edits, near->best[at].name); at++) {
		if (strcmp(near->best[at].name, name) == 0)
			return;
	}
	if (at == NEAREST_MAX || (copy = strdup(name)) == NULL)
		return;
	if (near->n == NEAREST_MAX)
		free(near->best[last].name);
	else
		near->n++;
	for (unsigned i = near->n - 1; i > at; i--)
		near->best[i] = near->best[i - 1];
	near->best[at].name = copy;
	near->best[at].edits = edits;
	if (near->n == NEAREST_MAX && near->best[last].edits < near->limit)
		near->limit = near->best[last].edits;
}

void
nearest_put(const struct nearest *near, struct buffer *b)
{
	for (unsigned i = 0; i < near->n; i++) {
		if (i > 0)
			buffer_puts(b, ", ");
		visible_put_max(b, near->best[i].name, 60);
	}
}
