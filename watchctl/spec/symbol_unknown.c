/* symbol_unknown: suggests what an unknown name may have meant. */
#include "spec/spec_resolve_private.h"

#include <stdlib.h>
#include <string.h>

#include "space/space.h"
#include "symbol/demangle.h"
#include "symbol/symbol.h"
#include "type/declaration.h"
#include "spec/find_symbol.h"
#include "spec/spec.h"
#include "util/nearest.h"
#include "util/visible.h"

static int
keep_symbol(void *arg, const struct ex_symbol *symbol)
{
	struct spec_search *s = arg;
	struct found_symbol c = {
		.module = s->module, .addr = s->base + symbol->value,
		.symbol = *symbol,
	};
	unsigned rank = symbol_rank_of(s, symbol);

	if (!symbol_may_be_meant(s, symbol) || (s->n > 0 && rank > s->rank))
		return 0;
	if (rank < s->rank)
		s->n = 0;
	s->rank = rank;
	for (size_t i = 0; i < s->n && i < FOUND_MAX; i++) {
		struct found_symbol *have = &s->found[i];

		if (have->addr == c.addr && have->symbol.tls == symbol->tls) {
			if (symbol->size > have->symbol.size)
				have->symbol.size = symbol->size;
			return 0;
		}
	}
	if (s->n < FOUND_MAX)
		s->found[s->n] = c;
	s->n++;
	return 0;
}

int
symbol_ask_module(void *arg, struct ex_module *module, uint64_t base)
{
	struct spec_search *s = arg;

	if (spec_module_fit(ex_module_path(module), s->want) != s->fit)
		return 0;
	if (s->asked++ == 0)
		s->first = module;
	s->module = module;
	s->base = base;
	s->executable = s->fit == FIT_ANY && s->asked == 1;
	s->own_scope = s->executable || s->want != NULL;
	return ex_symbol_find(module, s->spec->symbol, keep_symbol, s);
}

/* A C++ or Rust name, with parameters if some were given. */
static void
offer_pretty(struct spec_search *s, const char *raw)
{
	char *owned = strchr(s->spec->symbol, '(') == NULL ? NULL :
	    ex_demangle_whole(raw);

	nearest_offer(&s->near, owned != NULL ? owned :
	    ex_demangle(raw, &owned));
	free(owned);
}

int
symbol_is_of_file(void *arg, const struct ex_symbol *symbol)
{
	const struct spec_search *s = arg;

	return symbol->file != NULL && strcmp(symbol->file, s->file) == 0;
}

int
symbol_offer_symbol(void *arg, const struct ex_symbol *symbol)
{
	struct spec_search *s = arg;
	bool mangled = strncmp(symbol->name, "_Z", 2) == 0 ||
	    strncmp(symbol->name, "_R", 2) == 0;

	if (++s->seen > OFFERED_MAX)
		return 1;
	s->local |= s->module == s->first && !symbol->global &&
	    strchr(symbol->name, '@') == NULL;
	if (symbol_wrong_kind(s->spec->access, symbol) || symbol->indirect ||
	    (s->file != NULL && !symbol_is_of_file(s, symbol)))
		return 0;
	if (!mangled || strncmp(s->spec->symbol, symbol->name, 2) == 0)
		nearest_offer(&s->near, symbol->name);
	else if (strncmp(symbol->name, "_ZT", 3) != 0 &&
	    ++s->demangled <= DEMANGLED_MAX)
		offer_pretty(s, symbol->name);
	return 0;
}

static int
offer_symbols(void *arg, struct ex_module *module, uint64_t base)
{
	struct spec_search *s = arg;

	(void)base;
	if (spec_module_fit(ex_module_path(module), s->want) != s->fit ||
	    (s->n > 0 && module != s->first))
		return 0;
	s->module = module;
	(void)ex_symbol_each(module, symbol_offer_symbol, s);
	if (module == s->first)
		s->of_first = s->seen;
	return s->seen > OFFERED_MAX;
}

static int
offer_module(void *arg, struct ex_module *module, uint64_t base)
{
	struct spec_search *s = arg;

	(void)base;
	nearest_offer(&s->near, ex_module_name(module));
	return 0;
}

struct buffer
symbol_shown(const char *text)
{
	struct buffer b = {0};

	visible_put_max(&b, text, TEXT_SHOWN);
	return b;
}

int
symbol_module_unknown(struct spec_search *s, struct ex_process *process,
    struct wp_cause *cause)
{
	struct buffer text = symbol_shown(s->spec->text);
	struct buffer module = symbol_shown(s->spec->module), near = {0};
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

/* Whether the first module, which is the program as a rule, has none but
   symbols for others. */
static bool
is_stripped(const struct spec_search *s)
{
	return s->first != NULL && s->seen > 0 && !s->local &&
	    s->file == NULL && s->n == 0;
}

/* Why a symbol may be unknown: near names, or a module that has none. */
static void
put_unknown(struct spec_search *s, struct buffer *b)
{
	const char *problem = s->first == NULL ? NULL :
	    ex_module_problem(s->first);

	if (problem != NULL && s->of_first == 0) {
		if (s->asked > 1) {
			buffer_puts(b, "; ");
			visible_put_max(b, ex_module_name(s->first),
			    NAME_SHOWN);
		}
		buffer_puts(b, ": ");
		visible_put_max(b, problem, PROBLEM_SHOWN);
		return;
	}
	if (s->near.n > 0) {
		buffer_puts(b, ", nearest: ");
		nearest_put(&s->near, b);
	} else if (s->seen == 0)
		buffer_puts(b, ", which has no symbols (stripped?): "
		    "give an address");
	if (s->first != NULL && (s->spec->access != WP_EXEC ?
	    ex_variable_optimized_out(s->first, s->spec->symbol) :
	    ex_function_inlined(s->first, s->spec->symbol))) {
		buffer_puts(b, "; ");
		visible_put_max(b, ex_module_name(s->first), NAME_SHOWN);
		buffer_puts(b, s->spec->access != WP_EXEC ? " has a variable "
		    "of that name, but the compiler optimized it out: declare "
		    "it volatile, or compile with -O0" : " has a function of "
		    "that name, but the compiler inlined it everywhere: watch "
		    "a line of it (FILE.c:LINE), or compile with -fno-inline");
		return;
	}
	if (is_stripped(s)) {
		buffer_puts(b, "; ");
		visible_put_max(b, ex_module_name(s->first), NAME_SHOWN);
		buffer_puts(b, " is stripped: install its debug symbols "
		    "(see find-dbgsym-packages), have them fetched "
		    "(DEBUGINFOD_URLS), or give an address");
	}
	if (s->spec->unborn)
		buffer_puts(b, "; if a program that it executes has the name: "
		    "add -f --if-missing skip");
}

/* Candidates are listed by what they differ in. */
enum apart { BY_ADDRESS, BY_MODULE, BY_FILE, BY_PARAMETERS };

static enum apart
difference(const struct found_symbol *a, const struct found_symbol *b)
{
	if (a->module != b->module)
		return BY_MODULE;
	if (strcmp(a->symbol.name, b->symbol.name) != 0)
		return BY_PARAMETERS;
	return a->symbol.file != NULL && b->symbol.file != NULL &&
	    strcmp(a->symbol.file, b->symbol.file) != 0 ? BY_FILE : BY_ADDRESS;
}

/* "libfoo.so!counter at 0x7f2204011050 (8 bytes)", "list.c!counter at ..." */
static void
put_candidate(struct buffer *b, const struct spec *spec,
    const struct found_symbol *c, enum apart apart)
{
	char *whole = apart != BY_PARAMETERS ? NULL :
	    ex_demangle_whole(c->symbol.name);

	visible_put_max(b, apart == BY_FILE && c->symbol.file != NULL ?
	    c->symbol.file : ex_module_name(c->module), NAME_SHOWN);
	buffer_puts(b, "!");
	visible_put_max(b, whole != NULL ? whole : spec->symbol, NAME_SHOWN);
	free(whole);
	if (c->symbol.tls) {
		buffer_puts(b, " (thread-local)");
		return;
	}
	buffer_puts(b, " at ");
	buffer_hex(b, c->addr);
	if (c->symbol.size > 0)
		buffer_printf(b, " (%llu byte%s)",
		    (unsigned long long)c->symbol.size,
		    c->symbol.size == 1 ? "" : "s");
}

/* The first candidates. */
static void
put_candidates(struct buffer *b, const struct spec_search *s, enum apart apart)
{
	for (size_t i = 0; i < s->n && i < LISTED_MAX; i++) {
		if (i > 0)
			buffer_puts(b, ", ");
		put_candidate(b, s->spec, &s->found[i], apart);
	}
	if (s->n > LISTED_MAX)
		buffer_puts(b, ", ...");
}

/* Libraries have static ones of the name, which are hardly meant. */
static void
put_statics(const struct spec_search *s, struct buffer *b)
{
	buffer_printf(b, "; %zu that libraries have for themselves: ", s->n);
	put_candidates(b, s, difference(&s->found[0], &s->found[1]));
}

int
symbol_unknown(struct spec_search *s, struct ex_process *process,
    struct wp_cause *cause)
{
	struct buffer text, symbol, where = {0}, why = {0};
	int rc;

	if (cause == NULL)	/* near names are found for a reader only */
		return wp_cause_set(NULL, WP_CAUSE_SYMBOL_UNKNOWN);
	text = symbol_shown(s->spec->text);
	symbol = symbol_shown(s->spec->symbol);
	nearest_begin(&s->near, s->spec->symbol);
	(void)ex_process_modules(process, offer_symbols, s);
	put_unknown(s, &why);
	if (s->n > 0)
		put_statics(s, &why);
	if (s->file != NULL)
		buffer_puts(&where, "the static symbols of ");
	else if (s->asked != 1 && s->n == 0)
		buffer_printf(&where, "the %u modules of ", s->asked);
	visible_put_max(&where, s->file != NULL ? s->file :
	    s->asked != 1 && s->want != NULL ? s->want :
	    s->first != NULL ? ex_module_name(s->first) : "the process",
	    TEXT_SHOWN);
	rc = wp_cause_set(cause, WP_CAUSE_SYMBOL_UNKNOWN, buffer_text(&text),
	    buffer_text(&symbol), buffer_text(&where), buffer_text(&why));
	nearest_free(&s->near);
	buffer_free(&text);
	buffer_free(&symbol);
	buffer_free(&where);
	buffer_free(&why);
	return rc;
}

int
symbol_ambiguous(const struct spec_search *s, struct wp_cause *cause)
{
	static const char *const by[] = {
		[BY_ADDRESS] = "", [BY_MODULE] = "MODULE!SYMBOL or by ",
		[BY_FILE] = "FILE!SYMBOL or by ",
		[BY_PARAMETERS] = "its parameters or by ",
	};
	struct buffer text = symbol_shown(s->spec->text);
	struct buffer symbol = symbol_shown(s->spec->symbol), list = {0};
	enum apart apart = difference(&s->found[0], &s->found[1]);
	int rc;

	put_candidates(&list, s, apart);
	rc = wp_cause_set(cause, WP_CAUSE_SYMBOL_AMBIGUOUS,
	    buffer_text(&text), s->n, buffer_text(&symbol),
	    buffer_text(&list), by[apart]);
	buffer_free(&text);
	buffer_free(&symbol);
	buffer_free(&list);
	return rc;
}
