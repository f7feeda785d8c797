/*
 * answers: answers an explainer's questions about files and processes
 * (message.h).  The answers are bounded, because the owner of a file that the
 * explainer reads may have taken the explainer over.
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
	int pidfd;			/* -1: the process is known to have
					   ended */
	bool rooted;			/* root has been determined */
	int root;
	struct wp_perf_map perf_map;	/* pid 0: not determined yet */
};

/* All zero: no process may be asked about, and no file is opened for the
   caller. */
struct answers {
	const char *file;	/* is opened whatever its type; NULL: none */
	off_t size;		/* of the file when it was opened */
	bool starved;		/* the limit of descriptors kept a file from
				   being opened */
	bool gone;		/* the thread that a hit had stopped runs
				   again */
	bool no_memory;		/* memory of processes is not read */
	/* Reads memory that a process shares with others, from where it is now:
	   the number of bytes, -errno, or -ENOENT if it has to be read from the
	   process.  NULL: everything is read from the process. */
	ssize_t (*read)(void *arg, pid_t, uint64_t addr, void *to, size_t len);
	void *read_arg;
	bool sources;		/* source files, known by their names, are
				   opened, because -o html shows lines of
				   them */
	bool no_cache;		/* do not keep indexes of debug information */
	const struct policy_file *policy;	/* its path is answered with the
						   content that was read at the
						   start; NULL: none */
	const struct broker_shared *shared;	/* where indexes to be kept
						   arrive */
	bool keeping;		/* an index is arriving */
	struct answers_process *process;
	size_t n, cap;
	size_t many;		/* when n reaches this, processes that have
				   ended are removed */
	struct wp_roots roots;
	struct buffer maps;	/* of the process of the last question */
	struct debuginfod_fetch fetching;	/* a download, answered when
						   complete */
	long fetching_since;	/* when it began, ms (wp_clock_ms) */
	long fetched;		/* ms that the previous downloads took */
	/* Sends an answer when the socket has room for it.  NULL: an answer
	   that finds no room is dropped. */
	void (*later)(struct answers *, const struct broker_message *, int fd);
};

/* Let explainers ask about a running process, until it ends or is forbidden.
   Allowing it again changes nothing.  0 or -errno. */
int answers_allow(struct answers *, pid_t);
void answers_forbid(struct answers *, pid_t);

/* Allow a process that an allowed one has created.  If it has already ended,
   files that it had mapped may still be asked for, in its parent's root
   directory. */
void answers_allow_child(struct answers *, pid_t, pid_t parent);

/* Answer a question about files or processes.  False: it is another message. */
bool answers_give(struct answers *, int socket, const struct broker_message *);

/* A descriptor that becomes readable when a question that is still open may be
   answered; -1: no question is open. */
int answers_fd(const struct answers *);

/* Answer the open question, if that is possible now. */
void answers_go_on(struct answers *, int socket);

/* Drop the open question: the explainer that asked has died. */
void answers_abandon(struct answers *);

void answers_free(struct answers *);

#endif
