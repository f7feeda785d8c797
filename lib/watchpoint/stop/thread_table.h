/*
 * thread_table: the threads that a process traces, by their ids, and what they
 * have to report.
 *
 * A tracer knows more of a thread than is here: it puts struct wp_thread
 * first into a structure of its own.
 */
#ifndef WP_THREAD_TABLE_H
#define WP_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "os/ptrace.h"

struct wp_thread {
	pid_t tid;
	void *own;			/* of the tracer's owner; NULL at
					   first */
	bool stands;			/* still, with its process (SIGSTOP) */
};

struct wp_thread_table {
	struct wp_thread **thread;	/* n of them, by tid */
	size_t n, cap;
};

/* A thread; NULL: it is not traced. */
struct wp_thread *wp_thread_find(const struct wp_thread_table *, pid_t tid);

/* The one with the next higher id; NULL: there is none. */
struct wp_thread *wp_thread_after(const struct wp_thread_table *, pid_t tid);

/* Add one that is not there, size bytes with all after struct wp_thread 0.
   NULL: out of memory. */
void *wp_thread_add(struct wp_thread_table *, pid_t tid, size_t size);

/* Free one. */
void wp_thread_drop(struct wp_thread_table *, struct wp_thread *);

/* Let one go on with a signal (0: none), or stop with its process. */
void wp_thread_go_on(const struct wp_thread *, int sig);

/* What becomes of a report, of a thread that may not be there yet.  Result:
   whether more reports are wanted. */
typedef bool wp_thread_handle(void *arg, const struct wp_trace *);

/* Handle what each thread has to report now. */
void wp_thread_look(const struct wp_thread_table *, wp_thread_handle *,
    void *arg);

/* Handle what there is to report, of threads that were not there as well.
   Result: whether there may be more. */
bool wp_thread_step(const struct wp_thread_table *, wp_thread_handle *,
    void *arg);

#endif
