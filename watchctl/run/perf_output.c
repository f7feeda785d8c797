/* perf_output: what -o perf writes besides the records of the rings. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "space/kernel_symbols.h"
#include "run/run.h"
#include "attach/synth.h"

static int
record_header(void *arg, const struct perf_event_header *header)
{
	struct session *s = arg;
	int err = ex_perfwriter_record(s->recording, header);

	session_note(s, err);
	return err;
}

static void
record_synthetic(void *arg, const struct ex_record *record)
{
	(void)record_header(arg,
	    (const struct perf_event_header *)(const void *)record->bytes);
}

int
perf_output_begin(struct run *run, const struct ex_perf_event *events, size_t n)
{
	int err = session_record_to_file(&run->session, events, n);

	if (err < 0)
		return err;
	if (wp_target_options(run->target)->kernel)
		(void)wp_synth_kernel(record_header, &run->session);
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].lent)
			synthetic_records_shared(&run->synthetic,
			    run->process[i].pid);
	synthetic_records_each(&run->synthetic, record_synthetic,
	    &run->session);
	return 0;
}

/* The explainer has read the mappings of each process before, and learns of the
   changes here. */
void
perf_output_learn(struct run *run, const struct ex_record *r)
{
	const bool map = (r->type == PERF_RECORD_MMAP ||
	    r->type == PERF_RECORD_MMAP2) && (r->mmap.prot & PROT_EXEC) != 0;

	if (!map && (r->type != PERF_RECORD_COMM ||
	    (r->misc & PERF_RECORD_MISC_COMM_EXEC) == 0))
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->process[i].pid == r->pid)
			(void)live_broker_add(&run->live, r->pid, r->bytes,
			    r->size);
}

static void
record_build_id(void *arg, const char *path, const char *hex)
{
	const struct run *run = arg;
	uint8_t id[64];
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n && i < sizeof(id); i++) {
		unsigned byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return;
		id[i] = (uint8_t)byte;
	}
	if (n > 0 && n <= sizeof(id))
		(void)ex_perfwriter_build_id(run->session.recording, path, id,
		    n);
}

void
perf_output_build_ids(struct run *run)
{
	struct session *s = &run->session;
	uint8_t id[20];
	size_t len;

	if (wp_target_options(run->target)->kernel &&
	    (len = ex_kernel_build_id(id)) > 0)
		(void)ex_perfwriter_build_id(s->recording, "[kernel.kallsyms]",
		    id, len);
	for (size_t i = 0; i < run->nprocesses; i++)
		live_broker_modules(&run->live, run->process[i].pid,
		    record_build_id, run);
}
