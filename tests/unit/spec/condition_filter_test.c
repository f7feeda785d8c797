/*
 * condition_filter: what the kernel takes for surely false is false; and it
 * takes that for it which it can.
 */
#include "test.h"

#include <string.h>

#include "random_condition.h"
#include "spec/condition_filter.h"

/* A hit: nothing else is known of it. */
struct numbers {
	int tid, pid, cpu;
};

static bool
find_number(void *arg, enum condition_name name, struct ex_number *out)
{
	const struct numbers *n = arg;

	*out = ex_number_int(name == CONDITION_TID ? n->tid :
	    name == CONDITION_PID ? n->pid : n->cpu);
	return name == CONDITION_TID || name == CONDITION_PID ||
	    name == CONDITION_CPU;
}

static bool
find_enumerator(void *arg, const char *text, struct ex_number *out)
{
	(void)arg;
	(void)text;
	(void)out;
	return false;
}

static enum condition_truth
is_text(void *arg, enum condition_name name, const char *text)
{
	(void)arg;
	(void)name;
	(void)text;
	return CONDITION_UNKNOWN;
}

static enum condition_truth
find_call(void *arg, const struct condition_node *node)
{
	(void)arg;
	(void)node;
	return CONDITION_UNKNOWN;
}

static enum condition_truth
truth(bool is)
{
	return is ? CONDITION_TRUE : CONDITION_FALSE;
}

static enum condition_truth
compare(const struct wp_filter_node *node, const struct numbers *n)
{
	const int x = node->number == WP_FILTER_TID ? n->tid :
	    node->number == WP_FILTER_PID ? n->pid : n->cpu;

	switch (node->relation) {
	case WP_FILTER_EQUAL:
		return truth(x == node->value);
	case WP_FILTER_UNEQUAL:
		return truth(x != node->value);
	case WP_FILTER_LESS:
		return truth(x < node->value);
	case WP_FILTER_NOT_ABOVE:
		return truth(x <= node->value);
	case WP_FILTER_ABOVE:
		return truth(x > node->value);
	default:
		return truth(x >= node->value);
	}
}

/* What a filter says of a hit. */
static enum condition_truth
filtered(const struct wp_filter *f, unsigned i, const struct numbers *n)
{
	const struct wp_filter_node *node = &f->node[i];
	const enum condition_truth decides =
	    truth(node->kind == WP_FILTER_OR);
	enum condition_truth left, right;

	switch (node->kind) {
	case WP_FILTER_UNKNOWN:
		return CONDITION_UNKNOWN;
	case WP_FILTER_COMPARE:
		return compare(node, n);
	case WP_FILTER_NOT:
		left = filtered(f, node->left, n);
		return left == CONDITION_UNKNOWN ? left :
		    truth(left == CONDITION_FALSE);
	default:
		left = filtered(f, node->left, n);
		right = filtered(f, node->right, n);
		return left == decides || right == decides ? decides :
		    left == CONDITION_UNKNOWN ? left : right;
	}
}

static void
parse(const char *text, struct condition *condition)
{
	struct condition_error error;

	if (condition_parse(text, condition, &error) != 0)
		fail_msg("%s: %s (column %u)", text, error.text, error.column);
}

static const struct condition_hit unknown_but_for = {
	.number = find_number, .enumerator = find_enumerator,
	.is_text = is_text, .call = find_call,
};

TEST(what_is_surely_false_is_false)
{
	unsigned filters = 0, rejected = 0;
	uint64_t random = 1;

	for (unsigned i = 0; i < 10000; i++) {
		struct condition condition;
		struct wp_filter filter;
		char text[4096];

		random_condition(&random, 1u << random_below(&random, 6), text,
		    sizeof(text));
		parse(text, &condition);
		filters += condition_filter(&condition, &filter);
		for (unsigned k = 0; k < 20 && filter.n > 0; k++) {
			struct numbers n = {
				(int)random_below(&random, 5),
				(int)random_below(&random, 5),
				(int)random_below(&random, 5),
			};
			struct condition_hit hit = unknown_but_for;

			hit.arg = &n;
			if (filtered(&filter, filter.n - 1, &n) !=
			    CONDITION_FALSE)
				continue;
			rejected++;
			if (condition_holds(&condition, &hit) !=
			    CONDITION_FALSE)
				fail_msg("%s: tid %d, pid %d, cpu %d", text,
				    n.tid, n.pid, n.cpu);
		}
		condition_free(&condition);
	}
	print_message("%u filters, %u rejected\n", filters, rejected);
	assert_true(filters > 2000 && rejected > 10000);
}

TEST(what_can_be_decided)
{
	static const struct {
		const char *text;
		bool can;
		unsigned nodes;
	} cases[] = {
		{"tid == 42", true, 1},
		{"42 != pid", true, 1},
		{"new < 0 && cpu > 3", true, 3},
		{"!(tid == 42 || new < 0)", true, 4},
		{"new < 0 || tid == 42", false, 0},
		{"!(tid == 42 && new < 0)", false, 0},
		{"new < 0", false, 0},
		{"tid == 42u", false, 0},	/* it would be converted */
		{"tid + 1 == 42", false, 0},
		{"tid", false, 0},
		{"comm == \"x\"", false, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct condition condition;
		struct wp_filter filter;

		parse(cases[i].text, &condition);
		print_message("%s\n", cases[i].text);
		assert_int_equal(condition_filter(&condition, &filter),
		    cases[i].can);
		assert_int_equal(filter.n, cases[i].nodes);
		condition_free(&condition);
	}
}

/* One that is too long is decided elsewhere, as a whole. */
TEST(as_much_as_there_is_room_for)
{
	for (unsigned parts = 31; parts < 34; parts++) {
		struct condition condition;
		struct wp_filter filter;
		char text[1024] = "tid == 0";

		for (unsigned i = 1; i < parts; i++)
			(void)strcat(text, " || tid == 1");
		parse(text, &condition);
		assert_int_equal(condition_filter(&condition, &filter),
		    parts < 33);
		condition_free(&condition);
	}
}

RUN_TESTS()
