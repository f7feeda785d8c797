/* watch_event: changes to a watch while others continue. */
#ifndef WATCH_EVENT_H
#define WATCH_EVENT_H

#include <stdint.h>
#include <sys/types.h>

/* The gap of an event at which nothing can have been missed. */
#define WATCH_NO_GAP UINT64_MAX

struct ex_stack;

struct watch_event {
	enum watch_event_what {
		WATCH_ARMED,
		WATCH_DISARMED,
		WATCH_RETARGET,		/* the followed pointer leads
					   elsewhere */
		WATCH_MISSING,		/* the program has no such symbol */
	} what;
	unsigned watch;		/* its index, from 0 */
	uint64_t time;		/* ns on the records' clock */
	pid_t pid, tid;		/* 0: none */
	uint64_t addr, len;	/* its place from then on; len 0: nowhere */
	uint64_t gap;		/* ns for which the variable existed and was not
				   watched; WATCH_NO_GAP: 0, and that is
				   proved */
	char module[64];	/* the module that it waited for; "": none */
	char program[256];	/* the path of the executed program; "": none */
};

/* The name in JSON: "armed", ... */
static inline const char *
watch_event_text(const struct watch_event *event)
{
	static const char *const text[] = {
		[WATCH_ARMED] = "armed", [WATCH_DISARMED] = "disarmed",
		[WATCH_RETARGET] = "retarget", [WATCH_MISSING] = "missing",
	};

	return text[event->what];
}

/* A change of an object that is a part of a watch (alloc:). */
struct object_event {
	enum object_event_what {
		OBJECT_NEW, OBJECT_FREED,
		OBJECT_REUSED,	/* its memory is handed out again */
	} what;
	unsigned watch;		/* its index, from 0, */
	unsigned part;		/* and the index of its part */
	uint64_t object;	/* its number, from 1 */
	uint64_t time;		/* ns on the records' clock */
	pid_t pid, tid;
	uint64_t addr;		/* address of its first byte */
	uint64_t size;		/* bytes; 0: not known */
	const struct ex_stack *stack;	/* where that happened; NULL: not
					   known */
};

static inline const char *
object_event_text(const struct object_event *event)
{
	static const char *const text[] = {
		[OBJECT_NEW] = "new", [OBJECT_FREED] = "freed",
		[OBJECT_REUSED] = "reused",
	};

	return text[event->what];
}

#endif
