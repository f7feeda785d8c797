/*
 * That --heap guards programs of other allocators, whose own functions and
 * operators return blocks of the guard, and finds nothing in what they do right.
 */
#include "test.h"

#include <unistd.h>

#include "heap_bugs.h"

struct wrong {
	const char *victim, *act, *kind;
	size_t n;
};

static const struct {
	const char *victim, *missing;
} all[] = {
	{"jemalloc", "libjemalloc-dev"},
	{"tcmalloc", "libgoogle-perftools-dev"},
	{"own_new", NULL},
	{"own_new_jemalloc", "libjemalloc-dev"},
	{"own_new_tcmalloc", "libgoogle-perftools-dev"},
};

/* Whether it was made, which takes the allocator. */
static bool
is_there(const char *name)
{
	if (access(victim(name), X_OK) == 0)
		return true;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].victim, name) == 0)
			print_message("%s was not made: %s is not installed\n",
			    name, all[i].missing);
	return false;
}

TEST(all_that_an_allocator_has_may_be_used)
{
	static const char *const sizes[] = {"0", "1M"};

	for (size_t i = 0; i < 2 * sizeof(all) / sizeof(all[0]); i++) {
		const char *name = all[i / 2].victim;
		struct outcome o;

		if (!is_there(name))
			continue;
		guard(&o, LIST("--heap-runs", "0", "--error-exitcode", "66",
		    "--heap-quarantine", sizes[i % 2]), LIST(victim(name)));
		expect_report(&o);
		if (o.status != 3 || count_of(&o, "finding") != 0)
			fail_msg("%s: %d %s%s", name, o.status, o.out, o.err);
	}
}

TEST(what_is_done_wrong_is_told)
{
	static const struct wrong wrongs[] = {
		{"jemalloc", "mismatch", "mismatch", 2},
		{"jemalloc", "overflow", "overflow", 1},
		{"jemalloc", "double-free", "double-free", 1},
		{"tcmalloc", "mismatch", "mismatch", 3},
		{"tcmalloc", "overflow", "overflow", 1},
		{"tcmalloc", "double-free", "double-free", 1},
	};

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *wrong = &wrongs[i];
		struct outcome o;

		if (!is_there(wrong->victim))
			continue;
		guard(&o, LIST("--heap-runs", "0", "--no-cache"),
		    LIST(victim(wrong->victim), wrong->act));
		expect_report(&o);
		if (o.status != 3 || count_of(&o, "finding") != wrong->n)
			fail_msg("%s %s: %d %s%s", wrong->victim, wrong->act,
			    o.status, o.out, o.err);
		assert_string_equal(text_of(first_of(&o, "finding"), "kind"),
		    wrong->kind);
	}
}

RUN_TESTS()
