/*
 * condition_fuzz: any bytes as a condition, of hits of which anything is known.
 *
 * Input: a seed of what is known of the hits (one byte), and the condition.  A
 * condition that is accepted has the same truth each time; and what is known of
 * more, never makes the opposite of it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "spec/condition_filter.h"

/* What is known of a hit: of all else it is not. */
struct knowledge {
	unsigned seed;
	unsigned known;		/* a bit each, modulo 16 */
};

static unsigned
mix(unsigned seed, unsigned n)
{
	n = (n ^ seed) * 2654435761u;
	return n ^ n >> 15;
}

static bool
make_number(const struct knowledge *k, unsigned which, struct ex_number *out)
{
	static const unsigned sizes[] = {1, 2, 4, 8};
	static const uint64_t values[] = {0, 1, UINT64_MAX, 0x7fffffff,
	    UINT64_C(1) << 63, 0x80, 42};
	const unsigned r = mix(k->seed, which);

	if (r % 5 == 0)
		*out = (struct ex_number){.is_float = true, .is_signed = true,
		    .size = sizes[2 + r / 5 % 2],
		    .real = (long double)values[r / 10 % 7] / 2};
	else
		*out = ex_number_integer(values[r / 5 % 7],
		    sizes[r / 35 % 4], r / 140 % 2);
	return (k->known >> which % 16 & 1) != 0;
}

static bool
number(void *arg, enum condition_name name, struct ex_number *out)
{
	return make_number(arg, name, out);
}

static unsigned
sum(const char *text)
{
	unsigned n = 7;

	while (*text != '\0')
		n = mix(n, (unsigned char)*text++);
	return n;
}

static bool
enumerator(void *arg, const char *text, struct ex_number *out)
{
	return make_number(arg, sum(text), out);
}

static enum condition_truth
make_truth(const struct knowledge *k, unsigned which)
{
	if ((k->known >> which % 16 & 1) == 0)
		return CONDITION_UNKNOWN;
	return mix(k->seed, which) % 2 == 0 ? CONDITION_FALSE : CONDITION_TRUE;
}

static enum condition_truth
text(void *arg, enum condition_name name, const char *is)
{
	return make_truth(arg, name + sum(is));
}

static enum condition_truth
call(void *arg, const struct condition_node *node)
{
	return make_truth(arg, node->kind + sum(node->text));
}

static enum condition_truth
truth(const struct condition *c, unsigned seed, unsigned known)
{
	struct knowledge k = {seed, known};
	const struct condition_hit hit = {number, enumerator, text, call, &k};

	return condition_holds(c, &hit);
}

static void
judge(const struct condition *c, unsigned seed)
{
	const enum condition_truth all = truth(c, seed, ~0u);

	expect(truth(c, seed, ~0u) == all);
	for (unsigned i = 0; i < 8; i++) {
		const enum condition_truth some = truth(c, seed, mix(i, seed));

		expect(some == all || some == CONDITION_UNKNOWN);
	}
}

/* What is left to the kernel is whole, and refers to nodes before it only. */
static void
look_at_filter(const struct condition *c)
{
	struct wp_filter f;

	expect(condition_filter(c, &f) == (f.n > 0));
	for (unsigned i = 0; i < f.n; i++) {
		const struct wp_filter_node *node = &f.node[i];

		if (node->kind == WP_FILTER_NOT)
			expect(node->left < i);
		if (node->kind == WP_FILTER_AND || node->kind == WP_FILTER_OR)
			expect(node->left < i && node->right < i);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct condition_error error = {0};
	struct condition c;
	char *condition;
	int err;

	if (size == 0)
		return 0;
	condition = malloc(size);
	expect(condition != NULL);
	memcpy(condition, data + 1, size - 1);
	condition[size - 1] = '\0';
	err = condition_parse(condition, &c, &error);
	if (err == 0) {
		expect((size_t)(c.text_end - c.texts) <= size + 1);
		judge(&c, data[0]);
		look_at_filter(&c);
	} else {
		expect(err == -EINVAL && error.text[0] != '\0');
		expect(error.column >= 1 &&
		    error.column <= strlen(condition) + 1);
	}
	condition_free(&c);
	free(condition);
	return 0;
}
