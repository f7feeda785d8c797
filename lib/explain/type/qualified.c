/* qualified: names with the scopes that they are declared in. */
#include "type/qualified.h"

#include <ctype.h>
#include <string.h>

const char *
ex_qualified_last(const char *name)
{
	const char *last = name;
	unsigned depth = 0;

	for (const char *p = name; *p != '\0'; p++) {
		if (strchr("<({", *p) != NULL)
			depth++;
		else if (strchr(">)}", *p) != NULL && depth > 0)
			depth--;
		else if (depth == 0 && p[0] == ':' && p[1] == ':')
			last = ++p + 1;
	}
	return last;
}

enum { CANONICAL_MAX = 2048 };	/* characters; longer names are compared
				   unchanged */

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' ||
	    (unsigned char)c >= 0x80;
}

/* The words that make up the name of one of C's number types, in any order. */
struct numbers {
	unsigned n, longs, shorts, chars, ints;
	bool is_unsigned, is_signed;
};

static bool
is_word_of(const char *p, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(p, word, len) == 0;
}

/* Returns false if it is not one of these words. */
static bool
take(struct numbers *numbers, const char *p, size_t len)
{
	if (is_word_of(p, len, "long"))
		numbers->longs++;
	else if (is_word_of(p, len, "short"))
		numbers->shorts++;
	else if (is_word_of(p, len, "char"))
		numbers->chars++;
	else if (is_word_of(p, len, "int"))
		numbers->ints++;
	else if (is_word_of(p, len, "unsigned"))
		numbers->is_unsigned = true;
	else if (is_word_of(p, len, "signed"))
		numbers->is_signed = true;
	else
		return false;
	numbers->n++;
	return true;
}

/* Writes the shortest form, which is never longer than the original. */
static char *
put(char *out, const struct numbers *numbers)
{
	const bool named = numbers->chars + numbers->shorts +
	    numbers->longs == 0;

	if (numbers->is_unsigned)
		out = stpcpy(out, named ? "unsigned" : "unsigned ");
	else if (numbers->is_signed && numbers->chars > 0)
		out = stpcpy(out, "signed ");
	else if (named)
		out = stpcpy(out, "int");
	if (numbers->chars > 0)
		out = stpcpy(out, "char");
	else if (numbers->shorts > 0)
		out = stpcpy(out, "short");
	else if (numbers->longs > 0)
		out = stpcpy(out, numbers->longs > 1 ? "long long" : "long");
	return out;
}

/* Replace the words of one number type at *p.  NULL if there are none. */
static char *
put_numbers(char *out, const char **p)
{
	struct numbers numbers = {0};
	const char *at = *p;

	for (;;) {
		size_t len = 0;

		while (is_word(at[len]))
			len++;
		if (len == 0 || !take(&numbers, at, len))
			break;
		*p = at + len;
		for (at = *p; *at == ' '; at++)
			;
	}
	return numbers.n > 0 ? put(out, &numbers) : NULL;
}

/* Write the name with blanks only between words, and number types in their
   shortest form.  Returns false if it is too long. */
static bool
canonical(const char *name, char text[CANONICAL_MAX], bool any_case)
{
	char *out = text, *more;

	if (strlen(name) >= CANONICAL_MAX)
		return false;
	name += strncmp(name, "::", 2) == 0 ? 2 : 0;
	while (*name != '\0') {
		bool word = out > text && is_word(out[-1]);

		if (*name == ' ') {
			name += strspn(name, " ");
			if (word && is_word(*name))
				*out++ = ' ';
			continue;
		}
		if (!word && (more = put_numbers(out, &name)) != NULL) {
			out = more;
			continue;
		}
		*out++ = any_case ? (char)tolower((unsigned char)*name) : *name;
		name++;
	}
	*out = '\0';
	return true;
}

bool
ex_qualified_same(const char *a, const char *b, bool any_case)
{
	char x[CANONICAL_MAX], y[CANONICAL_MAX];

	if (strcmp(a, b) == 0)
		return true;
	return canonical(a, x, any_case) && canonical(b, y, any_case) &&
	    strcmp(x, y) == 0;
}
