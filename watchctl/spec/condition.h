/*
 * condition: a condition for hits, as a C expression.
 *
 *	new < 0 && comm == "worker"	caller("reload") || (access == "read")
 *
 * Parsed once, into a tree that is walked for each hit; what a name means for a
 * hit is the caller's to say.  What is not known of a hit makes no more unknown
 * than it must: with `false && unknown` the condition does not hold.
 *
 * The operands of && and || have no effects, so the one that is found out more
 * quickly is looked at first.
 */
#ifndef CONDITION_H
#define CONDITION_H

#include <stddef.h>

#include "base/number.h"

enum condition_kind {
	CONDITION_NUMBER,	/* number */
	CONDITION_NAME,		/* name: a number of the hit */
	CONDITION_ENUMERATOR,	/* text: one of the watched type's */
	CONDITION_EQUAL_TEXT,	/* name == text, of a hit's text */
	CONDITION_IN,		/* text: a function */
	CONDITION_CALLER,	/* text: a function */
	CONDITION_NOT,		/* !a */
	CONDITION_COMPLEMENT,	/* ~a */
	CONDITION_NEGATIVE,	/* -a */
	CONDITION_POSITIVE,	/* +a */
	CONDITION_CAST,		/* (type of number)a */
	CONDITION_CAST_BOOL,	/* (bool)a */
	CONDITION_OPERATOR,	/* a operator b */
	CONDITION_AND,		/* a && b, */
	CONDITION_OR,		/* a || b: a is the quicker one */
	CONDITION_CHOICE,	/* a ? b : c */
	CONDITION_TEXT,		/* text; in the parser alone */
};

enum condition_name {
	CONDITION_OLD, CONDITION_NEW, CONDITION_CHANGED, CONDITION_COUNT,
	CONDITION_TID, CONDITION_PID, CONDITION_CPU,
	/* texts */
	CONDITION_COMM, CONDITION_ACCESS, CONDITION_ORIGIN,
};

struct condition_node {
	enum condition_kind kind;
	const struct condition_node *a, *b, *c;
	enum condition_name name;
	enum ex_operator operator;
	struct ex_number number;
	const char *text;	/* lives as long as the condition */
	unsigned column;	/* of where it begins, from 1 */
	unsigned call;		/* IN and CALLER: which of them, from 0 */
	unsigned cost;		/* of finding it out, beside others */
};

struct condition {
	const struct condition_node *root;
	unsigned calls;		/* how many IN and CALLER there are */
	bool typed;		/* it has enumerators */
	const char *option;	/* "--if", for messages; whoever parses it sets
				   it then */
	/* condition.c's own */
	struct condition_node *nodes;
	size_t n;
	char *texts, *text_end;
};

/* What is wrong, and where: the column counts from 1, behind the end is one
   more than there are. */
struct condition_error {
	unsigned column;
	char text[160];
};

/* Parse a text.  0; -EINVAL with an error; -ENOMEM.  Free it in any case. */
int condition_parse(const char *text, struct condition *,
    struct condition_error *);
void condition_free(struct condition *);

enum condition_truth { CONDITION_FALSE, CONDITION_TRUE, CONDITION_UNKNOWN };

/* What is known of one hit. */
struct condition_hit {
	/* A number by its name; an enumerator.  False: it is not known. */
	bool (*number)(void *arg, enum condition_name, struct ex_number *);
	bool (*enumerator)(void *arg, const char *text, struct ex_number *);
	enum condition_truth (*is_text)(void *arg, enum condition_name,
	    const char *text);
	/* an IN or CALLER */
	enum condition_truth (*call)(void *arg, const struct condition_node *);
	void *arg;
};

enum condition_truth condition_holds(const struct condition *,
    const struct condition_hit *);

/* Call fn for each node; its first false ends that, and is the result. */
bool condition_each(const struct condition *,
    bool (*fn)(void *arg, const struct condition_node *), void *arg);

#endif
