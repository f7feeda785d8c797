/*
 * text: what the text report's hits (report_text.c) and its tables
 * (text_tables.c) share.
 */
#ifndef TEXT_H
#define TEXT_H

#include <limits.h>

#include "util/buffer.h"
#include "policy/by_stack.h"
#include "report/report.h"

/* The report's own state. */
struct text {
	struct buffer out;	/* what is to be written */
	struct buffer scratch;	/* a cell, to be measured and padded */
	struct by_stack printed;	/* of uint64_t: seq of the hit that has
					   the backtrace; 0: none yet */
	char directory[PATH_MAX];	/* the current one; "": not known */
};

/* ANSI colours, by what they are for. */
enum paint { PAINT_PLAIN, PAINT_WATCH, PAINT_FUNCTION, PAINT_DIM, PAINT_BAD };

/* Find out which directory is the current one. */
void text_look_around(struct text *);

/* The state of a report that starts, NULL: no memory; and the end of one, and
   of its state, if there is one. */
struct text *text_new(struct report *);
void text_free(struct report *);

/* Begin a colour, if colours are wanted; or print a text in it. */
void text_paint(struct report *, struct buffer *, enum paint);
void text_painted(struct report *, struct buffer *, enum paint,
    const char *text);

/* End what was begun at start, and write what is held back when it is much, or
   always.  0 or -errno. */
int text_write(struct report *, size_t start, bool always);

/* A column that is as wide as what the scratch buffer holds in each line: find
   the width; print the cell, padded to it. */
void text_widen(const struct text *, size_t *width);
void text_put_cell(struct text *, size_t width, bool right);

/* The watch's symbol, or what else it is called; and in its colour. */
void text_put_watch(struct buffer *, const struct ex_watch *);
void text_put_watch_name(struct report *, struct buffer *,
    const struct ex_watch *);

/* "+12.003417s": seconds since the run began, with a unit like this, or with
   a space in front of it. */
void text_put_time(const struct report *, struct buffer *, uint64_t time,
    const char *unit);

/* " in victim[4335]", of several processes; else nothing. */
void text_put_process(struct buffer *, const struct ex_watch *);

/* Whether one of the first n watches has this number. */
bool text_has_number(const struct ex_watch *const *, unsigned n,
    unsigned number);

/* "(8 bytes at 0x404090)", "(long, 8 bytes at 0x404090)", "(4 of 8 bytes, at
   0x404094)", "(at 0x401320)"; type may be NULL. */
void text_put_bytes(struct report *, struct buffer *, const struct ex_watch *,
    uint64_t addr, uint64_t len, const char *type);

/* "writes", of a watch's access. */
const char *text_access_words(enum wp_access);

/* "write", "stray write by read(2)", "write by the kernel (thread exit)". */
void text_put_access(struct buffer *, const char *verdict, const char *access,
    bool kernel, const char *syscall, const char *work);

/* "stray ", "unjudged ", "". */
const char *text_verdict(bool stray, bool unjudged);

/* What to call a frame: "bump" (short_name.h), "main+0x1c" without a line, or
   its pc. */
void text_put_name(struct buffer *, const struct ex_frame *);

/* A path as it is from a directory ("": none), if it lies below that. */
const char *text_from_directory(const char *directory, const char *path);

/* Where a frame is: "victim.c:10", or the module in parentheses.  A source file
   below the current directory is named from there. */
void text_put_place(const struct text *, struct buffer *,
    const struct ex_frame *);

/* What it is beside a call: " (inlined)", " (signal frame)". */
void text_put_kind(struct buffer *, const struct ex_frame *);

/* The frames of a backtrace, a line each, and how it ends. */
void text_put_stack(struct report *, const struct ex_stack *);

/* Where the seq of the hit that has the backtrace is noted; NULL: no memory. */
uint64_t *text_printed_at(struct text *, unsigned index);

/* "0 .. 41, from -5 to 41": the first value of a row and the last, the least
   and the largest; as far as they are known. */
void text_put_values(struct buffer *, const struct summary_row *);

/* What the hits of a row did, and where: "write in bump victim.c:10". */
void text_put_where(const struct text *, struct buffer *,
    const struct summary_row *);

/* All that is reported at the end (text_tables.c).  0 or -errno. */
int text_tables(struct report *, const struct report_end *);

#endif
