/*
 * answers: answers an explainer's questions about files and processes
 * (message.h), within bounds: the owner of a file that it reads may have taken
 * it over.
 */
#ifndef ANSWERS_H
#define ANSWERS_H

#include <stdbool.h>

#include "broker/message.h"
#include "proc/perf_map.h"
#include "proc/roots.h"
#include "option/policy_file.h"
#include "util/buffer.h"
#include "util/debuginfod.h"

/* A process that may be asked about. */
struct answers_process {
	pid_t pid;
	int pidfd;			/* of that very process; -1: it has
					   ended, as is known */
	bool rooted;			/* where its root is has been asked */
	int root;
	struct wp_perf_map perf_map;	/* pid 0: not asked for */
};

/* All zero: no process, no file of its own. */
struct answers {
	const char *file;	/* opened whatever it is; NULL: none */
	off_t size;		/* of it when it was opened */
	bool starved;		/* a file was not opened for want of a
				   descriptor */
	bool gone;		/* the thread that a hit stopped goes on */
	bool no_memory;		/* what processes have in memory is not read */
	/* reads what a process shares, wherever it is now: how many bytes, or
	   -errno; -ENOENT: this is to be read of the process.  NULL: all is */
	ssize_t (*read)(void *arg, pid_t, uint64_t addr, void *to, size_t len);
	void *read_arg;
	bool sources;		/* files that are sources by their names are
				   opened, as -o html has lines of them */
	bool no_cache;		/* indexes are not kept */
	const struct policy_file *policy;	/* its path leads to what was
						   read from it; NULL: none */
	const struct broker_shared *shared;	/* where those that are kept
						   come */
	bool keeping;		/* one has begun to come */
	struct answers_process *process;
	size_t n, cap;
	size_t many;		/* at this number, it is checked which have
				   ended */
	struct wp_roots roots;
	struct buffer maps;	/* of the process that was asked about last */
	struct debuginfod_fetch fetching;	/* is answered when done */
	/* send an answer for which the socket has no room, when it has; NULL:
	   it is not sent */
	void (*later)(struct answers *, const struct broker_message *, int fd);
};

/* Let explainers ask about a process that runs now, until it ends or is left
   out; a second time changes nothing.  0 or -errno. */
int answers_allow(struct answers *, pid_t);
void answers_forbid(struct answers *, pid_t);

/* The same of one that such a process has created.  If it has ended by now,
   what it mapped may still be asked for, by what is known of these files. */
void answers_allow_child(struct answers *, pid_t, pid_t parent);

/* Answer a question of this kind.  False: it is of another. */
bool answers_give(struct answers *, int socket, const struct broker_message *);

/* A question that is not answered yet: readable when there may be an answer;
   -1: there is none. */
int answers_fd(const struct answers *);

/* Answer that one, if it can be. */
void answers_go_on(struct answers *, int socket);

/* The explainer that asked has gone. */
void answers_abandon(struct answers *);

void answers_free(struct answers *);

#endif
