/*
 * policy: who may touch the watched memory.
 *
 * Overview: a backtrace alone decides whether its hits are stray, so that is
 * found out once for each:
 *
 *	hit -> backtrace --known--> verdict --> allowed
 *		   |                   ^  |
 *		  new -> names, files -+  +---> stray, or not to be judged:
 *						the finding of the watch and
 *						the culprit's place
 *
 * A policy file has rules of its own for each watch; a verdict is by those of
 * the watch that was hit last with the backtrace.
 */
#include "judge/policy.h"

#include <errno.h>
#include <fnmatch.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "judge/by_stack.h"
#include "judge/culprit.h"
#include "judge/writer.h"
#include "debug/demangle.h"
#include "insn/jump_index.h"
#include "debug/line.h"

/* What is known of one backtrace. */
struct verdict {
	enum verdict_is { UNKNOWN, ALLOWED, STRAY, UNJUDGED } is;
	const struct policy_watch *rules;	/* by which it is */
	struct finding *last;	/* that its last hit counted for; NULL: none */
};

/* Whether an allowed function may have jumped to the one that runs at a
   place. */
struct asked {
	const struct ex_module *module;
	uint64_t vaddr;
	uint64_t modules;	/* a hash of those that were looked at */
	const struct policy_watch *rules;	/* that allow it */
	bool may;
};

struct policy {
	const char *const *allow;	/* n patterns */
	size_t n;
	bool whole;		/* one of them, or of the file's, is for whole
				   or mangled names */
	const struct policy_file *file;	/* NULL: none */
	bool *used;		/* which of its lines were, by their numbers */
	const struct ex_watch *watch;	/* of the last hit, and those of it that
					   are in force there; NULL: none */
	const struct policy_watch *rules;
	struct by_stack verdicts;
	void *tree;		/* of the findings, by watch and place */
	void *asked;		/* a tree of struct asked */
	struct list {		/* in order of first sight */
		struct finding **at;
		size_t n, cap;
	} stray, unjudged;
};

/* A pattern that is meant for a name with its parameters, or a mangled one.
   Others are kept from them: "*config*" is not to match all functions that are
   passed a config. */
static bool
is_for_whole(const char *pattern)
{
	return strchr(pattern, '(') != NULL || pattern[0] == '_';
}

struct policy *
policy_new(const char *const *allow, size_t n)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->allow = allow;
	p->n = n;
	for (size_t i = 0; i < n; i++)
		p->whole |= is_for_whole(allow[i]);
	return p;
}

bool
policy_add_file(struct policy *p, const struct policy_file *file)
{
	p->file = file;
	p->used = calloc(file->lines + 1, sizeof(*p->used));
	for (size_t i = 0; i < file->n; i++)
		for (size_t k = 0; k < file->watch[i].n; k++)
			p->whole |= file->watch[i].line[k].key ==
			    POLICY_ALLOW &&
			    is_for_whole(file->watch[i].line[k].value);
	return p->used != NULL;
}

static void
keep(void *node)
{
	(void)node;
}

static void
list_free(struct list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		ex_stack_let_go(list->at[i]->stack);
		free(list->at[i]);
	}
	free(list->at);
}

void
policy_free(struct policy *p)
{
	if (p == NULL)
		return;
	tdestroy(p->tree, keep);
	tdestroy(p->asked, free);
	list_free(&p->stray);
	list_free(&p->unjudged);
	by_stack_free(&p->verdicts, sizeof(struct verdict));
	free(p->used);
	free(p);
}

/* --- allowed functions --- */

/* How many patterns there may be, and one of them; NULL: there is none in this
   place. */
static size_t
patterns(const struct policy *p)
{
	return p->n + (p->rules == NULL ? 0 : p->rules->n);
}

static const char *
pattern(const struct policy *p, size_t i)
{
	const struct policy_line *line;

	if (i < p->n)
		return p->allow[i];
	line = &p->rules->line[i - p->n];
	return line->key == POLICY_ALLOW ? line->value : NULL;
}

static void
use(const struct policy *p, const struct policy_line *line)
{
	if (line->number <= p->file->lines)
		p->used[line->number] = true;
}

static bool
use_pattern(const struct policy *p, size_t i)
{
	if (i >= p->n)
		use(p, &p->rules->line[i - p->n]);
	return true;
}

static bool
matches(const struct policy *p, const char *name, bool whole)
{
	bool any = false;

	for (size_t i = 0; i < patterns(p); i++) {
		const char *text = pattern(p, i);

		if (text != NULL && (!whole || is_for_whole(text)) &&
		    fnmatch(text, name, 0) == 0)
			any = use_pattern(p, i);
	}
	return any;
}

/* Whether a name matches, as it is or without what compilers append to it for a
   function's copies and parts. */
static bool
name_allowed(const struct policy *p, const char *name, bool whole)
{
	const size_t len = writer_name_length(name);
	bool allowed = matches(p, name, whole);
	char *cut;

	if (allowed || name[len] == '\0' || (cut = strndup(name, len)) == NULL)
		return allowed;
	allowed = matches(p, cut, whole);
	free(cut);
	return allowed;
}

/* Whether a mangled name is this function's, and it, or what it means with its
   parameters, matches. */
static bool
raw_allowed(const struct policy *p, const char *raw, const char *function)
{
	char *owned, *whole = NULL;
	bool allowed = false;

	if (strcmp(ex_demangle(raw, &owned), function) == 0) {
		whole = ex_demangle_whole(raw);
		allowed = name_allowed(p, raw, true) ||
		    (whole != NULL && name_allowed(p, whole, true));
	}
	free(owned);
	free(whole);
	return allowed;
}

/* The same by the debug information of a frame's place: that of its pc, or,
   since it may be a return address, that of the byte before. */
static bool
lines_allowed(const struct policy *p, struct ex_module *module,
    const struct ex_frame *frame)
{
	struct ex_line line[EX_LINES_MAX];

	for (unsigned before = 0; before < 2; before++) {
		unsigned n = ex_lines_at(module, frame->vaddr - before, line);

		for (unsigned i = 0; i < n; i++)
			if (line[i].function != NULL &&
			    raw_allowed(p, line[i].function, frame->function))
				return true;
	}
	return false;
}

bool
policy_names(const struct policy *p, const struct ex_frame *frame)
{
	struct ex_module *module =
	    (struct ex_module *)(uintptr_t)frame->module;
	struct ex_symbol symbol;

	/* names that a program gives to generated code cannot be checked */
	if (frame->function == NULL || frame->jit)
		return false;
	if (name_allowed(p, frame->function, false))
		return true;
	if (module == NULL || !p->whole)
		return false;
	if (!frame->inlined &&
	    ex_symbol_at(module, frame->vaddr - frame->offset, &symbol) &&
	    raw_allowed(p, symbol.name, frame->function))
		return true;
	return lines_allowed(p, module, frame);
}

/* Whether a pattern matches a path, or with a '/' what follows one of its
   '/'s, else its last part. */
static bool
file_matches(const char *pattern, const char *path)
{
	const bool parts = strchr(pattern, '/') != NULL;
	const char *slash;

	while ((slash = strchr(path, '/')) != NULL) {
		if (parts && fnmatch(pattern, path, 0) == 0)
			return true;
		path = slash + 1;
	}
	return fnmatch(pattern, path, 0) == 0;
}

static bool
file_allowed(const struct policy *p, const struct ex_frame *frame)
{
	bool any = false;

	for (size_t i = 0; i < patterns(p) && frame->file != NULL; i++)
		if (pattern(p, i) != NULL &&
		    file_matches(pattern(p, i), frame->file))
			any = use_pattern(p, i);
	return any;
}

static bool
frame_allowed(const struct policy *p, const struct ex_frame *frame)
{
	return file_allowed(p, frame) || policy_names(p, frame);
}

static bool
is_allowed(const struct policy *p, const struct ex_stack *stack)
{
	bool innermost = true;

	for (unsigned i = 0; i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];

		if (frame->kernel)
			continue;
		if ((innermost && culprit_is_loader(frame)) ||
		    frame_allowed(p, frame))
			return true;
		innermost = false;
	}
	return false;
}

/* --- writers --- */

/* The line that names a frame's function as a writer; NULL: none does. */
static const struct policy_line *
writer_line(const struct policy *p, const struct ex_frame *frame)
{
	const struct policy_line *found = NULL;
	struct buffer name = {0};

	if (p->rules == NULL || !writer_put(&name, frame))
		return NULL;
	for (size_t i = 0; i < p->rules->n && found == NULL; i++)
		if (p->rules->line[i].key == POLICY_WRITER &&
		    strcmp(p->rules->line[i].value, buffer_text(&name)) == 0)
			found = &p->rules->line[i];
	buffer_free(&name);
	return found;
}

/* --- findings --- */

/* What a frame's module is known by, in every process and run. */
static const char *
module_of(const struct ex_frame *frame)
{
	const char *id;

	if (frame->module == NULL)
		return "";
	id = ex_module_build_id(frame->module);
	return *id != '\0' ? id : ex_module_name(frame->module);
}

static int
compare_places(const struct ex_frame *a, const struct ex_frame *b)
{
	int order;

	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	order = strcmp(module_of(a), module_of(b));
	return order != 0 ? order :
	    ex_compare(a->module != NULL ? a->vaddr : a->pc,
	    b->module != NULL ? b->vaddr : b->pc);
}

static int
compare_findings(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	int order = ex_compare(ex_watch_number(x->watch),
	    ex_watch_number(y->watch));

	if (order == 0)
		order = ex_compare(x->incomplete, y->incomplete);
	if (order == 0)
		order = ex_compare(x->late, y->late);
	return order != 0 ? order : compare_places(x->culprit, y->culprit);
}

/* Keep a new finding; NULL without memory. */
static struct finding *
finding_add(struct policy *p, const struct finding *new)
{
	struct list *list = new->incomplete ? &p->unjudged : &p->stray;
	struct finding *f;

	if (!EX_ARRAY_ROOM(list, at, SIZE_MAX))
		return NULL;
	if ((f = malloc(sizeof(*f))) == NULL)
		return NULL;
	*f = *new;
	if (tsearch(f, &p->tree, compare_findings) == NULL) {
		free(f);
		return NULL;
	}
	list->at[list->n++] = f;
	ex_stack_hold(f->stack);
	return f;
}

/* The finding that a hit belongs to; NULL without memory. */
static struct finding *
finding_of(struct policy *p, const struct ex_hit *hit)
{
	const struct finding key = {
		.watch = hit->watch, .stack = hit->stack,
		.culprit = hit->stack == NULL || hit->late ? NULL :
		    culprit_of(hit->stack),
		.access = hit->access, .first_seq = hit->seq,
		.incomplete = !hit->stray, .late = hit->late,
	};
	struct finding **found = tfind(&key, &p->tree, compare_findings);

	return found != NULL ? *found : finding_add(p, &key);
}

static int
count(struct policy *p, struct verdict *verdict, const struct ex_hit *hit,
    uint64_t times)
{
	struct finding *f = verdict->last;

	if (f == NULL || f->watch != hit->watch ||
	    f->incomplete == hit->stray || f->late != hit->late)
		f = finding_of(p, hit);
	if (f == NULL)
		return -ENOMEM;
	f->count += times;
	verdict->last = f;
	return 0;
}

#define MODULES_MAX 64	/* of a backtrace, in which jumps are looked for */

/* A function that is allowed, or what is inlined in it there, may have made a
   jump: 1; else 0. */
static int
jump_allowed(void *arg, struct ex_module *module, uint64_t jump)
{
	const struct ex_frames *frames = ex_symbol_frames(module, jump, jump);

	for (unsigned i = 0; frames != NULL && i < frames->n; i++) {
		struct ex_frame frame = frames->frame[i];

		frame.module = module;
		if (frame_allowed(arg, &frame) || frame.gap ||
		    writer_line(arg, &frame) != NULL)
			return 1;
	}
	return 0;
}

/* A function that is not of the C or C++ library may have made it. */
static int
jump_of_program(void *arg, struct ex_module *module, uint64_t jump)
{
	const struct ex_frames *frames = ex_symbol_frames(module, jump, jump);

	(void)arg;
	for (unsigned i = 0; frames != NULL && i < frames->n; i++) {
		struct ex_frame frame = frames->frame[i];

		frame.module = module;
		if (!culprit_is_library(&frame))
			return 1;
	}
	return frames == NULL;
}

/* The modules of a backtrace, once each; result: how many. */
static unsigned
modules_of(const struct ex_stack *stack, struct ex_module *out[MODULES_MAX],
    uint64_t *hash)
{
	unsigned n = 0, k;

	*hash = 0;
	for (unsigned i = 0; i < stack->n && n < MODULES_MAX; i++) {
		struct ex_module *module =
		    (struct ex_module *)(uintptr_t)stack->frame[i].module;

		for (k = 0; k < n && out[k] != module; k++)
			;
		if (module == NULL || k < n)
			continue;
		out[n++] = module;
		*hash += (uintptr_t)module * UINT64_C(0x9e3779b97f4a7c15);
	}
	return n;
}

static int
compare_asked(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;
	int order = ex_compare((uintptr_t)x->module,
	    (uintptr_t)y->module);

	if (order == 0)
		order = ex_compare(x->modules, y->modules);
	if (order == 0)
		order = ex_compare((uintptr_t)x->rules, (uintptr_t)y->rules);
	return order != 0 ? order : ex_compare(x->vaddr, y->vaddr);
}

/* Whether an allowed function may have jumped to the function of a frame, by
   code of n modules.  The answer is kept. */
static bool
may_jump(struct policy *p, const struct asked *key,
    struct ex_module *const *modules, unsigned n)
{
	struct asked **found = tfind(key, &p->asked, compare_asked), *asked;
	bool may;

	if (found != NULL)
		return (*found)->may;
	may = ex_jump_index_each(modules, n,
	    (struct ex_module *)(uintptr_t)key->module, key->vaddr,
	    jump_allowed, p) != 0;
	if ((asked = malloc(sizeof(*asked))) == NULL)
		return may;
	*asked = *key;
	asked->may = may;
	if (tsearch(asked, &p->asked, compare_asked) == NULL)
		free(asked);
	return may;
}

/* Where the function begins; else a return address may be behind its end. */
static uint64_t
jumped_to(const struct ex_frame *frame, unsigned i)
{
	return frame->vaddr - (frame->function != NULL ? frame->offset : i > 0);
}

/* Whether an allowed function may be missing where functions were called
   through pointers: these may have pointed to it, and it ended in a tail
   call. */
static bool
may_be_missing(struct policy *p, const struct ex_stack *stack)
{
	struct ex_module *modules[MODULES_MAX];
	struct asked key = {.rules = p->rules};
	const unsigned n = modules_of(stack, modules, &key.modules);

	for (unsigned i = 0; i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];

		key.module = frame->module;
		key.vaddr = jumped_to(frame, i);
		if (frame->pointer && frame->module != NULL &&
		    may_jump(p, &key, modules, n))
			return true;
	}
	return false;
}

/* Whether a function may have a name that is not known because the file that
   has it could not be read. */
static bool
may_be_named(const struct ex_stack *stack)
{
	for (unsigned i = 0; i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];

		if (frame->function == NULL && frame->module != NULL &&
		    ex_module_problem(frame->module) != NULL)
			return true;
	}
	return false;
}

bool
policy_is_whole(struct policy *p, const struct ex_stack *stack)
{
	return stack != NULL && stack->end == EX_END_OUTERMOST &&
	    !stack->gap && !may_be_named(stack) && !may_be_missing(p, stack);
}

/* Whether no other function of the program can be further in than the one to be
   blamed. */
static bool
is_innermost(const struct ex_stack *stack, const struct ex_frame *culprit)
{
	struct ex_module *modules[MODULES_MAX];
	uint64_t hash;
	const unsigned n = modules_of(stack, modules, &hash);

	for (unsigned i = 0; &stack->frame[i] != culprit; i++) {
		const struct ex_frame *frame = &stack->frame[i];

		if (stack->frame[i + 1].gap || (frame->pointer &&
		    frame->module != NULL && ex_jump_index_each(modules, n,
		    (struct ex_module *)(uintptr_t)frame->module,
		    jumped_to(frame, i), jump_of_program, NULL) != 0))
			return false;
	}
	return true;
}

enum policy_writer
policy_writer(struct policy *p, const struct ex_stack *stack,
    struct buffer *name)
{
	const struct ex_frame *culprit = stack == NULL ? NULL :
	    culprit_of(stack);

	if (culprit == NULL)
		return POLICY_WRITER_MISSING;
	if (!is_innermost(stack, culprit) || (culprit_is_library(culprit) &&
	    !policy_is_whole(p, stack)))
		return POLICY_WRITER_MISSING;
	return writer_put(name, culprit) ? POLICY_WRITER_NAMED :
	    POLICY_WRITER_UNNAMED;
}

/* Whether whoever is called by some function is allowed. */
static bool
allows_callees(const struct policy *p)
{
	bool any = p->n > 0;

	for (size_t i = 0; p->rules != NULL && i < p->rules->n; i++)
		any |= p->rules->line[i].key == POLICY_ALLOW;
	return any;
}

/* By the writers of the file; UNKNOWN: more than they decide.  Where they alone
   are allowed, callers that are missing matter to nobody. */
static enum verdict_is
judge_writer(struct policy *p, const struct ex_stack *stack)
{
	const struct ex_frame *culprit = culprit_of(stack);
	const struct policy_line *line;
	struct buffer name = {0};
	enum policy_writer writer;

	if (culprit == NULL || culprit->kernel)
		return UNKNOWN;
	if ((line = writer_line(p, culprit)) != NULL)
		use(p, line);
	else if (allows_callees(p))
		return UNKNOWN;
	writer = policy_writer(p, stack, &name);
	buffer_free(&name);
	if (line == NULL)
		return writer == POLICY_WRITER_MISSING ? UNKNOWN : STRAY;
	return writer == POLICY_WRITER_NAMED ? ALLOWED : UNJUDGED;
}

/* Whether anybody is allowed. */
static bool
allows_any(const struct policy *p)
{
	bool any = p->n > 0;

	for (size_t i = 0; p->rules != NULL && i < p->rules->n; i++)
		any |= p->rules->line[i].key >= POLICY_WRITER;
	return any;
}

static enum verdict_is
judge(struct policy *p, const struct ex_stack *stack)
{
	const enum verdict_is writer = stack == NULL ? UNKNOWN :
	    judge_writer(p, stack);

	if (stack != NULL && is_allowed(p, stack))
		return ALLOWED;
	if (writer != UNKNOWN)
		return writer;
	return allows_any(p) && !policy_is_whole(p, stack) ? UNJUDGED : STRAY;
}

int
policy_recall(struct policy *p, struct ex_hit *hit, uint64_t times)
{
	const struct ex_stack *stack = hit->stack;
	struct verdict own = {0}, *verdict = &own;

	if (p->file != NULL && hit->watch != p->watch)
		p->rules = hit->watch->spec == NULL ? NULL :
		    policy_file_find(p->file, hit->watch->spec,
		    hit->watch->access);
	p->watch = hit->watch;
	/* the backtrace of a late hit is not that of the access */
	if (hit->late)
		own.is = allows_any(p) ? UNJUDGED : STRAY;
	else if (stack != NULL && (verdict = by_stack_at(&p->verdicts,
	    stack->index, sizeof(*verdict))) == NULL)
		verdict = &own;
	if (verdict->is == UNKNOWN || (!hit->late &&
	    verdict->rules != p->rules))
		*verdict = (struct verdict){judge(p, stack), p->rules, NULL};
	hit->stray = hit->stray || verdict->is == STRAY;
	hit->unjudged = !hit->stray && verdict->is == UNJUDGED;
	return hit->stray || hit->unjudged ? count(p, verdict, hit, times) : 0;
}

int
policy_judge(struct policy *p, struct ex_hit *hit)
{
	return policy_recall(p, hit, 1);
}

size_t
policy_findings(const struct policy *p, bool unjudged,
    const struct finding *const **findings)
{
	const struct list *list = unjudged ? &p->unjudged : &p->stray;

	*findings = (const struct finding *const *)list->at;
	return list->n;
}

const struct policy_line *
policy_unused(const struct policy *p, size_t i)
{
	for (size_t w = 0; p->file != NULL && w < p->file->n; w++) {
		const struct policy_watch *watch = &p->file->watch[w];

		for (size_t k = 0; k < watch->n; k++)
			if (watch->line[k].key >= POLICY_WRITER &&
			    !p->used[watch->line[k].number] && i-- == 0)
				return &watch->line[k];
	}
	return NULL;
}
