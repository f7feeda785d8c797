/*
 * spec: parses the text of a SPEC.
 *
 * C++ names may contain every character that has a meaning in a SPEC.  So these
 * characters count only outside brackets, and not in "::" or after "operator".
 * The functions advance *p and return NULL, or what is wrong at *p.
 */
#include "spec/spec.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "os/slot.h"
#include "spec/spec_private.h"
#include "util/visible.h"

bool
spec_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_word(char c)
{
	return spec_is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

/* The value of a digit in a base up to 16, or -1. */
static int
digit_value(char c, unsigned base)
{
	int value = spec_is_digit(c) ? c - '0' :
	    c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	    c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;

	return value < (int)base ? value : -1;
}

const char *
spec_parse_number(const char **p, uint64_t *value)
{
	const char *begin = *p;
	unsigned base = 10;
	int digit;

	*value = 0;
	if (!spec_is_digit(**p))
		return "a number is expected";
	if (begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X')) {
		base = 16;
		*p += 2;
		if (digit_value(**p, base) < 0)
			return "a hexadecimal digit is expected";
	}
	for (; (digit = digit_value(**p, base)) >= 0; ++*p) {
		if (*value > (UINT64_MAX - (unsigned)digit) / base) {
			*p = begin;
			return "the number needs more than 64 bits";
		}
		*value = *value * base + (unsigned)digit;
	}
	if (base == 10 && digit_value(**p, 16) >= 0)
		return "not a decimal digit (hexadecimal has 0x before it)";
	if (is_word(**p))
		return "not a digit";
	return NULL;
}

/* The length of an operator's name at p; 0: there is none. */
static size_t
operator_length(const char *p)
{
	static const char *const names[] = {
		"<=>", "<<=", ">>=", "->*", "()", "[]", "\"\"", "<<", ">>",
		"<=", ">=", "==", "!=", "&&", "||", "++", "--", "+=", "-=",
		"*=", "/=", "%=", "&=", "|=", "^=", "->", "+", "-", "*", "/",
		"%", "&", "|", "^", "~", "!", "=", "<", ">", ",",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (strncmp(p, names[i], len) == 0)
			return len;
	}
	return 0;
}

/* Whether the word "operator" ends just before p. */
static bool
after_operator(const char *begin, const char *p)
{
	static const char word[] = "operator";
	const size_t len = sizeof(word) - 1;

	return (size_t)(p - begin) >= len && memcmp(p - len, word, len) == 0 &&
	    (p == begin + len || !is_word(p[-(ptrdiff_t)len - 1]));
}

/* The '!' between module and symbol: not that of a C++ operator. */
static const char *
find_separator(const char *text)
{
	const char *p;

	for (p = strchr(text, '!'); p != NULL; p = strchr(p + 1, '!')) {
		if (!after_operator(text, p) && (p == text || p[-1] != '('))
			return p;
	}
	return NULL;
}

/* Brackets that are open in a name. */
struct nesting {
	char open[NESTING_MAX];	/* '(', '[', '{' or '<', the innermost last */
	const char *at[NESTING_MAX];
	unsigned depth;
};

static const char *
nesting_open(struct nesting *n, const char *p)
{
	if (n->depth == NESTING_MAX)
		return "brackets are nested too deeply";
	n->open[n->depth] = *p;
	n->at[n->depth++] = p;
	return NULL;
}

/* A '>' closes only '<': elsewhere it is an operator.  Other brackets close
   what '<' has opened inside them. */
static const char *
nesting_close(struct nesting *n, char c)
{
	char open = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';

	while (open != '<' && n->depth > 0 && n->open[n->depth - 1] == '<')
		n->depth--;
	if (n->depth > 0 && n->open[n->depth - 1] == open)
		n->depth--;
	else if (open != '<' || n->depth == 0)
		return "this closes no bracket";
	return NULL;
}

/* Advance over one step of a name: a character, "::", "->", an operator. */
static const char *
name_step(const char *begin, const char **p, struct nesting *n)
{
	size_t len = after_operator(begin, *p) ? operator_length(*p) : 0;
	const char *wrong = NULL;

	if (len > 0) {
		*p += len;
		return NULL;
	}
	if (strncmp(*p, "::", 2) == 0 || strncmp(*p, "->", 2) == 0) {
		*p += 2;
		return NULL;
	}
	if (strchr("([{<", **p) != NULL)
		wrong = nesting_open(n, *p);
	else if (strchr(")]}>", **p) != NULL)
		wrong = nesting_close(n, **p);
	if (wrong == NULL)
		++*p;
	return wrong;
}

/* Whether "@TID" is at p: "@" alone may be in a name. */
static bool
is_thread(const char *p)
{
	const char *digits = p + 1;

	if (*p != '@' || !spec_is_digit(*digits))
		return false;
	while (spec_is_digit(*digits))
		digits++;
	return *digits == '\0' || *digits == ':';
}

/* Advance over a symbol's name, up to what ends it: '+', ':', "@TID" or NUL. */
static const char *
parse_name(const char **p)
{
	const char *begin = *p, *wrong = NULL;
	struct nesting n = {.depth = 0};

	if (spec_is_digit(*begin))
		return "a symbol's name is expected, which does not begin with "
		    "a digit";
	while (**p != '\0' && wrong == NULL) {
		bool plain = n.depth == 0 && !after_operator(begin, *p);

		if (plain && (**p == '+' || is_thread(*p) ||
		    (**p == ':' && strncmp(*p, "::", 2) != 0)))
			break;
		wrong = name_step(begin, p, &n);
	}
	if (wrong == NULL && n.depth > 0) {
		*p = n.at[n.depth - 1];
		return "this is never closed";
	}
	if (wrong == NULL && *p == begin)
		return "a symbol's name is expected";
	return wrong;
}

/* [MODULE!]SYMBOL[+OFF] into the spec; *memory is cleared without memory. */
static const char *
parse_symbol(const char **p, struct spec *spec, bool *memory)
{
	const char *separator = find_separator(*p);
	const char *wrong, *begin;
	size_t file;

	if (separator != NULL) {
		if (separator == *p)
			return "a module's name is expected before it";
		spec->module = strndup(*p, (size_t)(separator - *p));
		*memory = spec->module != NULL;
		*p = separator + 1;
	}
	/* FILE.c::NAME */
	if (separator == NULL && (file = token_file(*p)) > 0) {
		spec->module = strndup(*p, file - 2);
		*memory = spec->module != NULL;
		*p += file;
	}
	begin = *p;
	wrong = parse_name(p);
	if (wrong != NULL)
		return wrong;
	spec->symbol = strndup(begin, (size_t)(*p - begin));
	*memory = *memory && spec->symbol != NULL;
	if (**p != '+')
		return NULL;
	++*p;
	spec->has_off = true;
	return spec_parse_number(p, &spec->off);
}

static const char *
parse_thread(const char **p, struct spec *spec)
{
	const char *begin = ++*p;
	uint64_t tid;
	const char *wrong = spec_parse_number(p, &tid);

	if (wrong != NULL)
		return wrong;
	if (tid == 0 || tid > INT_MAX) {
		*p = begin;
		return "no thread has this id";
	}
	spec->thread = (pid_t)tid;
	return NULL;
}

const char *
spec_parse_length(const char **p, struct spec *spec)
{
	const char *begin = ++*p;
	const char *wrong = spec_parse_number(p, &spec->len);

	if (wrong != NULL)
		return wrong;
	if (**p != '\0')
		return "nothing may follow the length";
	if (spec->len == 0)
		wrong = "the length is zero";
	else if (spec->symbol == NULL && spec->len - 1 > UINT64_MAX -
	    spec->addr)
		wrong = "the length reaches beyond the last address";
	if (wrong != NULL)
		*p = begin;
	return wrong;
}

static const char *
parse_spec(const char **p, struct spec *spec, bool *memory)
{
	bool symbol = find_separator(*p) != NULL || !spec_is_digit(**p);
	const char *wrong;

	if (**p == '\0')
		return "something to watch is expected";
	wrong = symbol ? parse_symbol(p, spec, memory) :
	    spec_parse_number(p, &spec->addr);
	if (wrong == NULL && symbol && is_thread(*p))
		wrong = parse_thread(p, spec);
	if (wrong != NULL || **p == '\0')
		return wrong;
	if (**p == ':')
		return spec_parse_length(p, spec);
	return symbol ? "only :LEN can follow an offset" :
	    "only :LEN can follow an address";
}

int
spec_syntax_error(const char *text, const char *p, const char *wrong,
    struct wp_cause *cause)
{
	struct buffer shown = {0}, rest = {0};
	size_t before = visible_columns(text, (size_t)(p - text));
	int rc;

	visible_put_max(&shown, text, TEXT_SHOWN);
	if (*p == '\0')
		buffer_puts(&rest, "its end");
	else {
		buffer_puts(&rest, "'");
		visible_put_max(&rest, p, REST_SHOWN);
		buffer_puts(&rest, "'");
	}
	rc = wp_cause_set(cause, WP_CAUSE_SPEC_SYNTAX, buffer_text(&shown),
	    wrong, buffer_text(&rest), before + 1);
	buffer_free(&shown);
	buffer_free(&rest);
	return rc;
}

/* Whether the symbol's place has a file instead, as in "list.c:20": the dot
   and what follows can also be a part of a C++ name, as in "f[abi:.x]". */
static bool
is_file(const struct spec *spec)
{
	const char *p;

	if (spec->module != NULL || spec->symbol == NULL || spec->has_off)
		return false;
	p = strrchr(spec->symbol, '.');
	if (p == NULL || p == spec->symbol || !isalpha((unsigned char)p[1]))
		return false;
	while (*++p != '\0' && is_word(*p))
		;
	return *p == '\0';
}

/* --- expressions --- */

/* Which operators no symbol's name begins with, or is made by. */
static bool
is_never_symbol(const struct node *node)
{
	while (node->kind == NODE_MEMBER)
		node = node->left;
	switch (node->kind) {
	case NODE_NAME:
	case NODE_MULTIPLY:
	case NODE_DIVIDE:
	case NODE_REMAINDER:
	case NODE_SUBTRACT:
	case NODE_AND:
		return false;
	case NODE_ADD:
		return node->left->kind != NODE_NAME ||
		    node->right->kind != NODE_NUMBER;
	default:
		return true;
	}
}

/* SYMBOL+OFF, where the symbol is one of debug information only. */
static void
take_offset(struct spec *spec)
{
	const struct node *root = spec->expression->root;

	if (spec->has_off && root->kind == NODE_ADD &&
	    root->left->kind == NODE_NAME &&
	    root->right->kind == NODE_NUMBER)
		spec->expression->root = root->left;
}

/* Parse what comes behind the module as an expression.  symbol: it is good as a
   symbol, too.  NULL, or what is wrong at *p. */
static const char *
parse_expression(const char **p, struct spec *spec, bool symbol, bool *memory)
{
	const char *separator = find_separator(*p), *begin, *wrong;

	if (separator == *p)
		return "a module's name is expected before it";
	if ((spec->expression = malloc(sizeof(*spec->expression))) == NULL) {
		*memory = false;
		return NULL;
	}
	if (separator != NULL)
		*p = separator + 1;
	begin = *p = token_skip(*p);
	wrong = expression_parse(p, spec->expression);
	if (wrong != NULL) {
		free(spec->expression);
		spec->expression = NULL;
		return wrong;
	}
	if (symbol) {
		spec->expression_only =
		    is_never_symbol(spec->expression->root);
		take_offset(spec);
		return NULL;
	}
	spec->expression_only = true;
	spec->has_off = false;
	spec->off = 0;
	free(spec->module);
	free(spec->symbol);
	spec->module = separator != NULL ? strndup(spec->text,
	    (size_t)(separator - spec->text)) : NULL;
	spec->symbol = strndup(begin, (size_t)(*p - begin));
	*memory = spec->symbol != NULL &&
	    (separator == NULL || spec->module != NULL);
	return *memory && **p == ':' ? spec_parse_length(p, spec) : NULL;
}

/* Whether what is no expression was meant as one all the same: no symbol is
   called so, but for C++'s operators and what is in brackets. */
static bool
looks_like_expression(const char *text)
{
	if (expression_has_named_cast(text))
		return true;
	if (*text == '\0' || strstr(text, "operator") != NULL ||
	    strpbrk(text, "<{") != NULL)
		return false;
	return strchr("*&-~", *text) != NULL || strstr(text, "->") != NULL ||
	    strpbrk(text, "=?") != NULL ||
	    (strchr(text, '[') != NULL && strstr(text, "[abi:") == NULL &&
	    (unsigned char)*text >= ' ');
}

/* Whether it is of numbers alone, as no address may be. */
static bool
is_number(const struct expression *tree)
{
	for (size_t i = 0; i < tree->n; i++)
		if (tree->node[i].kind == NODE_NAME)
			return false;
	return expression_is_value(tree->root);
}

int
spec_error(const struct spec *spec, const char *at, const char *what,
    struct wp_cause *cause)
{
	struct buffer text = {0};
	int err;

	visible_put_max(&text, spec->text, TEXT_SHOWN);
	err = wp_cause_set(cause, WP_CAUSE_SPEC_EXPRESSION, buffer_text(&text),
	    what, visible_columns(spec->text, (size_t)(at - spec->text)) + 1);
	buffer_free(&text);
	return err;
}

/* Parse the text also as an expression of C.  As a symbol it is wrong at p, for
   the reason `wrong'.  The reading that gets further is assumed to be the
   intended one. */
static int
add_expression(const char *text, const char *p, const char *wrong,
    struct spec *spec, bool *memory, struct wp_cause *cause)
{
	const bool symbol = wrong == NULL;
	const char *at = spec->text, *why;
	bool further;

	why = parse_expression(&at, spec, symbol, memory);
	if (!*memory)
		return 0;
	if (why == NULL && (symbol || !is_number(spec->expression)))
		return 0;
	further = symbol || at - spec->text > p - text ||
	    (at - spec->text < p - text && (looks_like_expression(text) ||
	    strstr(text, "++") != NULL || strstr(text, "--") != NULL));
	if (why != NULL && further && (!symbol || looks_like_expression(text)))
		return spec_error(spec, at, why, cause);
	return symbol ? 0 : spec_syntax_error(text, p, wrong, cause);
}

/* kernel!SYMBOL, or an address there. */
static bool
is_kernels(const struct spec *spec)
{
	const struct wp_region region = {.addr = spec->addr, .len = 1};

	return spec->symbol == NULL ? wp_slot_in_kernel(&region) :
	    spec->module != NULL && strcmp(spec->module, "kernel") == 0;
}

/* What looks like a length is a line number. */
static int
take_line(struct spec *spec)
{
	spec->line = (int)spec->len;
	spec->len = 0;
	return 0;
}

int
spec_parse(const char *text, enum wp_access access, struct spec *spec,
    struct wp_cause *cause)
{
	const char *p = text, *wrong, *path;
	bool memory = true, shm;
	int rc = 0;

	memset(spec, 0, sizeof(*spec));
	spec->access = access;
	spec->text = strdup(text);
	path = spec->text == NULL ? NULL : spec_shared_path(spec->text, &shm);
	if (path != NULL) {
		rc = spec_take_shared(path, shm, spec, cause);
		if (rc != 0)
			spec_free(spec);
		return rc;
	}
	path = spec->text == NULL ? NULL : spec_allocator_name(spec->text);
	if (path != NULL) {
		rc = spec_take_allocator(path, spec, cause);
		if (rc != 0)
			spec_free(spec);
		return rc;
	}
	wrong = parse_spec(&p, spec, &memory);
	spec->kernel = is_kernels(spec);
	if (spec->text == NULL || !memory)
		rc = wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	else if (access != WP_EXEC && !spec->kernel &&
	    (spec->symbol != NULL || wrong != NULL))
		rc = add_expression(text, p, wrong, spec, &memory, cause);
	else if (wrong != NULL)
		rc = spec_syntax_error(text, p, wrong, cause);
	else if (access == WP_EXEC && spec->len != 0)
		rc = is_file(spec) && spec->len <= INT_MAX ? take_line(spec) :
		    wp_cause_set(cause, WP_CAUSE_ACCESS);
	if (!memory)
		rc = wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	if (rc != 0)
		spec_free(spec);
	return rc;
}

int
spec_refuse(const struct spec *spec, const char *why, struct wp_cause *cause)
{
	struct buffer text = {0};
	int err;

	visible_put(&text, spec->text);
	err = wp_cause_set(cause, WP_CAUSE_SPEC_RANGE, buffer_text(&text), why);
	buffer_free(&text);
	return err;
}

char *
spec_place_name(const char *symbol, uint64_t off)
{
	struct buffer b = {0};
	char *name;

	buffer_puts(&b, symbol);
	if (off != 0) {
		buffer_puts(&b, "+");
		buffer_dec(&b, off);
	}
	name = b.failed ? NULL : strdup(buffer_text(&b));
	buffer_free(&b);
	return name;
}

enum spec_fit
spec_module_fit(const char *path, const char *want)
{
	const char *name = basename(path);
	size_t len, plen = strlen(path);

	if (want == NULL)
		return FIT_ANY;
	if (strcmp(path, want) == 0)
		return FIT_PATH;
	if (strncmp(want, "./", 2) == 0)
		want += 2;
	len = strlen(want);
	if (strcmp(name, want) == 0 || (plen > len && len > 0 &&
	    (path[plen - len - 1] == '/' || *want == '/') &&
	    strcmp(path + plen - len, want) == 0))
		return FIT_NAME;
	if (len > 0 && strncmp(name, want, len) == 0 &&
	    (name[len] == '.' || (name[len] == '-' && name[len + 1] >= '0' &&
	    name[len + 1] <= '9')))
		return FIT_SONAME;
	return FIT_NONE;
}

uint64_t
spec_alignment(uint64_t addr)
{
	return addr % 8 == 0 ? 8 : addr % 4 == 0 ? 4 : addr % 2 == 0 ? 2 : 1;
}

void
spec_free(struct spec *spec)
{
	free(spec->text);
	free(spec->module);
	free(spec->real);
	free(spec->symbol);
	free(spec->shared);
	free(spec->allocator);
	free(spec->expression);
	memset(spec, 0, sizeof(*spec));
}
