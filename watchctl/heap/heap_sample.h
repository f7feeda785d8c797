/*
 * heap_sample: `watchctl --heap=sample`: one run, in which the programs choose
 * blocks and watch them (guard/sample.h).  Findings are reported while they
 * run.
 */
#ifndef HEAP_SAMPLE_H
#define HEAP_SAMPLE_H

#include <stddef.h>

#include "heap/heap_channel.h"
#include "heap/heap_evidence.h"
#include "helper/serve.h"

struct heap_sample {
	struct serve *serve;
	struct heap_evidence *evidence;
	struct heap_channel channel;
	struct {
		struct sample_hit {
			uint32_t id;	/* of the watch of its block */
			uint64_t seq;
		} *at;			/* n of them */
		size_t n, cap;
	} hits;
	uint32_t seen;			/* findings that existed at the previous
					   round */
	uint32_t reported;		/* of these findings */
};

/* Set the variables for the command that is about to be started.  0, or -errno
   after a line on stderr. */
int heap_sample_open(struct heap_sample *, const char *guard);

/* Serve the started command to its end; the session has begun. */
void heap_sample_serve(struct heap_sample *, pid_t);

/* When all programs have ended, report the findings that have not been
   reported. */
void heap_sample_report(struct heap_sample *);

void heap_sample_close(struct heap_sample *);

#endif
