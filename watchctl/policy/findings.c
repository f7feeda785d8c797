/* findings: a search tree of findings, and lists in their order. */
#include "policy/findings.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "policy/culprit.h"

/* A name of the frame's module that is the same in every process and run. */
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

/* Keep a new finding.  NULL if there is no memory. */
static struct finding *
add(struct findings *findings, const struct finding *new)
{
	struct findings_list *list = new->incomplete ? &findings->unjudged :
	    &findings->stray;
	struct finding *f;

	if (!EX_ARRAY_ROOM(list, at, SIZE_MAX))
		return NULL;
	if ((f = malloc(sizeof(*f))) == NULL)
		return NULL;
	*f = *new;
	if (tsearch(f, &findings->tree, compare_findings) == NULL) {
		free(f);
		return NULL;
	}
	list->at[list->n++] = f;
	ex_stack_hold(f->stack);
	return f;
}

/* The finding of a hit.  NULL if there is no memory. */
static struct finding *
finding_of(struct findings *findings, const struct ex_hit *hit)
{
	const struct finding key = {
		.watch = hit->watch, .stack = hit->stack,
		.culprit = hit->stack == NULL || hit->late ? NULL :
		    culprit_of(hit->stack),
		.access = hit->access, .first_seq = hit->seq,
		.incomplete = !hit->stray, .late = hit->late,
	};
	struct finding **found = tfind(&key, &findings->tree, compare_findings);

	return found != NULL ? *found : add(findings, &key);
}

int
findings_count(struct findings *findings, struct finding **last,
    const struct ex_hit *hit, uint64_t times)
{
	struct finding *f = *last;

	if (f == NULL || f->watch != hit->watch ||
	    f->incomplete == hit->stray || f->late != hit->late)
		f = finding_of(findings, hit);
	if (f == NULL)
		return -ENOMEM;
	f->count += times;
	*last = f;
	return 0;
}

static void
keep(void *node)
{
	(void)node;
}

static void
list_free(struct findings_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		ex_stack_let_go(list->at[i]->stack);
		free(list->at[i]);
	}
	free(list->at);
}

void
findings_free(struct findings *f)
{
	tdestroy(f->tree, keep);
	list_free(&f->stray);
	list_free(&f->unjudged);
}
