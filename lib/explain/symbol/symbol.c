/*
 * symbol: names for addresses, and addresses for names, in one module.
 *
 * Overview: libdwfl's view of the symbol table (.symtab of the file or of its
 * debug file, else .dynsym and .gnu_debugdata) is copied and sorted once, with
 * the stubs of the procedure linkage table.  A function with code of its own
 * is called by its symbol, so that name and offset are an address again;
 * inlined ones by DWARF.
 */
#include "symbol/symbol.h"

#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"
#include "symbol/fde.h"
#include "symbol/symbol_version.h"
#include "symbol/line.h"
#include "module/module_private.h"
#include "module/plt.h"
#include "module/range.h"
#include "base/array.h"
#include "base/table.h"

enum { ASKED_SELDOM = 8 };	/* names searched before they are sorted */

/* A name and its demangled form. */
struct pretty {
	const char *raw;
	const char *text;	/* raw itself if it is not mangled */
	char *owned;		/* allocated, or NULL */
};

/* A cached answer of ex_symbol_frames. */
struct kept_frames {
	uint64_t vaddr, lookup;	/* the question */
	struct ex_frames frames;
	struct ex_frame frame[];
};

/* Cached answers of ex_symbol_function.  Most hits are at few addresses, and
   several questions are asked about each hit. */
enum { FUNCTIONS_KEPT = 64 };

struct kept_function {
	uint64_t vaddr;
	bool asked, there;
	struct ex_function function;
};

struct symbols {
	struct ex_module *module;
	struct ex_symbol *at;	/* by value; of those with the same value,
				   the best last */
	size_t n, cap;
	const struct ex_symbol **named;	/* n pointers into at, sorted by
					   name; NULL until there were enough
					   questions */
	unsigned asked;		/* number of names asked for */
	struct ex_ranges sized;	/* what: index in at */
	struct ex_ranges unsized;	/* each extends to the next symbol */
	void *pretty;		/* of search.h, by raw */
	struct ex_table answers;	/* by vaddr */
	struct kept_function functions[FUNCTIONS_KEPT];	/* found last */
};

/* --- demangled names --- */

static int
pretty_compare(const void *a, const void *b)
{
	return strcmp(((const struct pretty *)a)->raw,
	    ((const struct pretty *)b)->raw);
}

static void
pretty_free(void *p)
{
	struct pretty *pretty = p;

	free(pretty->owned);
	free(pretty);
}

/* Demangle "NAME@plt". */
static void
pretty_stub(struct pretty *pretty, const char *suffix)
{
	char *name = strndup(pretty->raw, (size_t)(suffix - pretty->raw));
	char *owned, *whole;

	if (name == NULL)
		return;
	if (ex_demangle(name, &owned) != name &&
	    asprintf(&whole, "%s%s", owned, suffix) >= 0)
		pretty->text = pretty->owned = whole;
	free(owned);
	free(name);
}

/* The demangled name; raw must live as long as the module. */
static const char *
pretty_name(struct symbols *symbols, const char *raw)
{
	struct pretty *pretty, **found, key = {.raw = raw};
	const char *suffix;

	if (raw[0] != '_')
		return raw;
	if ((found = tfind(&key, &symbols->pretty, pretty_compare)) != NULL)
		return (*found)->text;
	if ((pretty = calloc(1, sizeof(*pretty))) == NULL)
		return raw;
	pretty->raw = pretty->text = raw;
	if ((suffix = strstr(raw, "@plt")) != NULL)
		pretty_stub(pretty, suffix);
	else
		pretty->text = ex_demangle(raw, &pretty->owned);
	if (tsearch(pretty, &symbols->pretty, pretty_compare) == NULL) {
		pretty_free(pretty);
		return raw;
	}
	return pretty->text;
}

/* --- the table --- */

static void
symbols_release(void *arg)
{
	struct symbols *symbols = arg;

	ex_table_free(&symbols->answers, free);
	tdestroy(symbols->pretty, pretty_free);
	ex_ranges_free(&symbols->sized);
	ex_ranges_free(&symbols->unsized);
	free(symbols->named);
	free(symbols->at);
}

/* Copy len bytes of s, followed by a suffix.  NULL if there is no memory. */
static const char *
name_copy(struct ex_module *m, const char *s, size_t len, const char *suffix)
{
	char *text = ex_module_text(m, len + strlen(suffix));

	if (text == NULL)
		return NULL;
	memcpy(text, s, len);
	memcpy(text + len, suffix, strlen(suffix));
	return text;
}

/* Of the length, the middle and the end, as many names start alike. */
static uint16_t
sum_of(const char *name)
{
	const size_t len = strlen(name);

	return len == 0 ? 0 : (uint16_t)(len * 2531 ^
	    (size_t)(unsigned char)name[len / 2] << 5 ^
	    (size_t)(unsigned char)name[len - 1]);
}

static bool
symbols_add(struct symbols *symbols, struct ex_symbol symbol)
{
	if (symbol.name == NULL || !EX_ARRAY_ROOM(symbols, at, SIZE_MAX))
		return false;
	symbol.sum = sum_of(symbol.name);
	symbol.mangled = symbol.name[0] == '_';
	symbols->at[symbols->n++] = symbol;
	return true;
}

static bool
add_stub(void *arg, uint64_t vaddr, uint64_t size, const char *name)
{
	struct symbols *symbols = arg;

	return symbols_add(symbols, (struct ex_symbol){
		.name = name_copy(symbols->module, name, strcspn(name, "@"),
		    "@plt"),
		.value = vaddr, .size = size, .function = true,
	});
}

/* Fill *out from symbol i of the file.  Returns false if it is of no use.
   *file is the source file of local symbols, until the next one is named. */
static bool
elf_symbol(struct ex_module *m, int i, const char **file, struct ex_symbol *out)
{
	GElf_Word section = SHN_UNDEF;
	GElf_Addr addr;
	GElf_Sym sym;
	const char *name = dwfl_module_getsym_info(m->dwfl_module, i, &sym,
	    &addr, &section, NULL, NULL);
	unsigned type;

	if (name == NULL)
		return false;
	type = GELF_ST_TYPE(sym.st_info);
	if (type == STT_FILE)
		*file = name;
	if (name[0] == '\0' || section == SHN_UNDEF ||
	    section == SHN_ABS || section == (GElf_Word)-1 ||
	    type == STT_SECTION || type == STT_FILE)
		return false;
	*out = (struct ex_symbol){
		.name = name,
		.file = GELF_ST_BIND(sym.st_info) == STB_LOCAL ? *file : NULL,
		.value = type == STT_TLS ? sym.st_value : addr - m->bias,
		.size = sym.st_size,
		.global = GELF_ST_BIND(sym.st_info) != STB_LOCAL,
		.function = type == STT_FUNC || type == STT_GNU_IFUNC,
		.indirect = type == STT_GNU_IFUNC,
		.object = type == STT_OBJECT || type == STT_COMMON,
		.tls = type == STT_TLS,
	};
	return true;
}

/* Each function below returns false if there is no memory. */
static bool
add_symbol(struct symbols *symbols, struct ex_symbol symbol,
    const struct ex_old_symbols *old)
{
	/* a name may begin with it */
	const size_t len = 1 + strcspn(symbol.name + 1, "@");

	symbol.old = symbol.global && ex_old_symbols_have(old, symbol.value,
	    symbol.name, len);
	if (symbol.name[len] != '\0')
		symbol.name = name_copy(symbols->module, symbol.name, len, "");
	return symbols_add(symbols, symbol);
}

static bool
add_symbols(struct ex_module *m, struct symbols *symbols)
{
	int n = dwfl_module_getsymtab(m->dwfl_module);
	const char *file = NULL;
	struct ex_old_symbols old;
	struct ex_symbol symbol;
	bool good = ex_old_symbols_read(m, &old);

	if (n > 0)
		good = good && ex_array_room(&symbols->at, symbols->n,
		    (size_t)n, &symbols->cap, sizeof(*symbols->at), SIZE_MAX);
	for (int i = 1; i < n && good; i++)
		if (elf_symbol(m, i, &file, &symbol))
			good = add_symbol(symbols, symbol, &old);
	free(old.at);
	if (good)
		ex_plt_each(m, add_stub, symbols);
	return good;
}

static unsigned
underscores(const char *name)
{
	return (unsigned)strspn(name, "_");
}

/* The better of two symbols at one address comes last: functions or objects,
   with a size, global, and then by name. */
static int
symbol_compare(const void *pa, const void *pb)
{
	const struct ex_symbol *a = pa, *b = pb;
	int x = (a->function || a->object) * 4 + (a->size > 0) * 2 + a->global;
	int y = (b->function || b->object) * 4 + (b->size > 0) * 2 + b->global;

	if (x != y)
		return x - y;
	if (underscores(a->name) != underscores(b->name))
		return underscores(a->name) < underscores(b->name) ? 1 : -1;
	return strcmp(b->name, a->name);
}

/* Sort by value, then those with the same value. */
static bool
symbols_sort(struct symbols *symbols)
{
	struct ex_symbol *at = symbols->at;
	size_t end;

	if (!EX_ARRAY_SORT(at, symbols->n, value))
		return false;
	for (size_t i = 0; i < symbols->n; i = end) {
		for (end = i + 1; end < symbols->n &&
		    at[end].value == at[i].value; end++)
			;
		if (end - i > 1)
			qsort(&at[i], end - i, sizeof(*at), symbol_compare);
	}
	return true;
}

/* The end of the section or segment that contains vaddr. */
static uint64_t
section_end(struct ex_module *m, const struct ex_ranges *sections,
    uint64_t vaddr)
{
	const struct ex_range *section = ex_ranges_find(sections, vaddr);
	const struct ex_segment *segment;

	if (section != NULL)
		return section->end;
	segment = ex_module_segment(m, vaddr);
	return segment != NULL ? segment->vaddr + segment->memsz : 0;
}

static void
add_sections(struct ex_module *m, struct ex_ranges *sections)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(m->elf, scn)) != NULL) {
		if (gelf_getshdr(scn, &sh) != NULL &&
		    (sh.sh_flags & SHF_ALLOC) != 0 &&
		    (sh.sh_flags & SHF_TLS) == 0)
			(void)ex_ranges_add(sections, sh.sh_addr,
			    sh.sh_addr + sh.sh_size, 0);
	}
	ex_ranges_sort(sections);
}

/* Fill both range tables.  A symbol without a size extends to the next one, but
   not beyond its section. */
static bool
symbols_index(struct ex_module *m, struct symbols *symbols)
{
	struct ex_ranges sections = {0};
	uint64_t next = UINT64_MAX, value = UINT64_MAX;
	bool good = true;

	add_sections(m, &sections);
	for (size_t i = symbols->n; i-- > 0 && good; ) {
		const struct ex_symbol *s = &symbols->at[i];
		uint64_t end;

		if (s->tls)
			continue;
		if (s->value != value) {
			next = value;
			value = s->value;
		}
		if (s->size == 0) {
			end = section_end(m, &sections, value);
			good = ex_ranges_add(&symbols->unsized, value,
			    end < next ? end : next, i);
		}
	}
	good = good && ex_ranges_room(&symbols->sized, symbols->n);
	/* of those at one address, the one added last is found first */
	for (size_t i = 0; i < symbols->n && good; i++) {
		const struct ex_symbol *s = &symbols->at[i];

		good = s->tls || ex_ranges_add(&symbols->sized, s->value,
		    s->value + s->size, i);
	}
	ex_ranges_sort(&symbols->sized);
	ex_ranges_sort(&symbols->unsized);
	ex_ranges_free(&sections);
	return good;
}

/* The same symbol may be in both .symtab and .dynsym. */
static void
symbols_unique(struct symbols *symbols)
{
	size_t n = 0;

	for (size_t i = 0; i < symbols->n; i++) {
		const struct ex_symbol *s = &symbols->at[i];

		if (n == 0 || s->value != symbols->at[n - 1].value ||
		    s->tls != symbols->at[n - 1].tls ||
		    strcmp(s->name, symbols->at[n - 1].name) != 0)
			symbols->at[n++] = *s;
	}
	symbols->n = n;
}

/* Some of the symbols would give other functions the wrong name. */
static void
give_up(struct ex_module *m, struct symbols *symbols)
{
	ex_ranges_free(&symbols->sized);
	ex_ranges_free(&symbols->unsized);
	free(symbols->at);
	symbols->at = NULL;
	symbols->n = symbols->cap = 0;
	ex_module_no_memory(m);
}

static bool
symbols_fill(struct ex_module *m, struct symbols *symbols)
{
	if (!add_symbols(m, symbols) || !symbols_sort(symbols))
		return false;
	symbols_unique(symbols);
	return symbols_index(m, symbols);
}

/* The table of the module; empty if there are no symbols, or too many for the
   memory that may be used.  NULL if there is no memory at all. */
static struct symbols *
symbols_of(struct ex_module *m)
{
	bool is_new;
	struct symbols *symbols = ex_module_cache(m, EX_CACHE_SYMBOLS,
	    sizeof(*symbols), symbols_release, &is_new);

	if (symbols == NULL || !is_new)
		return symbols;
	symbols->module = m;
	if (!ex_module_open(m))
		return symbols;
	if (!symbols_fill(m, symbols))
		give_up(m, symbols);
	return symbols;
}

/* --- asking by address --- */

bool
ex_symbol_at(struct ex_module *m, uint64_t vaddr, struct ex_symbol *out)
{
	const struct symbols *symbols = symbols_of(m);
	const struct ex_range *found;

	if (symbols == NULL || symbols->at == NULL)
		return false;
	if ((found = ex_ranges_find(&symbols->sized, vaddr)) == NULL &&
	    (found = ex_ranges_find(&symbols->unsized, vaddr)) == NULL)
		return false;
	*out = symbols->at[found->what];
	return true;
}

static bool
find_function(struct ex_module *m, uint64_t vaddr, struct ex_function *out)
{
	struct ex_symbol symbol;
	uint64_t start, end;
	bool by_symbol, by_fde;

	by_symbol = ex_symbol_at(m, vaddr, &symbol) && !symbol.object;
	by_fde = ex_fde_find(m, vaddr, &start, &end);
	if (!by_symbol && !by_fde)
		return false;
	if (!by_fde || (by_symbol && symbol.value > start)) {
		out->start = symbol.value;
		out->sized = symbol.size != 0 || by_fde;
		out->end = symbol.size != 0 ? symbol.value + symbol.size :
		    by_fde ? end : UINT64_MAX;
	} else {
		*out = (struct ex_function){ start, end, true };
	}
	return true;
}

bool
ex_symbol_function(struct ex_module *m, uint64_t vaddr,
    struct ex_function *out)
{
	struct symbols *symbols = symbols_of(m);
	struct kept_function *kept;

	if (symbols == NULL)
		return find_function(m, vaddr, out);
	kept = &symbols->functions[(vaddr ^ vaddr >> 6) % FUNCTIONS_KEPT];
	if (!kept->asked || kept->vaddr != vaddr) {
		kept->there = find_function(m, vaddr, &kept->function);
		kept->vaddr = vaddr;
		kept->asked = true;
	}
	if (kept->there)
		*out = kept->function;
	return kept->there;
}

bool
ex_symbol_function_start(struct ex_module *m, uint64_t vaddr, uint64_t *start)
{
	struct ex_function function;

	if (!ex_symbol_function(m, vaddr, &function))
		return false;
	*start = function.start;
	return true;
}

/* The frame of the function at the lookup address. */
static void
frame_function(struct symbols *symbols, const struct kept_frames *answer,
    const struct ex_line *line, struct ex_frame *frame)
{
	struct ex_symbol symbol;

	if (ex_symbol_at(symbols->module, answer->lookup, &symbol) &&
	    !symbol.object) {
		frame->function = pretty_name(symbols, symbol.name);
		frame->offset = answer->vaddr - symbol.value;
	} else if (line->function != NULL) {
		frame->function = pretty_name(symbols, line->function);
		frame->offset = answer->vaddr - line->start;
	}
}

static struct kept_frames *
answer_new(struct symbols *symbols, uint64_t vaddr, uint64_t lookup)
{
	struct ex_module *m = symbols->module;
	struct ex_line line[EX_LINES_MAX];
	unsigned n = ex_lines_at(m, lookup, line);
	struct kept_frames *answer;

	if (n == 0) {
		memset(&line[0], 0, sizeof(line[0]));
		n = 1;
	}
	answer = calloc(1, sizeof(*answer) + n * sizeof(answer->frame[0]));
	if (answer == NULL)
		return NULL;
	answer->vaddr = vaddr;
	answer->lookup = lookup;
	answer->frames = (struct ex_frames){n, answer->frame};
	for (unsigned i = 0; i < n; i++) {
		struct ex_frame *frame = &answer->frame[i];

		*frame = (struct ex_frame){
			.pc = vaddr, .vaddr = vaddr, .module = m,
			.file = line[i].file, .line = line[i].line,
			.column = line[i].column, .inlined = i < n - 1,
			.gap = line[i].partial,
		};
		if (i == n - 1)
			frame_function(symbols, answer, &line[i], frame);
		else if (line[i].function != NULL)
			frame->function =
			    pretty_name(symbols, line[i].function);
	}
	return answer;
}

const struct ex_frames *
ex_symbol_frames(struct ex_module *m, uint64_t vaddr, uint64_t lookup)
{
	struct symbols *symbols = symbols_of(m);
	struct kept_frames *answer;
	size_t i = 0;

	if (symbols == NULL)
		return NULL;
	while ((answer = ex_table_next(&symbols->answers, vaddr, &i)) != NULL)
		if (answer->lookup == lookup)
			return &answer->frames;
	if (!ex_table_reserve(&symbols->answers, 1) ||
	    (answer = answer_new(symbols, vaddr, lookup)) == NULL)
		return NULL;
	ex_table_put(&symbols->answers, vaddr, answer);
	return &answer->frames;
}

/* --- asking by name --- */

int
ex_symbol_each(struct ex_module *m,
    int (*fn)(void *, const struct ex_symbol *), void *arg)
{
	const struct symbols *symbols = symbols_of(m);
	int result = 0;

	for (size_t i = 0; symbols != NULL && i < symbols->n && result == 0;
	    i++) {
		const struct ex_symbol *s = &symbols->at[i];

		if (s->function || s->object || s->tls)
			result = fn(arg, s);
	}
	return result;
}

static int
named_compare(const void *a, const void *b)
{
	return strcmp((*(const struct ex_symbol *const *)a)->name,
	    (*(const struct ex_symbol *const *)b)->name);
}

/* Sort pointers to all symbols by name. */
static bool
symbols_name(struct symbols *symbols)
{
	if (symbols->named != NULL)
		return true;
	symbols->named = calloc(symbols->n + 1, sizeof(*symbols->named));
	if (symbols->named == NULL)
		return false;
	for (size_t i = 0; i < symbols->n; i++)
		symbols->named[i] = &symbols->at[i];
	qsort(symbols->named, symbols->n, sizeof(*symbols->named),
	    named_compare);
	return true;
}

/* Sorting takes longer than a few searches without it. */
static int
find_unsorted(const struct symbols *symbols, const char *name,
    int (*fn)(void *, const struct ex_symbol *), void *arg)
{
	const uint16_t sum = sum_of(name);
	int result = 0;

	for (size_t i = 0; i < symbols->n && result == 0; i++) {
		if (symbols->at[i].sum == sum &&
		    strcmp(symbols->at[i].name, name) == 0)
			result = fn(arg, &symbols->at[i]);
	}
	return result;
}

int
ex_symbol_find_raw(struct ex_module *m, const char *name,
    int (*fn)(void *, const struct ex_symbol *), void *arg)
{
	struct symbols *symbols = symbols_of(m);
	size_t low = 0, high;
	int result = 0;

	if (symbols == NULL)
		return 0;
	if (symbols->named == NULL && symbols->asked++ < ASKED_SELDOM)
		return find_unsorted(symbols, name, fn, arg);
	if (!symbols_name(symbols))
		return 0;
	for (high = symbols->n; low < high; ) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(symbols->named[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < symbols->n && result == 0 &&
	    strcmp(symbols->named[low]->name, name) == 0; low++)
		result = fn(arg, symbols->named[low]);
	return result;
}

/* The word that a mangled name must contain if it means this one: its last
   identifier before template arguments or parameters.  Returns false if there
   is none. */
static bool
distinctive_word(const char *name, char word[256])
{
	const char *end = name + strcspn(name, "<({ "), *start = end;
	size_t len;

	while (start > name &&
	    (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
		start--;
	len = (size_t)(end - start);
	if (len == 0 || len >= 256 || strstr(name, "operator") != NULL)
		return false;
	memcpy(word, start, len);
	word[len] = '\0';
	return true;
}

/* Whether a demangled name is this one.  Spaces do not count, and ABI tags, as
   in "gm[abi:cxx11]", may be left out, as they are not in the source. */
static bool
is_named(const char *demangled, const char *name)
{
	for (;;) {
		demangled += strspn(demangled, " ");
		name += strspn(name, " ");
		if (strncmp(demangled, "[abi:", 5) == 0 && *name != '[') {
			demangled = strchrnul(demangled, ']');
			demangled += *demangled == ']';
		} else if (*demangled != *name++) {
			return false;
		} else if (*demangled++ == '\0') {
			return true;
		}
	}
}

static bool
demangles_to(const char *raw, const char *name)
{
	char *owned;
	bool same = ex_demangle(raw, &owned) != raw && is_named(owned, name);

	free(owned);
	if (same || strchr(name, '(') == NULL)
		return same;
	owned = ex_demangle_whole(raw);
	same = owned != NULL && is_named(owned, name);
	free(owned);
	return same;
}

int
ex_symbol_find(struct ex_module *m, const char *name,
    int (*fn)(void *, const struct ex_symbol *), void *arg)
{
	const struct symbols *symbols = symbols_of(m);
	char *owned, word[256];
	const char *form = ex_demangle_form(name, &owned);
	bool has_word = distinctive_word(name, word);
	const uint16_t sum = sum_of(name);
	int result = 0;

	for (size_t i = 0; symbols != NULL && i < symbols->n && result == 0;
	    i++) {
		const struct ex_symbol *s = &symbols->at[i];

		if ((s->sum == sum && strcmp(s->name, name) == 0) ||
		    (s->mangled &&
		    (!has_word || strstr(s->name, word) != NULL) &&
		    demangles_to(s->name, form)))
			result = fn(arg, s);
	}
	free(owned);
	return result;
}
