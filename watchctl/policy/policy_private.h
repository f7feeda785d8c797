/* policy_private: what the files of a policy share. */
#ifndef POLICY_PRIVATE_H
#define POLICY_PRIVATE_H

#include "policy/by_stack.h"
#include "policy/policy.h"

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
	struct by_stack verdicts;	/* of struct verdict */
	void *asked;		/* a tree of what was asked about jumps
				   (policy_whole.c) */
	struct findings findings;
};

/* Whether a pattern is meant for a name with its parameters, or a mangled one.
   Others are kept from them: "*config*" is not to match all functions that are
   passed a config. */
bool policy_is_for_whole(const char *pattern);

/* Whether a pattern matches a frame's function, or its source file. */
bool policy_allows(const struct policy *, const struct ex_frame *);

/* The line that names a frame's function as a writer; NULL: none does. */
const struct policy_line *policy_writer_line(const struct policy *,
    const struct ex_frame *);

/* A line of the file has allowed something. */
void policy_use(const struct policy *, const struct policy_line *);

#endif
