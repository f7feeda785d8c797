/* made_recording: recordings that were never made by a watch. */
#ifndef MADE_RECORDING_H
#define MADE_RECORDING_H

#include <fcntl.h>
#include <linux/perf_event.h>

#include "record/perfdata.h"
#include "test.h"

/* Begin one of a watch for writes of 8 bytes there, with event id 1, and with
   these fields of samples beside the usual ones. */
static inline struct ex_perfwriter *
made_recording(const char *path, uint64_t addr, uint64_t fields)
{
	static const uint64_t id = 1;
	const struct ex_perf_event event = {
		.attr = {
			.type = PERF_TYPE_BREAKPOINT,
			.size = sizeof(event.attr), .sample_period = 1,
			.sample_type = PERF_SAMPLE_IDENTIFIER |
			    PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			    PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
			    PERF_SAMPLE_CPU | fields,
			.sample_id_all = 1, .bp_type = 2, .bp_addr = addr,
			.bp_len = 8,
		},
		.name = "counter", .ids = &id, .nids = 1,
	};
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct ex_perfwriter *w;

	assert_true(fd >= 0);
	assert_int_equal(ex_perfwriter_open(fd, &event, 1, &w), 0);
	return w;
}

#endif
