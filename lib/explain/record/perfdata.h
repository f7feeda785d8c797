/*
 * perfdata: reads and writes perf.data files.
 *
 * It reads what `perf record -e mem:...` writes (file mode, and the pipe mode
 * of -o -), and what the writer below writes.  It writes file mode, with sample
 * identifiers, so that `perf script` and `perf report` open the file.  The
 * format is described in the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt.
 *
 * Files are untrusted: every offset and length is checked.  They are mapped: a
 * file that is truncated while open raises SIGBUS.
 */
#ifndef EX_PERFDATA_H
#define EX_PERFDATA_H

#include "record/record.h"

/* One event of a recording. */
struct ex_perf_event {
	struct perf_event_attr attr;
	const char *name;	/* from EVENT_DESC; NULL: none */
	const uint64_t *ids;
	size_t nids;
};

struct ex_perfdata;	/* a recording opened for reading */

/*
 * Open a recording.  0, or -errno: -EINVAL not a perf.data file, -ENOTSUP one
 * of another byte order, compressed, or with fields that are not known here,
 * -EBADMSG damaged, -ENOMEM, or what open(2) and mmap(2) give.  On failure *why
 * is set to a constant sentence for the user.
 */
int ex_perfdata_open(const char *path, struct ex_perfdata **, const char **why);
void ex_perfdata_close(struct ex_perfdata *);

/* Its events, which belong to it. */
size_t ex_perfdata_events(const struct ex_perfdata *,
    const struct ex_perf_event **);

/* The host on which it was recorded, "": not known; and the rank, NULL:
   none. */
const char *ex_perfdata_host(const struct ex_perfdata *);
const unsigned *ex_perfdata_rank(const struct ex_perfdata *);

/* The wall time, ns since 1970, of a record's time; 0: not known. */
uint64_t ex_perfdata_wall(const struct ex_perfdata *, uint64_t time);

/* Call fn for each entry of the build-id table. */
void ex_perfdata_build_ids(const struct ex_perfdata *,
    void (*fn)(void *arg, const char *path, const uint8_t *id, size_t len),
    void *arg);

/*
 * The next record in time order (records without a time first, in file order).
 * 1: *out is it, valid until close; 0: no more; -EBADMSG: the file is damaged
 * from here on, or was never finished, after everything before it has been
 * given.
 */
int ex_perfdata_next(struct ex_perfdata *, struct ex_record *out);

/* The number of skipped records in the whole file: of a type that the decoder
   does not know, or of an event that the file does not name. perf's own
   bookkeeping (types from 64 on) does not count. */
uint64_t ex_perfdata_skipped(const struct ex_perfdata *);

/*
 * A recording being written.  Records are appended as they are; at the end the
 * header's sizes and features are filled in.  -errno from the file system is
 * kept and returned by every later call.
 */
struct ex_perfwriter;

/*
 * Begin a recording in fd, from offset 0; fd must be seekable and not O_APPEND,
 * else -ESPIPE.  The events are copied; names are kept when all have one, else
 * perf makes them up.  On success the writer owns fd and will close it; on
 * failure it is still the caller's.
 */
int ex_perfwriter_open(int fd, const struct ex_perf_event *, size_t n,
    struct ex_perfwriter **);

/* Append a record, header first, header->size bytes.  -EINVAL: no record. */
int ex_perfwriter_record(struct ex_perfwriter *, const void *record);

/* Set the host and the rank of the recording; NULL: none. */
void ex_perfwriter_origin(struct ex_perfwriter *, const char *host,
    const unsigned *rank);

/* Write what was appended to the file, in case this process is killed. */
int ex_perfwriter_flush(struct ex_perfwriter *);

/* Name a module's build id in the file's table, under the path that mappings
   give it.  -EINVAL: not 1 to 20 bytes, or a path too long. */
int ex_perfwriter_build_id(struct ex_perfwriter *, const char *path,
    const uint8_t *id, size_t len);

/* Write features and sizes, close.  0 or the first -errno.  Frees it. */
int ex_perfwriter_close(struct ex_perfwriter *);

#endif
