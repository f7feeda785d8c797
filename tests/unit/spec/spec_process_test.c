/*
 * spec_process: SPECs are resolved in this process, and compared with what the
 * compiler and the dynamic linker know of the same names.
 */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processes/synthetic_records.h"
#include "space/space.h"
#include "spec/spec.h"

/* What is asked for.  Used, so that the compiler keeps them. */
extern long spec_test_counter, spec_test_table[8];
extern __thread int spec_test_own;
long spec_test_counter;
long spec_test_table[8];
__thread int spec_test_own;
static volatile short spec_test_hidden;

static struct ex_space *space;
static struct ex_process *self;

static void
learn(void *arg, const struct ex_record *record)
{
	ex_space_learn(arg, record);
}

/* Without arguments, whose places would be known behind its first
   instructions. */
static long
spec_test_look(void)
{
	return spec_test_counter;
}

static int
look_at_self(void **state)
{
	struct synthetic_records earlier = {NULL};

	(void)state;
	spec_test_counter = spec_test_own = spec_test_hidden = 1;
	spec_test_table[0] = spec_test_look();
	space = ex_space_new(EX_LIVE);
	assert_non_null(space);
	assert_int_equal(synthetic_records_take(&earlier, getpid()), 0);
	synthetic_records_each(&earlier, learn, space);
	synthetic_records_free(&earlier);
	self = ex_space_process(space, getpid());
	assert_non_null(self);
	return 0;
}

static int
forget_self(void **state)
{
	(void)state;
	ex_space_free(space);
	return 0;
}

static int
resolve(const char *text, char access, struct spec_place *place,
    struct wp_cause *cause)
{
	struct spec spec;
	int rc = spec_parse(text, access, &spec, cause);

	if (rc == 0) {
		rc = spec_resolve(&spec, self, place, cause);
		spec_free(&spec);
	}
	return rc;
}

static void
assert_place(const char *text, char access, const volatile void *addr,
    size_t len, const char *symbol)
{
	struct wp_cause cause = {.text = ""};
	struct spec_place place = {0};

	if (resolve(text, access, &place, &cause) != 0)
		fail_msg("%s", cause.text);
	assert_ptr_equal((const void *)(uintptr_t)place.addr,
	    (const void *)(uintptr_t)addr);
	assert_int_equal(place.len, len);
	assert_string_equal(place.symbol, symbol);
	free(place.symbol);
}

TEST(finds_the_programs_variables)
{
	assert_place("spec_test_counter", 'w', &spec_test_counter,
	    sizeof(long), "spec_test_counter");
	assert_place("spec_test_table", 'r', spec_test_table,
	    sizeof(spec_test_table), "spec_test_table");
	assert_place("spec_test_table+16:4", 'a', &spec_test_table[2], 4,
	    "spec_test_table+16");
	assert_place("spec_test_hidden", 'w', &spec_test_hidden, 2,
	    "spec_test_hidden");
	assert_place("spec_process_test!spec_test_counter", 'w',
	    &spec_test_counter, sizeof(long), "spec_test_counter");
	assert_place("spec_test_look", 'x', (void *)(uintptr_t)spec_test_look,
	    1, "spec_test_look");
}

TEST(finds_variables_of_libraries)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *function;

	assert_non_null(libc);
	function = dlsym(libc, "getpid");
	/* the executable's copy, if it has one: where all modules look */
	assert_place("environ", 'w', &environ, sizeof(environ), "environ");
	assert_place("getpid", 'x', function, 1, "getpid");
	assert_place("libc!getpid", 'x', function, 1, "getpid");
	(void)dlclose(libc);
}

TEST(names_an_address)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%p", (void *)&spec_test_table[3]);
	assert_place(text, 'w', &spec_test_table[3], 8, "spec_test_table+24");
}

TEST(refuses_with_the_reason)
{
	static const struct {
		const char *text;
		int err;
		const char *why;
	} cases[] = {
		{"spec_test_countr", -ENOENT, "nearest: spec_test_counter"},
		{"spec_test_own", -ENOTSUP, "thread-local"},
		{"look_at_self", -ERANGE, "this is a function"},
		{"libc.so.7!environ", -ENOENT, "nearest: libc.so.6"},
		{"spec_test_table+64", -ERANGE, "beyond the symbol's end"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spec_place place;
		struct wp_cause cause = {.text = ""};

		assert_int_equal(resolve(cases[i].text, 'w', &place, &cause),
		    cases[i].err);
		if (strstr(cause.text, cases[i].why) == NULL)
			fail_msg("want \"%s\", got \"%s\"", cases[i].why,
			    cause.text);
	}
}

RUN_TESTS(.before_all = look_at_self, .after_all = forget_self)
