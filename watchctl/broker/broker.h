/*
 * broker: runs an explainer (message.h), and continues with another when it
 * dies.
 */
#ifndef BROKER_H
#define BROKER_H

#include <stdbool.h>

#include "broker/answers.h"
#include "broker/shared_memory.h"
#include "util/buffer.h"

/* Texts, in the order of their coming. */
struct broker_texts {
	char **at;
	size_t n, cap;
};

/* For how long one could have made progress, and made none. */
struct broker_stall {
	uint64_t progress;
	double time;		/* of the last look, s */
	double spent;		/* processor time then */
	double seconds;
	double answer;		/* the same, since it was asked, whatever
				   progress it made */
};

/* The caller fills what is to be other than zero. */
struct broker {
	char **argv;		/* its arguments, which outlive it; the first
				   is what it is to do: "report", "live",
				   "log" */
	uint64_t memory;	/* private bytes that it may have; 0: as
				   usual */
	void (*brief)(struct broker *);	/* sends one that has been
				   started what those before it knew, by
				   broker_tell; NULL: nothing */
	struct answers answers;	/* what it may ask about */
	unsigned deaths;	/* with nothing achieved in between: set it to 0
				   when something is */
	bool may_be_plain;	/* when there were too many, go on without
				   reading any module */
	bool plain;		/* that is so */
	bool given_up;		/* there were too many */
	bool ran;		/* one that has died had taken a message */
	/* of a death; NULL: on stderr */
	void (*warn)(struct broker *, const char *text);
	void *warned;		/* whom, if it has to know */
	/* take what comes before the answer to a question; false: it makes no
	   sense.  NULL: nothing may come */
	bool (*other)(struct broker *, const struct broker_message *);
	/* it is to answer a question: do not keep it waiting.  NULL: it never
	   waits */
	void (*release)(struct broker *);
	void *keeper;		/* whose it is */
	double patience;	/* s that an answer may take; 0: as usual */
	bool asking;		/* for an answer, */
	bool sparing;		/* which did not end one before */
	struct broker_texts aside;	/* modules that are not read any more */
	struct broker_texts spared;	/* those during which one was killed */
	struct broker_texts said;	/* on stderr */
	/* of the one that runs: */
	pid_t pid;		/* 0: none does */
	int pidfd;
	unsigned starts;	/* how many there were before, and it */
	int socket;
	struct broker_unsent *unsent, *last_unsent;	/* messages for which
				   it has no room yet; NULL: none */
	int broken;		/* -errno: one of them could not be kept; 0:
				   all were */
	struct shared_memory memory_shared;
	const struct broker_shared *shared;	/* what it writes there */
	size_t repeated;	/* of `said', by this one as well, */
	size_t lines;		/* and that it has said besides */
	struct broker_stall stall;
};

/* Start one if none runs.  0, or -errno after a line on stderr. */
int broker_start(struct broker *);

/* Send it a message, with a descriptor if there is one (-1: none), without
   waiting: as long as it does not listen, the message is kept, and sent while
   it is heard.  That it is dead, or never listens, broker_hear will show.  0 or
   -errno. */
int broker_tell(struct broker *, const struct broker_message *, int fd);

/*
 * Wait for a message of it.  What it asks about files and processes is answered
 * meanwhile, and what it says is written on stderr, once for all explainers.
 * 0, or -errno: it has died, makes no progress, or breaks the rules.
 */
int broker_hear(struct broker *, struct broker_message *);

/* The same, but no longer than so many ms: then -EAGAIN. */
int broker_hear_for(struct broker *, struct broker_message *, int ms);

/*
 * End the one that runs, for an error of broker_hear (-EPROTO: what it says
 * makes no sense), and say so on stderr.  True: another may be started, and
 * will leave aside what this one was reading.  False: too many have died, and
 * `lost', which says so as half a sentence, was written; or it is NULL: there
 * is to be no other.
 */
bool broker_survive(struct broker *, int err, const char *lost);

/*
 * Start one if none runs, ask it a question, and wait for the answer, which
 * replaces it; when it dies of that, ask another, and `lost' is as of
 * broker_survive. 0, the answer's -errno, or -ECHILD: there is no answer, as
 * was said on stderr, and will be none any more.
 */
int broker_ask(struct broker *, struct broker_message *, const char *lost);

/* Append len bytes of text that an answer came with, whole lines.  False: it is
   not that, and nothing is appended. */
bool broker_take_text(const struct broker *, uint64_t len, struct buffer *);

/* Wait for its end.  Result: its status, as of waitpid(2); -ECHILD: whoever
   waits for threads that are traced has waited for it, too. */
int broker_wait(struct broker *);

void broker_close(struct broker *);

#endif
