/* thread_table: the threads that a process traces, sorted by their IDs. */
#ifndef WP_THREAD_TABLE_H
#define WP_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A thread of the loop (ptrace_loop.h).  It is the first member of the owner's
   structure. */
struct wp_thread {
	pid_t tid, pid;
	uint32_t update;		/* the last update that it got; 0:
					   none */
	bool group_stopped;		/* stopped with its process, by
					   SIGSTOP */
	bool step;			/* set by the owner until the next stop:
					   it executes one instruction */
};

struct wp_thread_table {
	struct wp_thread **thread;	/* n of them, by tid */
	size_t n, cap;
};

/* Find a thread.  NULL: it is not traced. */
struct wp_thread *wp_thread_find(const struct wp_thread_table *, pid_t tid);

/* The thread with the next higher ID.  NULL: there is none. */
struct wp_thread *wp_thread_after(const struct wp_thread_table *, pid_t tid);

/* Add a new thread, of size bytes, all zero behind the tid.  NULL: out of
   memory. */
struct wp_thread *wp_thread_add(struct wp_thread_table *, pid_t tid,
    size_t size);

/* Remove and free a thread. */
void wp_thread_drop(struct wp_thread_table *, struct wp_thread *);

#endif
