/*
 * timeline_svg: draws a timeline as SVG.
 */
#ifndef TIMELINE_SVG_H
#define TIMELINE_SVG_H

#include "html/timeline.h"
#include "util/buffer.h"

/* Append the drawing, with each writer in the colour of its number; line:
   connect the values by a line, because no hit between them is missing. */
void timeline_svg_put(struct buffer *, const struct timeline *,
    const unsigned char colour[TIMELINE_WRITERS], bool line);

/* The largest number of hits in a bin. */
uint64_t timeline_svg_most(const struct timeline *);

#endif
