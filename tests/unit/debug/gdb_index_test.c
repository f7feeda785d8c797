/* gdb_index: as gdb writes it, and as it may be written. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "debug/gdb_index.h"
#include "scratch.h"

static uint8_t *bytes;
static size_t size;

/* Two units, with a variable of their own and a function each. */
static int
make_index(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	scratch_write("x.c", "int a;\nint f(void) { return a; }\n");
	scratch_write("y.c", "char c;\nint g(void) { return c; }\n");
	scratch_run("cc -g -shared -fPIC -o p x.c y.c && "
	    "gdb -nx -batch -ex 'save gdb-index .' p");
	bytes = (uint8_t *)scratch_read("p.gdb-index", &size);
	return 0;
}

/* How many units have a variable of this name; the first and the last. */
static unsigned
units_of(const struct ex_gdb_index *index, const char *name, uint64_t *first,
    uint64_t *last)
{
	uint64_t unit;
	unsigned n = 0;
	size_t at = 0;

	while (ex_gdb_index_variable(index, name, &at, &unit)) {
		if (n++ == 0)
			*first = unit;
		*last = unit;
	}
	return n;
}

TEST(finds_variables)
{
	struct ex_gdb_index index;
	uint64_t x = 0, y = 0, unit;

	assert_true(ex_gdb_index_open(&index, bytes, size));
	assert_int_equal(units_of(&index, "a", &x, &unit), 1);
	assert_int_equal(units_of(&index, "c", &y, &unit), 1);
	assert_int_equal(x, 0);
	assert_true(y > 0);
	assert_int_equal(units_of(&index, "f", &x, &y), 0);
	assert_int_equal(units_of(&index, "", &x, &y), 0);
	assert_int_equal(units_of(&index, "d", &x, &y), 0);
}

TEST(finds_code)
{
	struct ex_gdb_index index;
	struct ex_ranges code = {0};
	unsigned first = 0;

	assert_true(ex_gdb_index_open(&index, bytes, size));
	assert_true(ex_gdb_index_code(&index, &code));
	assert_int_equal(code.n, 2);
	for (size_t i = 0; i < code.n; i++)
		first += code.at[i].what == 0;
	assert_int_equal(first, 1);
	ex_ranges_free(&code);
}

TEST(knows_versions)
{
	struct ex_gdb_index index;

	/* the head of 9 is longer */
	for (uint8_t version = 0; version < 20; version += 1 + (version == 8)) {
		uint8_t old = bytes[0];

		bytes[0] = version;
		assert_int_equal(ex_gdb_index_open(&index, bytes, size),
		    version >= 5 && version <= 8);
		bytes[0] = old;
	}
}

/* Any byte may be wrong, and any of them missing. */
TEST(survives_damage)
{
	unsigned seed = 1;

	for (unsigned i = 0; i < 20000; i++) {
		const size_t len = i % 4 == 0 ? i / 4 % (size + 1) : size;
		uint8_t *copy = malloc(len + 1);
		struct ex_ranges code = {0};
		struct ex_gdb_index index;
		uint64_t x, y;

		memcpy(copy, bytes, len);
		for (unsigned k = 0; k < i % 4 && len > 0; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 8) % (i % 3 == 0 && len > 28 ? 28 :
			    len)] = (uint8_t)(seed >> 3);
		}
		/* an array of exactly that size, for sanitizers */
		copy = realloc(copy, len > 0 ? len : 1);
		if (ex_gdb_index_open(&index, copy, len)) {
			(void)ex_gdb_index_code(&index, &code);
			(void)units_of(&index, "a", &x, &y);
			(void)units_of(&index, "nothing", &x, &y);
		}
		ex_ranges_free(&code);
		free(copy);
	}
}

RUN_TESTS(.before_all = make_index, .after_all = scratch_remove)
