/*
 * policy: decides which code may touch the watched memory.
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
#include "policy/policy_private.h"

#include <search.h>
#include <stdlib.h>

#include "policy/culprit.h"

/* The verdict on a backtrace. */
struct verdict {
	enum verdict_is { UNKNOWN, ALLOWED, STRAY, UNJUDGED } is;
	const struct policy_watch *rules;	/* under which it is */
	struct finding *last;	/* of its last hit, or NULL */
};

struct policy *
policy_new(const char *const *allow, size_t n)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->allow = allow;
	p->n = n;
	for (size_t i = 0; i < n; i++)
		p->whole |= policy_is_for_whole(allow[i]);
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
			    policy_is_for_whole(file->watch[i].line[k].value);
	return p->used != NULL;
}

void
policy_free(struct policy *p)
{
	if (p == NULL)
		return;
	tdestroy(p->asked, free);
	findings_free(&p->findings);
	by_stack_free(&p->verdicts, sizeof(struct verdict));
	free(p->used);
	free(p);
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
		    policy_allows(p, frame))
			return true;
		innermost = false;
	}
	return false;
}

/* Whether the policy allows anybody: from POLICY_WRITER on, by writers or
   patterns; from POLICY_ALLOW on, by patterns, which also allow callees. */
static bool
allows(const struct policy *p, enum policy_key from)
{
	bool any = p->n > 0;

	for (size_t i = 0; p->rules != NULL && i < p->rules->n; i++)
		any |= p->rules->line[i].key >= from;
	return any;
}

/* Judge by the writers in the file; UNKNOWN if they do not decide.  If only
   writers are allowed, missing callers do not matter. */
static enum verdict_is
judge_writer(struct policy *p, const struct ex_stack *stack)
{
	const struct ex_frame *culprit = culprit_of(stack);
	const struct policy_line *line;
	struct buffer name = {0};
	enum policy_writer writer;

	if (culprit == NULL || culprit->kernel)
		return UNKNOWN;
	if ((line = policy_writer_line(p, culprit)) != NULL)
		policy_use(p, line);
	else if (allows(p, POLICY_ALLOW))
		return UNKNOWN;
	writer = policy_writer_of(p, stack, &name);
	buffer_free(&name);
	if (line == NULL)
		return writer == POLICY_WRITER_MISSING ? UNKNOWN : STRAY;
	return writer == POLICY_WRITER_NAMED ? ALLOWED : UNJUDGED;
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
	return allows(p, POLICY_WRITER) && !policy_is_whole(p, stack) ?
	    UNJUDGED : STRAY;
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
		own.is = allows(p, POLICY_WRITER) ? UNJUDGED : STRAY;
	else if (stack != NULL && (verdict = by_stack_at(&p->verdicts,
	    stack->index, sizeof(*verdict))) == NULL)
		verdict = &own;
	if (verdict->is == UNKNOWN || (!hit->late &&
	    verdict->rules != p->rules))
		*verdict = (struct verdict){judge(p, stack), p->rules, NULL};
	hit->stray = hit->stray || verdict->is == STRAY;
	hit->unjudged = !hit->stray && verdict->is == UNJUDGED;
	return hit->stray || hit->unjudged ? findings_count(&p->findings,
	    &verdict->last, hit, times) : 0;
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
	const struct findings_list *list = unjudged ?
	    &p->findings.unjudged : &p->findings.stray;

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
