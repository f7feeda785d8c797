/*
 * exec_monitor: waits for the events that a program does not announce itself:
 * its end, or the execution of another program.
 *
 * A thread sleeps until then, and rings the bell itself.
 */
#ifndef EXEC_MONITOR_H
#define EXEC_MONITOR_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "handler/channel.h"

struct exec_monitor {
	struct wp_channel *channel;
	pid_t program;
	int pidfd;			/* the program's; belongs to the
					   caller */
	int event;			/* that reports execve(2); -1: none */
	struct perf_event_mmap_page *ring;	/* the event's; NULL: none */
	pthread_t thread;
	bool awake;			/* the thread runs */
	int leave;			/* eventfd that tells the thread to
					   end */
	sem_t begun;			/* posted when it has begun */
	_Atomic bool executed;		/* the program has executed another
					   one */
	_Atomic bool gone;
};

/* Begin.  Where watching for execve(2) is not permitted, only the end is
   noticed; without a thread, only by exec_monitor_ended. */
void exec_monitor_begin(struct exec_monitor *, struct wp_channel *,
    pid_t program, int pidfd);
void exec_monitor_end(struct exec_monitor *);

/* The right program runs now: from now on execve(2) means another one. */
void exec_monitor_enable(struct exec_monitor *);

/* Whether it has ended. */
bool exec_monitor_ended(struct exec_monitor *);

#endif
