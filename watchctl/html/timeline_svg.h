/*
 * timeline_svg: a timeline as a drawing.
 */
#ifndef TIMELINE_SVG_H
#define TIMELINE_SVG_H

#include "html/timeline.h"
#include "util/buffer.h"

/* Append it, with each writer in the colour of that number; line: values are
   joined by a line, as nothing is missing between them. */
void timeline_svg_put(struct buffer *, const struct timeline *,
    const unsigned char colour[TIMELINE_WRITERS], bool line);

/* What is the most that a bin has. */
uint64_t timeline_svg_most(const struct timeline *);

#endif
