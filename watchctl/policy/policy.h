/*
 * policy: decides which code may access the watched memory, and finds the code
 * that accessed it without being allowed.
 *
 * A hit is allowed when a function of its backtrace, inlined ones included, or
 * the source file of one matches a pattern: such a function, and everything
 * that it calls, may access the memory.  Any other hit is stray if its
 * backtrace is complete; otherwise an allowed caller could be missing, and the
 * hit is not judged.  Nor is a hit that came late, because its backtrace is not
 * that of the access.  Only the program's frames count, even for a hit by the
 * kernel.  What the dynamic loader itself writes, such as a pointer that it
 * relocates, is never stray.
 *
 * A policy file (option/policy_file.h) allows more for single watches:
 * patterns, and writers by their exact names (culprit_name.h).  A writer allows
 * itself and functions of the C and C++ library that it calls, but nothing else
 * that it calls.
 *
 * Stray and unjudged hits are summed up in findings: one for each watch and
 * culprit.  The culprit is the innermost function that is not of the C or C++
 * library: the function that calls memcpy, not memcpy.
 */
#ifndef POLICY_H
#define POLICY_H

#include <string.h>

#include "hit/hit.h"
#include "policy/findings.h"
#include "option/policy_file.h"

struct policy;

/*
 * Create a policy of these patterns (fnmatch(3)), which must outlive it.  A
 * pattern may match
 *
 *  - a function's name, demangled and without parameters; if the pattern begins
 *    with '_' or contains '(', also the name with parameters, and the mangled
 *    one;
 *  - a source file's name: its last part; if the pattern contains '/', its path
 *    or what follows any '/' of it.
 *
 * NULL: out of memory.
 */
struct policy *policy_new(const char *const *allow, size_t n);
void policy_free(struct policy *);

/* Add the rules of a file, which must outlive the policy, before the first
   hit.  False: out of memory. */
bool policy_add_file(struct policy *, const struct policy_file *);

/* The i'th rule, from 0, that allowed nothing; NULL: there are fewer. */
const struct policy_line *policy_unused(const struct policy *, size_t i);

/* Set hit->stray, unless it is already set, or hit->unjudged, and count the hit
   if one is set.  All hits come from one explainer, which outlives the policy's
   last use.  0, or -ENOMEM: one is set, but the findings are incomplete.  Hot
   path: a known backtrace takes a look-up by its index. */
int policy_judge(struct policy *, struct ex_hit *);

/* The same for a hit that stands for `times' hits with its backtrace. */
int policy_recall(struct policy *, struct ex_hit *, uint64_t times);

/* Whether a pattern matches a frame's function. */
bool policy_names(const struct policy *, const struct ex_frame *);

/* Whether no allowed function can be missing in a backtrace; NULL: one may
   be. */
bool policy_is_whole(struct policy *, const struct ex_stack *);

/* Append the name of a backtrace's writer.  NAMED: it is proved to be the
   innermost function that is not of the C or C++ library. */
enum policy_writer {
	POLICY_WRITER_NAMED,
	POLICY_WRITER_UNNAMED,	/* it has no name, or one that cannot be in a
				   line */
	POLICY_WRITER_MISSING	/* another function may be missing in the
				   backtrace */
};
enum policy_writer policy_writer_of(struct policy *, const struct ex_stack *,
    struct buffer *);

/* All findings of stray or of unjudged hits, in order of their first hits;
   valid until the next hit. */
size_t policy_findings(const struct policy *, bool unjudged,
    const struct finding *const **);

/* The noun for n findings: "writer", "writers"; if one is no write, "place",
   "places". */
static inline const char *
policy_word(const struct finding *const *findings, size_t n)
{
	bool writers = true;

	for (size_t i = 0; i < n; i++)
		writers = writers && strcmp(findings[i]->access, "write") == 0;
	if (n == 1)
		return writers ? "writer" : "place";
	return writers ? "writers" : "places";
}

#endif
