/* top: the table on the terminal. */
#include "top/top.h"

#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/clock.h"
#include "util/buffer.h"
#include "util/complain.h"

enum { ROWS_MAX = 200, EVERY_MS = 500, LOOK_MS = 50, IDLE_MS = 1200 };

struct row {
	uint64_t key, count;
	double rate;		/* hits in a second */
	unsigned threads;
	char value[40], where[120], watch[80];
};

struct top_table {
	struct row row[ROWS_MAX];
	size_t n;
	uint64_t hits;
	long at;		/* when it came, of wp_clock_ms */
};

static struct {
	bool on;
	bool command;		/* one runs, in this process group */
	FILE *tty;
	SCREEN *screen;
	pthread_t thread;
	volatile bool ending;
	volatile sig_atomic_t stop;	/* SIGTSTP came */
	bool paused;
	struct sigaction before;
	pthread_mutex_t lock;	/* of the following */
	struct top_table now;
	struct buffer said;	/* lines that wait */
	struct top_table shown;	/* the thread's */
} top = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool
top_is_on(void)
{
	return top.on;
}

bool
top_is_due(void)
{
	static long asked;
	const long now = wp_clock_ms();

	if (!top.on || now - asked < EVERY_MS)
		return false;
	asked = now;
	return true;
}

/* --- frames --- */

/* Take the next part of a line, up to a tab or the end. */
static void
take_part(const char **at, const char *end, char *to, size_t size)
{
	size_t len = 0;

	for (; *at < end && **at != '\t' && **at != '\n'; ++*at)
		if (len < size - 1)
			to[len++] = **at;
	to[len] = '\0';
	if (*at < end && **at == '\t')
		++*at;
}

static uint64_t
take_number(const char **at, const char *end)
{
	char text[24];

	take_part(at, end, text, sizeof(text));
	return strtoull(text, NULL, 10);
}

/* The hits per second since the previous frame. */
static double
rate_of(const struct top_table *before, const struct row *row, long now)
{
	const double seconds = (double)(now - before->at) / 1e3;
	uint64_t count = 0;

	for (size_t i = 0; i < before->n; i++)
		if (before->row[i].key == row->key)
			count = before->row[i].count;
	return seconds <= 0 || count > row->count ? 0 :
	    (double)(row->count - count) / seconds;
}

static void
take_row(struct top_table *table, const struct top_table *before,
    const char **at, const char *end)
{
	struct row *row = &table->row[table->n];

	row->key = take_number(at, end);
	row->count = take_number(at, end);
	row->threads = (unsigned)take_number(at, end);
	take_part(at, end, row->value, sizeof(row->value));
	take_part(at, end, row->where, sizeof(row->where));
	take_part(at, end, row->watch, sizeof(row->watch));
	row->rate = rate_of(before, row, table->at);
	table->n++;
}

bool
top_frame(const char *text, size_t len)
{
	static struct top_table next;
	const char *at = text, *end = text + len;

	if (len == 0 || *text != '\t')
		return false;
	if (!top.on)
		return true;
	(void)pthread_mutex_lock(&top.lock);
	next = (struct top_table){.at = wp_clock_ms()};
	at++;
	next.hits = take_number(&at, end);
	while (at < end && next.n < ROWS_MAX) {
		while (at < end && *at != '\n')
			at++;
		at += 2;		/* and the tab */
		if (at < end)
			take_row(&next, &top.now, &at, end);
	}
	top.now = next;
	(void)pthread_mutex_unlock(&top.lock);
	return true;
}

/* --- drawing --- */

/* Draw a column, if there is room for it. */
static void
put(int line, int *column, int width, const char *text)
{
	if (*column < COLS)
		(void)mvprintw(line, *column, "%*.*s", width,
		    width < 0 ? -width : width, text);
	*column += (width < 0 ? -width : width) + 1;
}

static void
draw_row(int line, const char *rate, const char *share, const char *threads,
    const char *value, const char *where)
{
	const bool wide = COLS >= 60;
	int column = 0;

	put(line, &column, wide ? 9 : 6, rate);
	put(line, &column, 6, share);
	put(line, &column, wide ? 7 : 3, threads);
	put(line, &column, wide ? 14 : 8, value);
	if (column < COLS)
		(void)mvaddnstr(line, column, where, COLS - column);
}

static void
draw(const struct top_table *t)
{
	const bool idle = wp_clock_ms() - t->at > IDLE_MS;
	double rate = 0;

	for (size_t i = 0; i < t->n; i++)
		rate += idle && !top.paused ? 0 : t->row[i].rate;
	(void)erase();
	(void)mvprintw(0, 0, "%llu hits, %.0f/s, %zu writers%s",
	    (unsigned long long)t->hits, rate, t->n,
	    top.paused ? "  [paused]" : "");
	(void)attron(has_colors() ? COLOR_PAIR(1) | A_BOLD : A_BOLD);
	draw_row(1, COLS >= 60 ? "hits/s" : "/s", "share", COLS >= 60 ?
	    "threads" : "thr", "last value", "writer");
	(void)attroff(has_colors() ? COLOR_PAIR(1) | A_BOLD : A_BOLD);
	for (size_t i = 0; i < t->n && (int)i + 2 < LINES; i++) {
		const struct row *row = &t->row[i];
		char speed[16], share[16], threads[16], where[210];

		(void)snprintf(speed, sizeof(speed), "%.0f",
		    idle && !top.paused ? 0 : row->rate);
		(void)snprintf(share, sizeof(share), "%.1f%%", t->hits == 0 ?
		    0 : 100.0 * (double)row->count / (double)t->hits);
		(void)snprintf(threads, sizeof(threads), "%u", row->threads);
		(void)snprintf(where, sizeof(where), "%s: %s", row->watch,
		    row->where);
		draw_row((int)i + 2, speed, share, threads, row->value, where);
	}
	(void)move(0, 0);
	(void)refresh();
}

/* The size is checked before each frame, since ncurses' own handler of SIGWINCH
   may run in any thread. */
static bool
resize(void)
{
	struct winsize size;

	if (ioctl(fileno(top.tty), TIOCGWINSZ, &size) < 0 ||
	    size.ws_row == 0 || size.ws_col == 0 ||
	    !is_term_resized(size.ws_row, size.ws_col))
		return false;
	(void)resizeterm(size.ws_row, size.ws_col);
	(void)clearok(curscr, TRUE);
	return true;
}

/* Stop as a program without a table does. */
static void
stop(void)
{
	if (!top.stop)
		return;
	top.stop = 0;
	if (!isendwin())
		(void)endwin();
	(void)raise(SIGSTOP);	/* this thread stops right here */
}

/* Whether the terminal is this job's: not if the job was continued in the
   background, if the command has given the terminal to a job of its own, or if
   the terminal is gone.  Then it is not drawn on, nor read. */
static bool
is_in_foreground(void)
{
	return tcgetpgrp(fileno(top.tty)) == getpgrp();
}

/* q does the same as ^C: a command gets the signal, too. */
static bool
take_key(int key)
{
	if (key == ' ')
		top.paused = !top.paused;
	else if (key == 'q')
		(void)kill(top.command ? 0 : getpid(), SIGINT);
	return key != ERR;
}

static void *
run(void *arg)
{
	bool away = true;
	long drawn = 0;

	(void)arg;
	while (!top.ending) {
		bool again;

		stop();
		if (!is_in_foreground()) {
			away = true;
			(void)napms(LOOK_MS);
			continue;
		}
		again = away || isendwin();
		if (again)
			(void)clearok(curscr, TRUE);
		away = false;
		again = take_key(getch()) || again;
		again = resize() || again;
		if (!again && wp_clock_ms() - drawn < EVERY_MS)
			continue;
		(void)pthread_mutex_lock(&top.lock);
		if (!top.paused)
			top.shown = top.now;
		(void)pthread_mutex_unlock(&top.lock);
		draw(&top.shown);
		drawn = wp_clock_ms();
	}
	return NULL;
}

/* --- */

static FILE *
stream_of(const struct options *o)
{
	return o->command != NULL ? stderr : stdout;
}

int
top_check(const struct options *o)
{
	if (!o->top || isatty(fileno(stream_of(o))) == 1)
		return 0;
	return complain("--top draws on a terminal, and standard %s is not "
	    "one: leave it out, or take -o summary", o->command != NULL ?
	    "error" : "output");
}

static void
on_stop(int sig)
{
	(void)sig;
	top.stop = 1;
}

/* Messages wait until the table ends. */
static void
keep_line(const char *text)
{
	(void)pthread_mutex_lock(&top.lock);
	buffer_puts(&top.said, text);
	buffer_puts(&top.said, "\n");
	(void)pthread_mutex_unlock(&top.lock);
}

static void
prepare_screen(void)
{
	const char *none = getenv("NO_COLOR");

	(void)cbreak();
	(void)noecho();
	(void)curs_set(0);
	timeout(LOOK_MS);
	if ((none != NULL && *none != '\0') || start_color() == ERR)
		return;
	(void)use_default_colors();
	(void)init_pair(1, COLOR_CYAN, -1);
}

/* Our handler is installed first, because ncurses installs its own only where
   there is none. */
static void
catch_stop(void)
{
	const struct sigaction action = {
		.sa_handler = on_stop, .sa_flags = SA_RESTART,
	};

	(void)sigaction(SIGTSTP, NULL, &top.before);
	if (top.before.sa_handler != SIG_IGN)
		(void)sigaction(SIGTSTP, &action, NULL);
}

/* All signals are blocked in the thread, as the loop takes them. */
static int
start_thread(void)
{
	sigset_t all, before;
	int err;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&top.thread, NULL, run, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Whoever has the terminal now: this process does not stop for that. */
static void
give_back(void)
{
	sigset_t output, before;

	(void)sigemptyset(&output);
	(void)sigaddset(&output, SIGTTOU);
	(void)pthread_sigmask(SIG_BLOCK, &output, &before);
	if (top.screen != NULL && !isendwin())
		(void)endwin();
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (top.screen != NULL)
		delscreen(top.screen);
	if (top.tty != NULL)
		(void)fclose(top.tty);
	(void)sigaction(SIGTSTP, &top.before, NULL);
}

void
top_begin(const struct options *o)
{
	if (!o->top)
		return;
	(void)setlocale(LC_CTYPE, "");
	top.command = o->command != NULL;
	catch_stop();
	top.tty = fopen("/dev/tty", "r+e");
	if (top.tty != NULL)
		top.screen = newterm(NULL, top.tty, top.tty);
	if (top.screen == NULL) {
		(void)complain("--top: this terminal cannot be drawn on (TERM "
		    "is %s); the summary follows at the end",
		    getenv("TERM") == NULL ? "not set" : getenv("TERM"));
		give_back();
		return;
	}
	top.ending = false;
	prepare_screen();
	top.now.at = wp_clock_ms();
	if (start_thread() != 0) {
		give_back();
		return;
	}
	complain_to(keep_line);
	top.on = true;
}

void
top_end(void)
{
	if (!top.on)
		return;
	top.on = false;
	top.ending = true;
	(void)pthread_join(top.thread, NULL);
	give_back();
	complain_to(NULL);
	if (top.said.len == 0)
		return;
	for (char *line = top.said.bytes, *end = line + top.said.len;
	    line < end; line += strlen(line) + 1) {
		*(char *)memchr(line, '\n', (size_t)(end - line)) = '\0';
		(void)complain("%s", line);
	}
	buffer_free(&top.said);
}
