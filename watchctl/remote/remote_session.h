/*
 * remote_session: has an explainer keep the session of a watch.
 *
 * Everything that the session needs is written to a journal
 * (session/journal.h), in memory that the explainer maps and cannot write.  The
 * explainer reports for each sample which hit it belongs to, and for each hit
 * whether it was reported; a sample is settled when its hit is written.  So
 * nothing is lost when an explainer dies: the next one gets
 *
 *	the past	what the session consisted of before, how far the
 *			report is, and a sample of each backtrace with its
 *			number of hits
 *	the journal	the samples that are not settled, and all that is new
 *
 * and continues.  It does not know earlier values and reports hits without
 * them.
 */
#ifndef REMOTE_SESSION_H
#define REMOTE_SESSION_H

#include "broker/broker.h"
#include "os/known_stack.h"
#include "session/session.h"

struct remote_session;

/* Have the explainers of a broker keep an open session; both must outlive
   this.  0, or -errno after a line on stderr. */
int remote_session_open(struct remote_session **, struct session *,
    struct broker *);

/* A hit that has been written, so that its action can be taken. */
struct remote_hit {
	uint64_t seq, addr;
	pid_t pid, tid;
	const struct ex_watch *watch;	/* NULL: not known */
	bool passed;	/* its thread was released (remote_session_pass) */
	const char *environment;	/* len bytes as of
					   session/environment.h, written by an
					   explainer; 0: none */
	size_t len;
};

/* From here on call act for each hit; if hits are judged, for each stray hit.
   It may report warnings. */
void remote_session_act(struct remote_session *,
    void (*act)(void *arg, const struct remote_hit *), void *arg);

/* From here on call know with stacks that an explainer reports as frequent, if
   BPF programs deliver (false: it is invalid), and forget when those of a
   process (0: of all) must no longer be relied on. */
void remote_session_know(struct remote_session *,
    bool (*know)(void *arg, const struct wp_known_stack *),
    void (*forget)(void *arg, pid_t), void *arg);

/* Add hits of frequent stacks that BPF programs counted; last: the explainer
   that reported the stacks has died, so no other explainer knows them. */
void remote_session_tally(struct remote_session *,
    const struct wp_target_tally *, bool last);

/* Release a thread that is stopped at its hit, after the session was flushed.
   Result: whether its hit is not explained yet. */
bool remote_session_pass(struct remote_session *, pid_t tid);

/* Begin a round, in which each thread that waits now is released; or, together:
   one after the other in this and the following rounds.  From the first round
   on, no thread waits for longer than two seconds from its hit to its release,
   neither for the explanation of its own hit or of others nor for room; what
   cannot be read yet is kept.  Waiting for something else, however long, does
   not count (remote_session_excuse). */
void remote_session_round(struct remote_session *, bool together);
void remote_session_excuse(struct remote_session *, long ms);

/* Call fn once for each hit of a channel (a struct channel_hit) when its fate
   is known; hits_only: nothing else that is reported has anybody waiting for
   it. */
void remote_session_observe(struct remote_session *, void (*fn)(void *arg,
    const void *hit, const struct broker_channel_hit *), void *arg,
    bool hits_only);

/* The text for the program about the channel's hit that was put last; "": it
   has not arrived. */
const char *remote_session_reply(const struct remote_session *);

/* Whether an explainer is still reading; wait until it has read everything, but
   at most ms milliseconds (-1: no limit). */
bool remote_session_is_behind(const struct remote_session *);
void remote_session_catch_up(struct remote_session *, int ms);

/* Whether there is no explainer, and no other will be started. */
bool remote_session_has_failed(const struct remote_session *);

void remote_session_close(struct remote_session *);

#endif
