/* declaration: variables by name, and steps from object to object. */
#include "type/declaration.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "debug/die.h"
#include "module/module_private.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "type/copy_reloc.h"
#include "type/qualified.h"
#include "type/subobject.h"
#include "type/type_name.h"

enum {
	STEPS_MAX = 64,		/* nested members without names */
	TRIALS_MAX = 1 << 16,	/* members examined */
	CANDIDATES_MAX = 1024,	/* symbols that may be of a variable */
};

/* --- variables --- */

/* The declaration of the variable that starts at this address, or NULL. */
static const struct ex_declared *
declared_at(struct ex_module *m, uint64_t vaddr)
{
	const struct ex_module_types *types = ex_module_types(m);
	struct ex_variable *v = types == NULL ? NULL :
	    ex_variables_find(types->variables, vaddr);
	const struct ex_declared *declared = v == NULL || v->vaddr != vaddr ?
	    NULL : ex_declared_of(m, v);

	return declared != NULL && declared->name != NULL ? declared : NULL;
}

static void
take_declared(struct ex_module *m, const struct ex_declared *declared,
    struct ex_declaration *d)
{
	*d = (struct ex_declaration){
		.name = declared->name, .size = declared->size,
		.type = {
			.module = m, .layout = declared->layout,
			.die = declared->type, .tags = declared->tags,
			.columns = declared->columns,
		},
	};
}

/* The library's declaration of a variable that was copied to the program. */
struct original {
	const struct ex_module *program;
	struct ex_module *library;	/* the one being searched */
	const char *name;
	struct ex_declaration *d;
};

static int
take_original(void *arg, const struct ex_symbol *symbol)
{
	const struct original *o = arg;
	const struct ex_declared *declared = symbol->object && symbol->global ?
	    declared_at(o->library, symbol->value) : NULL;

	if (declared != NULL)
		take_declared(o->library, declared, o->d);
	return declared != NULL;
}

static int
ask_library(void *arg, struct ex_module *m, uint64_t base)
{
	struct original *o = arg;

	(void)base;
	o->library = m;
	return m == o->program ? 0 : ex_symbol_find(m, o->name, take_original,
	    o);
}

bool
ex_declaration_at(struct ex_process *process, struct ex_module *m,
    uint64_t vaddr, struct ex_declaration *d)
{
	const struct ex_declared *declared = declared_at(m, vaddr);
	struct ex_symbol symbol;
	struct original o = {.program = m, .d = d};

	if (declared != NULL) {
		take_declared(m, declared, d);
		return true;
	}
	if (!ex_copy_reloc(m, vaddr) || !ex_symbol_at(m, vaddr, &symbol) ||
	    symbol.value != vaddr)
		return false;
	o.name = symbol.name;
	return ex_process_modules(process, ask_library, &o) != 0;
}

bool
ex_declaration_known(struct ex_module *m)
{
	uint64_t bias;

	return ex_module_dwarf(m, &bias) != NULL;
}

struct declaration_search {
	struct ex_module *module;
	const char *name;	/* qualified */
	const char *file;	/* of this file; NULL: of any */
	const char *last;	/* the last part of name, */
	size_t len;		/* without template arguments */
	unsigned tried, found;
	uint64_t vaddr;
	struct ex_declaration d;
};

/* Whether the word is at this place as an identifier, or in a mangled name
   after its length. */
static bool
is_word_at(const char *name, const char *at, size_t len)
{
	const unsigned char before = at == name ? '.' : (unsigned char)at[-1];

	if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0)
		return isdigit(before) || before == '_';
	return !isalnum(before) && !isalnum((unsigned char)at[len]);
}

static bool
has_word(const char *name, const char *word, size_t len)
{
	const char *at = name;

	while ((at = memmem(at, strlen(at), word, len)) != NULL) {
		if (is_word_at(name, at, len))
			return true;
		at++;
	}
	return false;
}

/* Whether a symbol's name contains the word.  Fortran's names are in lower
   case. */
static bool
holds_word(const char *name, const char *word, size_t len)
{
	char lower[256];

	if (has_word(name, word, len))
		return true;
	if (len >= sizeof(lower) || strstr(name, "_MOD_") == NULL)
		return false;
	for (size_t i = 0; i < len; i++)
		lower[i] = (char)tolower((unsigned char)word[i]);
	return has_word(name, lower, len);
}

/* Whether the unit of a type, and so of a variable declared in it, is of this
   source file. */
static bool
is_of_file(const Dwarf_Die *type, const char *file)
{
	Dwarf_Die die = *type, unit;
	const char *name;
	size_t len, own = strlen(file);

	if (dwarf_diecu(&die, &unit, NULL, NULL) == NULL ||
	    (name = dwarf_diename(&unit)) == NULL)
		return false;
	len = strlen(name);
	return len >= own && strcmp(name + len - own, file) == 0 &&
	    (len == own || name[len - own - 1] == '/');
}

/* Whether a declaration has this name.  Members of an unnamed namespace are
   also members of the enclosing one. */
static bool
is_called(const struct ex_declared *declared, const char *name)
{
	static const char unnamed[] = "(anonymous namespace)::";
	char text[512], *at;

	if (ex_qualified_same(declared->name, name, declared->columns) ||
	    (declared->least != NULL && ex_qualified_same(declared->least, name,
	    declared->columns)))
		return true;
	if (strstr(declared->name, unnamed) == NULL ||
	    strlen(declared->name) >= sizeof(text))
		return false;
	(void)stpcpy(text, declared->name);
	while ((at = strstr(text, unnamed)) != NULL)
		memmove(at, at + sizeof(unnamed) - 1,
		    strlen(at + sizeof(unnamed) - 1) + 1);
	return ex_qualified_same(text, name, declared->columns);
}

static int
try_symbol(void *arg, const struct ex_symbol *symbol)
{
	struct declaration_search *s = arg;
	const struct ex_declared *declared;

	if (!symbol->object || symbol->tls ||
	    !holds_word(symbol->name, s->last, s->len))
		return 0;
	if (++s->tried > CANDIDATES_MAX)
		return 1;
	declared = declared_at(s->module, symbol->value);
	if (declared == NULL || !is_called(declared, s->name) ||
	    (s->file != NULL && !is_of_file(&declared->type, s->file)) ||
	    (s->found > 0 && s->vaddr == symbol->value))
		return 0;
	if (s->found++ == 0) {
		s->vaddr = symbol->value;
		take_declared(s->module, declared, &s->d);
	}
	return 0;
}

unsigned
ex_declaration_find(struct ex_module *m, const char *name, const char *file,
    uint64_t *vaddr, struct ex_declaration *d)
{
	struct declaration_search s = {.module = m, .name = name, .file = file};

	s.last = ex_qualified_last(name);
	s.len = strcspn(s.last, "<({ ");
	if (s.len == 0 || !ex_declaration_known(m))
		return 0;
	(void)ex_symbol_each(m, try_symbol, &s);
	*vaddr = s.vaddr;
	*d = s.d;
	return s.found;
}

/* --- what types are --- */

/* The element of an array made by ex_type_array. */
static struct ex_type
made_element(const struct ex_type *array)
{
	struct ex_type element = *array;

	memmove(element.first, element.first + 1,
	    (EX_DIMENSIONS - 1) * sizeof(*element.first));
	memmove(element.count, element.count + 1,
	    (EX_DIMENSIONS - 1) * sizeof(*element.count));
	if (--element.ndims == 0)
		element.pointers = element.inner;
	return element;
}

enum ex_kind
ex_type_kind(const struct ex_type *type)
{
	if (type->pointers > 0)
		return EX_POINTER;
	if (type->ndims > 0)
		return EX_ARRAY;
	return type->layout != NULL ? type->layout->kind : EX_OPAQUE;
}

uint64_t
ex_type_size(const struct ex_type *type)
{
	if (type->pointers > 0)
		return sizeof(void *);
	if (type->ndims > 0) {
		const struct ex_type element = made_element(type);

		return type->count[0] * ex_type_size(&element);
	}
	return type->layout != NULL ? type->layout->size : 0;
}

bool
ex_type_is_reference(const struct ex_type *type)
{
	Dwarf_Die die;

	if (ex_type_kind(type) != EX_POINTER || type->pointers > 0)
		return false;
	die = type->layout->type;
	return die.addr != NULL && dwarf_tag(&die) != DW_TAG_pointer_type;
}

static void
put_pointers(char *text, size_t size, unsigned pointers)
{
	size_t len = strlen(text);

	for (unsigned i = 0; i < pointers && len + 3 < size; i++) {
		if (len == 0 || (text[len - 1] != '*' && text[len - 1] != '('))
			text[len++] = ' ';
		text[len++] = '*';
		text[len] = '\0';
	}
}

void
ex_type_put(const struct ex_type *type, char *text, size_t size)
{
	const char *name = type->module != NULL ? (type->die.addr == NULL ?
	    "void" : ex_type_name(type->module, &type->die, type->dimension, 0,
	    type->tags)) : type->layout != NULL ? type->layout->name : "void";
	size_t len;

	(void)snprintf(text, size, "%s", name != NULL ? name : "?");
	put_pointers(text, size, type->ndims > 0 ? type->inner :
	    type->pointers);
	if (type->ndims == 0)
		return;
	len = strlen(text);
	if (type->pointers > 0 && len + 4 < size) {
		(void)snprintf(text + len, size - len, " (");
		put_pointers(text, size, type->pointers);
		len = strlen(text);
		(void)snprintf(text + len, size - len, ")");
	}
	for (unsigned i = 0; i < type->ndims; i++) {
		len = strlen(text);
		(void)snprintf(text + len, size - len, "[%llu]",
		    (unsigned long long)type->count[i]);
	}
}

/* --- steps --- */

/* A type that is part of another one. */
static struct ex_type
inner(const struct ex_type *of, const struct ex_layout *layout, Dwarf_Die die)
{
	return (struct ex_type){
		.module = of->module, .layout = layout, .die = die,
		.tags = of->tags, .columns = of->columns,
	};
}

/* Set *part to the place of a member. */
static void
take_member(const struct ex_type *holder, const struct ex_member *m,
    uint64_t offset, uint64_t size, struct ex_part *part)
{
	*part = (struct ex_part){
		.type = inner(holder, m->layout, m->type),
		.offset = offset + m->offset,
		.size = ex_member_size(m, size), .bits = m->bits,
	};
	if (m->bits == 0)
		return;
	part->bit = m->bit % 8;
	part->size = (part->bit + m->bits + 7) / 8;
}

/* Whether a base class has this name; NULL matches any. */
static bool
is_base(const struct ex_member *m, const char *base)
{
	Dwarf_Die type = m->layout->type;
	const char *name = base == NULL ? NULL : dwarf_diename(&type);

	return base == NULL || (name != NULL && ex_qualified_same(name, base,
	    false));
}

struct member_search {
	const struct ex_type *holder;
	const char *base;	/* the base class it must be of; NULL: any */
	const char *name;
	unsigned depth;	/* of nested classes and unnamed members to look in */
	unsigned trials;	/* trials left */
	unsigned found;		/* members at different places */
	struct ex_part *part;
};

static bool
has_name(const struct member_search *s, const struct ex_member *m)
{
	return m->name != NULL && (strcmp(m->name, s->name) == 0 ||
	    (s->holder->columns && strcasecmp(m->name, s->name) == 0));
}

static void
note_member(struct member_search *s, const struct ex_member *m, uint64_t offset,
    uint64_t size)
{
	if (s->found > 0 && s->part->offset == offset + m->offset)
		return;
	if (s->found++ == 0)
		take_member(s->holder, m, offset, size, s->part);
}

/* Search the members at one depth. */
static void
find_member(struct member_search *s, const struct ex_layout *layout,
    uint64_t offset, uint64_t size, unsigned depth, bool of_base)
{
	const struct ex_member *member;
	size_t n;

	if (layout->kind != EX_STRUCT)
		return;
	n = ex_layout_members(layout, &member);
	for (size_t i = 0; i < n && s->trials > 0; i++) {
		const struct ex_member *m = &member[i];

		s->trials--;
		if (depth == s->depth && of_base && has_name(s, m))
			note_member(s, m, offset, size);
		else if (depth < s->depth && m->name == NULL && m->bits == 0)
			find_member(s, m->layout, offset + m->offset,
			    ex_member_size(m, size), depth + 1,
			    of_base || is_base(m, s->base));
	}
}

/* Members that are less deeply nested come first. */
static unsigned
search_member(struct member_search *s, uint64_t size, bool of_base)
{
	for (s->depth = 0; s->depth < STEPS_MAX && s->found == 0 &&
	    s->trials > 0; s->depth++)
		find_member(s, s->holder->layout, 0, size, 0, of_base);
	return s->found;
}

unsigned
ex_type_member(const struct ex_type *type, uint64_t size, const char *name,
    struct ex_part *part)
{
	const char *last = ex_qualified_last(name);
	struct member_search s = {
		.holder = type, .name = last, .trials = TRIALS_MAX,
		.part = part,
	};
	char base[256], number[24];
	Dwarf_Die die;

	if (ex_type_kind(type) != EX_STRUCT)
		return 0;
	if (*name >= '0' && *name <= '9') {	/* a member of one of Rust's
						   tuples */
		(void)snprintf(number, sizeof(number), "__%.20s", name);
		s.name = number;
		return search_member(&s, size, true);
	}
	if (last == name)
		return search_member(&s, size, true);
	if ((size_t)(last - name) - 2 >= sizeof(base))
		return 0;
	(void)snprintf(base, sizeof(base), "%.*s", (int)(last - name) - 2,
	    name);
	s.base = ex_qualified_last(base);
	/* the name may be that of the class itself */
	die = type->layout->type;
	return search_member(&s, size, dwarf_diename(&die) != NULL &&
	    ex_qualified_same(dwarf_diename(&die), s.base, false));
}

bool
ex_type_base(const struct ex_type *type, unsigned i, struct ex_type *base,
    uint64_t *offset)
{
	const struct ex_member *member;
	size_t n;

	if (ex_type_kind(type) != EX_STRUCT)
		return false;
	n = ex_layout_members(type->layout, &member);
	for (size_t k = 0; k < n; k++) {
		Dwarf_Die die = member[k].type;

		/* unnamed unions are members of the same form */
		if (member[k].name != NULL || member[k].bits != 0 ||
		    dwarf_diename(&die) == NULL || i-- > 0)
			continue;
		*base = inner(type, member[k].layout, die);
		*offset = member[k].offset;
		return true;
	}
	return false;
}

/* The constant that an operation pushes.  False: it does another thing. */
static bool
pushes_constant(const Dwarf_Op *op, uint64_t *number)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		*number = op->atom - DW_OP_lit0;
		return true;
	}
	*number = op->number;
	return op->atom == DW_OP_const1u || op->atom == DW_OP_const2u ||
	    op->atom == DW_OP_constu;
}

/* Whether a base class is a virtual one, as the C++ ABI has it: its offset is
   in front of the table of virtual functions. */
static bool
is_virtual_base(Dwarf_Die *die, uint64_t *before)
{
	Dwarf_Attribute attr;
	Dwarf_Op *op;
	size_t n;

	return dwarf_tag(die) == DW_TAG_inheritance &&
	    dwarf_attr(die, DW_AT_data_member_location, &attr) != NULL &&
	    dwarf_getlocation(&attr, &op, &n) == 0 && n == 6 &&
	    op[0].atom == DW_OP_dup && op[1].atom == DW_OP_deref &&
	    pushes_constant(&op[2], before) && op[3].atom == DW_OP_minus &&
	    op[4].atom == DW_OP_deref && op[5].atom == DW_OP_plus;
}

bool
ex_type_virtual_base(const struct ex_type *type, unsigned i,
    struct ex_type *base, uint64_t *before)
{
	const struct ex_layout *layout = type->layout;
	Dwarf_Die class, child, die;

	if (ex_type_kind(type) != EX_STRUCT)
		return false;
	class = layout->type;
	if (dwarf_child(&class, &child) != 0)
		return false;
	do {
		if (!is_virtual_base(&child, before) ||
		    !ex_die_ref(&child, DW_AT_type, &die) || i-- > 0)
			continue;
		*base = inner(type, ex_layout_of(layout->layouts, &die), die);
		return true;
	} while (ex_die_next(&child));
	return false;
}

static void
each_member(const struct ex_layout *layout, unsigned depth, unsigned *trials,
    void (*fn)(void *, const char *), void *arg)
{
	const struct ex_member *member;
	size_t n;

	if (layout->kind != EX_STRUCT || depth == STEPS_MAX)
		return;
	n = ex_layout_members(layout, &member);
	for (size_t i = 0; i < n && *trials > 0; i++) {
		--*trials;
		if (member[i].name != NULL)
			fn(arg, member[i].name);
		else
			each_member(member[i].layout, depth + 1, trials, fn,
			    arg);
	}
}

void
ex_type_members(const struct ex_type *type, void (*fn)(void *, const char *),
    void *arg)
{
	unsigned trials = TRIALS_MAX;

	if (ex_type_kind(type) == EX_STRUCT)
		each_member(type->layout, 0, &trials, fn, arg);
}

bool
ex_type_element(const struct ex_type *type, struct ex_type *element,
    uint64_t *first, uint64_t *count)
{
	const struct ex_layout *array = type->layout;
	Dwarf_Die die;

	if (ex_type_kind(type) != EX_ARRAY)
		return false;
	if (type->ndims > 0) {
		/* not known without the order of dimensions */
		if (type->columns && type->ndims > 1)
			return false;
		*element = made_element(type);
		*first = type->first[0];
		*count = type->count[0];
		return true;
	}
	die = array->type;
	*first = array->first;
	*count = array->open ? 0 : array->count;
	if (array->element->type.addr == die.addr) {
		if (type->columns)
			return false;
		*element = inner(type, array->element, die);
		element->dimension = array->dimension + 1;
		return true;
	}
	if (type->columns && array->dimension > 0)
		return false;
	if (!ex_die_ref(&die, DW_AT_type, &die))
		return false;
	*element = inner(type, array->element, die);
	return true;
}

struct definition_search {
	const char *name;
	enum ex_tag tag;
	struct ex_type *type;
};

static int
find_definition(void *arg, struct ex_module *m, uint64_t base)
{
	struct definition_search *s = arg;

	(void)base;
	return ex_type_find(m, s->name, s->tag, s->type);
}

/* Find the definition of a structure that is only declared.  Returns false if
   it is defined there, or nowhere. */
static bool
complete(struct ex_process *process, struct ex_type *type)
{
	Dwarf_Die die = type->die;
	struct ex_type definition;
	struct definition_search s = {.type = &definition};

	for (int i = 0; i < STEPS_MAX && !dwarf_hasattr(&die,
	    DW_AT_declaration); i++)
		if (!ex_die_ref(&die, DW_AT_type, &die))
			return false;
	if ((s.name = dwarf_diename(&die)) == NULL)
		return false;
	s.name = ex_die_qualified(type->module, &die, s.name);
	s.tag = dwarf_tag(&die) == DW_TAG_union_type ? EX_TAG_UNION :
	    dwarf_tag(&die) == DW_TAG_enumeration_type ? EX_TAG_ENUM :
	    EX_TAG_STRUCT;
	if (!ex_type_find(type->module, s.name, s.tag, &definition) &&
	    ex_process_modules(process, find_definition, &s) == 0)
		return false;
	*type = definition;
	return true;
}

bool
ex_type_target(struct ex_process *process, const struct ex_type *type,
    struct ex_type *target)
{
	const struct ex_module_types *types;
	Dwarf_Die pointer, die;

	if (ex_type_kind(type) != EX_POINTER)
		return false;
	*target = *type;
	if (type->pointers > 0) {
		target->pointers--;
		return true;
	}
	pointer = type->layout->type;
	*target = inner(type, NULL, (Dwarf_Die){0});
	if (pointer.addr == NULL || !ex_die_ref(&pointer, DW_AT_type, &die) ||
	    (types = ex_module_types(type->module)) == NULL)
		return true;
	target->die = die;
	if (!complete(process, target))
		target->layout = ex_layout_of(types->layouts, &die);
	return true;
}
