/* page: the beginning of the page, the account, and the findings. */
#include "html/page.h"

#include <stdlib.h>

#include "html/html_escape.h"
#include "html/page_style.h"
#include "util/wall_clock.h"

enum { FINDINGS_SHOWN = 100, WATCHES_SHOWN = PAGE_TIMELINES };

void
page_put_count(struct buffer *b, uint64_t n, const char *what)
{
	buffer_printf(b, "%llu %s%s", (unsigned long long)n, what,
	    n == 1 ? "" : "s");
}

/* Put the content of the scratch buffer, cut to the maximum length, as text. */
static void
put_scratch(struct report *r, struct buffer *b)
{
	html_put_max(b, buffer_text(&((struct text *)r->own)->scratch),
	    PAGE_NAME);
}

void
page_put_name(struct buffer *b, const struct ex_frame *frame)
{
	struct buffer name = {0};

	text_put_name(&name, frame);
	html_put_max(b, buffer_text(&name), PAGE_NAME);
	buffer_free(&name);
}

void
page_put_place(struct report *r, struct buffer *b,
    const struct ex_frame *frame)
{
	struct text *text = r->own;

	text->scratch.len = 0;
	text_put_place(text, &text->scratch, frame);
	put_scratch(r, b);
}

static void
put_head(struct report *r, struct buffer *b)
{
	const struct report_start *start = &r->begin;

	buffer_puts(b, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
	    "<meta charset=\"utf-8\">\n"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\""
	    "default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, "
	    "initial-scale=1\">\n"
	    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
	for (unsigned i = 0; i < start->nwatches && i < 3; i++) {
		buffer_puts(b, i > 0 ? ", " : "");
		html_put_max(b, start->watches[i]->spec == NULL ? "a watch" :
		    start->watches[i]->spec, 40);
	}
	buffer_puts(b, start->nwatches > 3 ? ", ..." : "");
	buffer_puts(b, " - watchctl</title>\n<style>\n" PAGE_STYLE
	    "</style>\n</head>\n<body>\n<main>\n");
}

/* "Who touched counter", and where and when that was. */
static void
put_title(struct report *r, struct buffer *b)
{
	const struct report_start *start = &r->begin;

	buffer_puts(b, "<h1>Who touched ");
	for (unsigned i = 0, n = 0; i < start->nwatches && n < 4; i++) {
		if (text_has_number(start->watches, i,
		    ex_watch_number(start->watches[i])))
			continue;
		buffer_puts(b, n++ > 0 ? ", <code>" : "<code>");
		html_put_max(b, start->watches[i]->spec == NULL ? "?" :
		    start->watches[i]->spec, 60);
		buffer_puts(b, "</code>");
	}
	buffer_puts(b, start->nwatches == 0 ? "what was watched</h1>\n" :
	    "</h1>\n");
	buffer_puts(b, "<p class=\"dim\">");
	if (start->comm != NULL) {
		html_put_max(b, start->comm, PAGE_NAME);
		buffer_printf(b, "[%d]", (int)start->pid);
	} else if (start->pid > 0)
		buffer_printf(b, "process %d", (int)start->pid);
	else
		buffer_puts(b, start->pid < 0 ? "all processes" :
		    "a recording");
	if (start->threads > 0) {
		buffer_puts(b, ", ");
		page_put_count(b, start->threads, "thread");
		buffer_puts(b, " at the start");
	}
	if (*start->origin.host != '\0') {
		buffer_puts(b, ", on ");
		html_put_max(b, start->origin.host, PAGE_NAME);
	}
	if (start->wall != 0) {
		buffer_puts(b, ", ");
		wall_clock_put(b, start->wall);
	}
	buffer_puts(b, "</p>\n");
}

static void
put_number(struct buffer *b, uint64_t n, const char *what, bool bad)
{
	buffer_printf(b, "<div%s><b>%llu</b><span>%s</span></div>\n",
	    bad ? " class=\"bad\"" : "", (unsigned long long)n, what);
}

static void
put_account(struct buffer *b, const struct report_end *end)
{
	buffer_puts(b, "<section id=\"account\">\n<div class=\"account\">\n");
	put_number(b, end->hits, end->hits == 1 ? "hit" : "hits", false);
	put_number(b, end->reported, "reported", false);
	put_number(b, end->lost, "lost", end->lost > 0);
	if (end->changed)
		put_number(b, end->unchanged, "unchanged", false);
	if (end->conditional)
		put_number(b, end->rejected, "rejected by --if", false);
	if (end->thinned)
		put_number(b, end->skipped, "left out", false);
	if (end->handled > 0)
		put_number(b, end->handled, "for handlers", false);
	if (end->merged > 0)
		put_number(b, end->merged, "merged in late hits", false);
	if (end->judged) {
		put_number(b, end->stray, "stray", end->stray > 0);
		put_number(b, end->unjudged, "not judged", end->unjudged > 0);
	}
	buffer_puts(b, "</div>\n");
	if (end->lost > 0)
		buffer_puts(b, "<p class=\"bad small\">Lost hits were counted, "
		    "and it is not known who made them: they are in nothing "
		    "that follows.</p>\n");
	if (end->uptime.known && end->uptime.worst > 0)
		buffer_puts(b, "<p class=\"bad small\">The watches were not on "
		    "all the time.</p>\n");
	buffer_puts(b, "</section>\n");
}

static void
put_finding(struct report *r, struct buffer *b, const struct finding *f)
{
	buffer_printf(b, "<li><b>%llu&#215;</b> <code>",
	    (unsigned long long)f->count);
	if (f->culprit != NULL)
		page_put_name(b, f->culprit);
	else
		buffer_puts(b, f->late ? "delivered late" : "unknown");
	buffer_puts(b, "</code> <span class=\"dim mono\">");
	if (f->culprit != NULL)
		page_put_place(r, b, f->culprit);
	buffer_printf(b, "</span> touched <a href=\"#w%u\"><code>",
	    ex_watch_number(f->watch));
	html_put_max(b, f->watch->spec == NULL ? "the watch" : f->watch->spec,
	    PAGE_NAME);
	buffer_printf(b, "</code></a>, first in hit #%llu</li>\n",
	    (unsigned long long)f->first_seq);
}

static void
put_findings(struct report *r, struct buffer *b, const char *title,
    const struct finding *const *findings, size_t n)
{
	const size_t shown = n < FINDINGS_SHOWN ? n : FINDINGS_SHOWN;

	if (n == 0)
		return;
	buffer_printf(b, "<section>\n<h2 class=\"bad\">%s: %zu %s</h2>\n<ul>\n",
	    title, n, policy_word(findings, n));
	for (size_t i = 0; i < shown; i++)
		put_finding(r, b, findings[i]);
	if (shown < n)
		buffer_printf(b, "<li class=\"dim\">and %zu more</li>\n",
		    n - shown);
	buffer_puts(b, "</ul>\n</section>\n");
}

static void
put_verdict(struct report *r, struct buffer *b, const struct report_end *end)
{
	put_findings(r, b, "Stray", end->findings, end->nfindings);
	put_findings(r, b, "Not judged", end->doubts, end->ndoubts);
	if (end->judged && end->nfindings == 0 && end->ndoubts == 0)
		buffer_puts(b, "<section><p>Of the hits that are reported, "
		    "none was stray.</p></section>\n");
}

static void
put_warnings(struct buffer *b, const struct page *page)
{
	if (page->nwarnings == 0)
		return;
	buffer_puts(b, "<section>\n<h2>Warnings</h2>\n<ul class=\"small\">\n");
	for (unsigned i = 0; i < page->nwarnings; i++) {
		buffer_puts(b, "<li>");
		html_put_max(b, page->warning[i], PAGE_WARNING);
		buffer_puts(b, "</li>\n");
	}
	if (page->more_warnings > 0)
		buffer_printf(b, "<li class=\"dim\">and %llu more</li>\n",
		    (unsigned long long)page->more_warnings);
	buffer_puts(b, "</ul>\n</section>\n");
}

static unsigned
count_sections(const struct report *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->begin.nwatches; i++)
		n += !text_has_number(r->begin.watches, i,
		    ex_watch_number(r->begin.watches[i]));
	return n;
}

static void
put_watches(struct report *r, struct buffer *b, const struct writers *writers,
    const struct report_end *end)
{
	const unsigned all = count_sections(r);
	unsigned n = 0;

	for (unsigned i = 0; i < r->begin.nwatches && n < WATCHES_SHOWN; i++) {
		const struct ex_watch *watch = r->begin.watches[i];

		if (text_has_number(r->begin.watches, i,
		    ex_watch_number(watch)))
			continue;
		page_put_watch(r, watch, writers, end,
		    all < WATCHES_SHOWN ? all : WATCHES_SHOWN);
		n++;
	}
	if (n < all)
		buffer_printf(b, "<section><p>%u more watches are not shown."
		    "</p></section>\n", all - n);
}

void
page_put(struct report *r, const struct report_end *end)
{
	struct page *page = r->own;
	struct buffer *b = &page->text.out;
	const struct summary_row *rows;
	const size_t n = summary_rows(r->summary, &rows);
	struct writers writers;

	put_head(r, b);
	put_title(r, b);
	put_account(b, end);
	put_verdict(r, b, end);
	if (writers_join(&writers, rows, n, false) != 0)
		b->failed = true;
	else
		put_watches(r, b, &writers, end);
	writers_free(&writers);
	put_warnings(b, page);
	buffer_puts(b, "</main>\n</body>\n</html>\n");
}
