/*
 * option_table: the single list of options, for the command line, the help, the
 * manual's synopsis, and completion.
 */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

/* What options without a letter are to getopt_long(3).  None is a letter's,
   which then shows which form was misused. */
enum { OPT_COUNT = 256, OPT_USER_ONLY, OPT_CHANGED, OPT_STACK, OPT_ALLOW,
	OPT_ERROR_EXITCODE, OPT_JUNIT, OPT_SARIF, OPT_GITHUB, OPT_LEARN,
	OPT_POLICY, OPT_INSIDE, OPT_STOP, OPT_ON_HIT, OPT_NO_ASLR,
	OPT_IF, OPT_EVERY, OPT_EACH, OPT_MAX_RATE, OPT_ONCE, OPT_LAST,
	OPT_TOP,
	OPT_UNTIL, OPT_WITH,
	OPT_STACKS, OPT_EXPLAIN_MEMORY, OPT_NO_CACHE, OPT_BUFFER,
	OPT_DELIVERY, OPT_EXE, OPT_CGROUP, OPT_ALL_CPUS,
	OPT_FOLLOW, OPT_IF_MISSING, OPT_SLOTS,
	OPT_AFTER_FREE, OPT_FREE_FUNCTION,
	OPT_HEAP, OPT_HEAP_RUNS, OPT_HEAP_QUARANTINE,
	OPT_HELP, OPT_VERSION,
	OPT_END };	/* how many there are, with the letters */

/* The forms of a command line, and one thing more. */
enum {
	OPTION_ATTACH = 1,	/* -p, --exe, --cgroup or --all-cpus */
	OPTION_COMMAND = 2,
	OPTION_INSIDE = 4,	/* a command, with --inside */
	OPTION_REPORT = 8,
	OPTION_HEAP = 32,	/* a command, with --heap */
	OPTION_APART = 16	/* in a synopsis it is not among the others */
};

struct option_entry {
	char letter;		/* NUL: none */
	const char *name;	/* without its dashes; NULL: none */
	int value;		/* of the name, to getopt_long(3) */
	const char *argument;	/* what the help calls it; in small letters: the
				   only one that there is; "[=...": it may be
				   left out, and is never another word; NULL: it
				   takes none */
	const char *words;	/* what it may be, with blanks between; NULL:
				   not to be listed */
	unsigned forms;		/* that it is for */
	const char *help;	/* lines, the last without its end */
};

/* In the order of the help; the last has no help. */
extern const struct option_entry option_table[];

static inline bool
option_is_for(const struct option_entry *entry, unsigned forms)
{
	return (entry->forms & forms) != 0;
}

/* Whether it takes an argument: no_argument, required_argument, or
   optional_argument. */
int option_takes(const struct option_entry *);

/* The entry of an option, by its letter or its value; and how it is called on a
   command line: "-n", "--each". */
const struct option_entry *option_of(int);
const char *option_called(int);

/* For getopt_long(3): what `first' begins, with the letters behind it, and the
   names.  Good until it is called again. */
struct option_names {
	char letters[64];
	const struct option *names;	/* the last is all zero */
};
const struct option_names *option_names(unsigned forms, const char *first);

/* Write the help; or the manual's synopsis (mdoc(7)). */
void option_help(FILE *);
void option_synopsis(FILE *);

#endif
