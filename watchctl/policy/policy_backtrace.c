/*
 * policy_backtrace: decides whether a relevant function may be missing from a
 * backtrace: one that is not known by its name, or that ended in a jump to
 * another.
 */
#include "policy/policy_private.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "insn/jump_index.h"
#include "policy/culprit.h"
#include "policy/culprit_name.h"

/* Whether an allowed function may have jumped to the function at a place. */
struct jump_asked {
	const struct ex_module *module;	/* NULL: to any function, by an
					   indirect jump */
	uint64_t vaddr;
	uint64_t modules;	/* hash of those examined */
	const struct policy_watch *rules;	/* under which it is allowed */
	bool may;
};

#define MODULES_MAX 64	/* of a backtrace in which jumps are searched for */

/* Returns 1 if an allowed function, or one inlined there, may have made the
   jump, else 0. */
static int
jump_allowed(void *arg, struct ex_module *module, uint64_t jump)
{
	const struct ex_frames *frames = ex_symbol_frames(module, jump, jump);

	for (unsigned i = 0; frames != NULL && i < frames->n; i++) {
		struct ex_frame frame = frames->frame[i];

		frame.module = module;
		if (policy_allows(arg, &frame) || frame.gap ||
		    policy_writer_line(arg, &frame) != NULL)
			return 1;
	}
	return 0;
}

/* Whether a function outside of the C and C++ libraries may have made it. */
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

/* List each module of a backtrace once.  Returns their number. */
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
	const struct jump_asked *x = a, *y = b;
	int order = ex_compare((uintptr_t)x->module,
	    (uintptr_t)y->module);

	if (order == 0)
		order = ex_compare(x->modules, y->modules);
	if (order == 0)
		order = ex_compare((uintptr_t)x->rules, (uintptr_t)y->rules);
	return order != 0 ? order : ex_compare(x->vaddr, y->vaddr);
}

/* Whether an allowed function of these modules may have been called through a
   pointer, and have ended in an indirect jump to any function.  The C and C++
   libraries are left out: their tail calls go to their own functions. */
static bool
may_jump_anywhere(struct policy *p, struct ex_module *const *modules,
    unsigned n)
{
	struct ex_module *own[MODULES_MAX];
	unsigned k = 0;

	for (unsigned i = 0; i < n; i++)
		if (!culprit_is_library(&(struct ex_frame){
		    .module = modules[i]}))
			own[k++] = modules[i];
	return ex_jump_index_anywhere(own, k, jump_allowed, p);
}

/* Whether an allowed function may have jumped to the function of the frame from
   one of n modules.  The answer is cached. */
static bool
may_jump(struct policy *p, const struct jump_asked *key,
    struct ex_module *const *modules, unsigned n)
{
	struct jump_asked **found = tfind(key, &p->asked, compare_asked);
	struct jump_asked *asked;
	bool may;

	if (found != NULL)
		return (*found)->may;
	may = key->module == NULL ?
	    may_jump_anywhere(p, modules, n) :
	    ex_jump_index_each(modules, n,
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

/* The start of the function, as a return address may be after its end. */
static uint64_t
jumped_to(const struct ex_frame *frame, unsigned i)
{
	return frame->vaddr - (frame->function != NULL ? frame->offset : i > 0);
}

/* The start code of a program calls only main, though through a pointer. */
static bool
is_main(const struct ex_frame *frame)
{
	return frame->function != NULL && strcmp(frame->function, "main") == 0;
}

/* Whether an allowed function may be missing at indirect calls: it may have
   been the target, and have ended in a direct or indirect tail call. */
static bool
may_be_missing(struct policy *p, const struct ex_stack *stack)
{
	struct ex_module *modules[MODULES_MAX];
	struct jump_asked key = {.rules = p->rules}, anywhere = key;
	const unsigned n = modules_of(stack, modules, &key.modules);

	anywhere.modules = key.modules;
	for (unsigned i = 0; i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];

		key.module = frame->module;
		key.vaddr = jumped_to(frame, i);
		if (frame->pointer && frame->module != NULL &&
		    (may_jump(p, &key, modules, n) || (!is_main(frame) &&
		    may_jump(p, &anywhere, modules, n))))
			return true;
	}
	return false;
}

/* Whether a function may have a name that is unknown because a file could not
   be read. */
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

/* Whether no other function of the program can be further in than the
   culprit. */
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
policy_writer_of(struct policy *p, const struct ex_stack *stack,
    struct buffer *name)
{
	const struct ex_frame *culprit = stack == NULL ? NULL :
	    culprit_of(stack);

	if (culprit == NULL)
		return POLICY_WRITER_MISSING;
	if (!is_innermost(stack, culprit) || (culprit_is_library(culprit) &&
	    !policy_is_whole(p, stack)))
		return POLICY_WRITER_MISSING;
	return culprit_name_put(name, culprit) ? POLICY_WRITER_NAMED :
	    POLICY_WRITER_UNNAMED;
}
