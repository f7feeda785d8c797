/* questions: what watchctl asks about running processes, answered. */
#include "explainer/questions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explainer/ask.h"
#include "debug/symbol.h"
#include "spec/spec.h"
#include "processes/synthetic_format.h"

/* Watchctl made them: what does not decode is left out. */
static void
learn(struct ex_space *space, const struct box_message *message)
{
	static struct ex_formats *formats;
	struct ex_record record;

	if (formats == NULL && (formats = synthetic_format_new()) == NULL)
		return;
	for (size_t at = 0; at < message->len && ex_record_decode(formats,
	    message->text + at, message->len - at, &record) > 0;
	    at += record.size) {
		ex_space_learn(space, &record);
		ask_progress();
	}
}

static void
put_cause(struct box_message *answer, const struct wp_cause *cause)
{
	answer->value[2] = cause->code;
	(void)snprintf(answer->text, sizeof(answer->text), "%s", cause->text);
}

static int
put_place(struct box_message *answer, const struct spec_place *place)
{
	answer->value[0] = place->addr;
	answer->value[1] = place->len;
	answer->value[2] = place->symbol != NULL;
	answer->value[3] = place->nmore;
	for (unsigned i = 0; i < place->nmore; i++)
		answer->value[4 + i] = place->more[i];
	return (size_t)snprintf(answer->text, sizeof(answer->text), "%s",
	    place->symbol != NULL ? place->symbol : "") <
	    sizeof(answer->text) ? 0 : -E2BIG;
}

/* The two texts of a question about a SPEC; the second is *real. */
static bool
has_texts(const struct box_message *question, const char **real)
{
	const char *end = memchr(question->text, '\0', question->len);

	if (end == NULL || question->text[question->len - 1] != '\0' ||
	    end + 1 == question->text + question->len)
		return false;
	*real = end + 1;
	return true;
}

static int
resolve(struct ex_process *process, const struct box_message *question,
    struct box_message *answer)
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
		spec.unborn = (question->value[2] & BOX_UNBORN) != 0;
		spec.follow = (question->value[2] & BOX_FOLLOW) != 0;
		err = ((question->value[2] & BOX_EARLY) != 0 ?
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

/* --- modules --- */

struct hook {
	uint64_t addr;		/* 0: not found */
	uint64_t base;		/* of the module being looked at */
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

/* The function that debuggers stop at too, in glibc and in musl. */
static int
find_hook(void *arg, struct ex_module *module, uint64_t base)
{
	struct hook *hook = arg;

	hook->base = base;
	return ex_symbol_find(module, "_dl_debug_state", take_hook, hook);
}

struct module_search {
	uint64_t index;		/* of the wanted one, from here on */
	struct ex_module *module;	/* NULL: there are not so many */
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
    struct box_message *answer)
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
answer_question(struct ex_process *process, const struct box_message *question,
    struct box_message *answer)
{
	struct hook hook = {0};

	if (process == NULL)
		return -ENOMEM;
	switch (question->what) {
	case BOX_RESOLVE:
		return resolve(process, question, answer);
	case BOX_LOADER_HOOK:
		(void)ex_process_modules(process, find_hook, &hook);
		answer->value[0] = hook.addr;
		return 0;
	default:
		return put_module(process, question->value[1], answer);
	}
}

bool
questions_take(struct ex_space *space, const struct box_message *message)
{
	struct box_message answer = {.what = BOX_ANSWER};

	switch (message->what) {
	case BOX_LEARN:
		learn(space, message);
		return true;
	case BOX_RESOLVE:
	case BOX_LOADER_HOOK:
	case BOX_MODULE:
		answer.err = answer_question(ex_space_process(space,
		    (pid_t)message->value[0]), message, &answer);
		ask_tell(&answer);
		return true;
	default:
		return false;
	}
}
