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

struct broker_texts {
	char **at;
	size_t n, cap;
};

/* How long the explainer could have made progress, and made none. */
struct broker_stall {
	uint64_t progress;
	double spent;		/* its processor time when it was last checked,
				   s */
	double delay;		/* how long it had waited for a processor then,
				   s; < 0: unknown */
	double waited;		/* s for which watchctl has waited for a message
				   since then */
	double seconds;
	double answer;		/* s since it was asked, with or without
				   progress */
};

/* The caller sets what shall differ from zero. */
struct broker {
	char **argv;		/* the explainer's arguments, which must outlive
				   this; the first is its task: "report",
				   "live", "log" */
	uint64_t memory;	/* limit of its private memory, bytes; 0: the
				   default */
	void (*brief)(struct broker *);	/* sends a new explainer what the
					   previous ones knew, by broker_post;
					   NULL: nothing */
	struct answers answers;	/* the files and processes that it may ask
				   about */
	unsigned deaths;	/* deaths in a row without any result between
				   them; the caller sets it to 0 at each
				   result */
	bool may_be_plain;	/* after too many deaths, continue without
				   reading any module */
	bool plain;		/* it does */
	bool given_up;		/* after too many deaths */
	bool ran;		/* an explainer that died had begun to work */
	/* reports a death; NULL: on stderr */
	void (*warn)(struct broker *, const char *text);
	void *warned;		/* for the use of warn */
	/* Takes a message that precedes the answer to a question; false: it
	   makes no sense.  NULL: there may be none. */
	bool (*other)(struct broker *, const struct broker_message *);
	/* Lets an explainer continue that waits for watchctl and has a question
	   to answer.  NULL: it never waits. */
	void (*release)(struct broker *);
	void *keeper;		/* the owner, for the use of the functions
				   above */
	double patience;	/* s that an answer may take, and a tenth of
				   what a task may take; 0: the default */
	double task;		/* s that explainers have spent on the current
				   task, with or without progress; the caller
				   sets it to 0 when it gives another one */
	bool asking;		/* a question is open, */
	bool sparing;		/* and has not killed an explainer yet */
	struct broker_texts aside;	/* modules that are not read again */
	struct broker_texts spared;	/* modules during which an explainer was
					   killed once */
	struct broker_texts said;	/* lines that were printed on stderr */
	/* of the explainer that runs: */
	pid_t pid;		/* 0: none runs */
	int pidfd;
	unsigned starts;	/* how many were started, including this one */
	int socket;
	struct broker_unsent *unsent, *last_unsent;	/* messages for which
							   the socket had no
							   room yet; NULL:
							   none */
	int broken;		/* -errno: a message could not be kept; 0: none
				   was lost */
	struct shared_memory memory_shared;
	const struct broker_shared *shared;	/* the same memory, which the
						   explainer writes */
	size_t repeated;	/* lines of `said' that it has repeated, */
	size_t lines;		/* and new ones that it has printed */
	struct broker_stall stall;
};

/* Start an explainer if none runs.  0, or -errno after a line on stderr. */
int broker_start(struct broker *);

/* Send the explainer a message, with a descriptor if there is one (-1: none),
   without waiting: a message for which the socket has no room is kept, and sent
   by broker_hear.  Only broker_hear shows that the explainer is dead or never
   reads.  0 or -errno. */
int broker_post(struct broker *, const struct broker_message *, int fd);

/*
 * Wait for a message from the explainer.  Meanwhile its questions about files
 * and processes are answered, and its lines for stderr are printed, each once
 * even if several explainers repeat it.  0, or -errno: it has died, makes no
 * progress, or breaks the rules.
 */
int broker_hear(struct broker *, struct broker_message *);

/* The same with a time limit in ms, after which the result is -EAGAIN. */
int broker_hear_for(struct broker *, struct broker_message *, int ms);

/*
 * End the explainer after an error of broker_hear (-EPROTO: its message makes
 * no sense), and report that on stderr.  True: another may be started, and will
 * not read the module that this one was reading.  False: too many have died,
 * and `lost', half a sentence that says what is lost, was printed; or `lost' is
 * NULL: no other shall be started.
 */
bool broker_survive(struct broker *, int err, const char *lost);

/*
 * Ask a question of the explainer, which is started if none runs, and wait for
 * the answer, which replaces the question.  If the explainer dies of it,
 * another is asked; `lost' is as for broker_survive.  0, the answer's -errno,
 * or -ECHILD: there is no answer, which was reported on stderr, and there will
 * be no more answers.
 */
int broker_ask(struct broker *, struct broker_message *, const char *lost);

/* Append len bytes of text, whole lines, that came with an answer.  False: they
   are not such text, and nothing is appended. */
bool broker_take_text(const struct broker *, uint64_t len, struct buffer *);

/* Wait until the explainer has ended.  Result: its status, as of waitpid(2);
   -ECHILD: whoever waits for traced threads has already collected it. */
int broker_wait(struct broker *);

void broker_close(struct broker *);

#endif
