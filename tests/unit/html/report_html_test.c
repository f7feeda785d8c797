/* report_html: one page that needs nothing and does nothing. */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "made_hits.h"
#include "page.h"
#include "report/summary.h"

static const struct report_end ended = {.hits = 3, .reported = 2, .lost = 1};

TEST(has_the_account_the_timelines_and_the_writers)
{
	const struct ex_hit hits[] = {
		made_hit(1), made_hit(2), made_kernel_hit(3),
	};
	struct made_report m;
	struct page_check p;

	made_write(&m, &report_html, &made_start, hits, COUNT(hits), &ended);
	assert_int_equal(m.report.written, 3);
	p = page_check(m.text);
	assert_int_equal(p.svgs, 3);
	assert_int_equal(p.details, 2);
	assert_holds(m.text, "<b>3</b><span>hits</span>");
	assert_holds(m.text, "<b>1</b><span>lost</span>");
	assert_holds(m.text, "victim.c:10");
	assert_holds(m.text, "write by read(2)");
	assert_holds(m.text, "mov %rdi,0x2d69(%rip)");
	assert_holds(m.text, "<h2><code>counter</code></h2>");
	assert_lacks(m.text, "NaN");
}

TEST(names_the_caller_of_a_library)
{
	static const struct ex_frame copied[] = {
		{.pc = 8, .function = "memcpy", .module = &made_libc},
		{.pc = 9, .function = "store", .module = &made_victim,
		 .file = "s.c", .line = 7},
	};
	static const struct ex_stack copy =
	    MADE_STACK(7, 7, copied, EX_END_OUTERMOST);
	struct ex_hit hit = made_hit(1);
	struct made_report m;

	hit.stack = &copy;
	made_write(&m, &report_html, &made_start, &hit, 1, &ended);
	(void)page_check(m.text);
	assert_holds(m.text, "<span class=\"dim\">for</span> "
	    "<code>store</code> <span class=\"dim mono\">s.c:7</span>");
}

TEST(has_the_findings)
{
	struct ex_hit hits[] = {made_hit(1), made_tail_hit(2)};
	struct made_report m;

	hits[0].stray = true;
	made_write(&m, &report_html, &made_start, hits, COUNT(hits),
	    &made_judged);
	(void)page_check(m.text);
	assert_holds(m.text, "Stray: 2 writers");
	assert_holds(m.text, "<b>12&#215;</b> <code>bump</code>");
	assert_holds(m.text, "Not judged: 1 writer");
	assert_holds(m.text, "<span class=\"tag\">stray</span>");
}

TEST(is_complete_without_hits)
{
	const struct report_start nothing = {.pid = -1};
	struct made_report m;

	made_write(&m, &report_html, &made_start, NULL, 0, &ended);
	assert_int_equal(page_check(m.text).svgs, 3);
	made_write(&m, &report_html, &nothing, NULL, 0, &ended);
	assert_int_equal(page_check(m.text).svgs, 0);
}

/* --- hostile text --- */

#define MARKUP "</code><script src=//x>'\"&<img onerror=x>" HOSTILE

static char source_path[] = "/tmp/report_html_test.XXXXXX";

static int
open_it(const char *path)
{
	assert_string_equal(path, MARKUP);
	return open(source_path, O_RDONLY);
}

TEST(names_and_sources_are_text)
{
	const struct ex_module module = {MARKUP, ""};
	const struct ex_frame frame = {
		.pc = 1, .function = MARKUP, .module = &module, .file = MARKUP,
		.line = 4,
	};
	const struct ex_stack stack = {.id = 5, .n = 1, .frame = &frame,
	    .end = EX_END_STACK};
	const struct ex_watch watch = {.id = 1, .spec = MARKUP,
	    .symbol = MARKUP, .addr = 8, .len = 8, .access = 'w'};
	const struct ex_watch *const list[] = {&watch};
	const struct report_start start = {.pid = 1, .comm = MARKUP,
	    .watches = list, .nwatches = 1};
	struct ex_hit hit = made_hit(1);
	const int fd = mkstemp(source_path);
	struct made_report m;

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "1\n\t2%s\n</pre><script>%s\n4\n5\n6\n",
	    HOSTILE, MARKUP) > 0);
	hit.stack = &stack;
	hit.watch = &watch;
	(void)snprintf(hit.insn.text, sizeof(hit.insn.text), "%s", MARKUP);
	made_open(&m, &report_html);
	m.report.open_source = open_it;
	assert_int_equal(report_html.start(&m.report, &start), 0);
	made_hits(&m, &hit, 1);
	assert_int_equal(report_html.warning(&m.report, MARKUP), 0);
	made_close(&m, &ended);
	(void)close(fd);
	(void)unlink(source_path);
	assert_visible(m.text);
	(void)page_check(m.text);
	assert_holds(m.text, "<b><i>4</i>&lt;/pre&gt;&lt;script&gt;");
	assert_holds(m.text, "<span><i>6</i>4</span></pre>");
	assert_lacks(m.text, "<i>7</i>");
}

/* --- how much there may be --- */

enum { WRITERS = 3000, NAME = 3000 };

/* A writer of its own, whose names are as long as they may be in a page, and
   longer in markup. */
static void
add_writer(struct made_report *m, unsigned i, const char *name,
    const struct ex_watch *watch)
{
	static struct ex_frame frames[WRITERS][30];
	static struct ex_stack stacks[WRITERS];
	struct ex_hit hit = made_hit(i + 1);

	for (unsigned k = 0; k < 30; k++)
		frames[i][k] = (struct ex_frame){
			.pc = i + 1, .vaddr = i + 1, .function = name,
			.module = &made_victim, .file = name, .line = 1,
		};
	stacks[i] = (struct ex_stack){
		.id = i + 1, .n = 30, .frame = frames[i], .index = i,
		.end = EX_END_STACK,
	};
	hit.stack = &stacks[i];
	hit.watch = watch;
	hit.time += i * UINT64_C(1000000);
	made_hits(m, &hit, 1);
}

TEST(is_small_whatever_there_is)
{
	static char name[NAME + 1];
	static struct ex_watch watches[100];
	static const struct ex_watch *list[100];
	struct report_start start = made_start;
	struct made_report m;

	memset(name, '"', NAME);
	for (unsigned i = 0; i < COUNT(watches); i++) {
		watches[i] = made_watches[0];
		watches[i].id = i + 1;
		watches[i].spec = watches[i].symbol = name;
		list[i] = &watches[i];
	}
	start.watches = list;
	start.nwatches = COUNT(watches);
	made_open(&m, &report_html);
	assert_int_equal(report_html.start(&m.report, &start), 0);
	for (unsigned i = 0; i < WRITERS; i++)
		add_writer(&m, i, name, list[i % COUNT(watches)]);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(report_html.warning(&m.report, name), 0);
	made_close(&m, &ended);
	assert_int_equal(page_check(m.text).svgs, 64);
	assert_holds(m.text, "36 more watches are not shown");
	assert_holds(m.text, "of more writers are not shown");
}

TEST(does_not_grow_with_the_hits)
{
	struct made_report m;
	struct ex_hit hit = made_hit(1);

	made_open(&m, &report_html);
	assert_int_equal(report_html.start(&m.report, &made_start), 0);
	for (unsigned i = 0; i < 300000; i++) {
		hit.seq = i + 1;
		hit.time += 5000 + i % 7 * 1000;
		hit.new.byte[0] = (uint8_t)i;
		ex_hit_change(&hit);
		assert_int_equal(report_html.hit(&m.report, &hit), 0);
	}
	made_close(&m, &ended);
	assert_true(strlen(m.text) < 60000);
	(void)page_check(m.text);
	assert_holds(m.text, "<span class=\"n\">300000</span>");
}

TEST(says_what_is_not_on_the_timeline)
{
	const struct summary_row past = {.count = 7, .first_seq = 1};
	struct ex_hit hits[] = {made_hit(8), made_hit(9), made_hit(10)};
	struct made_report m;

	hits[2].source = EX_VALUE_LATER;
	made_open(&m, &report_html);
	assert_int_equal(report_html.start(&m.report, &made_start), 0);
	assert_int_equal(report_html.recall(&m.report, &hits[0], &past), 0);
	made_hits(&m, hits, COUNT(hits));
	made_close(&m, &ended);
	(void)page_check(m.text);
	assert_holds(m.text, "7 hits from before the process that "
	    "explains was replaced");
	assert_holds(m.text, "1 hit left no value that is proved");

	made_open(&m, &report_html);
	assert_int_equal(report_html.start(&m.report, &made_start), 0);
	assert_int_equal(report_html.recall(&m.report, &hits[0], &past), 0);
	made_close(&m, &ended);
	(void)page_check(m.text);
	assert_holds(m.text, "7 hits from before the process that ");
	assert_lacks(m.text, "<figcaption>");
}

RUN_TESTS()
