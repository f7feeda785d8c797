/*
 * filter: the part of a condition that a BPF program can evaluate before it
 * copies the stack: comparisons of numbers that are known immediately.
 */
#ifndef WP_FILTER_H
#define WP_FILTER_H

#include <stdint.h>

enum { WP_FILTER_MAX = 64 };	/* nodes */

enum wp_filter_kind {
	WP_FILTER_UNKNOWN,	/* it is decided elsewhere */
	WP_FILTER_NOT,		/* !left */
	WP_FILTER_AND, WP_FILTER_OR,	/* of left and right */
	WP_FILTER_COMPARE,	/* number relation value */
};

enum wp_filter_number { WP_FILTER_TID, WP_FILTER_PID, WP_FILTER_CPU };

enum wp_filter_relation {
	WP_FILTER_EQUAL, WP_FILTER_UNEQUAL, WP_FILTER_LESS,
	WP_FILTER_NOT_ABOVE, WP_FILTER_ABOVE, WP_FILTER_NOT_LESS,
};

struct wp_filter_node {
	enum wp_filter_kind kind;
	enum wp_filter_number number;
	enum wp_filter_relation relation;
	int32_t value;
	unsigned left, right;	/* nodes before this one */
};

struct wp_filter {
	struct wp_filter_node node[WP_FILTER_MAX];	/* the last is the
							   root */
	unsigned n;		/* 0: there is none */
};

#endif
