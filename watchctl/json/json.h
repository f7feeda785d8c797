/* json: what the files of report_json share. */
#ifndef JSON_H
#define JSON_H

#include "policy/by_stack.h"
#include "report/report.h"
#include "util/field.h"

enum {
	JSON_NAMED_MAX = 1 << 16,	/* backtraces known to have a line */
	JSON_THREADS_MAX = 64,	/* whose text is kept: by the tid, modulo */
	JSON_PLACES_MAX = 1024,	/* likewise: by the backtrace's index */
};

/* What a hit's line says of its thread; and that as text. */
struct json_thread_key {
	pid_t pid, tid;
	uint32_t cpu;
	char comm[64];		/* as in struct ex_hit */
};

struct json_thread {
	struct json_thread_key of;
	struct buffer text;	/* empty: none is kept */
};

/* What it says of the access, except values and system calls; and that as text.
   No padding, so that memcmp may compare. */
struct json_access_key {
	const char *access, *type, *path;	/* which last as long as the
						   report */
	uint64_t addr, len, pc;
	uint64_t insn_pc, insn_addr;
	uint16_t insn_size, confidence;
	uint32_t samples, accesses;
	uint32_t is;		/* bits: stray, unjudged, late, unsure */
	char insn_text[96];	/* as in struct ex_insn */
};

struct json_access {
	struct json_access_key of;
	struct buffer text;	/* empty: none is kept */
};

struct json {
	struct buffer out;	/* lines to be written */
	size_t start;		/* where the last of them begins */
	struct by_stack stacks;	/* of struct buffer: its fields
				   (json_stack.c) */
	size_t kept;		/* bytes in all of them */
	unsigned *named;	/* stacks_once: which backtrace's line was the
				   last, of those whose index is alike modulo
				   JSON_NAMED_MAX: its index + 1; 0: none's */
	struct json_thread thread[JSON_THREADS_MAX];
	struct json_access access[JSON_PLACES_MAX];
};

/* Begin a line of a type, and have its buffer; end it (that of a hit), and
   write when there is enough: 0 or -errno. */
struct buffer *json_line_begin(struct report *, const char *type);
int json_line_end(struct report *);
int json_line_end_of(struct report *, bool hit);

/* Seconds since the run began, from a time on the records' clock; of several
   processes, which one. */
void json_field_time(struct buffer *, const char *name, const struct report *,
    uint64_t time);
void json_field_pid(struct buffer *, const struct ex_watch *);

/* Where a frame is in source files. */
void json_field_place(struct buffer *, const struct ex_frame *);

/* The name of a backtrace; and where that has to lead to frames, which of those
   that have it: they are the same places at other addresses. */
void json_field_stack(struct buffer *, const char *name, const struct report *,
    const struct ex_stack *);

/* The same, and its frames; in a hit, or only its name if that leads to a
   line. */
void json_put_stack(struct buffer *, const struct report *,
    const struct ex_stack *);
void json_hit_stack(struct report *, const struct ex_stack *);

/* Write the line of a backtrace, unless it is written.  0 or -errno. */
int json_name_stack(struct report *, const struct ex_stack *);

/* Those that are kept are not needed any more. */
void json_forget_stacks(struct json *);

/* One writer that is stray, or may be, at the place that is to be blamed. */
int json_put_finding(struct report *, const struct finding *);

/* As of struct report_ops. */
int json_hit(struct report *, const struct ex_hit *);
int json_damage(struct report *, const struct report_damage *);

/* All that there is to say at the end.  0 or -errno. */
int json_put_end(struct report *, const struct report_end *);

#endif
