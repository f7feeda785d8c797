/* short_thread: runs a function in a thread that is separate from the
   program's. */
#ifndef WP_SHORT_THREAD_H
#define WP_SHORT_THREAD_H

/*
 * Call fn(arg) in a thread of its own, which has ended when this returns.  So
 * the events that fn opens belong to no living thread, and
 * prctl(PR_TASK_PERF_EVENTS_DISABLE) does not disable them.  Locked; the thread
 * has little stack.  Result: that of fn; -ECHILD: no thread can be made.
 */
int wp_short_thread(int (*fn)(void *), void *arg);

#endif
