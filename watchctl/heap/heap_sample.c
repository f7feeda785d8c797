/* heap_sample: one run, in which programs choose what they watch.  See
   heap_sample.h. */
#include "heap/heap_sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "heap/heap_findings.h"
#include "helper/preloaded.h"
#include "remote/remote_session.h"

enum { MOST = 1 << 16 };	/* hits that are remembered */

int
heap_sample_open(struct heap_sample *sample, const char *guard)
{
	char watching[PATH_MAX];
	int err = heap_channel_library(watching);

	if (err == 0)
		err = heap_channel_open(&sample->channel,
		    sample->serve->options);
	if (err == 0)
		err = heap_channel_set(&sample->channel, guard, watching);
	if (err == 0)
		sample->evidence->at->sample = 1;
	return err;
}

/* The number at the end of a label (guard/sample.c). */
static uint32_t
id_of(const char *label)
{
	const char *at = strrchr(label, '(');

	return at == NULL ? 0 : (uint32_t)strtoul(at + 1, NULL, 10);
}

static void
take_hit(void *arg, const struct remote_hit *at)
{
	struct heap_sample *sample = arg;

	if (at->watch != NULL && EX_ARRAY_ROOM(&sample->hits, at, MOST))
		sample->hits.at[sample->hits.n++] = (struct sample_hit){
			id_of(at->watch->spec), at->seq,
		};
}

/* Note the hits on its watch as those that did it. */
static void
name(const struct heap_sample *sample, struct hg_finding *f)
{
	for (size_t i = 0; i < sample->hits.n && f->watched != 0; i++)
		if (sample->hits.at[i].id == f->watched &&
		    f->nhits < HG_HITS_MAX)
			f->hit[f->nhits++] = sample->hits.at[i].seq;
}

static bool
report_next(struct heap_sample *sample)
{
	struct hg_finding f;

	if (!heap_evidence_finding(sample->evidence, sample->reported, &f))
		return false;
	name(sample, &f);
	heap_findings_report(sample->serve, &f);
	sample->reported++;
	return true;
}

/* The hits of findings that existed a round ago have been reported by now.  A
   finding that is being written is reported later. */
static void
report(void *arg)
{
	struct heap_sample *sample = arg;

	while (sample->reported < sample->seen && report_next(sample))
		;
	sample->seen = heap_evidence_count(sample->evidence);
}

void
heap_sample_report(struct heap_sample *sample)
{
	struct session *s = &sample->serve->session;
	struct coverage coverage = {0};
	unsigned bad = 0;

	(void)session_flush(s, UINT64_MAX);
	remote_session_catch_up(sample->serve->remote, -1);
	remote_session_act(sample->serve->remote, NULL, NULL);
	sample->seen = heap_evidence_count(sample->evidence);
	while (sample->reported < sample->seen)
		if (!report_next(sample)) {
			sample->reported++;
			bad++;
		}
	heap_findings_unread(sample->serve, heap_evidence_more(
	    sample->evidence), bad);
	heap_findings_repeated(sample->serve, sample->evidence->at);
	heap_evidence_cover(sample->evidence, &coverage);
	(void)session_coverage(s, &coverage, 1);
	heap_findings_unwatched(sample->serve, sample->evidence->at);
}

void
heap_sample_serve(struct heap_sample *sample, pid_t pid)
{
	struct serve *serve = sample->serve;

	heap_channel_unset(&sample->channel);
	remote_session_act(serve->remote, take_hit, sample);
	serve->round = report;
	serve->round_arg = sample;
	if (serve_open_program(serve, sample->channel.at, sample->channel.fd,
	    pid) == 0)
		serve_channel(serve);
	serve->round = NULL;
	preloaded_forget_channel();
}

void
heap_sample_close(struct heap_sample *sample)
{
	heap_channel_close(&sample->channel);
	free(sample->hits.at);
}
