/*
 * others: filters the hits of other processes, where an event gets the hits of
 * everything that runs on a processor but only one process is watched.
 *
 * Each program of such an event begins with a look at whose hit it is.  What is
 * another's is counted and left:
 *
 *	hits of an event = numbers taken (ticket.h) + others' + missed
 *
 * The process is meant from one moment on, on all processors, until it executes
 * another program; then all are others' hits.
 */
#ifndef WP_OTHERS_H
#define WP_OTHERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct code;

struct wp_others {
	int map;		/* < 0: there is no process */
	uint64_t *word;		/* whether the process is meant; then n counts
				   of others' hits */
	unsigned n;
	pid_t pid;
	int process;		/* a pidfd */
	int execution;		/* of the program that ends it */
	bool ended;		/* by us */
};
#define WP_OTHERS_NONE (struct wp_others){				\
	.map = -1, .process = -1, .execution = -1,			\
}

/* Of a process, which is not meant yet, with so many counts.  0 or -errno. */
int wp_others_open(struct wp_others *, pid_t pid, unsigned counts);
void wp_others_close(struct wp_others *);

/* What programs that have a count begin with: end here if it is another's hit.
   What the program is given is in R6; R0 to R5 and R7 are changed, and at the
   stack's end are the thread and, behind it, the process. */
struct wp_own {
	pid_t pid;
	int map;
	unsigned word;
};
void wp_code_own(struct code *, const struct wp_own *);
struct wp_own wp_others_own(const struct wp_others *, unsigned count);

/* The process is meant; and is meant no more, which is to be waited for. */
void wp_others_begin(struct wp_others *);
void wp_others_end(struct wp_others *);

/* The hits that were others'. */
uint64_t wp_others_count(const struct wp_others *, unsigned count);

/* Whether it has executed another program since; or else lives. */
bool wp_others_executed(const struct wp_others *);
bool wp_others_alive(const struct wp_others *);

#endif
