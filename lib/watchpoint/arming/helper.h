/*
 * helper: the process that explains this program's hits: how it is started or
 * joined, and gets requests and descriptors.
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

/* Join the helper of WATCHPOINT_CHANNEL, locked: 0; -ENOENT: there is none;
   -EBUSY: it serves another process, whose environment was passed on. */
int wp_helper_join(struct wp_cause *);

/* Send the helper a request: fill it in between these two calls (locked); it is
   all 0 but for what and slots.  -EPIPE: there is no helper. */
struct wp_request *wp_helper_request(uint32_t what);	/* NULL: no helper */
int wp_helper_ask(struct wp_cause *);

/* In a child made by fork(2), locked: the channel is its parent's.  When a
   helper is started for the child, the parent's helper is asked to serve the
   child's channel, too. */
void wp_helper_forked(void);

/* After that: release what was the parent's, except the root. */
void wp_helper_part(void);

/* In such a child: report to the parent's helper that the child is not
   watched. */
void wp_helper_unfollowed(void);

/* Report to the helper that started this program, or adopted it, that its
   watches are open; or (a cause) why they are not; locked. */
int wp_helper_armed(const struct wp_cause *);

/* Report to the helper what is open now; does nothing without a helper. */
void wp_helper_describe(struct wp_watch *);

/* Mark a watch as open, so that signals with its serial are for it, and report
   it to the helper. */
void wp_watch_publish(struct wp_watch *, uint32_t serial);

/* Whether all accesses to an open watch have reached the handler; report those
   that have not.  *ms, which is decreased, is the time to wait for threads
   whose signals are still on the way.  Locked. */
void wp_helper_look(const struct wp_watch *, unsigned *ms);

/* How often so far threads that the helper arms may have made accesses that
   were not reported; see channel.h. */
uint32_t wp_helper_gaps(void);

/* Report to the helper that an open watch has moved. */
void wp_helper_moved(const struct wp_watch *);

/* An environment variable; NULL if it is unset, or if the program was given
   privileges (secure_getenv(3)). */
const char *wp_setting(const char *name);

/* Open wp_state.output; once, locked (output.c). */
void wp_output_open(void);

#endif
