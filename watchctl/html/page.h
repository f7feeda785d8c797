/*
 * page: the report as one HTML page: the data that -o html collects until the
 * end (report_html.c), and the writers of the page's parts.
 *
 * The page is smaller than 2 MB, however many hits and writers there are and
 * however long their names: timelines have a fixed number of bins, and the
 * numbers of writers and other items are limited; the page says how many are
 * not shown.
 */
#ifndef PAGE_H
#define PAGE_H

#include "html/timeline.h"
#include "text/text.h"
#include "text/writers.h"

enum { PAGE_TIMELINES = 64, PAGE_WARNINGS = 40 };

/* Characters of a name that are shown. */
enum { PAGE_NAME = 120, PAGE_WARNING = 300 };

struct page {
	struct text text;	/* first, where text.h expects it; it holds the
				   output */
	struct timeline *timeline[PAGE_TIMELINES];	/* ntimelines of them,
				   in the order of first hits */
	unsigned ntimelines;
	struct by_stack places;	/* of struct page_place */
	char *warning[PAGE_WARNINGS];	/* nwarnings of them */
	unsigned nwarnings;
	uint64_t more_warnings;
};

/* Where the hits of a backtrace are drawn. */
struct page_place {
	struct timeline *timeline;	/* NULL: not known yet */
	unsigned place, taken;	/* its writer's index, and `taken' when it was
				   looked up, as of struct timeline_writer */
};

/* The timeline of a watch; NULL: the watch had no hit. */
struct timeline *page_timeline(const struct page *, unsigned number);

/* Append the page. */
void page_put(struct report *, const struct report_end *);

/* For the parts of the page. */

/* Append, escaped, the name of a frame's function, and its place in the
   source. */
void page_put_name(struct buffer *, const struct ex_frame *);
void page_put_place(struct report *, struct buffer *, const struct ex_frame *);

/* "victim.c:10", "3 hits" */
void page_put_count(struct buffer *, uint64_t n, const char *what);

/* Append the section of a watch: its timeline, and its writers with their
   backtraces (page_watch.c); of `of' such sections. */
void page_put_watch(struct report *, const struct ex_watch *,
    const struct writers *, const struct report_end *, unsigned of);

/* Append the details of one writer, in its colour (page_writer.c); open:
   unfolded. */
void page_put_writer(struct report *, const struct timeline *,
    const struct writer *, unsigned colour, uint64_t total, bool open);

#endif
