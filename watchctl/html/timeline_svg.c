/*
 * timeline_svg: values as bars from the smallest to the largest of a bin, which
 * are dots where both are equal; or hits as bars, one writer's on top of
 * another's.
 *
 * It is stretched to the width that there is, so there are no letters in it.
 */
#include "html/timeline_svg.h"

/* The width of a bin, the height of the drawing, and the distance of values
   from its edges. */
enum { BIN = 10, HEIGHT = 1000, EDGE = 40 };

uint64_t
timeline_svg_most(const struct timeline *t)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < t->nbins; i++) {
		const uint64_t hits = timeline_hits(&t->bin[i]);

		most = hits > most ? hits : most;
	}
	return most;
}

/* The values of all bins. */
struct scale {
	double least, largest;
};

static struct scale
scale_of(const struct timeline *t)
{
	struct scale s = {0, 0};
	bool any = false;

	for (unsigned i = 0; i < t->nbins; i++)
		for (unsigned k = 0; k < TIMELINE_WRITERS; k++) {
			const struct timeline_part *of = &t->bin[i].of[k];

			if (of->valued == 0)
				continue;
			if (!any || of->least < s.least)
				s.least = of->least;
			if (!any || of->largest > s.largest)
				s.largest = of->largest;
			any = true;
		}
	return s;
}

static unsigned
height_of(const struct scale *s, double value)
{
	const double all = s->largest / 2 - s->least / 2;
	const double share = all > 0 ? (value / 2 - s->least / 2) / all : 0.5;

	return (unsigned)(HEIGHT - EDGE - share * (HEIGHT - 2 * EDGE) + 0.5);
}

static void
put_line(struct buffer *b, const struct timeline *t, const struct scale *s)
{
	bool begun = false;

	buffer_puts(b, "<path class=\"step\" d=\"");
	for (unsigned i = 0; i < t->nbins; i++) {
		if (!t->bin[i].has_last)
			continue;
		buffer_printf(b, begun ? "H%uV%u" : "M%u %u",
		    i * BIN + BIN / 2, height_of(s, t->bin[i].last));
		begun = true;
	}
	buffer_puts(b, "\"/>");
}

static void
put_values(struct buffer *b, const struct timeline *t, const struct scale *s,
    unsigned place)
{
	for (unsigned i = 0; i < t->nbins; i++) {
		const struct timeline_part *of = &t->bin[i].of[place];

		if (of->valued > 0)
			buffer_printf(b, "M%u %uV%u", i * BIN + BIN / 2,
			    height_of(s, of->least),
			    height_of(s, of->largest));
	}
}

/* The bar of a writer's hits stands on those of the writers before it. */
static void
put_hits(struct buffer *b, const struct timeline *t, double most,
    unsigned place)
{
	for (unsigned i = 0; i < t->nbins; i++) {
		const struct timeline_part *of = t->bin[i].of;
		uint64_t below = 0;

		if (of[place].count == 0)
			continue;
		for (unsigned k = place + 1; k < TIMELINE_WRITERS; k++)
			below += of[k].count;
		buffer_printf(b, "M%u %uh%uV%uh-%uz", i * BIN,
		    (unsigned)(HEIGHT - (double)below / most * HEIGHT), BIN,
		    (unsigned)(HEIGHT - (double)(below + of[place].count) /
		    most * HEIGHT), BIN);
	}
}

void
timeline_svg_put(struct buffer *b, const struct timeline *t,
    const unsigned char colour[TIMELINE_WRITERS], bool line)
{
	const bool values = timeline_has_values(t);
	const struct scale s = scale_of(t);
	const double most = (double)timeline_svg_most(t);
	const unsigned width = (t->nbins > 0 ? t->nbins : 1) * BIN;
	const unsigned margin = width / 80 + BIN / 2;

	buffer_printf(b, "<svg viewBox=\"-%u 0 %u %u\" preserveAspectRatio="
	    "\"none\" role=\"img\" aria-label=\"%s over time\">", margin,
	    width + 2 * margin, HEIGHT, values ? "values" : "hits");
	buffer_printf(b, "<path class=\"grid\" d=\"M-%u %uh%uM-%u %uh%uM-%u "
	    "%uh%u\"/>", margin, HEIGHT / 4, width + 2 * margin, margin,
	    HEIGHT / 2, width + 2 * margin, margin, HEIGHT / 4 * 3,
	    width + 2 * margin);
	if (values && line)
		put_line(b, t, &s);
	for (unsigned i = 0; i < TIMELINE_WRITERS; i++) {
		if (t->writer[i].count == 0)
			continue;
		buffer_printf(b, "<path class=\"%s c%u\" d=\"",
		    values ? "dot" : "bar", colour[i]);
		if (values)
			put_values(b, t, &s, i);
		else
			put_hits(b, t, most, i);
		buffer_puts(b, "\"/>");
	}
	buffer_puts(b, "</svg>\n");
}
