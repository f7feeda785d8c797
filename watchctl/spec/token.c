/* token: the tokens of an expression. */
#include "spec/token.h"

#include <ctype.h>
#include <string.h>

enum {
	NESTING_MAX = 32,	/* brackets within template arguments */
	POINTERS_MAX = 8,	/* pointers to pointers */
	ELEMENTS_MAX = 1 << 16,	/* of a dimension */
};

const char *
token_skip(const char *p)
{
	return p + strspn(p, " \t");
}

/* Letters of other alphabets are bytes of UTF-8. */
static bool
is_letter(char c)
{
	return isalpha((unsigned char)c) || c == '_' || c == '$' ||
	    (unsigned char)c >= 0x80;
}

static bool
is_word(char c)
{
	return is_letter(c) || isdigit((unsigned char)c);
}

size_t
token_word(const char *p)
{
	size_t n = 0;

	if (is_letter(*p))
		while (is_word(p[n]))
			n++;
	return n;
}

bool
token_is(const char *p, const char *word)
{
	const size_t len = strlen(word);

	return strncmp(p, word, len) == 0 && !is_word(p[len]);
}

/* --- names --- */

size_t
token_file(const char *p)
{
	static const char *const endings[] = {
		"c", "cc", "cp", "cpp", "cxx", "C", "h", "hh", "hpp", "hxx",
		"m", "mm", "f", "for", "f77", "f90", "f95", "f03", "f08", "F",
		"F90", "rs", "go", "d", "s", "S", "adb", "inc",
	};
	size_t n = 0;
	const char *dot = NULL;

	for (; is_word(p[n]) || (p[n] != '\0' && strchr("./-", p[n]) != NULL &&
	    strncmp(p + n, "->", 2) != 0); n++) {
		if (p[n] == '.')
			dot = p + n;
	}
	if (dot == NULL || dot == p || strncmp(p + n, "::", 2) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (strlen(endings[i]) == (size_t)(p + n - dot - 1) &&
		    strncmp(dot + 1, endings[i], strlen(endings[i])) == 0)
			return n + 2;
	}
	return 0;
}

/* The length of brackets and their contents; 0: they are never closed.
   Template arguments may contain "->", and '>' in other brackets. */
static size_t
bracketed(const char *p)
{
	static const char open[] = "<([{", close[] = ">)]}";
	char wanted[NESTING_MAX];
	unsigned depth = 0;
	size_t n = 0;

	do {
		const char *at = p[n] == '\0' ? NULL : strchr(open, p[n]);

		if (p[n] == '\0' || depth == NESTING_MAX)
			return 0;
		if (at != NULL)
			wanted[depth++] = close[at - open];
		else if (depth > 0 && p[n] == wanted[depth - 1] &&
		    (p[n] != '>' || p[n - 1] != '-'))
			depth--;
		n++;
	} while (depth > 0);
	return n;
}

/* One part of a name between "::". */
static size_t
segment(const char *p, const char **wrong)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n, more;

	if (strncmp(p, anonymous, sizeof(anonymous) - 1) == 0)
		return sizeof(anonymous) - 1;
	if (*p == '{')
		return bracketed(p);
	n = token_word(p);
	if (n == 0 || p[n] != '<' || p[n + 1] == '<')
		return n;
	if ((more = bracketed(p + n)) == 0)
		*wrong = p + n;
	return n + more;
}

size_t
token_name(const char *p, const char **wrong)
{
	size_t n = token_file(p), len;

	*wrong = NULL;
	if (strncmp(p + n, "::", 2) == 0)
		n += 2;
	if ((len = segment(p + n, wrong)) == 0)
		return 0;
	n += len;
	while (*wrong == NULL && strncmp(p + n, "::", 2) == 0 &&
	    (len = segment(p + n + 2, wrong)) > 0)
		n += 2 + len;
	return n;
}

/* --- constants --- */

static int
digit_value(char c, unsigned base)
{
	int value = isdigit((unsigned char)c) ? c - '0' :
	    isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 :
	    16;

	return value < (int)base ? value : -1;
}

/* C's type of a constant: the first that has room for it. */
static void
set_type(struct token_number *n, bool decimal, bool is_unsigned, bool is_long)
{
	n->is_signed = !is_unsigned && n->value <= INT64_MAX;
	n->size = is_long || n->value > UINT32_MAX ||
	    (n->value > INT32_MAX && decimal && !is_unsigned) ? 8 : 4;
	if (n->size == 4 && n->value > INT32_MAX)
		n->is_signed = false;
}

const char *
token_number(const char **p, struct token_number *n)
{
	const char *begin = *p;
	unsigned base = 10, unsigneds = 0, longs = 0;
	int digit;

	*n = (struct token_number){0};
	if (begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X')) {
		base = 16;
		*p += 2;
		if (digit_value(**p, base) < 0)
			return "a hexadecimal digit is expected";
	} else if (begin[0] == '0') {
		base = 8;
	}
	for (; (digit = digit_value(**p, base)) >= 0; ++*p) {
		if (n->value > (UINT64_MAX - (unsigned)digit) / base) {
			*p = begin;
			return "the number needs more than 64 bits";
		}
		n->value = n->value * base + (unsigned)digit;
	}
	for (; **p != '\0' && strchr("uUlL", **p) != NULL; ++*p) {
		unsigneds += **p == 'u' || **p == 'U';
		longs += **p == 'l' || **p == 'L';
	}
	if (unsigneds > 1 || longs > 2 || is_word(**p) ||
	    (**p == '.' && isdigit((unsigned char)(*p)[1])))
		return "not a digit of a whole number";
	set_type(n, base == 10, unsigneds > 0, longs > 0);
	return NULL;
}

/* Take the escape sequence after a backslash. */
static bool
escape(const char **p, uint64_t *value)
{
	static const char names[] = "abfnrtv\\'\"?";
	static const char values[] = "\a\b\f\n\r\t\v\\'\"?";
	const unsigned base = **p == 'x' ? 16 : 8;
	const char *name = **p == '\0' ? NULL : strchr(names, **p);
	unsigned digits = 0;

	if (name != NULL) {
		*value = (unsigned char)values[name - names];
		++*p;
		return true;
	}
	*p += base == 16;
	*value = 0;
	for (; digits < (base == 16 ? 2 : 3) && digit_value(**p, base) >= 0;
	    digits++)
		*value = *value * base + (unsigned)digit_value(*(*p)++, base);
	return digits > 0 && *value <= UINT8_MAX;
}

const char *
token_character(const char **p, struct token_number *n)
{
	const char *begin = *p;

	*n = (struct token_number){.size = 4, .is_signed = true};
	++*p;
	if (**p == '\\') {
		++*p;
		if (!escape(p, &n->value))
			return "no such escape sequence";
	} else if (**p != '\0' && **p != '\'') {
		n->value = (unsigned char)*(*p)++;
	}
	if (**p != '\'' || *p == begin + 1) {
		*p = begin;
		return "a character constant has one character, as 'a'";
	}
	++*p;
	n->value = (uint64_t)(int64_t)(signed char)n->value;
	return NULL;
}

/* --- types --- */

/* The words of C's own types, how often each was there. */
struct words {
	unsigned n[10];
};
enum { SIGNED, UNSIGNED, CHAR, SHORT, INT, LONG, FLOAT, DOUBLE, BOOL, VOID };

/* The word at p, if it is one of them; 0: it is not. */
static size_t
take_word(const char *p, struct words *words)
{
	static const char *const names[] = {
		"signed", "unsigned", "char", "short", "int", "long", "float",
		"double", "_Bool", "void",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (token_is(p, names[i])) {
			words->n[i]++;
			return strlen(names[i]);
		}
	}
	if (!token_is(p, "bool"))
		return 0;
	words->n[BOOL]++;
	return 4;
}

/* The base type that these words denote together; NULL: none. */
static const char *
base_type(const struct words *words)
{
	const unsigned *n = words->n;
	const bool is_unsigned = n[UNSIGNED] > 0;

	if (n[FLOAT] + n[DOUBLE] + n[BOOL] + n[VOID] + n[CHAR] > 1 ||
	    n[SIGNED] + n[UNSIGNED] > 1 || n[SHORT] + (n[LONG] > 0) > 1 ||
	    n[LONG] > 2 || n[INT] > 1)
		return NULL;
	if (n[CHAR] > 0)
		return is_unsigned ? "unsigned char" : n[SIGNED] > 0 ?
		    "signed char" : "char";
	if (n[DOUBLE] > 0)
		return n[LONG] > 0 ? "long double" : "double";
	if (n[FLOAT] > 0 || n[BOOL] > 0 || n[VOID] > 0)
		return n[FLOAT] > 0 ? "float" : n[BOOL] > 0 ? "bool" : "void";
	if (n[SHORT] > 0)
		return is_unsigned ? "unsigned short" : "short";
	if (n[LONG] > 1)
		return is_unsigned ? "unsigned long long" : "long long";
	if (n[LONG] > 0)
		return is_unsigned ? "unsigned long" : "long";
	return is_unsigned ? "unsigned int" : "int";
}

/* The length of a word at p that says how and not what; 0: none is there. */
static size_t
qualifier(const char *p)
{
	static const char *const names[] = {
		"const", "volatile", "restrict", "_Atomic", "typename",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (token_is(p, names[i]))
			return strlen(names[i]);
	return 0;
}

static size_t
take_tag(const char *p, struct token_type *type)
{
	static const struct {
		const char *name;
		enum token_tag tag;
	} tags[] = {
		{"struct", TAG_STRUCT}, {"class", TAG_STRUCT},
		{"union", TAG_UNION}, {"enum", TAG_ENUM},
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (token_is(p, tags[i].name)) {
			type->tag = tags[i].tag;
			return strlen(tags[i].name);
		}
	}
	return 0;
}

/* One word of a type; 0: none is there. */
static size_t
take_part(const char *p, struct token_type *type, struct words *words,
    bool *own)
{
	const char *wrong;
	size_t n;

	if ((n = qualifier(p)) > 0)
		return n;
	if (type->name != NULL)
		return 0;
	if (type->tag == TAG_ANY && (n = take_word(p, words)) > 0) {
		*own = true;
		return n;
	}
	if (*own)
		return 0;
	if (type->tag == TAG_ANY && (n = take_tag(p, type)) > 0)
		return n;
	n = token_name(p, &wrong);
	if (n == 0 || wrong != NULL || token_is(p, "sizeof"))
		return 0;
	type->name = p;
	type->len = n;
	return n;
}

/* Take any '*', with qualifiers among them, and count them.  False: there are
   too many. */
static bool
take_pointers(const char **p, unsigned *pointers)
{
	const char *at = *p;
	size_t n;

	while ((n = *at == '*' ? 1 : qualifier(at)) > 0) {
		if (*at == '*' && ++*pointers > POINTERS_MAX)
			return false;
		at = token_skip(at + n);
	}
	*p = at;
	return true;
}

/* Take the '&' or '&&' of a reference. */
static void
take_reference(const char **p, struct token_type *type)
{
	if (**p != '&')
		return;
	type->reference = true;
	*p = token_skip(*p + ((*p)[1] == '&' ? 2 : 1));
}

/* Take the dimensions after "(*)": the pointer is one to an array. */
static bool
take_dimensions(const char **p, struct token_type *type)
{
	const char *at = *p;

	while (*at == '[') {
		struct token_number number;

		at = token_skip(at + 1);
		if (type->ndims == TOKEN_DIMENSIONS ||
		    token_number(&at, &number) != NULL || number.value == 0 ||
		    number.value > ELEMENTS_MAX || *(at = token_skip(at)) !=
		    ']')
			return false;
		type->count[type->ndims++] = number.value;
		at = token_skip(at + 1);
	}
	*p = at;
	return type->ndims > 0;
}

/* Take the parameters after "(*)": the pointer is one to a function. */
static bool
take_parameters(const char **p)
{
	const char *at = *p;
	unsigned depth = 0;

	do {
		depth += *at == '(';
		depth -= *at == ')';
		if (*at++ == '\0')
			return false;
	} while (depth > 0);
	*p = token_skip(at);
	return true;
}

/* Take a declarator such as "(*)[4]", "(&)[4]" or "(*)(int)".  What a pointer
   to a function points to has no type here.  False: this is no type. */
static bool
take_declarator(const char **p, struct token_type *type)
{
	const char *at = *p;
	unsigned outer = 0;

	if (*at != '(' || (*(at = token_skip(at + 1)) != '*' && *at != '&'))
		return true;
	if (!take_pointers(&at, &outer))
		return false;
	take_reference(&at, type);
	if (*at != ')')
		return false;
	at = token_skip(at + 1);
	if (*at == '(') {
		if (type->reference || !take_parameters(&at))
			return false;
		*type = (struct token_type){.base = "void", .pointers = outer};
	} else {
		if (!take_dimensions(&at, type))
			return false;
		type->outer = outer;
	}
	*p = at;
	return true;
}

bool
token_type(const char **p, struct token_type *type)
{
	struct words words = {{0}};
	const char *at = token_skip(*p);
	bool own = false;
	size_t n;

	*type = (struct token_type){.tag = TAG_ANY};
	while ((n = take_part(at, type, &words, &own)) > 0)
		at = token_skip(at + n);
	if (own && (type->base = base_type(&words)) == NULL)
		return false;
	if (!own && type->name == NULL)
		return false;
	if (!take_pointers(&at, &type->pointers) ||
	    !take_declarator(&at, type))
		return false;
	if (!type->reference)
		take_reference(&at, type);
	*p = at;
	return true;
}
