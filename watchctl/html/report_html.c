/*
 * report_html: one page, which goes into a bug report: it needs neither scripts
 * nor a network.  Hits become bins of timelines, and rows of a summary; the
 * page is written at the end.
 */
#include <errno.h>
#include <stdlib.h>

#include "html/page.h"
#include "report/summary.h"

static void
html_free(struct report *r)
{
	struct page *page = r->own;

	if (page != NULL) {
		for (unsigned i = 0; i < page->ntimelines; i++)
			timeline_free(page->timeline[i]);
		for (unsigned i = 0; i < page->nwarnings; i++)
			free(page->warning[i]);
		by_stack_free(&page->places, sizeof(struct page_place));
	}
	text_free(r);
}

static int
html_start(struct report *r, const struct report_start *start)
{
	struct page *page = calloc(1, sizeof(*page));

	r->begin = *start;
	r->own = page;
	r->summary = summary_new(SUMMARY_ROWS);
	if (page == NULL || r->summary == NULL) {
		html_free(r);
		return -ENOMEM;
	}
	text_look_around(&page->text);
	return 0;
}

static int
html_watch(struct report *r, const struct ex_watch *const *watches,
    unsigned nwatches)
{
	r->begin.watches = watches;
	r->begin.nwatches = nwatches;
	return 0;
}

struct timeline *
page_timeline(const struct page *page, unsigned number)
{
	for (unsigned i = 0; i < page->ntimelines; i++)
		if (page->timeline[i]->number == number)
			return page->timeline[i];
	return NULL;
}

/* The same; the timeline is made if it does not exist.  NULL: *err is -ENOMEM,
   or 0 if there are too many. */
static struct timeline *
timeline_of(struct page *page, unsigned number, int *err)
{
	struct timeline *t = page_timeline(page, number);

	*err = 0;
	if (t != NULL || page->ntimelines == PAGE_TIMELINES)
		return t;
	if ((t = timeline_new(number)) == NULL)
		*err = -ENOMEM;
	else
		page->timeline[page->ntimelines++] = t;
	return t;
}

/* The writer's place in the timeline, looked up once for each backtrace. */
static unsigned
place_of(struct page *page, struct timeline *t, const struct ex_hit *hit)
{
	struct page_place *known = hit->stack == NULL || hit->late ? NULL :
	    by_stack_at(&page->places, hit->stack->index, sizeof(*known));

	if (known != NULL && known->timeline == t &&
	    known->taken == t->writer[known->place].taken)
		return known->place;
	if (known == NULL)
		return timeline_place(t, hit);
	known->timeline = t;
	known->place = timeline_place(t, hit);
	known->taken = t->writer[known->place].taken;
	return known->place;
}

static int
html_hit(struct report *r, const struct ex_hit *hit)
{
	struct page *page = r->own;
	struct timeline *t;
	int err = report_count(r, hit), no_memory;

	t = timeline_of(page, ex_watch_number(hit->watch), &no_memory);
	if (t != NULL)
		timeline_add(t, hit, place_of(page, t, hit));
	return err != 0 ? err : no_memory;
}

/* The times of single hits are not known. */
static int
html_recall(struct report *r, const struct ex_hit *hit,
    const struct summary_row *past)
{
	int err;
	struct timeline *t = timeline_of(r->own, ex_watch_number(hit->watch),
	    &err);

	if (t != NULL)
		t->before += past->count;
	return err;
}

static int
html_warning(struct report *r, const char *text)
{
	struct page *page = r->own;

	if (page->nwarnings == PAGE_WARNINGS) {
		page->more_warnings++;
		return 0;
	}
	if ((page->warning[page->nwarnings] = strdup(text)) == NULL)
		return -ENOMEM;
	page->nwarnings++;
	return 0;
}

static int
html_end(struct report *r, const struct report_end *end)
{
	int rc = 0;

	if (r->own == NULL)
		return 0;
	if (end != NULL) {
		page_put(r, end);
		rc = text_write(r, 0, true);
		if (rc == 0)
			report_counted(r);
	}
	html_free(r);
	return rc;
}

const struct report_ops report_html = {
	.name = "html", .start = html_start, .watch = html_watch,
	.hit = html_hit, .recall = html_recall, .warning = html_warning,
	.end = html_end,
};
