/* page: checks that a text is an HTML page that loads nothing and runs no
   script. */
#ifndef PAGE_CHECK_H
#define PAGE_CHECK_H

#include <ctype.h>
#include <string.h>

enum { PAGE_DEPTH = 32, PAGE_BYTES = 2000000 };

/* The open elements. */
struct page_check {
	char open[PAGE_DEPTH][16];
	size_t n;
	size_t svgs, details;
};

static inline bool
page_is_one_of(const char *name, size_t len, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strlen(*list) == len && strncmp(name, *list, len) == 0)
			return true;
	return false;
}

/* Check an attribute at its name.  Result: the end of it. */
static inline const char *
page_attribute(const char *at)
{
	static const char *const names[] = {
		"lang", "charset", "name", "content", "http-equiv", "class",
		"id", "href", "open", "start", "viewBox", "role", "d",
		"preserveAspectRatio", "aria-label", NULL,
	};
	const size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM"
	    "NOPQRSTUVWXYZ-");

	if (!page_is_one_of(at, len, names))
		fail_msg("attribute \"%.*s\"", (int)len, at);
	if (strncmp(at, "href", 4) == 0)
		assert_int_equal(strncmp(at, "href=\"#", 7), 0);
	at += len;
	if (*at != '=')
		return at;
	assert_int_equal(at[1], '"');
	at = strchr(at + 2, '"');
	assert_non_null(at);
	return at + 1;
}

/* Check a tag after its '<'.  Result: the end of it. */
static inline const char *
page_tag(struct page_check *p, const char *at)
{
	static const char *const names[] = {
		"html", "head", "meta", "title", "style", "body", "main",
		"section", "h1", "h2", "h3", "p", "div", "span", "b", "i",
		"code", "pre", "ul", "ol", "li", "dl", "dt", "dd", "a",
		"figure", "figcaption", "svg", "path", "details", "summary",
		NULL,
	};
	const bool closes = *at == '/';
	const size_t len = strspn(at += closes, "abcdefghijklmnopqrstuvwxyz12"
	    "3");
	const char *name = at;

	if (!page_is_one_of(name, len, names))
		fail_msg("element \"%.*s\"", (int)len, name);
	for (at += len; *at == ' ' || isalpha((unsigned char)*at);)
		at = *at == ' ' ? at + 1 : page_attribute(at);
	p->svgs += !closes && strncmp(name, "svg", len) == 0;
	p->details += !closes && strncmp(name, "details", len) == 0;
	if (closes) {
		assert_true(p->n > 0);
		p->n--;
		assert_int_equal(strlen(p->open[p->n]), len);
		assert_int_equal(strncmp(p->open[p->n], name, len), 0);
	} else if (*at != '/' && strncmp(name, "meta", len) != 0) {
		assert_true(p->n < PAGE_DEPTH);
		(void)snprintf(p->open[p->n++], sizeof(p->open[0]), "%.*s",
		    (int)len, name);
	}
	at += *at == '/';
	assert_int_equal(*at, '>');
	return at + 1;
}

/* Check that every element and attribute is one of the few allowed, and that
   all elements are closed. */
static inline struct page_check
page_check(const char *text)
{
	static const char begin[] = "<!DOCTYPE html>\n";
	struct page_check p = {.n = 0};
	const char *at = text + strlen(begin);

	assert_true(strlen(text) < PAGE_BYTES);
	assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
	assert_holds(text, "<meta http-equiv=\"Content-Security-"
	    "Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
	    "img-src data:\">");
	assert_lacks(text, "url(");
	assert_lacks(text, "@import");
	while (*at != '\0') {
		if (*at == '<')
			at = page_tag(&p, at + 1);
		else {
			assert_true(p.n > 0 || *at == '\n');
			at++;
		}
	}
	assert_int_equal(p.n, 0);
	return p;
}

#endif
