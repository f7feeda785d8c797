/* questions: answers watchctl's questions about running processes. */
#include "explainer/questions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explainer/ask.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "spec/find_symbol.h"
#include "spec/spec.h"
#include "util/buffer.h"
#include "processes/synthetic_format.h"

/* The records were made by watchctl; those that cannot be decoded are
   skipped. */
void
questions_learn(struct ex_space *space, const void *records, size_t len)
{
	const uint8_t *at = records;
	static struct ex_formats *formats;
	struct ex_record record;

	if (formats == NULL && (formats = synthetic_format_new()) == NULL)
		return;
	while (len > 0 && ex_record_decode(formats, at, len, &record) > 0) {
		ex_space_learn(space, &record);
		ask_progress();
		at += record.size;
		len -= record.size;
	}
}

static void
put_cause(struct broker_message *answer, const struct wp_cause *cause)
{
	answer->value[2] = cause->code;
	(void)snprintf(answer->text, sizeof(answer->text), "%s", cause->text);
}

static int
put_place(struct broker_message *answer, const struct spec_place *place)
{
	answer->value[0] = place->addr;
	answer->value[1] = place->len;
	answer->value[2] = place->local ? PLACE_LOCAL :
	    (place->symbol != NULL ? PLACE_NAMED : 0) |
	    (place->code ? PLACE_CODE : 0) |
	    (place->narrow ? PLACE_NARROW : 0);
	answer->value[3] = place->nmore;
	for (unsigned i = 0; i < place->nmore; i++)
		answer->value[4 + i] = place->more[i];
	if (place->local)
		answer->value[4] = place->base;
	return (size_t)snprintf(answer->text, sizeof(answer->text), "%s",
	    place->symbol != NULL ? place->symbol : "") <
	    sizeof(answer->text) ? 0 : -E2BIG;
}

/* The two texts of a question about a SPEC; *real is set to the second. */
static bool
has_texts(const struct broker_message *question, const char **real)
{
	const char *end = memchr(question->text, '\0', question->len);

	if (end == NULL || question->text[question->len - 1] != '\0' ||
	    end + 1 == question->text + question->len)
		return false;
	*real = end + 1;
	return true;
}

static int
resolve(struct ex_process *process, const struct broker_message *question,
    struct broker_message *answer)
{
	struct spec_place place = {.symbol = NULL};
	struct wp_cause cause = {0};
	struct spec spec;
	const char *real;
	int err;

	if (!has_texts(question, &real))
		return -EINVAL;
	err = spec_parse(question->text, (enum wp_access)question->value[1],
	    &spec, &cause);
	if (err == 0) {
		spec.real = *real == '\0' ? NULL : strdup(real);
		spec.unborn = (question->value[2] & BROKER_UNBORN) != 0;
		spec.follow = (question->value[2] & BROKER_FOLLOW) != 0;
		spec.finds_local = (question->value[2] & BROKER_LOCAL) != 0;
		spec.all = (question->value[2] & BROKER_ALL) != 0;
		err = ((question->value[2] & BROKER_EARLY) != 0 ?
		    spec_resolve_early :
		    spec_resolve)(&spec, process, &place,
		    question->value[3] != 0 ? &cause : NULL);
		spec_free(&spec);
	}
	if (err == 0)
		err = put_place(answer, &place);
	else
		put_cause(answer, &cause);
	free(place.symbol);
	return err;
}

/* --- symbols --- */

struct symbol_search {
	const struct spec *spec;  /* its symbol is the beginning of the name */
	const char *file;	/* restricts the search to a source file;
				   NULL: any */
	char *within;		/* must be part of mangled names */
	bool code;		/* search for functions */
	uint64_t skip, seen;	/* symbols to skip, and seen so far */
	bool full;
	struct buffer found;
};

/* Returns 1 if there is no more room. */
static int
put_symbol(void *arg, const struct ex_symbol *symbol)
{
	struct symbol_search *search = arg;
	const char *begin = search->spec->symbol, *name;
	char *owned = NULL;

	if (search->seen++ < search->skip)
		return 0;
	if (symbol->function != search->code ||
	    (search->file != NULL && (symbol->file == NULL ||
	    strcmp(symbol->file, search->file) != 0)) ||
	    (symbol->mangled && strstr(symbol->name, search->within) == NULL))
		return 0;
	name = ex_demangle(symbol->name, &owned);
	if (strncmp(name, begin, strlen(begin)) == 0 &&
	    strpbrk(name, " \n@") == NULL) {
		search->full = search->found.len + strlen(name) + 1 >
		    sizeof(((struct broker_shared *)NULL)->report);
		if (!search->full) {
			buffer_puts(&search->found, name);
			buffer_puts(&search->found, "\n");
		}
	}
	free(owned);
	search->seen -= search->full;
	return search->full;
}

static int
put_symbols(void *arg, struct ex_module *module, uint64_t base)
{
	(void)base;
	ask_progress();
	return ex_symbol_each(module, put_symbol, arg);
}

/* The last identifier at the beginning of a C++ or Rust name, which is also in
   the mangled name; but "std" is abbreviated there. */
static char *
last_identifier(const char *name)
{
	size_t end = strlen(name), begin;

	while (end > 0 && name[end - 1] == ':')
		end--;
	for (begin = end; begin > 0 && name[begin - 1] != ':'; begin--)
		;
	if (strncmp("std", name + begin, end - begin) == 0)
		begin = end;
	return strndup(name + begin, end - begin);
}

int
questions_symbols(struct ex_process *process,
    const struct broker_message *question, struct broker_message *answer)
{
	const char *text = "";
	const char *bang = has_texts(question, &text) ? strrchr(text, '!') :
	    NULL;
	struct spec spec = {
		.module = bang == NULL ? NULL :
		    strndup(text, (size_t)(bang - text)),
		.symbol = strdup(bang == NULL ? text : bang + 1),
	};
	struct symbol_search search = {
		.spec = &spec, .code = question->value[1] == 'x',
		.skip = question->value[2],
	};
	int err = -ENOMEM;

	if (spec.symbol != NULL && (bang == NULL || spec.module != NULL) &&
	    (search.within = last_identifier(spec.symbol)) != NULL) {
		(void)find_symbol_modules(&spec, process, &search.file,
		    put_symbols, &search);
		answer->value[0] = search.found.len;
		answer->value[1] = search.full ? search.seen : 0;
		err = search.found.failed ? -ENOMEM :
		    ask_put_text(buffer_text(&search.found),
		    search.found.len);
	}
	free(search.within);
	buffer_free(&search.found);
	free(spec.symbol);
	free(spec.module);
	return err;
}

/* --- modules --- */

struct hook {
	uint64_t addr;		/* 0 if not found */
	uint64_t base;		/* of the current module */
};

static int
take_hook(void *arg, const struct ex_symbol *symbol)
{
	struct hook *hook = arg;

	if (!symbol->function)
		return 0;
	hook->addr = hook->base + symbol->value;
	return 1;
}

/* The function at which debuggers stop as well, in glibc and in musl. */
static int
find_hook(void *arg, struct ex_module *module, uint64_t base)
{
	struct hook *hook = arg;

	hook->base = base;
	return ex_symbol_find(module, "_dl_debug_state", take_hook, hook);
}

struct module_search {
	uint64_t index;		/* counts down to the wanted one */
	struct ex_module *module;	/* NULL if there are too few */
};

static int
find_module(void *arg, struct ex_module *module, uint64_t base)
{
	struct module_search *search = arg;

	(void)base;
	if (search->index-- > 0)
		return 0;
	search->module = module;
	return 1;
}

static int
put_module(struct ex_process *process, uint64_t index,
    struct broker_message *answer)
{
	struct module_search search = {.index = index};
	int n;

	(void)ex_process_modules(process, find_module, &search);
	if (search.module == NULL)
		return -ENOENT;
	n = snprintf(answer->text, sizeof(answer->text), "%s%c%s",
	    ex_module_build_id(search.module), '\0',
	    ex_module_path(search.module));
	if (n < 0 || (size_t)n >= sizeof(answer->text))
		return -E2BIG;
	answer->len = (uint32_t)n + 1;
	return 0;
}

static int
answer_question(struct ex_process *process,
    const struct broker_message *question, struct broker_message *answer)
{
	struct hook hook = {0};

	if (process == NULL)
		return -ENOMEM;
	switch (question->what) {
	case BROKER_RESOLVE:
		return resolve(process, question, answer);
	case BROKER_LOADER_HOOK:
		(void)ex_process_modules(process, find_hook, &hook);
		answer->value[0] = hook.addr;
		return 0;
	case BROKER_SYMBOLS:
		return questions_symbols(process, question, answer);
	default:
		return put_module(process, question->value[1], answer);
	}
}

bool
questions_take(struct ex_space *space, const struct broker_message *message)
{
	struct broker_message answer = {.what = BROKER_ANSWER};

	switch (message->what) {
	case BROKER_LEARN:
		ex_space_mapped(space, (pid_t)message->value[0],
		    message->value[1]);
		questions_learn(space, message->text, message->len);
		return true;
	case BROKER_RESOLVE:
	case BROKER_LOADER_HOOK:
	case BROKER_MODULE:
	case BROKER_SYMBOLS:
		answer.err = answer_question(ex_space_process(space,
		    (pid_t)message->value[0]), message, &answer);
		ask_send(&answer);
		return true;
	default:
		return false;
	}
}
