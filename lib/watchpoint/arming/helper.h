/*
 * helper: the process that explains this program's hits: starting it or joining
 * an existing one, sending it requests and descriptors.
 */
#ifndef WP_HELPER_H
#define WP_HELPER_H

#include <stdbool.h>
#include <stdint.h>

#include "os/cause.h"
#include "handler/watches.h"

/* The helper (helper.c).  Start or join it once, locked; 0 when there is one,
   -errno with a cause when there is none. */
int wp_helper_start(struct wp_cause *);

/* Join the one of WATCHPOINT_CHANNEL, locked: 0; -ENOENT: there is none;
   -EBUSY: it is another process's, whose environment was passed on. */
int wp_helper_join(struct wp_cause *);

/* Ask it: fill the request between these (locked), which is all 0 but for what
   and slots.  -EPIPE: none. */
struct wp_request *wp_helper_request(uint32_t what);	/* NULL: no helper */
int wp_helper_ask(struct wp_cause *);

/* In a child made by fork(2), locked: the channel is its parent's.  The helper
   of that is asked to serve a channel of the child's, when one is started. */
void wp_helper_forked(void);

/* And now nothing of the parent's is needed any more, but the root. */
void wp_helper_part(void);

/* There: the parent's helper is to know that this child is not watched. */
void wp_helper_unfollowed(void);

/* Tell the helper that began this program, or adopted it, that its watches are
   open; or (a cause) why not; locked. */
int wp_helper_armed(const struct wp_cause *);

/* Tell it what is open now; NULL-safe without a helper. */
void wp_helper_describe(struct wp_watch *);

/* A watch is open from now on: signals under its serial are for it; tell it. */
void wp_watch_publish(struct wp_watch *, uint32_t serial);

/* Whether all accesses to an open watch have come to the handler, and report
   those that did not; *ms, which is decreased, is the time to wait for threads
   that are on their way.  Locked. */
void wp_helper_look(const struct wp_watch *, unsigned *ms);

/* How often so far threads that the helper arms may have made accesses that
   were not reported; see channel.h. */
uint32_t wp_helper_gaps(void);

/* And that an open one has been moved. */
void wp_helper_moved(const struct wp_watch *);

/* A variable of our environment; NULL when unset, or the program runs with
   privileges it was given (secure_getenv(3)). */
const char *wp_setting(const char *name);

/* Have wp_state.output; once, locked (output.c). */
void wp_output_open(void);

#endif
