/*
 * ci: the findings of a run, in the formats of systems that run tests (--junit,
 * --sarif, --github).
 *
 * Every format contains the same list of problems.  A new kind of problem is
 * added to that list, and to the table of rules (ci.c).
 */
#ifndef CI_H
#define CI_H

#include <limits.h>

#include "report/report.h"
#include "util/buffer.h"

struct ci_rule {
	const char *id;		/* "stray-write" */
	const char *title;	/* "stray write" */
	const char *help;	/* a sentence */
};

/* Formats list the rules in this order; the last is all NULL. */
extern const struct ci_rule ci_rules[];

struct ci_problem {
	const struct ci_rule *rule;
	const char *title;	/* the rule's, or a more exact one */
	char *program;		/* that has the problem */
	char *subject;		/* "SPEC by FUNCTION" */
	char *message;		/* a sentence without its full stop */
	const char *spec;	/* the SPEC of its watch; NULL: none */
	uint64_t print;		/* identifies it in later runs: a hash of the
				   rule, the SPEC and the names of functions,
				   which are the same in each build */
	const struct ex_frame *frame;	/* its place; NULL: not known */
	const struct ex_stack *stack;	/* its backtrace; NULL: not known */
	bool doubt;		/* not a fault of the program: one may have been
				   missed */
};

struct ci {			/* all zero: nothing is found */
	struct ci_problem *problem;	/* n of them */
	size_t n, cap;
	const struct ex_watch *const *watch;	/* nwatches of them */
	unsigned nwatches;
	const char *program;	/* that was run; "": not known */
	double seconds;		/* duration of the run */
	char directory[PATH_MAX];	/* the current one; "": not known */
	bool failed;		/* out of memory: a problem is missing */
};

/* The run has ended: add its stray writers, each once whatever its
   instructions, in front of the problems of heaps; and the reason for which the
   run cannot be vouched for ("": there is none). program and the report must
   outlive this. */
void ci_end(struct ci *, const struct report_start *,
    const struct report_end *, const char *program, const char *doubt,
    double seconds);
void ci_free(struct ci *);

/* Add a finding in a heap during the run; its stacks must outlive this. */
void ci_add_damage(struct ci *, const struct report_damage *);

/* The path of a frame's source file as printed: relative if it is below the
   current directory, else absolute.  NULL: not known. */
const char *ci_path(const struct ci *, const struct ex_frame *);

/* Write a line for each problem in the form that GitHub's runner finds in
   logs. */
void ci_put_github(const struct ci *, struct buffer *);

/* Write a JUnit file; a SARIF 2.1.0 file. */
void ci_put_junit(const struct ci *, struct buffer *);
void ci_put_sarif(const struct ci *, struct buffer *);

#endif
