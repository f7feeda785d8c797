/* json: what the files of report_json share. */
#ifndef JSON_H
#define JSON_H

#include "policy/by_stack.h"
#include "report/report.h"
#include "util/field.h"

enum {
	JSON_NAMED_MAX = 1 << 16,	/* backtraces known to have a line */
	JSON_THREADS_MAX = 64,	/* cached texts of threads, by tid modulo
				   this */
	JSON_PLACES_MAX = 1024,	/* cached texts of accesses, by the backtrace's
				   index modulo this */
};

/* The fields of a hit's line about its thread, and their text. */
struct json_thread_key {
	pid_t pid, tid;
	uint32_t cpu;
	char comm[64];		/* as in struct ex_hit */
};

struct json_thread {
	struct json_thread_key of;
	struct buffer text;	/* empty: none is kept */
};

/* The fields about the access, except values and system calls, and their text.
   There is no padding, so memcmp can compare keys. */
struct json_access_key {
	const char *access, *type, *path;	/* these live as long as the
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
	size_t start;		/* where the last line begins */
	struct by_stack stacks;	/* struct buffer, with the backtrace's fields
				   (json_stack.c) */
	size_t kept;		/* bytes in all these buffers */
	unsigned *named;	/* stacks_once: index + 1 of the backtrace whose
				   line was written last, by the index modulo
				   JSON_NAMED_MAX; 0: none */
	struct json_thread thread[JSON_THREADS_MAX];
	struct json_access access[JSON_PLACES_MAX];
};

/* Begin a line of a type; the result is its buffer.  End the line (of a hit),
   and write if there is enough: 0 or -errno. */
struct buffer *json_line_begin(struct report *, const char *type);
int json_line_end(struct report *);
int json_line_end_of(struct report *, bool hit);

/* Append the seconds from the beginning of the run to a time on the records'
   clock; and, if there are several processes, the watch's process. */
void json_field_time(struct buffer *, const char *name, const struct report *,
    uint64_t time);
void json_field_pid(struct buffer *, const struct ex_watch *);

/* Append a frame's place in source files. */
void json_field_place(struct buffer *, const struct ex_frame *);

/* Append the name of a backtrace.  If the name alone has to identify its
   frames, it has a number that distinguishes backtraces of the same places at
   different addresses. */
void json_field_stack(struct buffer *, const char *name, const struct report *,
    const struct ex_stack *);

/* The same with its frames; and for a hit, for which the name alone is enough
   if it leads to a line. */
void json_put_stack(struct buffer *, const struct report *,
    const struct ex_stack *);
void json_hit_stack(struct report *, const struct ex_stack *);

/* Write the line of a backtrace, unless it has been written.  0 or -errno. */
int json_name_stack(struct report *, const struct ex_stack *);

/* Drop the kept fields of backtraces. */
void json_forget_stacks(struct json *);

/* Write a finding: a stray or possibly stray writer, at the culprit's place. */
int json_put_finding(struct report *, const struct finding *);

/* As of struct report_ops. */
int json_hit(struct report *, const struct ex_hit *);
int json_damage(struct report *, const struct report_damage *);

/* Write the lines of the end.  0 or -errno. */
int json_put_end(struct report *, const struct report_end *);

#endif
