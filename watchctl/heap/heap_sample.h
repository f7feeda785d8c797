/*
 * heap_sample: `watchctl --heap=sample`: one run, in which the programs choose
 * blocks and watch them (guard/sample.h).  What is found is reported while they
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
			uint32_t id;	/* of its block's watch */
			uint64_t seq;
		} *at;			/* n of them */
		size_t n, cap;
	} hits;
	uint32_t seen;			/* findings, by the round before */
	uint32_t reported;		/* of them */
};

/* Before the command is started: the variables for it.  0, or -errno after a
   line on stderr. */
int heap_sample_open(struct heap_sample *, const char *guard);

/* When it is, and the session has begun: serve it to its end. */
void heap_sample_serve(struct heap_sample *, pid_t);

/* And, as far as it is known when all programs have ended, report what has not
   been yet. */
void heap_sample_report(struct heap_sample *);

void heap_sample_close(struct heap_sample *);

#endif
