/* short_name: finds the arguments of templates in a demangled name. */
#include "text/short_name.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "util/visible.h"

static const char dots[] = "<...>";

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' ||
	    (unsigned char)c >= 0x80;
}

/* The length of the operator's name at p, if its sign could be mistaken for
   template arguments; 0: there is none. */
static size_t
operator_length(const char *name, const char *p)
{
	static const char word[] = "operator";
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<",
		">",
	};

	if (strncmp(p, word, strlen(word)) != 0 ||
	    (p > name && is_word(p[-1])))
		return 0;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strncmp(p + strlen(word), signs[i], strlen(signs[i])) == 0)
			return strlen(word) + strlen(signs[i]);
	return 0;
}

/* The length of the arguments that begin at p, with their brackets; 0: they do
   not end. */
static size_t
arguments_length(const char *p)
{
	unsigned brackets = 0, parentheses = 0;

	for (size_t n = 0; p[n] != '\0'; n++) {
		const size_t operator = operator_length(p, p + n);

		if (operator > 0) {
			n += operator - 1;
			continue;
		}
		parentheses += p[n] == '(';
		parentheses -= p[n] == ')' && parentheses > 0;
		if (parentheses > 0 || (p[n] == '>' && p[n - 1] == '-'))
			continue;
		brackets += p[n] == '<';
		brackets -= p[n] == '>';
		if (brackets == 0)
			return n + 1;
	}
	return 0;
}

/* Whether a '<' follows a name that can have template arguments. */
static bool
follows_name(const char *name, const char *p)
{
	return p > name && (is_word(p[-1]) || strchr(")]}=", p[-1]) != NULL);
}

char *
short_name(const char *name)
{
	char *copy = strdup(name), *to = copy;
	size_t n;

	if (copy == NULL ||
	    visible_columns(name, strlen(name)) <= SHORT_NAME_COLUMNS)
		return copy;
	for (const char *p = name; *p != '\0'; p += n) {
		if ((n = operator_length(name, p)) == 0 && *p == '<' &&
		    follows_name(name, p) &&
		    (n = arguments_length(p)) >= strlen(dots)) {
			to = stpcpy(to, dots);
			continue;
		}
		n += n == 0;
		memcpy(to, p, n);
		to += n;
	}
	*to = '\0';
	return copy;
}
