/* debug_names: as clang and gdb write them, and as they may be written. */
#include "test.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "debug/debug_names.h"
#include "scratch.h"

enum { KINDS = 3 };

static struct {
	const char *file;
	uint8_t *bytes, *strings;
	struct ex_debug_names names;
} kind[KINDS] = {{.file = "clang"}, {.file = "wide"}, {.file = "gdb"}};

/* A section that objcopy takes out of a file. */
static uint8_t *
section_of(const char *file, const char *section, size_t *size)
{
	scratch_run("objcopy -O binary --only-section=%s "
	    "--set-section-flags %s=alloc %s out", section, section, file);
	return (uint8_t *)scratch_read("out", size);
}

/* Two units, with a variable of their own and a function each; both have a
   static function of the same name. */
static int
make_names(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	scratch_write("x.c", "int a;\nstatic __attribute__((noinline)) int "
	    "same(void) { return a++; }\nint f(void) { return same(); }\n");
	scratch_write("y.c", "char c;\nstatic __attribute__((noinline)) int "
	    "same(void) { return c++; }\nint g(void) { return same(); }\n");
	scratch_run("clang -g -gpubnames -shared -fPIC -o clang x.c y.c && "
	    "clang -g -gdwarf64 -gpubnames -shared -fPIC -o wide x.c y.c && "
	    "cc -g -shared -fPIC -o gdb x.c y.c && gdb-add-index -dwarf-5 gdb");
	for (size_t i = 0; i < KINDS; i++) {
		kind[i].names.bytes = kind[i].bytes = section_of(kind[i].file,
		    ".debug_names", &kind[i].names.size);
		kind[i].names.strings = kind[i].strings = section_of(
		    kind[i].file, ".debug_str", &kind[i].names.strings_size);
	}
	return 0;
}

TEST(finds_what_has_a_name)
{
	for (size_t i = 0; i < KINDS; i++) {
		const struct ex_debug_names *names = &kind[i].names;
		uint64_t x[4], y[4], both[4];

		assert_int_equal(ex_debug_names_find(names, "a",
		    DW_TAG_variable, x, 4), 1);
		assert_int_equal(ex_debug_names_find(names, "c",
		    DW_TAG_variable, y, 4), 1);
		assert_int_equal(x[0], 0);
		assert_true(y[0] > 0);
		assert_int_equal(ex_debug_names_find(names, "g",
		    DW_TAG_subprogram, x, 4), 1);
		assert_int_equal(x[0], y[0]);
		assert_int_equal(ex_debug_names_find(names, "same",
		    DW_TAG_subprogram, both, 4), 2);
		assert_int_equal(both[0] + both[1], y[0]);
		assert_int_equal(ex_debug_names_find(names, "same",
		    DW_TAG_subprogram, both, 1), 1);
		assert_int_equal(ex_debug_names_find(names, "a",
		    DW_TAG_subprogram, x, 4), 0);
		assert_int_equal(ex_debug_names_find(names, "",
		    DW_TAG_variable, x, 4), 0);
		assert_int_equal(ex_debug_names_find(names, "d",
		    DW_TAG_variable, x, 4), 0);
	}
}

/* gdb does not write all names that a symbol can have. */
TEST(knows_what_is_whole)
{
	const struct ex_debug_names none = {0};
	struct ex_debug_names cut = kind[0].names;
	uint64_t unit;

	assert_int_equal(ex_debug_names_whole(&kind[0].names), 2);
	assert_int_equal(ex_debug_names_whole(&kind[1].names), 2);
	assert_int_equal(ex_debug_names_whole(&kind[2].names), 0);
	assert_int_equal(ex_debug_names_whole(&none), 0);
	cut.size--;
	assert_int_equal(ex_debug_names_whole(&cut), 0);
	assert_int_equal(ex_debug_names_find(&none, "a", DW_TAG_variable,
	    &unit, 1), 0);
}

/* A table whose names are all equal and have all entries there are does not
   take long. */
TEST(looks_up_a_name_quickly)
{
	enum { NAMES = 20000, ENTRIES = 1 << 20, ABBREVS = 8 };
	static const uint8_t abbrevs[ABBREVS] = {1, 0x35, 3, 0x19, 0, 0, 0, 0};
	const uint32_t head[] = {0, 5, 1, 0, 0, 0, NAMES, ABBREVS, 0, 7};
	const size_t size = sizeof(head) + NAMES * 8 + ABBREVS + ENTRIES;
	uint8_t *bytes = calloc(size, 1);
	const struct ex_debug_names names = {bytes, size,
	    (const uint8_t *)"name", 5};
	const uint32_t length = (uint32_t)size - 4;
	uint64_t unit[2];

	memcpy(bytes, head, sizeof(head));
	memcpy(bytes, &length, sizeof(length));
	memcpy(bytes + sizeof(head) + NAMES * 8, abbrevs, ABBREVS);
	memset(bytes + size - ENTRIES, 1, ENTRIES);
	assert_int_equal(ex_debug_names_find(&names, "name", DW_TAG_subprogram,
	    unit, 2), 0);
	/* a variable is what they are not */
	bytes[sizeof(head) + NAMES * 8 + 1] = DW_TAG_variable;
	assert_int_equal(ex_debug_names_find(&names, "name", DW_TAG_variable,
	    unit, 2), 1);
	assert_int_equal(unit[0], 7);
	free(bytes);
}

/* Any byte may be wrong, and any of them missing. */
TEST(survives_damage)
{
	unsigned seed = 1;

	for (unsigned i = 0; i < 30000; i++) {
		struct ex_debug_names names = kind[i % KINDS].names;
		const size_t size = names.size;
		const size_t len = i % 4 == 0 ? i / 4 % (size + 1) : size;
		uint8_t *copy = malloc(len + 1);
		uint64_t unit[2];

		memcpy(copy, names.bytes, len);
		for (unsigned k = 0; k < i % 4 && len > 0; k++) {
			seed = seed * 1664525 + 1013904223;
			copy[(seed >> 8) % (i % 5 == 0 && len > 44 ? 44 :
			    len)] = (uint8_t)(seed >> 3);
		}
		/* an array of exactly that size, for sanitizers */
		names.bytes = copy = realloc(copy, len > 0 ? len : 1);
		names.size = len;
		names.strings_size -= i % 7;
		(void)ex_debug_names_find(&names, "a", DW_TAG_variable, unit,
		    2);
		(void)ex_debug_names_find(&names, "same", DW_TAG_subprogram,
		    unit, 2);
		(void)ex_debug_names_whole(&names);
		free(copy);
	}
}

RUN_TESTS(.before_all = make_names, .after_all = scratch_remove)
