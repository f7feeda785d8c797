/*
 * process_filter: separates the hits of the watched process from those of other
 * processes, for an event that counts the hits of everything that runs on a
 * processor.
 *
 * Each program of such an event begins with a check of which process made the
 * hit.  A hit of another process is only counted:
 *
 *	hits of an event = tickets taken (ticket.h) + others' hits + missed
 *
 * The filter lets the hits of the process through from wp_process_filter_begin
 * on, on all processors at once, until the process executes another program;
 * from then on all hits are others'.
 */
#ifndef WP_PROCESS_FILTER_H
#define WP_PROCESS_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct code;

struct wp_process_filter {
	int map;		/* < 0: no process is filtered for */
	uint64_t *word;		/* whether its hits pass; behind it n counts of
				   others' hits */
	unsigned n;
	pid_t pid;
	int process;		/* a pidfd */
	int execution;		/* the attached program that turns the filter
				   off at execve */
	bool ended;		/* wp_process_filter_end did that */
};
#define WP_PROCESS_FILTER_NONE (struct wp_process_filter){		\
	.map = -1, .process = -1, .execution = -1,			\
}

/* Prepare for a process, with this number of counts; none of its hits pass yet.
   0 or -errno. */
int wp_process_filter_open(struct wp_process_filter *, pid_t pid,
    unsigned counts);
void wp_process_filter_close(struct wp_process_filter *);

/* Generate the check with which a program begins: it ends here if another
   process made the hit.  R6 holds the program's context; R0 to R5 and R7 are
   changed; the end of the stack holds the thread's ID and, behind it, the
   process's. */
struct wp_own {
	pid_t pid;
	int map;
	unsigned word;
};
void wp_code_own(struct code *, const struct wp_own *);
struct wp_own wp_process_filter_own(const struct wp_process_filter *,
    unsigned count);

/* Let the hits of the process pass; and stop that, and wait until no program
   that began earlier runs any more. */
void wp_process_filter_begin(struct wp_process_filter *);
void wp_process_filter_end(struct wp_process_filter *);

/* The number of hits that other processes made. */
uint64_t wp_process_filter_count(const struct wp_process_filter *,
    unsigned count);

/* Whether the process has executed another program since; and whether it is
   alive. */
bool wp_process_filter_executed(const struct wp_process_filter *);
bool wp_process_filter_alive(const struct wp_process_filter *);

#endif
