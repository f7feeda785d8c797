/* kernel_place: which address and length a SPEC of the kernel's memory has. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "scratch.h"
#include "spec/kernel_place.h"

/* A function, and variables that lie close together; two that are called alike,
   and one that is there twice. */
static const char symbols[] =
    "ffffffff81000000 T _text\n"
    "ffffffff81000123 t twin\n"
    "ffffffff81000456 t twin\t[module]\n"
    "ffffffff82000000 D jiffies\n"
    "ffffffff82000008 b narrow\n"
    "ffffffff8200000c d lease_break_time\n"
    "ffffffff82000010 D same\n"
    "ffffffff82000010 D same\n"
    "ffffffff82000012 D odd\t[module]\n"
    "ffffffff82000020 D last\n"
    "not a line\n";

/* Variables of each processor, as up to Linux 6.14 and since. */
static const char from_zero[] =
    "0000000000000000 D __per_cpu_start\n"
    "0000000000000000 D fixed_percpu_data\n"
    "000000000001fb80 D cpu_number\n"
    "0000000000035000 D __per_cpu_end\n"
    "ffffffff81000000 T _text\n"
    "ffffffff82000000 D jiffies\n";
static const char among_others[] =
    "ffffffff81000000 T _text\n"
    "ffffffff83000000 D cpu_number\n"
    "ffffffff83000000 D __per_cpu_start\n"
    "ffffffff83035000 D __per_cpu_end\n"
    "ffffffff83035000 D behind\n";

/* 0, or the error. */
static int
find(const char *text, const char *content, struct spec_place *place,
    struct wp_cause *cause)
{
	const char *path = scratch_path("kallsyms");
	FILE *f = fopen(path, "w");
	struct spec spec;
	int err;

	assert_non_null(f);
	(void)fputs(content, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(spec_parse(text, WP_WRITE, &spec, cause), 0);
	assert_true(spec.kernel);
	err = kernel_place_find(&spec, path, place, cause);
	spec_free(&spec);
	return err;
}

TEST_WITH(finds_symbols, scratch_make, scratch_remove)
{
	static const struct {
		const char *text;
		uint64_t addr, len;
		const char *symbol;
	} cases[] = {
		{"kernel!jiffies", 0xffffffff82000000, 8, "jiffies"},
		{"kernel!narrow", 0xffffffff82000008, 4, "narrow"},
		{"kernel!lease_break_time", 0xffffffff8200000c, 4,
		    "lease_break_time"},
		{"kernel!same", 0xffffffff82000010, 2, "same"},
		{"kernel!odd", 0xffffffff82000012, 2, "odd"},
		{"kernel!odd+1", 0xffffffff82000013, 1, "odd+1"},
		{"kernel!last", 0xffffffff82000020, 8, "last"},
		{"kernel!last+0x10", 0xffffffff82000030, 8, "last+16"},
		{"kernel!narrow+2:16", 0xffffffff8200000a, 16, "narrow+2"},
		{"0xffffffff82000008", 0xffffffff82000008, 4, NULL},
		{"0xffff888000000000", 0xffff888000000000, 8, NULL},
		{"0xffff888000000004:1", 0xffff888000000004, 1, NULL},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct wp_cause cause = {0};
		struct spec_place place;

		if (find(cases[i].text, symbols, &place, &cause) != 0)
			fail_msg("%s: %s", cases[i].text, cause.text);
		assert_int_equal(place.addr, cases[i].addr);
		assert_int_equal(place.len, cases[i].len);
		if (cases[i].symbol == NULL)
			assert_null(place.symbol);
		else
			assert_string_equal(place.symbol, cases[i].symbol);
		free(place.symbol);
	}
}

TEST_WITH(finds_what_is_not_of_each_processor, scratch_make, scratch_remove)
{
	struct wp_cause cause = {0};
	struct spec_place place;

	assert_int_equal(find("kernel!jiffies", from_zero, &place, &cause), 0);
	assert_int_equal(place.addr, 0xffffffff82000000);
	free(place.symbol);
	assert_int_equal(find("kernel!behind", among_others, &place, &cause),
	    0);
	assert_int_equal(place.addr, 0xffffffff83035000);
	free(place.symbol);
}

TEST_WITH(refuses, scratch_make, scratch_remove)
{
	static const struct {
		const char *text, *content;
		const char *words[3];
	} cases[] = {
		{"kernel!jiffie", symbols, {"'kernel!jiffie': no symbol "
		    "'jiffie' in the kernel", "nearest: jiffies"}},
		{"kernel!no\033x", symbols, {"no\\x1bx"}},
		{"kernel!twin", symbols, {"2 symbols are called 'twin'",
		    "0xffffffff81000123, 0xffffffff81000456", "its address"}},
		{"kernel!_text+0xffffffffffffffff", symbols,
		    {"the offset reaches beyond the last address"}},
		{"kernel!_text+0x7effffff:2", symbols,
		    {"the length reaches beyond the last address"}},
		{"kernel!jiffies", "0000000000000000 T _text\n"
		    "0000000000000000 D jiffies\n",
		    {"the kernel's addresses are hidden", "kptr_restrict",
		    "root"}},
		{"kernel!jiffies", "ffffffff81000000 T _text\n"
		    "ffffffff82000000 D __start_x\n",
		    {"functions alone", "CONFIG_KALLSYMS_ALL", "give the "
		    "address"}},
		{"kernel!jiffies", "", {"hidden"}},
		{"kernel!cpu_number", from_zero, {"'kernel!cpu_number': each "
		    "processor has its own: give the address of one"}},
		{"kernel!fixed_percpu_data:8", from_zero, {"each processor"}},
		{"kernel!cpu_number", among_others, {"each processor"}},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct wp_cause cause = {0};
		struct spec_place place;

		assert_true(find(cases[i].text, cases[i].content, &place,
		    &cause) < 0);
		assert_null(place.symbol);
		for (size_t k = 0; k < 3 && cases[i].words[k] != NULL; k++)
			if (strstr(cause.text, cases[i].words[k]) == NULL)
				fail_msg("no \"%s\" in: %s", cases[i].words[k],
				    cause.text);
	}
}

TEST(there_is_no_such_file)
{
	struct wp_cause cause = {0};
	struct spec_place place;
	struct spec spec;

	assert_int_equal(spec_parse("kernel!x", WP_WRITE, &spec, &cause), 0);
	assert_true(kernel_place_find(&spec, "/nowhere", &place, &cause) < 0);
	assert_holds(cause.text, "/nowhere, which has the kernel's "
	    "symbols, cannot be read: No such file");
	spec_free(&spec);
}

RUN_TESTS()
