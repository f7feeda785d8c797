/* memory_compare: proves by the contents of their memory that two processes do
   not share it. */
#include "proc/memory_compare.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/clock.h"
#include "proc/proc.h"

enum {
	PIECE = 4096,
	PIECES = 2048,		/* most pieces compared */
	REACH = 1 << 30,	/* bytes of a mapping to compare: some
				   programs reserve terabytes */
	ROUNDS = 32,		/* times that a word is read to see that it
				   does not change */
};

/* What is compared, and the words that differ. */
struct contrast {
	pid_t pid[2];
	int pagemap;		/* of the first process */
	unsigned pieces;
	uint64_t word[WP_PROC_WORDS];	/* addresses of n words */
	size_t n;
};

/* Compare as much as can be read of both. */
static void
compare_piece(struct contrast *c, uint64_t at)
{
	uint64_t word[2][PIECE / sizeof(uint64_t)];
	ssize_t len = PIECE;

	for (unsigned i = 0; i < 2; i++) {
		const ssize_t got = wp_proc_read(c->pid[i], at, word[i], PIECE);

		len = got < len ? got : len;
	}
	for (size_t i = 0; len > 0 && i < (size_t)len / sizeof(word[0][0]) &&
	    c->n < WP_PROC_WORDS; i++)
		if (word[0][i] != word[1][i])
			c->word[c->n++] = at + i * sizeof(word[0][0]);
}

static int
compare_mapping(void *arg, const struct wp_proc_map *map)
{
	struct contrast *c = arg;
	const uint64_t end = map->end - map->start > REACH ?
	    map->start + REACH : map->end;
	uint64_t from = map->start, to = end;

	if (map->ino != 0 || map->shared || (map->prot & PROT_WRITE) == 0)
		return 0;
	for (; wp_proc_pages(c->pagemap, &from, &to); from = to, to = end)
		for (; from < to && c->n < WP_PROC_WORDS; from += PIECE) {
			if (c->pieces++ == PIECES)
				return 1;
			compare_piece(c, from);
		}
	return c->n == WP_PROC_WORDS;
}

/* Keep only the words that have not changed.  Which process is read first is
   random, so that no word can change in step with the readings. */
static void
keep_constant(struct contrast *c, uint64_t was[2][WP_PROC_WORDS])
{
	const uint64_t first = wp_clock_ns() * UINT64_C(0x9e3779b97f4a7c15)
	    >> 63;
	uint64_t now[2][WP_PROC_WORDS];
	size_t n = 0;

	for (unsigned i = 0; i < 2; i++)
		if (wp_proc_read_words(c->pid[first ^ i], c->word,
		    now[first ^ i], c->n) != c->n) {
			c->n = 0;
			return;
		}
	for (size_t i = 0; i < c->n; i++) {
		if (now[0][i] == now[1][i] || now[0][i] != was[0][i] ||
		    now[1][i] != was[1][i])
			continue;
		c->word[n] = c->word[i];
		was[0][n] = was[0][i];
		was[1][n++] = was[1][i];
	}
	c->n = n;
}

bool
wp_memory_differs(pid_t a, pid_t b)
{
	uint64_t was[2][WP_PROC_WORDS];
	struct contrast c = {.pid = {a, b}, .pagemap = wp_proc_pagemap(a)};

	if (c.pagemap < 0)
		return false;
	(void)wp_proc_maps(a, compare_mapping, &c);
	(void)close(c.pagemap);
	for (unsigned i = 0; i < 2; i++)
		if (wp_proc_read_words(c.pid[i], c.word, was[i], c.n) != c.n)
			return false;
	for (unsigned i = 0; i < ROUNDS && c.n > 0; i++)
		keep_constant(&c, was);
	return c.n > 0;
}
