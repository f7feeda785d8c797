/*
 * demangle: C++ and Rust names as their programmers wrote them.
 *
 * A mangled name may stand for one of any length (each part may be two copies
 * of the one before), and libiberty's printer cannot be stopped when there is
 * no more room.  In the callback form it has nothing on the heap, so it is left
 * with longjmp.
 */
#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/symbol.h"

#define MANGLED_MAX 16384	/* longer names are not demangled */
#define TEXT_MAX 65536		/* nor those whose result would be longer */

struct text {
	jmp_buf full;
	size_t len;
	char s[TEXT_MAX];
};

typedef int demangler(const char *, int, demangle_callbackref, void *);

static void
text_add(const char *s, size_t len, void *arg)
{
	struct text *text = arg;

	if (len >= TEXT_MAX - text->len)
		longjmp(text->full, 1);
	memcpy(text->s + text->len, s, len);
	text->len += len;
}

static bool
text_demangle(struct text *text, demangler *demangle, const char *raw,
    int options)
{
	text->len = 0;
	if (setjmp(text->full) != 0)
		return false;
	return demangle(raw, options, text_add, text) != 0;
}

/* Try one demangler, then the other.  NULL if neither knows the name. */
static char *
demangle_by(demangler *first, demangler *second, const char *raw, int options)
{
	struct text *text;
	char *result = NULL;

	if (raw[0] != '_' || (raw[1] != 'Z' && raw[1] != 'R') ||
	    strnlen(raw, MANGLED_MAX) == MANGLED_MAX ||
	    (text = malloc(sizeof(*text))) == NULL)
		return NULL;
	if (text_demangle(text, first, raw, options) ||
	    (second != NULL && text_demangle(text, second, raw, options)))
		result = strndup(text->s, text->len);
	free(text);
	return result;
}

const char *
ex_demangle(const char *raw, char **owned)
{
	/* names of Rust's older scheme are valid C++ names, too */
	*owned = demangle_by(rust_demangle_callback,
	    cplus_demangle_v3_callback, raw, DMGL_NO_OPTS);
	return *owned != NULL ? *owned : raw;
}

char *
ex_demangle_whole(const char *raw)
{
	return demangle_by(cplus_demangle_v3_callback, NULL, raw,
	    DMGL_PARAMS | DMGL_ANSI);
}

/* The last `const' before p that starts a type, or NULL. */
static const char *
leading_const(const char *name, const char *p)
{
	while (p-- > name) {
		const char *before = p;

		while (before > name && before[-1] == ' ')
			before--;
		if (strncmp(p, "const ", 6) == 0 &&
		    (before == name || strchr("(,<", before[-1]) != NULL))
			return p;
	}
	return NULL;
}

/* The end of the type that p is in: before its '*' or '&', or at a bracket or
   comma. */
static const char *
type_end(const char *p)
{
	static const char unnamed[] = "(anonymous namespace)";
	unsigned depth = 0;

	for (; *p != '\0' && (depth > 0 || strchr("*&,>)([", *p) == NULL ||
	    strncmp(p, unnamed, sizeof(unnamed) - 1) == 0); p++)
		depth += *p == '<' || *p == '(' ? 1u :
		    *p == '>' || *p == ')' ? -1u : 0;
	return p;
}

const char *
ex_demangle_form(const char *name, char **owned)
{
	const char *at, *end;
	char *text, *p;

	*owned = NULL;
	if (leading_const(name, name + strlen(name)) == NULL ||
	    (text = strdup(name)) == NULL)
		return name;
	/* from the end, so that what is inside <> is done first */
	at = text + strlen(text);
	while ((at = leading_const(text, at)) != NULL) {
		for (end = type_end(at + 6); end[-1] == ' '; end--)
			;
		if (end < at + 6)
			continue;
		p = text + (at - text);
		memmove(p, p + 6, (size_t)(end - at) - 6);
		memcpy(p + (end - at) - 6, " const", 6);
	}
	*owned = text;
	return text;
}
