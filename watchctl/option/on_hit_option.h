/*
 * on_hit_option: the parsed argument of --on-hit.
 */
#ifndef ON_HIT_OPTION_H
#define ON_HIT_OPTION_H

#include <stdint.h>
#include <sys/types.h>

struct on_hit {
	enum on_hit_what {
		ON_HIT_REPORT,		/* nothing but the report */
		ON_HIT_PAUSE,
		ON_HIT_EXEC,
		ON_HIT_CORE,
	} what;
	const char *command;		/* EXEC: belongs to the caller */
	int ms;				/* EXEC: the time left for it; 0: no
					   limit */
	pid_t left, left_tid;		/* PAUSE, afterwards: the process to be
					   left stopped, and the thread that hit
					   there; 0: none */
	uint64_t left_seq;		/* the hit's number; 0: it is not
					   explained yet */
	uint64_t reported[4];		/* EXEC: bit n: it was reported that
					   the command ended with status n */
};

/* Parse the option's argument.  0; -EINVAL after a line on stderr. */
int on_hit_parse(const char *text, struct on_hit *);

#endif
