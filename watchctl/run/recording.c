/* recording: what -o perf writes besides the records of the rings. */
#include <stdio.h>
#include <string.h>

#include "module/kallsyms.h"
#include "run/run.h"
#include "attach/synth.h"

static int
record_header(void *arg, const struct perf_event_header *header)
{
	struct session *s = arg;
	int err = ex_perfwriter_record(s->recording, header);

	if (err < 0 && s->err == 0)
		s->err = err;
	return err;
}

static void
record_synthetic(void *arg, const struct ex_record *record)
{
	(void)record_header(arg,
	    (const struct perf_event_header *)(const void *)record->bytes);
}

int
recording_begin(struct run *run, const struct ex_perf_event *events, size_t n)
{
	int err = session_record_to_file(&run->session, events, n);

	if (err < 0)
		return err;
	if (wp_target_options(run->target)->kernel)
		(void)wp_synth_kernel(record_header, &run->session);
	synthetic_records_each(&run->synthetic, record_synthetic, &run->session);
	return 0;
}

static int
record_build_id(void *arg, struct ex_module *module, uint64_t base)
{
	const struct run *run = arg;
	const char *hex = ex_module_build_id(module);
	uint8_t id[64];
	size_t n = strlen(hex) / 2;

	(void)base;
	for (size_t i = 0; i < n && i < sizeof(id); i++) {
		unsigned byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return 0;
		id[i] = (uint8_t)byte;
	}
	if (n > 0 && n <= sizeof(id))
		(void)ex_perfwriter_build_id(run->session.recording,
		    ex_module_path(module), id, n);
	return 0;
}

void
recording_build_ids(struct run *run)
{
	struct session *s = &run->session;
	uint8_t id[20];
	size_t len;

	if (wp_target_options(run->target)->kernel &&
	    (len = ex_kernel_build_id(id)) > 0)
		(void)ex_perfwriter_build_id(s->recording, "[kernel.kallsyms]",
		    id, len);
	for (size_t i = 0; i < run->nprocesses; i++)
		(void)ex_process_modules(ex_space_process(s->space,
		    run->process[i].pid), record_build_id, run);
}
