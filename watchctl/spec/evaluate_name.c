/* evaluate_name: resolves the names in an expression. */
#include "spec/evaluate_private.h"

#include <stdlib.h>
#include <string.h>

#include "module/module.h"
#include "spec/find_symbol.h"
#include "util/visible.h"

/* --- names --- */

/* A name, split from its source file. */
struct split_name {
	struct spec spec;	/* of a SPEC that is only this name */
	char *copy;		/* allocated text of the spec */
};

static bool
take_name(const struct evaluation *e, const struct node *node,
    struct split_name *named)
{
	const size_t file = token_file(node->text);
	char *name;

	*named = (struct split_name){.copy = strndup(node->text, node->len)};
	if ((name = named->copy) == NULL)
		return false;
	named->spec = (struct spec){
		.text = e->spec->text, .access = WP_WRITE,
		.symbol = name + file,
	};
	if (file > 0) {
		name[file - 2] = '\0';
		named->spec.module = name;
	} else if (token_file(e->spec->text) == 0) {
		named->spec.module = e->spec->module;
		named->spec.real = e->spec->real;
	}
	return true;
}

struct name_search {
	struct evaluation *e;
	const char *name;
	const char *file;	/* restricts the search; NULL: any file */
	bool named;		/* modules are those that were named */
	bool own;		/* the next one is, or it is the program */
	bool unread;		/* the program cannot be read */
	unsigned found;
	struct value *v;
};

/* A variable for which there is no symbol.  What several places in a library
   have for themselves is hardly meant. */
static int
search_variable(void *arg, struct ex_module *m, uint64_t base)
{
	struct name_search *s = arg;
	const bool own = s->own || s->file != NULL;
	struct ex_declaration d;
	uint64_t vaddr;

	s->own = s->named;
	s->found = ex_declaration_find(m, s->name, s->file, &vaddr, &d);
	if (s->found > 1 && !own)
		s->found = 0;
	if (s->found > 0)
		value_set_object(s->v, &d.type, base + vaddr, d.size);
	return s->found > 0;
}

/* What a library calls by the name is hardly meant if it is not known what the
   program does. */
static int
search_enumerator(void *arg, struct ex_module *m, uint64_t base)
{
	struct name_search *s = arg;
	const bool program = s->own && !s->named;
	struct ex_type type;
	uint64_t number;

	(void)base;
	s->own = s->named;
	s->unread |= program && ex_module_problem(m) != NULL;
	if (s->unread || !ex_type_enumerator(m, s->name, &number, &type))
		return 0;
	*s->v = (struct value){
		.known = true, .type = type, .size = ex_type_size(&type),
	};
	s->v->number = value_extended(number, (unsigned)s->v->size * 8,
	    value_is_signed(s->v));
	return 1;
}

/* Take a symbol, with the type declared for it. */
static bool
take_symbol(struct evaluation *e, const struct node *node,
    const struct found_symbol *found, struct value *v)
{
	struct ex_declaration d;
	struct buffer text = {0};

	if (found->symbol.tls) {
		evaluate_put_part(&text, node->begin, node->end);
		e->err = wp_cause_set(e->cause, WP_CAUSE_SYMBOL_TLS,
		    buffer_text(&text));
		buffer_free(&text);
		return false;
	}
	if (!found->symbol.function && ex_declaration_at(e->process,
	    found->module, found->symbol.value, &d)) {
		value_set_object(v, &d.type, found->addr, d.size);
		return true;
	}
	*v = (struct value){
		.is_object = true, .addr = found->addr,
		.size = found->symbol.size,
	};
	return true;
}

static bool
ambiguous(struct evaluation *e, const struct node *node, unsigned n)
{
	struct buffer why = {0};

	buffer_printf(&why, "%u variables are called ", n);
	evaluate_put_part(&why, node->begin, node->end);
	buffer_puts(&why, ": name one by its address");
	return evaluate_fail_with(e, node->at, &why);
}

/* Append the column of the name to the cause. */
static void
add_column(struct evaluation *e, const char *at)
{
	struct wp_cause *cause = e->cause;
	const size_t len = cause != NULL ? strlen(cause->text) : 0;

	if (cause != NULL && e->err < 0)
		(void)snprintf(cause->text + len, sizeof(cause->text) - len,
		    " (column %zu)", visible_columns(e->spec->text,
		    (size_t)(at - e->spec->text)) + 1);
}

bool
evaluate_name(struct evaluation *e, const struct node *node, struct value *v)
{
	struct found_symbol found;
	struct name_search s = {.e = e, .v = v};
	struct split_name named;
	bool good = false, other;

	if (!take_name(e, node, &named)) {
		e->err = wp_cause_set(e->cause, WP_CAUSE_NO_MEMORY);
		return false;
	}
	s.name = named.spec.symbol;
	s.named = named.spec.module != NULL;
	s.own = true;
	e->err = find_symbol(&named.spec, e->process, e->early, &found, NULL);
	other = e->err == -ENOENT && find_symbol_modules(&named.spec,
	    e->process, &s.file, search_variable, &s) != 0;
	s.own = true;
	if (e->err == 0) {
		good = take_symbol(e, node, &found, v);
	} else if (other || (e->err == -ENOENT && s.file == NULL &&
	    find_symbol_modules(&named.spec, e->process, &s.file,
	    search_enumerator, &s) != 0)) {
		e->err = 0;
		good = s.found <= 1 || ambiguous(e, node, s.found);
	} else {
		e->err = find_symbol(&named.spec, e->process, e->early,
		    &found, e->cause);
		add_column(e, node->at);
	}
	free(named.copy);
	return good;
}

bool
evaluate_result(struct evaluation *e, const struct node *node, struct value *v)
{
	struct found_symbol found;
	struct spec function;
	struct buffer why = {0};

	e->err = spec_parse(e->spec->allocator, WP_EXEC, &function, e->cause);
	if (e->err < 0)
		return false;
	e->err = find_symbol(&function, e->process, e->early, &found,
	    e->cause);
	spec_free(&function);
	if (e->err < 0)
		return false;
	v->known = ex_type_of_result(found.module, found.symbol.value,
	    &v->type);
	v->size = sizeof(v->number);
	if (v->known)
		return value_is_pointer(v) || evaluate_fail_type(e, node, v,
		    node->at, "it returns no pointer, so that what it returns "
		    "has no members");
	evaluate_put_part(&why, node->begin, node->end);
	buffer_puts(&why, " has no debug information, so that what it returns "
	    "is not known: give +OFF:LEN");
	return evaluate_fail_with(e, node->at, &why);
}
