/* descendants: which of them executed another program.  See descendants.h. */
#include "processes/descendants.h"

#include <stdlib.h>

#include "os/array.h"
#include "os/clock.h"

enum {
	MANY = 256,
	FIRST = 1000000,	/* ns before the first look, and */
	SHARE = 8,		/* this part of its age until the next one, */
	LONGEST = 100000000,	/* at most so many ns */
};

static struct descendant *
find(const struct descendants *d, pid_t pid)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->one[i].child.pid == pid)
			return &d->one[i];
	return NULL;
}

static void
drop(struct descendants *d, struct descendant *one)
{
	*one = d->one[--d->n];
}

/* Whether the process was found missing before this time, and no earlier record
   reports its end. */
static bool
is_decided(const struct descendant *one, uint64_t time)
{
	return one->gone != 0 && one->gone < time;
}

/* Remove those whose fate is known as of this time. */
static void
decide(struct descendants *d, uint64_t time,
    bool (*caught)(void *arg, const struct child *), void *arg)
{
	for (size_t i = d->n; i-- > 0;) {
		struct descendant *one = &d->one[i];

		if (!is_decided(one, time))
			continue;
		if (!caught(arg, &one->child) && (d->executed.pid == 0 ||
		    one->child.born < d->executed.born))
			d->executed = one->child;
		drop(d, one);
	}
}

static void
look(struct descendants *d)
{
	const uint64_t now = wp_clock_ns();

	for (size_t i = 0; i < d->n; i++)
		if (d->one[i].gone == 0 && !child_goes_on(&d->one[i].child))
			d->one[i].gone = now;
}

/* An earlier process with this id has executed a program and ended. */
void
descendants_made(struct descendants *d, const struct child *child,
    bool (*caught)(void *arg, const struct child *), void *arg)
{
	struct descendant *before = find(d, child->pid);

	if (d->executed.pid != 0 || (d->left != 0 && child->born >= d->left))
		return;
	if (before != NULL) {
		before->gone = before->child.born;
		decide(d, child->born, caught, arg);
	}
	if (d->n >= d->many) {
		decide(d, child->born, caught, arg);
		look(d);
		d->many = 2 * d->n < MANY ? MANY : 2 * d->n;
	}
	if (WP_ARRAY_ROOM(d, one) < 0)
		d->unknown = true;
	else
		d->one[d->n++] = (struct descendant){
			.child = *child, .threads = 1,
		};
}

void
descendants_thread(struct descendants *d, pid_t pid, bool ended)
{
	struct descendant *one = find(d, pid);

	if (one == NULL)
		return;
	one->threads += ended ? -1 : 1;
	if (one->threads == 0)
		drop(d, one);
}

/* Whether enough time has passed since the last look. */
static bool
is_due(const struct descendant *one, uint64_t now)
{
	const uint64_t born = one->child.born;
	const uint64_t seen = one->seen != 0 ? one->seen : born;
	const uint64_t part = (seen - born) / SHARE;

	return now > seen + (part < FIRST ? FIRST :
	    part < LONGEST ? part : LONGEST);
}

void
descendants_find_executed(struct descendants *d, bool all,
    void (*fn)(void *arg, const struct child *, uint64_t after), void *arg)
{
	for (size_t i = d->n; i-- > 0;) {
		struct descendant *one = &d->one[i];
		const struct descendant found = *one;
		const uint64_t now = wp_clock_ns();

		if (one->gone != 0 || (!all && !is_due(one, now)))
			continue;
		one->seen = now;
		if (!child_has_executed(&one->child))
			continue;
		drop(d, one);
		fn(arg, &found.child, found.seen != 0 ? found.seen :
		    found.child.born);
	}
}

void
descendants_leave(struct descendants *d, uint64_t since)
{
	look(d);
	d->left = since;
	for (size_t i = d->n; i-- > 0;)
		if (d->one[i].child.born >= since)
			drop(d, &d->one[i]);
	if (d->executed.born >= since)
		d->executed = (struct child){0};
}

void
descendants_settle(struct descendants *d,
    bool (*caught)(void *arg, const struct child *), void *arg)
{
	decide(d, UINT64_MAX, caught, arg);
}

void
descendants_close(struct descendants *d)
{
	free(d->one);
	*d = (struct descendants){0};
}
