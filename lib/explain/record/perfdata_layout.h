/* perfdata_layout: the layout of a perf.data file. */
#ifndef EX_PERFDATA_LAYOUT_H
#define EX_PERFDATA_LAYOUT_H

#include <assert.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#define MAGIC 0x32454c4946524550ULL		/* "PERFILE2" */

#define FEATURE_BITS 256
#define HOST_MAX 65		/* of a host's name, with its NUL */
#define RANK_IS "WATCHCTL_RANK="
#define BUILD_ID_MAX 20
#define ATTR_SIZE sizeof(struct perf_event_attr)

/* Bits of the header's flags that matter here. */
enum feature {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCKID = 23,
	FEATURE_CLOCK_DATA = 29,
};

/* Types of records that perf makes for itself. */
enum {
	USER_TYPES = 64,	/* the first of them */
	USER_ATTR = 64,
	USER_TRACING_DATA = 66,
	USER_BUILD_ID = 67,
	USER_FINISHED_ROUND = 68,
	USER_AUXTRACE = 71,
	USER_FEATURE = 80,
	USER_COMPRESSED = 81,
	USER_COMPRESSED2 = 83,
};

/* In misc of an entry of the build-id table: it gives the id's length. */
#define MISC_BUILD_ID_SIZE (1 << 15)

struct file_section {
	uint64_t offset;	/* in the file */
	uint64_t size;		/* bytes */
};

struct file_header {
	uint64_t magic;
	uint64_t size;		/* of the header; in pipe mode it ends here */
	uint64_t attr_size;	/* of an event in attrs, its section included */
	struct file_section attrs;	/* events: attribute, section of ids */
	struct file_section data;	/* records; size 0: to the file's end */
	struct file_section event_types;	/* not used any more */
	uint64_t flags[FEATURE_BITS / 64];
};

#define PIPE_HEADER_SIZE offsetof(struct file_header, attr_size)

static_assert(sizeof(struct file_header) == 104, "header of a file");
static_assert(PIPE_HEADER_SIZE == 16, "header of a stream");
static_assert(sizeof(struct perf_event_attr) % 8 == 0, "alignment of ids");

#endif
