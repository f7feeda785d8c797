/*
 * spec: parsing (pure), then resolving: which symbol is meant, and how many
 * bytes of it.
 */
#include "spec.h"

#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "symbol.h"
#include "visible.h"

enum {
	TEXT_SHOWN = 80,	/* characters of a SPEC in a message */
	REST_SHOWN = 24,	/* and of what is left of it */
	PROBLEM_SHOWN = 160,	/* and of why a module is of no use */
	NESTING_MAX = 64,	/* brackets within brackets in a name */
	FOUND_MAX = 64,		/* symbols of one name that are told apart */
	LISTED_MAX = 4,		/* candidates in a message */
	OFFERED_MAX = 2000000,	/* symbols looked at for near names */
	DEMANGLED_MAX = 20000,	/* and demangled for it */
};

/*
 * Parsing.  A C++ name holds every character that means something in a SPEC, so
 * those count only outside brackets, and not in "::" or after "operator".
 * Functions advance *p and give NULL, or what is wrong at *p.
 */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_word(char c)
{
	return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

/* The value of a digit in a base up to 16, or -1. */
static int
digit_value(char c, unsigned base)
{
	int value = is_digit(c) ? c - '0' :
	    c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	    c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;

	return value < (int)base ? value : -1;
}

static const char *
parse_number(const char **p, uint64_t *value)
{
	const char *begin = *p;
	unsigned base = 10;
	int digit;

	*value = 0;
	if (!is_digit(**p))
		return "a number is wanted";
	if (begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X')) {
		base = 16;
		*p += 2;
		if (digit_value(**p, base) < 0)
			return "a hexadecimal digit is wanted";
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

/* How many characters of an operator's name stand at p; 0: none. */
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
		return "nothing is open that this closes";
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

/* Advance over a symbol's name, up to what ends it: '+', ':' or NUL. */
static const char *
parse_name(const char **p)
{
	const char *begin = *p, *wrong = NULL;
	struct nesting n = {.depth = 0};

	if (is_digit(*begin))
		return "a symbol's name is wanted, which begins with no digit";
	while (**p != '\0' && wrong == NULL) {
		bool plain = n.depth == 0 && !after_operator(begin, *p);

		if (plain && (**p == '+' ||
		    (**p == ':' && strncmp(*p, "::", 2) != 0)))
			break;
		wrong = name_step(begin, p, &n);
	}
	if (wrong == NULL && n.depth > 0) {
		*p = n.at[n.depth - 1];
		return "this is never closed";
	}
	if (wrong == NULL && *p == begin)
		return "a symbol's name is wanted";
	return wrong;
}

/* [MODULE!]SYMBOL[+OFF] into the spec; *memory is cleared without memory. */
static const char *
parse_symbol(const char **p, struct spec *spec, bool *memory)
{
	const char *separator = find_separator(*p);
	const char *wrong, *begin;

	if (separator != NULL) {
		if (separator == *p)
			return "a module's name is wanted before it";
		spec->module = strndup(*p, (size_t)(separator - *p));
		*memory = spec->module != NULL;
		*p = separator + 1;
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
	return parse_number(p, &spec->off);
}

static const char *
parse_length(const char **p, struct spec *spec)
{
	const char *begin = ++*p;
	const char *wrong = parse_number(p, &spec->len);

	if (wrong != NULL)
		return wrong;
	if (**p != '\0')
		return "nothing is wanted after the length";
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
	bool symbol = find_separator(*p) != NULL || !is_digit(**p);
	const char *wrong;

	if (**p == '\0')
		return "something to watch is wanted";
	wrong = symbol ? parse_symbol(p, spec, memory) :
	    parse_number(p, &spec->addr);
	if (wrong != NULL || **p == '\0')
		return wrong;
	if (**p == ':')
		return parse_length(p, spec);
	return symbol ? "only :LEN can follow an offset" :
	    "only :LEN can follow an address";
}

/* Say what is wrong at p in text.  Result: -EINVAL, or -ENOMEM. */
static int
syntax_error(const char *text, const char *p, const char *wrong,
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

int
spec_parse(const char *text, char access, struct spec *spec,
    struct wp_cause *cause)
{
	const char *p = text, *wrong;
	bool memory = true;
	int rc = 0;

	memset(spec, 0, sizeof(*spec));
	spec->access = access;
	spec->text = strdup(text);
	wrong = parse_spec(&p, spec, &memory);
	if (spec->text == NULL || !memory)
		rc = wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	else if (wrong != NULL)
		rc = syntax_error(text, p, wrong, cause);
	else if (access == 'x' && spec->len != 0)
		rc = wp_cause_set(cause, WP_CAUSE_ACCESS);
	if (rc != 0)
		spec_free(spec);
	return rc;
}

void
spec_free(struct spec *spec)
{
	free(spec->text);
	free(spec->module);
	free(spec->symbol);
	memset(spec, 0, sizeof(*spec));
}

/*
 * Resolving.  All modules that may be meant are asked for the name.  What they
 * have is ranked; only the best rank counts, and must be one address.
 */

/* How well a module fits the name that a SPEC gives. */
enum fit {
	FIT_NONE,
	FIT_SONAME,		/* "libc" for libc.so.6 */
	FIT_NAME,		/* its last part, or more of its path */
	FIT_PATH,		/* its whole path */
	FIT_ANY,		/* no module was named */
};

struct candidate {
	struct ex_module *module;
	uint64_t addr;		/* in the process; thread-local: no address */
	uint64_t size;
	bool function, object, tls;
};

struct search {
	const struct spec *spec;
	enum fit fit;		/* modules that fit so well are asked */
	unsigned asked;		/* how many modules were */
	struct ex_module *first;	/* of them */
	/* while a module is asked: */
	struct ex_module *module;
	uint64_t base;
	bool own_scope;		/* its global names come before all others */
	bool executable;	/* its static ones are as good as a library's
				   global ones */
	/* found: */
	unsigned rank;		/* of all that are kept: the lowest seen */
	size_t n;		/* distinct addresses; FOUND_MAX are kept */
	struct candidate found[FOUND_MAX];
	/* when nothing is: */
	struct nearest near;
	unsigned seen;		/* symbols looked at for near names */
	unsigned demangled;
};

static enum fit
module_fit(const struct ex_module *module, const char *want)
{
	const char *path = ex_module_path(module);
	const char *name = ex_module_name(module);
	size_t len, plen = strlen(path);

	if (want == NULL)
		return FIT_ANY;
	if (strcmp(path, want) == 0)
		return FIT_PATH;
	if (strncmp(want, "./", 2) == 0)
		want += 2;
	len = strlen(want);
	if (strcmp(name, want) == 0 || (plen > len && len > 0 &&
	    path[plen - len - 1] == '/' &&
	    strcmp(path + plen - len, want) == 0))
		return FIT_NAME;
	if (len > 0 && strncmp(name, want, len) == 0 &&
	    (name[len] == '.' || (name[len] == '-' && is_digit(name[len + 1]))))
		return FIT_SONAME;
	return FIT_NONE;
}

static int
best_fit(void *arg, struct ex_module *module, uint64_t base)
{
	struct search *s = arg;
	enum fit fit = module_fit(module, s->spec->module);

	(void)base;
	if (fit > s->fit)
		s->fit = fit;
	return 0;
}

/* Whether a watch of this access cannot mean such a symbol. */
static bool
wrong_kind(char access, bool function, bool object, bool tls)
{
	return access == 'x' ? object || tls : function;
}

/*
 * The lower, the likelier it is meant: of the right kind; the name that the
 * process's modules are bound to, or the module's that was named; what
 * libraries offer others or the program has for itself.  A library's static
 * names come last: the dynamic loader has its own of much of the C library.
 */
static unsigned
rank_of(const struct search *s, const struct candidate *c, bool global)
{
	unsigned rank = wrong_kind(s->spec->access, c->function, c->object,
	    c->tls) ? 3 : 0;

	if (s->own_scope && global)
		return rank;
	return rank + (global || s->executable ? 1 : 2);
}

static int
keep_symbol(void *arg, const struct ex_symbol *symbol)
{
	struct search *s = arg;
	struct candidate c = {
		.module = s->module, .addr = s->base + symbol->value,
		.size = symbol->size, .function = symbol->function,
		.object = symbol->object, .tls = symbol->tls,
	};
	unsigned rank = rank_of(s, &c, symbol->global);

	if (s->n > 0 && rank > s->rank)
		return 0;
	if (rank < s->rank)
		s->n = 0;
	s->rank = rank;
	for (size_t i = 0; i < s->n && i < FOUND_MAX; i++) {
		struct candidate *have = &s->found[i];

		if (have->addr == c.addr && have->tls == c.tls) {
			if (c.size > have->size)
				have->size = c.size;
			return 0;
		}
	}
	if (s->n < FOUND_MAX)
		s->found[s->n] = c;
	s->n++;
	return 0;
}

/* Ask a module for the symbol; the first of a process is the executable. */
static int
ask_module(void *arg, struct ex_module *module, uint64_t base)
{
	struct search *s = arg;

	if (module_fit(module, s->spec->module) != s->fit)
		return 0;
	if (s->asked++ == 0)
		s->first = module;
	s->module = module;
	s->base = base;
	s->executable = s->fit == FIT_ANY && s->asked == 1;
	s->own_scope = s->executable || s->spec->module != NULL;
	return ex_symbol_find(module, s->spec->symbol, keep_symbol, s);
}

static int
offer_symbol(void *arg, const struct ex_symbol *symbol)
{
	struct search *s = arg;
	bool mangled = strncmp(symbol->name, "_Z", 2) == 0 ||
	    strncmp(symbol->name, "_R", 2) == 0;
	char *owned = NULL;

	if (++s->seen > OFFERED_MAX)
		return 1;
	if (wrong_kind(s->spec->access, symbol->function, symbol->object,
	    symbol->tls))
		return 0;
	if (!mangled || strncmp(s->spec->symbol, symbol->name, 2) == 0) {
		nearest_offer(&s->near, symbol->name);
		return 0;
	}
	if (strncmp(symbol->name, "_ZT", 3) == 0 ||
	    ++s->demangled > DEMANGLED_MAX)
		return 0;
	nearest_offer(&s->near, ex_demangle(symbol->name, &owned));
	free(owned);
	return 0;
}

static int
offer_symbols(void *arg, struct ex_module *module, uint64_t base)
{
	struct search *s = arg;

	(void)base;
	if (module_fit(module, s->spec->module) != s->fit)
		return 0;
	return ex_symbol_each(module, offer_symbol, s);
}

static int
offer_module(void *arg, struct ex_module *module, uint64_t base)
{
	struct search *s = arg;

	(void)base;
	nearest_offer(&s->near, ex_module_name(module));
	return 0;
}

/* The spec as a message shows it, in a buffer to be freed. */
static struct buffer
shown(const char *text)
{
	struct buffer b = {0};

	visible_put_max(&b, text, TEXT_SHOWN);
	return b;
}

static int
range_error(const struct spec *spec, const char *why, struct wp_cause *cause)
{
	struct buffer text = shown(spec->text);
	int rc = wp_cause_set(cause, WP_CAUSE_SPEC_RANGE, buffer_text(&text),
	    why);

	buffer_free(&text);
	return rc;
}

static int
module_unknown(struct search *s, struct ex_process *process,
    struct wp_cause *cause)
{
	struct buffer text = shown(s->spec->text);
	struct buffer module = shown(s->spec->module), near = {0};
	int rc;

	nearest_begin(&s->near, s->spec->module);
	(void)ex_process_modules(process, offer_module, s);
	nearest_put(&s->near, &near);
	rc = wp_cause_set(cause, WP_CAUSE_MODULE_UNKNOWN, buffer_text(&text),
	    buffer_text(&module), near.len > 0 ? ", nearest: " : "",
	    buffer_text(&near));
	nearest_free(&s->near);
	buffer_free(&text);
	buffer_free(&module);
	buffer_free(&near);
	return rc;
}

/* Why a symbol may be unknown: near names, or a module that tells none. */
static void
put_unknown(struct search *s, struct buffer *b)
{
	const char *problem = s->first == NULL ? NULL :
	    ex_module_problem(s->first);

	if (s->near.n > 0) {
		buffer_puts(b, ", nearest: ");
		nearest_put(&s->near, b);
	} else if (problem != NULL) {
		buffer_puts(b, ": ");
		visible_put_max(b, problem, PROBLEM_SHOWN);
	} else if (s->seen == 0)
		buffer_puts(b, ", which has no symbols (stripped?): "
		    "give an address");
}

static int
symbol_unknown(struct search *s, struct ex_process *process,
    struct wp_cause *cause)
{
	struct buffer text, symbol, where = {0}, why = {0};
	int rc;

	if (cause == NULL)	/* near names are found for a reader only */
		return wp_cause_set(NULL, WP_CAUSE_SYMBOL_UNKNOWN);
	text = shown(s->spec->text);
	symbol = shown(s->spec->symbol);
	nearest_begin(&s->near, s->spec->symbol);
	(void)ex_process_modules(process, offer_symbols, s);
	put_unknown(s, &why);
	if (s->asked == 1)
		visible_put_max(&where, ex_module_name(s->first), TEXT_SHOWN);
	else
		buffer_printf(&where, "the process's %u modules", s->asked);
	rc = wp_cause_set(cause, WP_CAUSE_SYMBOL_UNKNOWN, buffer_text(&text),
	    buffer_text(&symbol), buffer_text(&where), buffer_text(&why));
	nearest_free(&s->near);
	buffer_free(&text);
	buffer_free(&symbol);
	buffer_free(&where);
	buffer_free(&why);
	return rc;
}

/* "libfoo.so!counter at 0x7f2204011050 (8 bytes)" */
static void
put_candidate(struct buffer *b, const struct spec *spec,
    const struct candidate *c)
{
	visible_put_max(b, ex_module_name(c->module), 40);
	buffer_puts(b, "!");
	visible_put_max(b, spec->symbol, 40);
	if (c->tls) {
		buffer_puts(b, " (thread-local)");
		return;
	}
	buffer_puts(b, " at ");
	buffer_hex(b, c->addr);
	if (c->size > 0)
		buffer_printf(b, " (%llu byte%s)",
		    (unsigned long long)c->size, c->size == 1 ? "" : "s");
}

static int
symbol_ambiguous(const struct search *s, struct wp_cause *cause)
{
	struct buffer text = shown(s->spec->text);
	struct buffer symbol = shown(s->spec->symbol), list = {0};
	int rc;

	for (size_t i = 0; i < s->n && i < LISTED_MAX; i++) {
		if (i > 0)
			buffer_puts(&list, ", ");
		put_candidate(&list, s->spec, &s->found[i]);
	}
	if (s->n > LISTED_MAX)
		buffer_puts(&list, ", ...");
	rc = wp_cause_set(cause, WP_CAUSE_SYMBOL_AMBIGUOUS,
	    buffer_text(&text), s->n, buffer_text(&symbol),
	    buffer_text(&list));
	buffer_free(&text);
	buffer_free(&symbol);
	buffer_free(&list);
	return rc;
}

/* The largest of 8, 4, 2, 1 that the address is aligned to. */
static uint64_t
alignment(uint64_t addr)
{
	return addr % 8 == 0 ? 8 : addr % 4 == 0 ? 4 : addr % 2 == 0 ? 2 : 1;
}

/* "counter", "table+8"; NULL without memory. */
static char *
place_name(const char *symbol, uint64_t off)
{
	struct buffer b = {0};
	char *owned = NULL, *name;

	buffer_puts(&b, ex_demangle(symbol, &owned));
	if (off != 0) {
		buffer_puts(&b, "+");
		buffer_dec(&b, off);
	}
	name = b.failed ? NULL : strdup(buffer_text(&b));
	buffer_free(&b);
	free(owned);
	return name;
}

/* Whether the access can be watched there, and from where how far. */
static int
place_symbol(const struct spec *spec, const struct candidate *c,
    struct spec_place *place, struct wp_cause *cause)
{
	uint64_t left = c->size > spec->off ? c->size - spec->off : 0;
	uint64_t unit;

	if (spec->access == 'x' && c->object)
		return range_error(spec, "this is data, not a function: watch "
		    "it with -w, -r or -a", cause);
	if (spec->access != 'x' && c->function && spec->len == 0)
		return range_error(spec, "this is a function: watch its "
		    "execution with -x, or bytes of it with :LEN", cause);
	if (c->size > 0 && left == 0)
		return range_error(spec, "the offset lies beyond the symbol's "
		    "end", cause);
	if (spec->off > UINT64_MAX - c->addr)
		return range_error(spec, "the offset reaches beyond the last "
		    "address", cause);
	place->addr = c->addr + spec->off;
	unit = alignment(place->addr);
	if (spec->access == 'x')
		place->len = 1;
	else if (spec->len != 0)
		place->len = spec->len;
	else if (c->size == 0 || (spec->has_off && unit < left))
		place->len = unit;
	else
		place->len = left;
	if (place->len - 1 > UINT64_MAX - place->addr)
		return range_error(spec, "it reaches beyond the last address",
		    cause);
	place->symbol = place_name(spec->symbol, spec->off);
	if (place->symbol == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return 0;
}

static int
resolve_symbol(struct search *s, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	struct buffer text;
	int rc;

	(void)ex_process_modules(process, best_fit, s);
	if (s->fit == FIT_NONE && s->spec->module != NULL)
		return module_unknown(s, process, cause);
	(void)ex_process_modules(process, ask_module, s);
	if (s->n == 0)
		return symbol_unknown(s, process, cause);
	if (s->n > 1)
		return symbol_ambiguous(s, cause);
	if (!s->found[0].tls)
		return place_symbol(s->spec, &s->found[0], place, cause);
	text = shown(s->spec->text);
	rc = wp_cause_set(cause, WP_CAUSE_SYMBOL_TLS, buffer_text(&text));
	buffer_free(&text);
	return rc;
}

static int
resolve_address(const struct spec *spec, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	struct ex_module *module;
	struct ex_symbol symbol;
	uint64_t vaddr, off;

	place->addr = spec->addr;
	place->len = spec->len != 0 ? spec->len :
	    spec->access == 'x' ? 1 : alignment(spec->addr);
	module = ex_process_module(process, spec->addr, &vaddr);
	if (module == NULL || !ex_symbol_at(module, vaddr, &symbol) ||
	    symbol.tls || symbol.value > vaddr)
		return 0;
	off = vaddr - symbol.value;
	if (off != 0 && off >= symbol.size)
		return 0;
	place->symbol = place_name(symbol.name, off);
	if (place->symbol == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return 0;
}

int
spec_resolve(const struct spec *spec, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	struct search *s;
	int rc;

	memset(place, 0, sizeof(*place));
	if (spec->symbol == NULL)
		return resolve_address(spec, process, place, cause);
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	s->spec = spec;
	rc = resolve_symbol(s, process, place, cause);
	free(s);
	return rc;
}
