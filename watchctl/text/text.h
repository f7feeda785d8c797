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
	struct buffer out;	/* output to be written */
	struct buffer scratch;	/* a table's cell, to be measured and padded */
	struct by_stack printed;	/* uint64_t: seq of the hit that was
					   printed with the backtrace; 0: none
					   yet */
	char directory[PATH_MAX];	/* the current one; "": not known */
};

/* ANSI colours, by purpose. */
enum paint { PAINT_PLAIN, PAINT_WATCH, PAINT_FUNCTION, PAINT_DIM, PAINT_BAD };

/* The functions of report_text that are also those of --top. */
int text_start(struct report *, const struct report_start *);
int text_watch(struct report *, const struct ex_watch *const *,
    unsigned nwatches);
int text_event(struct report *, const struct watch_event *);
int text_hit(struct report *, const struct ex_hit *);
int text_lost(struct report *, uint64_t count);
int text_warning(struct report *, const char *text);
int text_flush(struct report *);
int text_end(struct report *, const struct report_end *);

/* Determine the current directory. */
void text_look_around(struct text *);

/* Create the state of a report that starts, NULL: no memory; and free it at the
   end, if there is one. */
struct text *text_new(struct report *);
void text_free(struct report *);

/* Begin a colour, if colours are wanted; and print a text in it. */
void text_paint(struct report *, struct buffer *, enum paint);
void text_painted(struct report *, struct buffer *, enum paint,
    const char *text);

/* Complete what was begun at start, and write the buffer if it is full enough,
   or always.  0 or -errno. */
int text_write(struct report *, size_t start, bool always);

/* A column is as wide as its widest cell.  First call text_widen with each cell
   in the scratch buffer, then print each padded to the width. */
void text_widen(const struct text *, size_t *width);
void text_put_cell(struct text *, size_t width, bool right);

/* Append the watch's symbol or other name; and in its colour. */
void text_put_watch(struct buffer *, const struct ex_watch *);
void text_put_watch_name(struct report *, struct buffer *,
    const struct ex_watch *);

/* Append "+12.003417s", seconds since the run began; unit may begin with a
   space. */
void text_put_time(const struct report *, struct buffer *, uint64_t time,
    const char *unit);

/* Append " in victim[4335]" if there are several processes. */
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

/* Append a frame's name: "bump" (short_name.h), "main+0x1c" without a line, or
   its pc. */
void text_put_name(struct buffer *, const struct ex_frame *);

/* A path relative to a directory ("": none), if it lies below it. */
const char *text_from_directory(const char *directory, const char *path);

/* Append a frame's place: "victim.c:10", or the module in parentheses.  A
   source file below the current directory is relative to it. */
void text_put_place(const struct text *, struct buffer *,
    const struct ex_frame *);

/* Append a frame's kind, unless it is a call: " (inlined)", " (signal
   frame)". */
void text_put_kind(struct buffer *, const struct ex_frame *);

/* Append the frames of a backtrace, a line each, and how it ends. */
void text_put_stack(struct report *, const struct ex_stack *);

/* The place for the seq of the hit that was printed with the backtrace; NULL:
   no memory. */
uint64_t *text_printed_at(struct text *, unsigned index);

/* Append "0 .. 41, from -5 to 41": a row's first and last values, smallest and
   largest, as far as known. */
void text_put_values(struct buffer *, const struct summary_row *);

/* Append what a row's hits did, and where: "write in bump victim.c:10". */
void text_put_where(const struct text *, struct buffer *,
    const struct summary_row *);

/* Write the tables at the end (text_tables.c).  0 or -errno. */
int text_tables(struct report *, const struct report_end *);

#endif
