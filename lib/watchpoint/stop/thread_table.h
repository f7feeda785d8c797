/* thread_table: the threads that a process traces, by their ids. */
#ifndef WP_THREAD_TABLE_H
#define WP_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What the loop knows of a thread (ptrace_loop.h): the first member of what its
   owner knows. */
struct wp_thread {
	pid_t tid, pid;
	uint32_t update;		/* the last that it has had; 0: none */
	bool group_stopped;		/* with its process, by SIGSTOP */
	bool step;			/* it goes on by one instruction: its
					   owner's wish, until it stops */
};

struct wp_thread_table {
	struct wp_thread **thread;	/* n of them, by tid */
	size_t n, cap;
};

/* A thread; NULL: it is not traced. */
struct wp_thread *wp_thread_find(const struct wp_thread_table *, pid_t tid);

/* The one with the next higher id; NULL: there is none. */
struct wp_thread *wp_thread_after(const struct wp_thread_table *, pid_t tid);

/* Add one that is not there, size bytes with all after its tid 0.  NULL: out of
   memory. */
struct wp_thread *wp_thread_add(struct wp_thread_table *, pid_t tid,
    size_t size);

/* Free one. */
void wp_thread_drop(struct wp_thread_table *, struct wp_thread *);

#endif
