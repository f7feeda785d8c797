/*
 * explained_session: a session whose hits are explained, judged and reported in
 * this process, which is an explainer (or a test).
 */
#ifndef EXPLAINED_SESSION_H
#define EXPLAINED_SESSION_H

#include "session/session.h"
#include "space/space.h"

/* The state of a report that another process began and did not finish. */
struct session_resume {
	bool begun;		/* its first lines are written, ... */
	uint64_t hits;		/* ... and this many hits; UINT64_MAX:
				   everything */
};

/* Open a session whose report goes to an open stream, which remains the
   caller's; the session takes over the space, NULL: a new one.  Otherwise as
   session_open. */
int explained_session_open(struct session *, const struct options *,
    enum ex_source, struct ex_space *, FILE *out,
    const struct output_screen *, const struct session_resume *);

/* The same for a session that is open.  0, or -ENOMEM after a line on
   stderr. */
int explained_session_begin(struct session *, enum ex_source,
    struct ex_space *);

/* The state that another process left has been read, during which s->resuming
   was set: continue from here. */
void explained_session_resumed(struct session *);

/* The number `begun' up to which all hits are reported or left out. */
uint64_t explained_session_done(const struct session *);

/* The number of hits that are written when the present write is complete. */
uint64_t explained_session_writing(const struct session *);

/* As session_object; SPEC NULL: there is none. */
int explained_session_object(struct session *, pid_t, const struct spec *,
    uint64_t addr, uint64_t len);

#endif
