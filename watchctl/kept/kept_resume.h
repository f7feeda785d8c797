/*
 * kept_resume: what another explainer has to be told before it goes on with a
 * session.
 */
#ifndef KEPT_RESUME_H
#define KEPT_RESUME_H

#include "kept/past.h"
#include "session/session.h"
#include "util/buffer.h"

/* Append entries of a journal (session/journal.h): the log, how far the session
   is, and its hits of before.  Without memory the buffer has failed. */
void kept_resume_put(struct buffer *, const struct buffer *log,
    const struct session *, const struct past *);

#endif
