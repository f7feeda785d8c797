/* timeline: bins, which are joined in pairs when there are too few. */
#include "html/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/writers.h"

struct timeline *
timeline_new(unsigned number)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (t != NULL)
		t->number = number;
	return t;
}

void
timeline_free(struct timeline *t)
{
	for (unsigned i = 1; t != NULL && i < TIMELINE_WRITERS; i++)
		ex_stack_let_go(t->writer[i].who.stack);
	free(t);
}

/* --- writers --- */

static void
add_part(struct timeline_part *to, const struct timeline_part *part)
{
	if (part->valued > 0) {
		if (to->valued == 0 || part->least < to->least)
			to->least = part->least;
		if (to->valued == 0 || part->largest > to->largest)
			to->largest = part->largest;
	}
	to->count += part->count;
	to->valued += part->valued;
}

/* Free the place of the writer with the fewest hits, which are counted among
   the others from now on. */
static unsigned
make_place(struct timeline *t)
{
	unsigned place = 1;

	for (unsigned i = 2; i < TIMELINE_WRITERS; i++)
		if (t->writer[i].count < t->writer[place].count)
			place = i;
	if (t->writer[place].count == 0)
		return place;
	for (unsigned i = 0; i < t->nbins; i++) {
		struct timeline_part *of = t->bin[i].of;

		add_part(&of[0], &of[place]);
		of[place] = (struct timeline_part){0};
	}
	t->writer[0].count += t->writer[place].count;
	ex_stack_let_go(t->writer[place].who.stack);
	return place;
}

unsigned
timeline_place_of(const struct timeline *t, const struct summary_row *who)
{
	for (unsigned i = 1; i < TIMELINE_WRITERS && !who->others &&
	    !who->late; i++)
		if (t->writer[i].count > 0 &&
		    writers_compare(&t->writer[i].who, who) == 0)
			return i;
	return 0;
}

unsigned
timeline_place(struct timeline *t, const struct ex_hit *hit)
{
	const struct summary_row who = {
		.watch = hit->watch, .stack = hit->stack, .kernel = hit->kernel,
		.syscall = hit->call.name, .late = hit->late,
	};
	unsigned place = timeline_place_of(t, &who);
	struct timeline_writer *writer;

	if (place != 0 || hit->late || hit->stack == NULL)
		return place;
	place = make_place(t);
	writer = &t->writer[place];
	writer->who = who;
	writer->count = 0;
	writer->taken++;
	ex_stack_hold(hit->stack);
	*writer->insn = '\0';
	if (!hit->kernel && hit->insn.confidence == EX_EXACT)
		(void)snprintf(writer->insn, sizeof(writer->insn), "%s",
		    hit->insn.text);
	return place;
}

/* --- bins --- */

/* Join the bins in pairs. */
static void
join_bins(struct timeline *t)
{
	const unsigned n = (t->nbins + 1) / 2;

	for (unsigned i = 0; i < n; i++) {
		struct timeline_bin *to = &t->bin[i];
		const struct timeline_bin none = {0};
		const struct timeline_bin *later = 2 * i + 1 < t->nbins ?
		    &t->bin[2 * i + 1] : &none;

		if (i > 0)
			*to = t->bin[2 * i];
		for (unsigned k = 0; k < TIMELINE_WRITERS; k++)
			add_part(&to->of[k], &later->of[k]);
		if (later->has_last) {
			to->last = later->last;
			to->has_last = true;
		}
	}
	memset(&t->bin[n], 0, (TIMELINE_BINS - n) * sizeof(t->bin[0]));
	t->nbins = n;
	t->shift++;
}

void
timeline_coarsen(struct timeline *t, unsigned max)
{
	while (t->nbins > max)
		join_bins(t);
}

/* Hits that come late, with a time before the first bin, belong to the first
   bin. */
static struct timeline_bin *
bin_at(struct timeline *t, uint64_t time)
{
	const uint64_t since = time < t->first ? 0 : time - t->first;
	unsigned i;

	while (since >> t->shift >= TIMELINE_BINS)
		join_bins(t);
	i = (unsigned)(since >> t->shift);
	if (i >= t->nbins)
		t->nbins = i + 1;
	return &t->bin[i];
}

/* --- values --- */

/* A double, which has 53 bits, is precise enough to draw. */
static long double
real_of(const struct ex_number *n)
{
	return n->is_float ? n->real : n->is_signed ?
	    (long double)(int64_t)n->bits : (long double)n->bits;
}

static bool
are_alike(const struct range_value *a, const struct range_value *b)
{
	return a->from == b->from && a->len == b->len &&
	    a->number.is_float == b->number.is_float &&
	    a->number.is_signed == b->number.is_signed &&
	    a->number.size == b->number.size;
}

/* False: the value is no number that can be drawn. */
static bool
widen(struct timeline *t, const struct range_value *value)
{
	const long double real = real_of(&value->number);

	if (!value->known || !value->comparable || !isfinite((double)real))
		return false;
	if (t->valued++ == 0) {
		t->least = t->largest = *value;
		return true;
	}
	t->mixed |= !are_alike(&t->least, value);
	if (real < real_of(&t->least.number))
		t->least = *value;
	if (real > real_of(&t->largest.number))
		t->largest = *value;
	return true;
}

static void
add_value(const struct range_value *value,
    struct timeline_bin *bin, unsigned place)
{
	const double real = (double)real_of(&value->number);
	const struct timeline_part part = {
		.valued = 1, .least = real, .largest = real,
	};

	add_part(&bin->of[place], &part);
	bin->last = real;
	bin->has_last = true;
}

void
timeline_add(struct timeline *t, const struct ex_hit *hit, unsigned place)
{
	const char *type = hit->change.type;
	struct timeline_bin *bin;
	struct range_value value;

	if (t->hits++ == 0) {
		t->first = t->last = hit->time;
		t->pid = hit->pid;
		if (type != NULL)
			(void)snprintf(t->type, sizeof(t->type), "%s", type);
	}
	t->processes |= hit->pid != t->pid;
	if (*t->type != '\0' && (type == NULL ||
	    strncmp(t->type, type, sizeof(t->type) - 1) != 0))
		*t->type = '\0';
	if (hit->time > t->last)
		t->last = hit->time;
	bin = bin_at(t, hit->time);
	bin->of[place].count++;
	t->writer[place].count++;
	value_range_take(&value, hit);
	if (widen(t, &value))
		add_value(&value, bin, place);
}

bool
timeline_has_values(const struct timeline *t)
{
	return t->valued > 0 && !t->mixed && t->valued >= t->hits / 2;
}

uint64_t
timeline_hits(const struct timeline_bin *bin)
{
	uint64_t hits = 0;

	for (unsigned i = 0; i < TIMELINE_WRITERS; i++)
		hits += bin->of[i].count;
	return hits;
}
