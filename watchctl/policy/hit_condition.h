/*
 * hit_condition: evaluates whether a condition holds for a hit, by the known
 * properties of the hit.
 *
 * What is not proved decides nothing: a value that was read later, a caller
 * that may be missing in the backtrace.  A value has the type that debug
 * information gives it.  Without one it is an integer as wide as its watch,
 * whose sign is not known; where that would matter, the condition's truth is
 * not known.
 */
#ifndef HIT_CONDITION_H
#define HIT_CONDITION_H

#include "hit/hit.h"
#include "spec/condition.h"

/* Check a condition against what is watched; NULL: no type is known of that.
   0; -EINVAL after a line on stderr: an enumerator that it names is none
   there. */
int hit_condition_check(const struct condition *,
    const struct ex_object *watched);

struct hit_condition;

/* For a condition, which outlives it.  NULL: out of memory. */
struct hit_condition *hit_condition_new(const struct condition *);
void hit_condition_free(struct hit_condition *);

/* Judge a hit that an explainer gave; all come from one explainer.  count is as
   in conditions; 0: not known. */
enum condition_truth hit_condition_truth(struct hit_condition *,
    const struct ex_hit *, uint64_t count);

/* Whether a hit is rejected, NULL: by no condition; one for which it is not
   known whether it holds is not, and becomes `unsure'. */
bool hit_condition_rejects(struct hit_condition *, struct ex_hit *,
    uint64_t count);

#endif
