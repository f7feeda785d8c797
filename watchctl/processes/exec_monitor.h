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
	int pidfd;			/* of it, the caller's */
	int event;			/* that reports execve(2); -1: none */
	struct perf_event_mmap_page *ring;	/* its; NULL: none */
	pthread_t thread;
	bool awake;			/* there is one */
	int leave;			/* that it sleeps on too: written to
					   when it is to end */
	sem_t begun;			/* posted when it has begun */
	_Atomic bool executed;		/* the program is another now */
	_Atomic bool gone;		/* it has ended */
};

/* Begin.  Where watching for execve(2) is not permitted, only the end is
   seen; without a thread, only by exec_monitor_ended. */
void exec_monitor_begin(struct exec_monitor *, struct wp_channel *,
    pid_t program, int pidfd);
void exec_monitor_end(struct exec_monitor *);

/* The program is the one that is meant: from now on execve(2) means another. */
void exec_monitor_enable(struct exec_monitor *);

/* Whether it has ended. */
bool exec_monitor_ended(struct exec_monitor *);

#endif
