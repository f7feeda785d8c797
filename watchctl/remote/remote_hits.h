/*
 * remote_hits: the results for the hits of a remote session, as its explainers
 * report them.
 *
 * A sample is settled when its explainer has reported which hit it belongs to,
 * and whether that hit was written or left out.  Then the hit counts, and the
 * action for it is taken.
 */
#ifndef REMOTE_HITS_H
#define REMOTE_HITS_H

#include "broker/broker.h"
#include "remote/remote_entries.h"
#include "remote/remote_session.h"

enum { KEPT_DETAILS_MAX = 64 };	/* details of the hits of one stop */

struct remote_hits {
	struct session *session;
	struct broker *broker;
	struct remote_entries *entries;
	struct past_hits *past;
	/* set by remote_session_act and remote_session_observe; NULL: none */
	void (*act)(void *arg, const struct remote_hit *);
	void *act_arg;
	void (*observe)(void *arg, const void *hit,
	    const struct broker_channel_hit *);
	void *observer;
	struct remote_details {	/* of hits that are not written yet */
		uint64_t begun, addr;
		struct buffer environment;
	} detail[KEPT_DETAILS_MAX];	/* ndetails of them */
	size_t ndetails;
	uint64_t counted;	/* the number `begun' up to which hits are
				   counted */
};

/* Take an explainer's details of a hit before it is written (BROKER_DETAILS),
   and answer.  False: the message is invalid. */
bool remote_hits_take_details(struct remote_hits *,
    const struct broker_message *);
void remote_hits_forget_details(struct remote_hits *);

/* This many hits are written: settle the samples that depend on them. */
void remote_hits_settle(struct remote_hits *, uint64_t hits);

/* A new explainer has read the past: learn its numbers of the backtraces. */
void remote_hits_renumber(struct remote_hits *);

#endif
