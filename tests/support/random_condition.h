/*
 * random_condition: makes conditions of which the kernel can evaluate a part.
 */
#ifndef RANDOM_CONDITION_H
#define RANDOM_CONDITION_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A number below n, and the next state. */
static inline unsigned
random_below(uint64_t *state, unsigned n)
{
	*state = *state * UINT64_C(6364136223846793005) +
	    UINT64_C(1442695040888963407);
	return (unsigned)(*state >> 33) % n;
}

static inline void
random_leaf(uint64_t *state, char *to, size_t size)
{
	static const char *const names[] = {"tid", "pid", "cpu"};
	static const char *const operators[] = {
		"==", "!=", "<", "<=", ">", ">=", "+", "&",
	};
	static const char *const others[] = {
		"new < 0", "changed", "comm == \"x\"", "tid", "!cpu",
		"tid == pid", "pid == 3u", "tid < 2.5", "cpu == 1L", "count",
		"in(\"f\")", "tid == -1", "cpu ? pid : tid",
	};
	const char *name = names[random_below(state, 3)];
	const char *operator = operators[random_below(state, 8)];
	const unsigned value = random_below(state, 4);

	if (random_below(state, 4) == 0)
		(void)snprintf(to, size, "(%s)", others[random_below(state,
		    sizeof(others) / sizeof(others[0]))]);
	else if (random_below(state, 3) == 0)
		(void)snprintf(to, size, "%u %s %s", value, operator, name);
	else
		(void)snprintf(to, size, "%s %s %u", name, operator, value);
}

/* Make a condition of at most this many parts, a power of two. */
static inline void
random_condition(uint64_t *state, unsigned parts, char *to, size_t size)
{
	const char *not = random_below(state, 4) == 0 ? "!" : "";
	char left[2048], right[2048];

	if (parts <= 1 || random_below(state, 6) == 0) {
		random_leaf(state, left, sizeof(left));
		(void)snprintf(to, size, "%s(%.500s)", not, left);
		return;
	}
	random_condition(state, parts / 2, left, sizeof(left));
	random_condition(state, parts / 2, right, sizeof(right));
	(void)snprintf(to, size, "%s(%.1000s %s %.1000s)", not, left,
	    random_below(state, 2) == 0 ? "&&" : "||", right);
}

#endif
