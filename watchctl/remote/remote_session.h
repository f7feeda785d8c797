/*
 * remote_session: the session of a watch, kept by an explainer.
 *
 * Everything that the session consists of is written to a journal
 * (session/journal.h), in memory that the explainer maps and cannot write.  The
 * explainer reports for each sample which hit it belongs to, and for each hit
 * what was done with it; a sample is settled when its hit is written.  So
 * nothing is lost when an explainer dies: the next one gets
 *
 *	the past	what the session consisted of before, how far the
 *			report is, and a sample of each backtrace with its
 *			number of hits
 *	the journal	the samples that are not settled, and all that is new
 *
 * and continues.  It does not know earlier values, and reports none.
 */
#ifndef REMOTE_SESSION_H
#define REMOTE_SESSION_H

#include "broker/broker.h"
#include "os/known_stack.h"
#include "session/session.h"

struct remote_session;

/* Have explainers of a broker keep a session that is open; both outlive this.
   0, or -errno after a line on stderr. */
int remote_session_open(struct remote_session **, struct session *,
    struct broker *);

/* A hit that is written: what is to be done at it can be done. */
struct remote_hit {
	uint64_t seq, addr;
	pid_t pid, tid;
	const void *channel_hit;	/* a struct channel_hit; NULL: it is of
					   no channel */
	bool passed;	/* its thread has gone on (remote_session_pass) */
	const char *environment;	/* len bytes, as of
					   session/environment.h, which an
					   explainer says; 0: none */
	size_t len;
};

/* From here on call act with each hit, of those judged with each stray one.  It
   may report warnings. */
void remote_session_act(struct remote_session *,
    void (*act)(void *arg, const struct remote_hit *), void *arg);

/* From here on call know with what an explainer says of stacks that come often,
   if BPF delivers, and forget where those of a process are not to be relied on
   any more, or those of all: 0.  know false: it makes no sense. */
void remote_session_know(struct remote_session *,
    bool (*know)(void *arg, const struct wp_known_stack *),
    void (*forget)(void *arg, pid_t), void *arg);

/* Hits were only counted that come often, as an explainer has said; last: it
   has died since, so that they are of no other. */
void remote_session_tally(struct remote_session *,
    const struct wp_target_tally *, bool last);

/* A thread that is stopped at its hit, and for which the session was flushed,
   goes on.  Result: whether this hit is not explained yet. */
bool remote_session_pass(struct remote_session *, pid_t tid);

/* A round begins: each thread that waits now is let go on in it; or, together:
   one after the other in those that follow.  From the first round on, no thread
   is kept waiting for longer than two seconds, from its hit to the moment when
   it is let go on: neither for its own hit to be explained, nor for others',
   nor for room; what cannot be read yet is kept.  Time in which something else
   is waited for, which takes as long as it takes, does not count
   (remote_session_excuse). */
void remote_session_round(struct remote_session *, bool together);
void remote_session_excuse(struct remote_session *, long ms);

/* Call fn with each hit of a channel (a struct channel_hit) when it is known
   what became of it, once; hits_only: nobody waits for anything else that is
   reported. */
void remote_session_observe(struct remote_session *, void (*fn)(void *arg,
    const void *hit, const struct broker_channel_hit *), void *arg,
    bool hits_only);

/* The text for the program of the channel's hit that was put last; "": it has
   not come. */
const char *remote_session_reply(const struct remote_session *);

/* Whether an explainer is reading something; wait for that, and all behind it,
   but no longer than so many ms (-1: as long as it takes). */
bool remote_session_is_behind(const struct remote_session *);
void remote_session_catch_up(struct remote_session *, int ms);

/* Whether there is no explainer, and will be none. */
bool remote_session_has_failed(const struct remote_session *);

/* NULL: there is none. */
void remote_session_close(struct remote_session *);

#endif
