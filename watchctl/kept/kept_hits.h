/*
 * kept_hits: what became of the hits of a kept session, as its explainers say.
 *
 * A sample is settled when it is known which hit it is a part of, and what
 * became of that: it is written, or it is left out.  Then it counts, and what
 * is to be done at it is done.
 */
#ifndef KEPT_HITS_H
#define KEPT_HITS_H

#include "box/box.h"
#include "kept/kept_entries.h"
#include "kept/kept_session.h"

enum { KEPT_DETAILS_MAX = 64 };	/* hits of one stop */

struct kept_hits {
	struct session *session;
	struct box *box;
	struct kept_entries *entries;
	struct past *past;
	/* as of kept_session_act, and kept_session_observe; NULL: none */
	void (*act)(void *arg, const struct kept_hit *);
	void *act_arg;
	void (*observe)(void *arg, const void *hit,
	    const struct box_channel_hit *);
	void *observer;
	struct kept_details {	/* of hits that are not written yet */
		uint64_t begun, addr;
		struct buffer environment;
	} detail[KEPT_DETAILS_MAX];	/* ndetails of them */
	size_t ndetails;
	uint64_t counted;	/* hits, by their numbers `begun' */
};

/* Take what an explainer says of a hit before it is written (BOX_DETAILS), and
   answer.  False: the message lies. */
bool kept_hits_take_details(struct kept_hits *, const struct box_message *);
void kept_hits_forget_details(struct kept_hits *);

/* So many hits are written: settle what is settled by that. */
void kept_hits_settle(struct kept_hits *, uint64_t hits);

/* Another explainer has read the past: what it calls these backtraces. */
void kept_hits_renumber(struct kept_hits *);

#endif
