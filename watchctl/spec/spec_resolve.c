/*
 * spec_resolve: finds the symbol of a SPEC in a process, and the watched part
 * of it.
 *
 * All modules that may be meant are asked for the name.  What they have is
 * ranked; only the best rank counts, and must be one address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "insn/uprobe_place.h"
#include "space/space.h"
#include "symbol/code_place.h"
#include "symbol/symbol.h"
#include "spec/evaluate.h"
#include "spec/find_symbol.h"
#include "spec/spec.h"
#include "spec/spec_resolve_private.h"
#include "util/nearest.h"

static int
best_fit(void *arg, struct ex_module *module, uint64_t base)
{
	struct spec_search *s = arg;
	enum spec_fit fit = spec_module_fit(ex_module_path(module), s->want);

	(void)base;
	if (fit > s->fit)
		s->fit = fit;
	return 0;
}

bool
symbol_wrong_kind(enum wp_access access, const struct ex_symbol *symbol)
{
	return access == WP_EXEC ? symbol->object || symbol->tls :
	    symbol->function;
}

unsigned
symbol_rank_of(const struct spec_search *s, const struct ex_symbol *symbol)
{
	unsigned rank = symbol_wrong_kind(s->spec->access, symbol) ? 3 : 0;

	if (symbol->old)	/* behind one of the wrong kind, as well */
		return 5;
	if (s->own_scope && symbol->global)
		return rank;
	return rank + (symbol->global || s->executable ? 1 : 2);
}

bool
symbol_may_be_meant(const struct spec_search *s, const struct ex_symbol *symbol)
{
	if (s->file != NULL)
		return symbol->file != NULL &&
		    strcmp(symbol->file, s->file) == 0;
	return !s->early || symbol->global || s->own_scope;
}

char *
find_symbol_name(const char *symbol, uint64_t off)
{
	char *owned = NULL;
	char *name = spec_place_name(ex_demangle(symbol, &owned), off);

	free(owned);
	return name;
}

/* Refuse the resolver of an indirect function (IFUNC), whose code runs only
   once, to choose the function. */
static int
symbol_indirect(struct spec_search *s, struct wp_cause *cause)
{
	struct buffer why = {0};
	int rc;

	buffer_puts(&why, "which function is called by this name is chosen "
	    "when the program starts, for the processor (IFUNC): watch that "
	    "one, by its name or address");
	nearest_begin(&s->near, s->spec->symbol);
	if (cause != NULL)
		(void)ex_symbol_each(s->found[0].module, symbol_offer_symbol,
		    s);
	if (s->near.n > 0) {
		buffer_puts(&why, ", nearest: ");
		nearest_put(&s->near, &why);
	}
	rc = spec_refuse(s->spec, buffer_text(&why), cause);
	nearest_free(&s->near);
	buffer_free(&why);
	return rc;
}

static int
offset_error(const struct spec *spec, uint64_t size, struct wp_cause *cause)
{
	struct buffer why = {0};
	int rc;

	buffer_printf(&why, "the offset lies beyond the symbol's end: it has "
	    "%llu byte%s; give a smaller one, or an address",
	    (unsigned long long)size, size == 1 ? "" : "s");
	rc = spec_refuse(spec, buffer_text(&why), cause);
	buffer_free(&why);
	return rc;
}

/* The address at which a uprobe reads the arguments of a function. */
static uint64_t
probe_address(const struct found_symbol *c)
{
	return c->addr + ex_uprobe_place(c->module, c->symbol.value) -
	    c->symbol.value;
}

/* Whether the access can be watched there, and from where how far. */
static int
place_symbol(const struct spec *spec, const struct found_symbol *c,
    struct spec_place *place, struct wp_cause *cause)
{
	uint64_t size = c->symbol.size;
	uint64_t left = size > spec->off ? size - spec->off : 0;
	uint64_t unit;

	if (spec->access == WP_EXEC && c->symbol.object)
		return spec_refuse(spec, "this is data, not a function: watch "
		    "it with -w, -r or -a", cause);
	if (spec->access != WP_EXEC && c->symbol.function && spec->len == 0)
		return spec_refuse(spec, "this is a function: watch its "
		    "execution with -x, or bytes of it with :LEN", cause);
	if (size > 0 && left == 0)
		return offset_error(spec, size, cause);
	if (spec->off > UINT64_MAX - c->addr)
		return spec_refuse(spec, "the offset reaches beyond the last "
		    "address", cause);
	place->addr = c->addr + spec->off;
	/* where its arguments are known */
	if (spec->access == WP_EXEC && !spec->has_off && c->symbol.function) {
		place->addr += ex_code_entry(c->module, c->symbol.value) -
		    c->symbol.value;
		place->code = true;
	}
	if (spec->all)
		place->addr = probe_address(c);
	else if (spec->access == WP_EXEC && c->symbol.function)
		place->code = place->code || ex_uprobe_fits(c->module,
		    c->symbol.value + spec->off);
	unit = spec_alignment(place->addr);
	if (spec->access == WP_EXEC)
		place->len = 1;
	else if (spec->len != 0)
		place->len = spec->len;
	else if (size == 0 || (spec->has_off && unit < left))
		place->len = unit;
	else
		place->len = left;
	if (place->len - 1 > UINT64_MAX - place->addr)
		return spec_refuse(spec, "it reaches beyond the last address",
		    cause);
	place->symbol = find_symbol_name(spec->symbol, spec->off);
	if (place->symbol == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return 0;
}

/* Ask the modules that are called what the SPEC says, or that such a path leads
   to; or, where none is, all of them for what is of such a source file. */
static void
choose_modules(struct spec_search *s, struct ex_process *process)
{
	s->want = s->spec->module;
	(void)ex_process_modules(process, best_fit, s);
	if (s->fit == FIT_NONE && s->spec->real != NULL) {
		s->want = s->spec->real;
		(void)ex_process_modules(process, best_fit, s);
	}
	if (s->fit == FIT_NONE) {
		s->file = s->spec->module;
		s->want = NULL;
		s->fit = FIT_ANY;
	}
}

static void
ask_modules(struct spec_search *s, struct ex_process *process)
{
	choose_modules(s, process);
	(void)ex_process_modules(process, symbol_ask_module, s);
}

/* Whether all that is found is what several places in libraries have for
   themselves, where no module was named. */
static bool
are_hardly_meant(const struct spec_search *s)
{
	return s->n > 1 && s->fit == FIT_ANY && s->file == NULL &&
	    s->rank % 3 == 2;
}

/* Whether a module has static symbols of the source file. */
static int
has_file(void *arg, struct ex_module *module, uint64_t base)
{
	(void)base;
	return ex_symbol_each(module, symbol_is_of_file, arg);
}

/* The one symbol that is meant. */
static int
choose_symbol(struct spec_search *s, struct ex_process *process,
    struct wp_cause *cause)
{
	ask_modules(s, process);
	if (s->n == 0 && s->file != NULL &&
	    ex_process_modules(process, has_file, s) == 0)
		return symbol_module_unknown(s, process, cause);
	if (s->n == 0 || are_hardly_meant(s))
		return symbol_unknown(s, process, cause);
	return s->n > 1 && !s->spec->all ? symbol_ambiguous(s, cause) : 0;
}

/* Determine the variable's offset in its module's thread-local storage. */
static int
place_local(const struct spec_search *s, struct spec_place *place,
    struct wp_cause *cause)
{
	struct found_symbol found = s->found[0];

	found.addr = found.symbol.value;
	place->local = true;
	place->base = s->found[0].addr - found.symbol.value;
	return place_symbol(s->spec, &found, place, cause);
}

static int
resolve_symbol(struct spec_search *s, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	struct buffer text;
	int rc = choose_symbol(s, process, cause);

	if (rc < 0)
		return rc;
	if (s->spec->access == WP_EXEC && s->found[0].symbol.indirect &&
	    !s->spec->has_off)
		return symbol_indirect(s, cause);
	if (!s->found[0].symbol.tls && s->spec->thread != 0)
		return spec_refuse(s->spec, "this is not thread-local: leave "
		    "out @TID", cause);
	if (s->spec->all)
		for (size_t i = 1; i < s->n && i <= SPEC_MORE_MAX; i++)
			place->more[place->nmore++] =
			    probe_address(&s->found[i]);
	if (!s->found[0].symbol.tls)
		return place_symbol(s->spec, &s->found[0], place, cause);
	if (s->spec->access == WP_EXEC)
		return spec_refuse(s->spec, "this is data, not a function: "
		    "watch it with -w, -r or -a", cause);
	if (s->spec->finds_local)
		return place_local(s, place, cause);
	if (s->spec->thread != 0)
		return spec_refuse(s->spec, "one thread's is watched with -p "
		    "alone, and without --follow", cause);
	text = symbol_shown(s->spec->text);
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
	    spec->access == WP_EXEC ? 1 : spec_alignment(spec->addr);
	module = ex_process_module(process, spec->addr, &vaddr);
	place->code = spec->access == WP_EXEC && module != NULL &&
	    ex_uprobe_fits(module, vaddr);
	if (module == NULL || !ex_symbol_at(module, vaddr, &symbol) ||
	    symbol.tls || symbol.value > vaddr)
		return 0;
	off = vaddr - symbol.value;
	if (off != 0 && off >= symbol.size)
		return 0;
	place->symbol = find_symbol_name(symbol.name, off);
	if (place->symbol == NULL)
		return wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
	return 0;
}

static struct spec_search *
search_new(const struct spec *spec, bool early, struct wp_cause *cause)
{
	struct spec_search *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		(void)wp_cause_set(cause, WP_CAUSE_NO_MEMORY);
		return NULL;
	}
	s->spec = spec;
	s->early = early;
	return s;
}

int
find_symbol(const struct spec *spec, struct ex_process *process, bool early,
    struct found_symbol *found, struct wp_cause *cause)
{
	struct spec_search *s = search_new(spec, early, cause);
	int rc;

	if (s == NULL)
		return -ENOMEM;
	if ((rc = choose_symbol(s, process, cause)) == 0)
		*found = s->found[0];
	free(s);
	return rc;
}

/* Whom to ask, besides symbols. */
struct module_query {
	struct spec_search *search;
	int (*fn)(void *arg, struct ex_module *, uint64_t base);
	void *arg;
};

static int
ask_other(void *arg, struct ex_module *module, uint64_t base)
{
	struct module_query *asked = arg;

	return spec_module_fit(ex_module_path(module),
	    asked->search->want) != asked->search->fit ?
	    0 : asked->fn(asked->arg, module, base);
}

int
find_symbol_modules(const struct spec *spec, struct ex_process *process,
    const char **file,
    int (*fn)(void *arg, struct ex_module *, uint64_t base), void *arg)
{
	struct spec_search *s = search_new(spec, false, NULL);
	struct module_query asked = {s, fn, arg};
	int result;

	if (s == NULL)
		return 0;
	choose_modules(s, process);
	*file = s->file;
	result = ex_process_modules(process, ask_other, &asked);
	free(s);
	return result;
}

/* As a symbol. */
static int
resolve_as_symbol(const struct spec *spec, struct ex_process *process,
    bool early, struct spec_place *place, struct wp_cause *cause)
{
	struct spec_search *s = search_new(spec, early, cause);
	int rc;

	if (s == NULL)
		return -ENOMEM;
	rc = resolve_symbol(s, process, place, cause);
	free(s);
	return rc;
}

/* Resolve a member of the object that a function returns. */
static int
resolve_part(const struct spec *spec, struct ex_process *process, bool early,
    struct spec_place *place, struct wp_cause *cause)
{
	uint64_t vaddr;
	struct ex_module *module = ex_process_module(process, place->addr,
	    &vaddr);

	place->more[0] = spec->off;
	place->more[1] = module == NULL ? 0 :
	    evaluate_size(process, module, vaddr);
	place->nmore = 2;
	place->len = spec->len != 0 ? spec->len : spec_alignment(spec->off);
	place->addr += module == NULL ? 0 :
	    ex_uprobe_place(module, vaddr) - vaddr;
	return spec->expression == NULL ? 0 : evaluate_part(spec, process,
	    early, &place->more[0], &place->len, cause);
}

static int
resolve_objects(const struct spec *spec, struct ex_process *process,
    bool early, struct spec_place *place, struct wp_cause *cause)
{
	struct spec function;
	int err = spec_parse(spec->allocator, WP_EXEC, &function, cause);

	if (err < 0)
		return err;
	/* not behind its prologue, where its arguments are */
	function.has_off = true;
	err = resolve_as_symbol(&function, process, early, place, cause);
	spec_free(&function);
	return err < 0 ? err : resolve_part(spec, process, early, place,
	    cause);
}

/* A name that may be both is a symbol's, if there is one that is no reference;
   near names are sought only when it is neither. */
static int
resolve_name(const struct spec *spec, struct ex_process *process, bool early,
    struct spec_place *place, struct wp_cause *cause)
{
	int rc;

	if (spec->expression == NULL)
		return resolve_as_symbol(spec, process, early, place, cause);
	rc = resolve_as_symbol(spec, process, early, place, NULL);
	if (rc == 0 && spec->access != WP_EXEC &&
	    evaluate_is_reference(spec, process, early)) {
		free(place->symbol);
		place->symbol = NULL;
		return evaluate(spec, process, early, place, cause);
	}
	if (rc == 0)
		return 0;
	if (rc == -ENOENT) {
		rc = evaluate(spec, process, early, place, cause);
		if (rc != -ENOENT ||
		    spec->expression->root->kind != NODE_NAME)
			return rc;
	}
	return resolve_as_symbol(spec, process, early, place, cause);
}

/* --- lines --- */

struct line_search {
	const struct spec *spec;
	uint64_t base;			/* of the module that is searched */
	uint64_t addr[FOUND_MAX];	/* n of them, as far as there is room */
	size_t n;
	int near;		/* the next line that has code; 0: none has */
	bool file;		/* one has the file */
};

static void
take_line(void *arg, uint64_t vaddr)
{
	struct line_search *s = arg;
	const uint64_t addr = s->base + vaddr;

	for (size_t i = 0; i < s->n && i < FOUND_MAX; i++)
		if (s->addr[i] == addr)
			return;
	if (s->n < FOUND_MAX)
		s->addr[s->n] = addr;
	s->n++;
}

static int
ask_lines(void *arg, struct ex_module *module, uint64_t base)
{
	struct line_search *s = arg;

	s->base = base;
	if (ex_code_lines(module, s->spec->symbol, s->spec->line, take_line, s,
	    &s->near))
		s->file = true;
	return 0;
}

static int
line_unknown(const struct line_search *s, struct wp_cause *cause)
{
	struct buffer text = symbol_shown(s->spec->text), why = {0};
	int rc;

	if (!s->file)
		buffer_puts(&why, "no debug information has lines of such a "
		    "source file (not built with -g, or stripped?): give a "
		    "function or an address");
	else if (s->near != 0)
		buffer_printf(&why, "this line has no code; the next one that "
		    "has some is %d", s->near);
	else
		buffer_puts(&why, "this line has no code, nor has one behind "
		    "it");
	rc = wp_cause_set(cause, WP_CAUSE_LINE_UNKNOWN, buffer_text(&text),
	    buffer_text(&why));
	buffer_free(&text);
	buffer_free(&why);
	return rc;
}

/* There are more addresses than a processor has slots. */
static int
line_everywhere(const struct line_search *s, struct wp_cause *cause)
{
	struct buffer why = {0};
	int rc;

	buffer_printf(&why, "the line has %zu addresses, each of which takes a "
	    "slot, and there are %u at most: give one of them, such as ", s->n,
	    1u + SPEC_MORE_MAX);
	for (size_t i = 0; i < LISTED_MAX; i++) {
		buffer_puts(&why, i > 0 ? ", " : "");
		buffer_hex(&why, s->addr[i]);
	}
	rc = spec_refuse(s->spec, buffer_text(&why), cause);
	buffer_free(&why);
	return rc;
}

static int
resolve_line(const struct spec *spec, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	struct line_search s = {.spec = spec};

	(void)ex_process_modules(process, ask_lines, &s);
	if (s.n == 0)
		return line_unknown(&s, cause);
	if (s.n > 1 + SPEC_MORE_MAX)
		return line_everywhere(&s, cause);
	place->addr = s.addr[0];
	place->len = 1;
	place->code = true;
	place->nmore = (unsigned)s.n - 1;
	for (unsigned i = 0; i < place->nmore; i++)
		place->more[i] = s.addr[1 + i];
	return 0;
}

static int
resolve(const struct spec *spec, struct ex_process *process, bool early,
    struct spec_place *place, struct wp_cause *cause)
{
	memset(place, 0, sizeof(*place));
	if (spec->allocator != NULL)
		return resolve_objects(spec, process, early, place, cause);
	if (spec->line != 0)
		return resolve_line(spec, process, place, cause);
	if (spec->symbol == NULL)
		return resolve_address(spec, process, place, cause);
	return spec->expression_only ?
	    evaluate(spec, process, early, place, cause) :
	    resolve_name(spec, process, early, place, cause);
}

void
spec_declare(const struct spec *spec, struct ex_process *process, uint64_t addr,
    uint64_t len)
{
	evaluate_declare(spec, process, addr, len);
}

int
spec_resolve(const struct spec *spec, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	return resolve(spec, process, false, place, cause);
}

int
spec_resolve_early(const struct spec *spec, struct ex_process *process,
    struct spec_place *place, struct wp_cause *cause)
{
	return resolve(spec, process, true, place, cause);
}
