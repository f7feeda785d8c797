/*
 * spec: which SPECs are understood, what an error points at, and which symbol
 * is chosen.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "made_process.h"
#include "spec/spec.h"

static const struct {
	const char *text, *module, *symbol;
	uint64_t addr, off, len;
} good[] = {
	{"0x404090", NULL, NULL, 0x404090, 0, 0},
	{"0X40aF:8", NULL, NULL, 0x40af, 0, 8},
	{"4711:0x10", NULL, NULL, 4711, 0, 16},
	{"0", NULL, NULL, 0, 0, 0},
	{"010", NULL, NULL, 10, 0, 0},
	{"18446744073709551615:1", NULL, NULL, UINT64_MAX, 0, 1},
	{"0xffffffffffffffff", NULL, NULL, UINT64_MAX, 0, 0},
	{"counter", NULL, "counter", 0, 0, 0},
	{"counter:4", NULL, "counter", 0, 0, 4},
	{"counter+8", NULL, "counter", 0, 8, 0},
	{"counter+0x8:2", NULL, "counter", 0, 8, 2},
	{"counter+0", NULL, "counter", 0, 0, 0},
	{"deadbeef", NULL, "deadbeef", 0, 0, 0},
	{"server.clients", NULL, "server.clients", 0, 0, 0},
	{"libc.so.6!environ", "libc.so.6", "environ", 0, 0, 0},
	{"/usr/lib/libstdc++.so.6!x+1:2", "/usr/lib/libstdc++.so.6", "x", 0,
	 1, 2},
	{"7z.so!x", "7z.so", "x", 0, 0, 0},
	{"a b:c!x", "a b:c", "x", 0, 0, 0},
	{"ns::counter", NULL, "ns::counter", 0, 0, 0},
	{"ns::counter:8", NULL, "ns::counter", 0, 0, 8},
	{"::counter+8", NULL, "::counter", 0, 8, 0},
	{"ns::Foo<int>::count", NULL, "ns::Foo<int>::count", 0, 0, 0},
	{"m::Foo<(m::E)1, a+b>::count+8:4", NULL,
	 "m::Foo<(m::E)1, a+b>::count", 0, 8, 4},
	{"F<(a>b)>::x:1", NULL, "F<(a>b)>::x", 0, 0, 1},
	{"F<(a<b)>::x:1", NULL, "F<(a<b)>::x", 0, 0, 1},
	{"F<(!a)>::x:1", NULL, "F<(!a)>::x", 0, 0, 1},
	{"libx.so!F<(!a)>::x", "libx.so", "F<(!a)>::x", 0, 0, 0},
	{"(anonymous namespace)::hits:8", NULL,
	 "(anonymous namespace)::hits", 0, 0, 8},
	{"foo[abi:cxx11]+4", NULL, "foo[abi:cxx11]", 0, 4, 0},
	{"main::{lambda(int)#1}::operator()", NULL,
	 "main::{lambda(int)#1}::operator()", 0, 0, 0},
	{"F::operator+", NULL, "F::operator+", 0, 0, 0},
	{"F::operator+=+1", NULL, "F::operator+=", 0, 1, 0},
	{"F::operator<<", NULL, "F::operator<<", 0, 0, 0},
	{"F::operator< <int>+2", NULL, "F::operator< <int>", 0, 2, 0},
	{"F::operator->", NULL, "F::operator->", 0, 0, 0},
	{"F::operator!", NULL, "F::operator!", 0, 0, 0},
	{"F::operator!=", NULL, "F::operator!=", 0, 0, 0},
	{"libx.so!F::operator!", "libx.so", "F::operator!", 0, 0, 0},
	{"operator new", NULL, "operator new", 0, 0, 0},
	{"myoperator+8", NULL, "myoperator", 0, 8, 0},
	{"operators+8", NULL, "operators", 0, 8, 0},
	{"<A as b::C<fn(u8) -> u8>>::x:1", NULL,
	 "<A as b::C<fn(u8) -> u8>>::x", 0, 0, 1},
	{"list.c::head", "list.c", "head", 0, 0, 0},
	{"src/my-list.cc::ns::head+8:4", "src/my-list.cc", "ns::head", 0, 8,
	 4},
	{"obj.member::x", NULL, "obj.member::x", 0, 0, 0},
	{"a->b + 1", NULL, "a->b + 1", 0, 0, 0},
	{"*(p + 1):4", NULL, "*(p + 1)", 0, 0, 4},
	{"*(ns::T<int> *)(p + i):4", NULL, "*(ns::T<int> *)(p + i)", 0, 0, 4},
	{"lib.so!p + i", "lib.so", "p + i", 0, 0, 0},
	{"counter+x", NULL, "counter+x", 0, 0, 0},
	{"own@4711", NULL, "own", 0, 0, 0},
	{"lib.so!own+8@4711:4", "lib.so", "own", 0, 8, 4},
	{"memcpy@GLIBC_2.14", NULL, "memcpy@GLIBC_2.14", 0, 0, 0},
	{"own@4711x", NULL, "own@4711x", 0, 0, 0},
	{"\033[x]\xff", NULL, "\033[x]\xff", 0, 0, 0},
};

static void
assert_same(const char *got, const char *want)
{
	if (want == NULL)
		assert_null(got);
	if (want != NULL && got == NULL)
		fail_msg("nothing, not \"%s\"", want);
	if (want != NULL)
		assert_string_equal(got, want);
}

TEST(parses)
{
	for (size_t i = 0; i < COUNT(good); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec spec;

		if (spec_parse(good[i].text, 'w', &spec, &cause) != 0)
			fail_msg("%s", cause.text);
		assert_string_equal(spec.text, good[i].text);
		assert_same(spec.module, good[i].module);
		assert_same(spec.symbol, good[i].symbol);
		assert_int_equal(spec.addr, good[i].addr);
		assert_int_equal(spec.off, good[i].off);
		assert_int_equal(spec.len, good[i].len);
		assert_int_equal(spec.access, 'w');
		spec_free(&spec);
	}
}

static const struct {
	const char *text, *path, *symbol;
	uint64_t off, len;
} shared[] = {
	{"shm:/pool+0x40:4", "/dev/shm/pool", NULL, 0x40, 4},
	{"shm:/pool+0", "/dev/shm/pool", NULL, 0, 8},
	{"shm:/a+b:c+6", "/dev/shm/a+b:c", NULL, 6, 2},
	{"file:/x+4095:1", "/x", NULL, 4095, 1},
	{"file:7z+12", "7z", NULL, 12, 4},
	{"file:a b!c::d->e+0x10", "a b!c::d->e", NULL, 16, 8},
	{"file:/proc/1/map_files/7f00-7f10+8:8",
	    "/proc/1/map_files/7f00-7f10", NULL, 8, 8},
	{"file:/x+9223372036854775799:8", "/x", NULL,
	    9223372036854775799, 8},
	/* symbols that are called so */
	{"shm:8", NULL, "shm", 0, 8},
	{"file:0x4", NULL, "file", 0, 4},
	{"file+8:4", NULL, "file", 8, 4},
	{"file::x", NULL, "file::x", 0, 0},
	{"shm", NULL, "shm", 0, 0},
};

TEST(parses_shared_memory_and_files)
{
	for (size_t i = 0; i < COUNT(shared); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec spec;

		if (spec_parse(shared[i].text, 'w', &spec, &cause) != 0)
			fail_msg("%s", cause.text);
		assert_string_equal(spec.text, shared[i].text);
		assert_same(spec.shared, shared[i].path);
		assert_same(spec.symbol, shared[i].symbol);
		assert_int_equal(spec.off, shared[i].off);
		assert_int_equal(spec.len, shared[i].len);
		assert_int_equal(spec.addr, 0);
		spec_free(&spec);
	}
}

static const struct {
	const char *text, *function;
	uint64_t instance, off, len;
} objects[] = {
	{"alloc:conn_new", "conn_new", 0, 0, 0},
	{"alloc:conn_new+8:4", "conn_new", 0, 8, 4},
	{"alloc:conn_new#3+0x8:4", "conn_new", 3, 8, 4},
	{"alloc:conn_new#3:4", "conn_new", 3, 0, 4},
	{"alloc:libc.so.6!malloc+8", "libc.so.6!malloc", 0, 8, 0},
	{"alloc:ns::T<int>::make(a + b)#1", "ns::T<int>::make(a + b)", 1, 0,
	 0},
	{"alloc:list.c::make:2", "list.c::make", 0, 0, 2},
	/* symbols that are called so */
	{"alloc:8", NULL, 0, 0, 8},
	{"alloc::x", NULL, 0, 0, 0},
	{"alloc+8", NULL, 0, 8, 0},
};

TEST(parses_objects)
{
	for (size_t i = 0; i < COUNT(objects); i++) {
		struct spec spec;

		assert_int_equal(spec_parse(objects[i].text, WP_WRITE, &spec,
		    NULL), 0);
		if (objects[i].function == NULL)
			assert_null(spec.allocator);
		else
			assert_string_equal(spec.allocator,
			    objects[i].function);
		assert_int_equal(spec.instance, objects[i].instance);
		assert_int_equal(spec.off, objects[i].off);
		assert_int_equal(spec.len, objects[i].len);
		spec_free(&spec);
	}
}

TEST(shared_memory_is_not_executed)
{
	struct wp_cause cause;
	struct spec spec;

	assert_int_equal(spec_parse("shm:/pool+8", WP_EXEC, &spec, &cause),
	    -EINVAL);
	assert_holds(cause.text, "not with -x");
}

/* What is wrong, from which character on. */
#define EIGHT	"(<{[[{<("
static const struct {
	const char *text, *wrong;
} bad[] = {
	{"", "something to watch is expected at its end (column 1)"},
	{"shm:", "a file's path is expected at its end (column 5)"},
	{"file:+8", "a file's path is expected at '+8' (column 6)"},
	{"shm:pool+8", "the name of shared memory is expected, which begins "
	    "with '/' at 'pool+8' (column 5)"},
	{"shm:/+8", "the name of shared memory is expected, with a '/' before "
	    "it and no other at '+8' (column 6)"},
	{"shm:/a/b+8", "the name of shared memory is expected, with a '/' "
	    "before it and no other at 'a/b+8' (column 6)"},
	{"shm:/pool", "'+' and an offset are expected, from the beginning of "
	    "the file at its end (column 10)"},
	{"file:/x+", "a number is expected at its end (column 9)"},
	{"file:/x+y", "a number is expected at 'y' (column 9)"},
	{"file:/x+8:0", "the length is zero at '0' (column 11)"},
	{"file:/x+8 ", "only :LEN can follow an offset at ' ' (column 10)"},
	{"file:/x+8:4:2", "nothing may follow the length at ':2' (column 12)"},
	{"file:/x+9223372036854775808", "no file is so long at "
	    "'9223372036854775808' (column 9)"},
	{"file:/x+9223372036854775807:8", "no file is so long at "
	    "'9223372036854775807:8' (column 9)"},
	{"file:/x+18446744073709551616", "the number needs more than 64 bits "
	    "at '18446744073709551616' (column 9)"},
	{"alloc:", "a function's name is expected at its end (column 7)"},
	{"alloc:#1", "a function's name is expected at '#1' (column 7)"},
	{"alloc:f#", "a number is expected at its end (column 9)"},
	{"alloc:f#0", "objects are numbered from 1 at '0' (column 9)"},
	{"alloc:f->", "a member's name is expected at its end (column 10)"},
	{"alloc:f->x+1", "an operator, or :LEN, is expected at '+1' "
	    "(column 11)"},
	{"alloc:f#2->x[1", "this is never closed at '[1' (column 13)"},
	{"alloc:f->x = 1", "what would change the program, or compare, is not "
	    "evaluated at '= 1' (column 12)"},
	{"alloc:f+x", "a number is expected at 'x' (column 9)"},
	{"alloc:f+8#1", "only :LEN can follow at '#1' (column 10)"},
	{"alloc:f:0", "the length is zero at '0' (column 9)"},
	{"counter:", "a number is expected at its end (column 9)"},
	{"own@0", "no thread has this id at '0' (column 5)"},
	{"own@2147483648", "no thread has this id at '2147483648' (column 5)"},
	{"counter:x", "a number is expected at 'x' (column 9)"},
	{"counter:0", "the length is zero at '0' (column 9)"},
	{"counter:0x0", "the length is zero at '0x0' (column 9)"},
	{"counter:8x", "not a digit at 'x' (column 10)"},
	{"counter:8:4", "nothing may follow the length at ':4' (column 10)"},
	{"counter:8+4", "nothing may follow the length at '+4' (column 10)"},
	{"counter:-8", "a number is expected at '-8' (column 9)"},
	{"counter+", "a number is expected at its end (column 9)"},
	{"0x", "a hexadecimal digit is expected at its end (column 3)"},
	{"0xg", "a hexadecimal digit is expected at 'g' (column 3)"},
	{"40ab90", "not a decimal digit (hexadecimal has 0x before it) at "
	 "'ab90' (column 3)"},
	{"0x40zz", "not a digit at 'zz' (column 5)"},
	{"0x404090+8", "only :LEN can follow an address at '+8' "
	 "(column 9)"},
	{"0x404090 ", "only :LEN can follow an address at ' ' (column 9)"},
	{"18446744073709551616", "the number needs more than 64 bits at "
	 "'18446744073709551616' (column 1)"},
	{"x+0x10000000000000000", "the number needs more than 64 bits at "
	 "'0x10000000000000000' (column 3)"},
	{"0xfffffffffffffff8:9", "the length reaches beyond the last address "
	 "at '9' (column 20)"},
	{"!x", "a module's name is expected before it at '!x' (column 1)"},
	{"libc!", "a symbol's name is expected at its end (column 6)"},
	{"libc!+8", "a symbol's name is expected at '+8' (column 6)"},
	{"libc!0x40", "a symbol's name is expected, which does not begin with "
	 "a digit at '0x40' (column 6)"},
	{"+8", "a symbol's name is expected at '+8' (column 1)"},
	{":8", "a symbol's name is expected at ':8' (column 1)"},
	{"Foo<int::x", "this is never closed at '<int::x' (column 4)"},
	{"Foo)::x", "this closes no bracket at ')::x' (column 4)"},
	{"Foo<(a]>", "this closes no bracket at ']>' (column 7)"},
	{EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT "(x",
	 "brackets are nested too deeply at '(x' (column 65)"},
	/* characters, not bytes; and nothing a terminal would obey */
	{"\xe2\x82\xac\xe2\x82\xac:", "a number is expected at its end "
	 "(column 4)"},
	{"x:\033[2J\n", "a number is expected at '\\x1b[2J\\n' (column 3)"},
};

/* The same of what is an expression at best. */
static const struct {
	const char *text, *wrong;
} bad_expressions[] = {
	{"a->", "a member's name is expected (column 4)"},
	{"a->b:", "a number is expected at its end (column 6)"},
	{"table[i", "this is never closed at '[i' (column 6)"},
	{"table[i].", "a member's name is expected (column 10)"},
	{"i++", "what would change the program, or compare, is not evaluated "
	 "(column 2)"},
	{"a = 1", "not evaluated (column 3)"},
	{"a ? b : c", "nothing is decided here (column 3)"},
	{"lib.so!p +", "a number is expected at its end (column 11)"},
	{"*", "a variable, a constant or '(' is expected (column 2)"},
	{"(a + 1", "this is never closed"},
};

TEST(points_at_what_is_wrong_in_c)
{
	for (size_t i = 0; i < COUNT(bad_expressions); i++) {
		struct wp_cause cause;
		struct spec spec;

		assert_int_equal(spec_parse(bad_expressions[i].text, 'w', &spec,
		    &cause), -EINVAL);
		if (strstr(cause.text, bad_expressions[i].wrong) == NULL)
			fail_msg("%s: %s", bad_expressions[i].text, cause.text);
	}
}

static void
assert_one_line(const char *text)
{
	for (const char *p = text; *p != '\0'; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
}

TEST(points_at_what_is_wrong)
{
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct wp_cause cause;
		struct spec spec;

		if (spec_parse(bad[i].text, 'w', &spec, &cause) != -EINVAL)
			fail_msg("\"%s\" is understood", bad[i].text);
		assert_int_equal(cause.code, WP_CAUSE_SPEC_SYNTAX);
		if (strstr(cause.text, bad[i].wrong) == NULL)
			fail_msg("want \"%s\", got \"%s\"", bad[i].wrong,
			    cause.text);
		assert_one_line(cause.text);
		assert_int_equal(spec_parse(bad[i].text, 'w', &spec, NULL),
		    -EINVAL);
	}
}

TEST(gives_an_execution_watch_no_length)
{
	struct wp_cause cause;
	struct spec spec;

	assert_int_equal(spec_parse("main:8", 'x', &spec, &cause), -EINVAL);
	assert_int_equal(cause.code, WP_CAUSE_ACCESS);
	assert_int_equal(spec_parse("main+4", 'x', &spec, &cause), 0);
	spec_free(&spec);
}

/* What ends like a source file's name has a line; a dot alone is no file. */
TEST(knows_the_lines_of_a_file)
{
	static const struct {
		const char *text;
		enum wp_cause_code code;
	} rows[] = {
		{"list.c:3000000000", WP_CAUSE_ACCESS},
		{"list.c+8:20", WP_CAUSE_ACCESS},
		{"v!list.c:20", WP_CAUSE_ACCESS},
		{"count[abi:.xx11]:4", WP_CAUSE_ACCESS},
		{"count[abi:.xx11]+8:4", WP_CAUSE_ACCESS},
		{".text:4", WP_CAUSE_ACCESS},
		{"f.0:4", WP_CAUSE_ACCESS},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct wp_cause cause;
		struct spec spec;

		assert_true(spec_parse(rows[i].text, 'x', &spec, &cause) < 0);
		if (cause.code != rows[i].code)
			fail_msg("%s: %s", rows[i].text, cause.text);
		assert_null(strchr(cause.text, '\a'));
	}
}

TEST(takes_lines)
{
	static const char *const texts[] = {"list.c:20", "src/list.cpp:20",
	    "list\a.c:20", "/usr/src/list.c:0x14"};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct spec spec;

		assert_int_equal(spec_parse(texts[i], 'x', &spec, NULL), 0);
		assert_int_equal(spec.line, 20);
		assert_int_equal(spec.len, 0);
		assert_int_equal(strlen(spec.symbol),
		    strcspn(texts[i], ":"));
		spec_free(&spec);
	}
}

/* A long SPEC leaves room for what is wrong with it. */
TEST(shows_a_part_of_a_long_spec)
{
	struct wp_cause cause;
	struct spec spec;
	char text[4096];

	memset(text, '\033', sizeof(text));
	memcpy(text + sizeof(text) - 4, ":8x", 4);
	assert_int_equal(spec_parse(text, 'w', &spec, &cause), -EINVAL);
	assert_holds(cause.text, "...': not a digit at 'x' " "(column 4095)");
}

#define OBJECT(n, v, s, ...) {.name = (n), .value = (v), .size = (s),	\
	.object = true, __VA_ARGS__}
#define FUNCTION(n, v, s, ...) {.name = (n), .value = (v), .size = (s),	\
	.function = true, __VA_ARGS__}

static const struct ex_symbol victim_symbols[] = {
	FUNCTION("main", 0x1100, 0x40, .global = true),
	FUNCTION("bump", 0x1150, 0x10),
	OBJECT("counter", 0x4090, 8, .global = true),
	OBJECT("counter", 0x4090, 8, .global = true),	/* .dynsym's too */
	OBJECT("table", 0x40a0, 64),
	OBJECT("odd", 0x40e1, 7),
	{.name = "label", .value = 0x40f4, .global = true},
	OBJECT("copied", 0x4100, 8, .global = true),
	OBJECT("twice", 0x4200, 4, .file = "one.c"),
	OBJECT("twice", 0x4204, 4, .file = "two.c"),
	OBJECT("thrice", 0x4208, 4, .file = "one.c"),
	OBJECT("thrice", 0x420c, 4, .file = "one.c"),
	FUNCTION("_Zns::run(int)", 0x1180, 8, .global = true),
	FUNCTION("_Zns::run(char const*)", 0x1190, 8, .global = true),
	{.name = "own", .value = 0x10, .size = 4, .tls = true},
	OBJECT("mixed", 0x4300, 4),
	OBJECT("_Zns::count", 0x4310, 4, .global = true),
	OBJECT("hidden", 0x4320, 4),
	OBJECT("shadow", 0x4330, 4),
	OBJECT("shadow", 0x4340, 4, .global = true),
	OBJECT("exported", 0x4350, 4),
	OBJECT("high", UINT64_MAX - 0x400003, 2),
	OBJECT("endless", 0x4400, UINT64_MAX),
};
static const struct ex_symbol foo_symbols[] = {
	OBJECT("copied", 0x2000, 8, .global = true),
	OBJECT("shared", 0x2010, 16, .global = true),
	OBJECT("hidden", 0x2030, 4, .global = true),
	OBJECT("only_foo", 0x2040, 1),
	OBJECT("exported", 0x2048, 4, .global = true),
	OBJECT("private", 0x2070, 4),
	FUNCTION("mixed", 0x1000, 16, .global = true),
	FUNCTION("helper", 0x1010, 16, .global = true),
	FUNCTION("chosen", 0x1020, 16, .global = true, .indirect = true),
	FUNCTION("__chosen_fast", 0x1030, 16),
	OBJECT("shadow", 0x2050, 4, .global = true),
	OBJECT("shadow", 0x2060, 4),
	{.name = "own2", .value = 0x10, .size = 4, .tls = true},
	FUNCTION("waits", 0x1040, 16, .global = true, .old = true),
	FUNCTION("waits", 0x1050, 16, .global = true),
	FUNCTION("past", 0x1060, 16, .global = true, .old = true),
	FUNCTION("copies", 0x1070, 16, .global = true, .old = true),
	FUNCTION("copies", 0x1080, 16, .global = true, .indirect = true),
};
static const struct ex_symbol foo2_symbols[] = {
	OBJECT("only_foo", 0x2040, 1, .global = true),
	OBJECT("private", 0x2050, 4),
	OBJECT("shared", 0x2010, 16, .global = true),
	{.name = "own2", .value = 0x10, .size = 4, .tls = true},
};
static struct ex_module modules[] = {
	{"/home/u/victim", NULL, 0x400000, 0x5000, victim_symbols,
	 COUNT(victim_symbols)},
	{"/usr/lib/libfoo.so.1", NULL, 0x7f0000000000, 0x3000, foo_symbols,
	 COUNT(foo_symbols)},
	{"/opt/lib/libfoo.so.2", NULL, 0x7f1000000000, 0x3000, foo2_symbols,
	 COUNT(foo2_symbols)},
	{"/usr/lib/libbar-2.36.so", "it is not an ELF file", 0x7f2000000000,
	 0x1000, NULL, 0},
	{"/usr/lib/libstripped.so", NULL, 0x7f3000000000, 0x1000, NULL, 0},
};
static struct ex_process process = {modules, COUNT(modules)};

static const struct {
	const char *text;
	char access;
	uint64_t addr, len;
	const char *symbol;
} found[] = {
	/* addresses: aligned size, or as asked; named by what covers them */
	{"0x10", 'w', 0x10, 8, NULL},
	{"0x14", 'w', 0x14, 4, NULL},
	{"0x16", 'w', 0x16, 2, NULL},
	{"0x17", 'w', 0x17, 1, NULL},
	{"0x17:3", 'w', 0x17, 3, NULL},
	{"0x404090", 'w', 0x404090, 8, "counter"},
	{"0x4040a8", 'r', 0x4040a8, 8, "table+8"},
	{"0x4040e0", 'a', 0x4040e0, 8, NULL},
	{"0x4040f4", 'a', 0x4040f4, 4, "label"},
	{"0x4040f8", 'a', 0x4040f8, 8, NULL},
	{"0x401154", 'x', 0x401154, 1, "bump+4"},
	{"0x404310", 'w', 0x404310, 8, "ns::count"},
	{"0x7f3000000010", 'w', 0x7f3000000010, 8, NULL},
	/* symbols: the object's size, what is left of it, or as asked */
	{"counter", 'w', 0x404090, 8, "counter"},
	{"counter:4", 'w', 0x404090, 4, "counter"},
	{"counter:16", 'w', 0x404090, 16, "counter"},
	{"counter+4", 'w', 0x404094, 4, "counter+4"},
	{"counter+0", 'w', 0x404090, 8, "counter"},
	{"table", 'w', 0x4040a0, 64, "table"},
	{"table+0", 'w', 0x4040a0, 8, "table"},
	{"table+8", 'w', 0x4040a8, 8, "table+8"},
	{"table+60", 'w', 0x4040dc, 4, "table+60"},
	{"table+63:1", 'w', 0x4040df, 1, "table+63"},
	{"odd", 'w', 0x4040e1, 7, "odd"},
	{"odd+3", 'w', 0x4040e4, 4, "odd+3"},
	{"odd+6", 'w', 0x4040e7, 1, "odd+6"},
	{"label", 'w', 0x4040f4, 4, "label"},
	{"label+4", 'w', 0x4040f8, 8, "label+4"},
	{"high", 'w', UINT64_MAX - 3, 2, "high"},
	{"main", 'x', 0x401100, 1, "main"},
	{"main+4", 'x', 0x401104, 1, "main+4"},
	{"label", 'x', 0x4040f4, 1, "label"},
	{"helper", 'x', 0x7f0000001010, 1, "helper"},
	{"main:4", 'w', 0x401100, 4, "main"},
	{"ns::count", 'w', 0x404310, 4, "ns::count"},
	{"_Zns::count", 'w', 0x404310, 4, "ns::count"},
	/* the executable's globals come first (and so do copied ones) */
	{"copied", 'w', 0x404100, 8, "copied"},
	{"shadow", 'w', 0x404340, 4, "shadow"},
	/* what a library exports comes before what another has for itself */
	{"only_foo", 'w', 0x7f1000002040, 1, "only_foo"},
	/* the access shows which of two kinds is meant */
	{"mixed", 'w', 0x404300, 4, "mixed"},
	{"mixed", 'x', 0x7f0000001000, 1, "mixed"},
	/* modules by path, its end, name, or soname without version */
	{"libfoo.so.1!shared", 'w', 0x7f0000002010, 16, "shared"},
	{"libfoo.so.2!shared", 'w', 0x7f1000002010, 16, "shared"},
	{"/opt/lib/libfoo.so.2!shared", 'w', 0x7f1000002010, 16, "shared"},
	{"opt/lib/libfoo.so.2!shared+8:4", 'w', 0x7f1000002018, 4,
	 "shared+8"},
	{"./victim!hidden", 'w', 0x404320, 4, "hidden"},
	{"libfoo!helper", 'x', 0x7f0000001010, 1, "helper"},
	{"lib/libfoo.so.1!only_foo", 'w', 0x7f0000002040, 1, "only_foo"},
	{"/libfoo.so.1!only_foo", 'w', 0x7f0000002040, 1, "only_foo"},
	{"two.c!twice", 'w', 0x404204, 4, "twice"},
	{"ns::run(int)", 'x', 0x401180, 1, "ns::run(int)"},
	{"chosen+1", 'x', 0x7f0000001021, 1, "chosen+1"},
	/* what new programs are linked with, before an older version */
	{"waits", 'x', 0x7f0000001050, 1, "waits"},
	{"libfoo.so.1!waits", 'x', 0x7f0000001050, 1, "waits"},
	{"past", 'x', 0x7f0000001060, 1, "past"},
	{"libfoo.so.1!only_foo", 'w', 0x7f0000002040, 1, "only_foo"},
	{"libfoo.so.1!copied", 'w', 0x7f0000002000, 8, "copied"},
	{"libfoo.so.1!shadow", 'w', 0x7f0000002050, 4, "shadow"},
};

TEST(resolves)
{
	for (size_t i = 0; i < COUNT(found); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec_place place;
		struct spec spec;

		assert_int_equal(spec_parse(found[i].text, found[i].access,
		    &spec, &cause), 0);
		if (spec_resolve(&spec, &process, &place, &cause) != 0)
			fail_msg("%s", cause.text);
		if (place.addr != found[i].addr || place.len != found[i].len)
			fail_msg("%s: %#llx:%llu", found[i].text,
			    (unsigned long long)place.addr,
			    (unsigned long long)place.len);
		assert_same(place.symbol, found[i].symbol);
		free(place.symbol);
		spec_free(&spec);
	}
}

static const struct {
	const char *text;
	char access;
	enum wp_cause_code code;
	const char *why;
} refused[] = {
	{"countr", 'w', WP_CAUSE_SYMBOL_UNKNOWN, "'countr': no symbol "
	 "'countr' in the 5 modules of victim, nearest: counter"},
	{"count", 'w', WP_CAUSE_SYMBOL_UNKNOWN, ", nearest: ns::count, "
	 "counter"},
	{"mian", 'x', WP_CAUSE_SYMBOL_UNKNOWN, ", nearest: main"},
	{"mian", 'w', WP_CAUSE_SYMBOL_UNKNOWN, "no symbol 'mian' in the "
	 "5 modules of victim"},
	{"never_read", 'w', WP_CAUSE_SYMBOL_UNKNOWN, "victim has a variable of "
	 "that name, but the compiler optimized it out"},
	{"only_inlined", 'x', WP_CAUSE_SYMBOL_UNKNOWN, "victim has a function "
	 "of that name, but the compiler inlined it everywhere: watch a line "
	 "of it (FILE.c:LINE), or compile with -fno-inline"},
	{"libfoo.so.1!share", 'w', WP_CAUSE_SYMBOL_UNKNOWN,
	 "no symbol 'share' in libfoo.so.1, nearest: shared"},
	{"libfoo!zzz", 'w', WP_CAUSE_SYMBOL_UNKNOWN,
	 "no symbol 'zzz' in the 2 modules of libfoo"},
	{"libbar!x", 'w', WP_CAUSE_SYMBOL_UNKNOWN,
	 "no symbol 'x' in libbar-2.36.so: it is not an ELF file"},
	{"libstripped!x", 'w', WP_CAUSE_SYMBOL_UNKNOWN, "no symbol 'x' in "
	 "libstripped.so, which has no symbols (stripped?): give an address"},
	{"libfo!x", 'w', WP_CAUSE_MODULE_UNKNOWN,
	 "'libfo!x': no module 'libfo' is mapped by the process"},
	{"libfoo.so.3!x", 'w', WP_CAUSE_MODULE_UNKNOWN,
	 ", nearest: libfoo.so.1, libfoo.so.2"},
	{"foo.so.1!x", 'w', WP_CAUSE_MODULE_UNKNOWN, "nearest: libfoo.so.1"},
	{"twice", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "'twice': 2 symbols are "
	 "called 'twice': one.c!twice at 0x404200 (4 bytes), two.c!twice "
	 "at 0x404204 (4 bytes); name one by FILE!SYMBOL or by its address"},
	{"thrice", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "victim!thrice at 0x404208 "
	 "(4 bytes), victim!thrice at 0x40420c (4 bytes); name one by its "
	 "address"},
	{"one.c!thrice", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "2 symbols"},
	{"two.c!thrice", 'w', WP_CAUSE_SYMBOL_UNKNOWN,
	 "no symbol 'thrice' in the static symbols of two.c, nearest: twice"},
	{"ns::run", 'x', WP_CAUSE_SYMBOL_AMBIGUOUS, "victim!ns::run(int) at "
	 "0x401180 (8 bytes), victim!ns::run(char const*) at 0x401190 "
	 "(8 bytes); name one by its parameters or by its address"},
	{"ns::run(long)", 'x', WP_CAUSE_SYMBOL_UNKNOWN, ", nearest: "
	 "ns::run(char const*), ns::run(int)"},
	{"chosen", 'x', WP_CAUSE_SPEC_RANGE, "'chosen': which function is "
	 "called by this name is chosen when the program starts"},
	{"chosen", 'x', WP_CAUSE_SPEC_RANGE, ", nearest: __chosen_fast"},
	{"copies", 'x', WP_CAUSE_SPEC_RANGE, "'copies': which function is "
	 "called by this name is chosen when the program starts"},
	{"victim!twice", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "2 symbols"},
	{"hidden", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "victim!hidden at "
	 "0x404320 (4 bytes), libfoo.so.1!hidden at 0x7f0000002030"},
	{"shared", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "libfoo.so.2!shared"},
	{"exported", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS, "victim!exported at "
	 "0x404350 (4 bytes), libfoo.so.1!exported"},
	/* what libraries have for themselves is hardly meant */
	{"private", 'w', WP_CAUSE_SYMBOL_UNKNOWN, "no symbol 'private' in "
	 "victim; 2 that libraries have for themselves: libfoo.so.1!private at "
	 "0x7f0000002070 (4 bytes), libfoo.so.2!private"},
	{"libfoo!private", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS,
	 "libfoo.so.1!private at "},
	{"libfoo!shared", 'w', WP_CAUSE_SYMBOL_AMBIGUOUS,
	 "libfoo.so.2!shared"},
	{"own", 'w', WP_CAUSE_SYMBOL_TLS, "'own' is thread-local"},
	{"own2", 'w', WP_CAUSE_SYMBOL_UNKNOWN,
	 "nearest: own; 2 that libraries have for themselves: "
	 "libfoo.so.1!own2 (thread-local), libfoo.so.2!own2"},
	{"counter+8", 'w', WP_CAUSE_SPEC_RANGE, "'counter+8': the offset "
	 "lies beyond the symbol's end: it has 8 bytes; give a smaller one"},
	{"counter+0xffffffffffffffff:1", 'w', WP_CAUSE_SPEC_RANGE, "beyond"},
	{"label+0xffffffffffffff00:1", 'w', WP_CAUSE_SPEC_RANGE,
	 "the offset reaches beyond the last address"},
	{"counter:0xffffffffffffffff", 'w', WP_CAUSE_SPEC_RANGE,
	 "it reaches beyond the last address"},
	{"endless", 'w', WP_CAUSE_SPEC_RANGE,
	 "it reaches beyond the last address"},
	{"main", 'w', WP_CAUSE_SPEC_RANGE, "'main': this is a function: "
	 "watch its execution with -x"},
	{"counter", 'x', WP_CAUSE_SPEC_RANGE, "'counter': this is data"},
};

TEST(refuses_with_the_reason)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct wp_cause cause;
		struct spec_place place;
		struct spec spec;
		int rc;

		assert_int_equal(spec_parse(refused[i].text,
		    refused[i].access, &spec, &cause), 0);
		rc = spec_resolve(&spec, &process, &place, &cause);
		if (rc == 0 || cause.code != refused[i].code ||
		    strstr(cause.text, refused[i].why) == NULL)
			fail_msg("want \"%s\", got %d \"%s\"",
			    refused[i].why, rc, cause.text);
		assert_int_equal(rc, -cause.err);
		assert_null(place.symbol);
		spec_free(&spec);
	}
}

TEST(names_nothing_that_is_not_near)
{
	struct wp_cause cause;
	struct spec_place place;
	struct spec spec;

	assert_int_equal(spec_parse("quite_another", 'w', &spec, NULL), 0);
	assert_int_equal(spec_resolve(&spec, &process, &place, &cause),
	    -ENOENT);
	assert_string_equal(cause.text, "'quite_another': no symbol "
	    "'quite_another' in the 5 modules of victim");
	spec_free(&spec);
}

/* A program of which strip(1) has left what others use. */
TEST(says_that_it_is_stripped)
{
	static const struct ex_symbol left[] = {
		OBJECT("environ", 0x4000, 8, .global = true),
		FUNCTION("puts@plt", 0x1000, 16),
	};
	struct ex_module parts[] = {
		{"/home/u/bare", NULL, 0x400000, 0x5000, left, COUNT(left)},
		modules[1],
	};
	struct ex_process bare = {parts, COUNT(parts)};
	struct wp_cause cause;
	struct spec_place place;
	struct spec spec;

	assert_int_equal(spec_parse("counter", 'w', &spec, NULL), 0);
	assert_int_equal(spec_resolve(&spec, &bare, &place, &cause), -ENOENT);
	assert_holds(cause.text, "no symbol 'counter' in the 2 "
	    "modules of bare");
	assert_holds(cause.text, "; bare is stripped: install its "
	    "debug symbols (see find-dbgsym-packages), ");
	spec_free(&spec);
}

/* What a library has for itself may be the dynamic loader's while there is no
   other yet. */
TEST(proposes_no_internal_names_of_libraries_first)
{
	static const struct {
		const char *text;
		int late, early;
	} cases[] = {
		{"counter", 0, 0},
		{"table", 0, 0},		/* the program's own */
		{"libfoo.so.1!private", 0, 0},
		{"helper", 0, 0},		/* for others */
		{"__chosen_fast", 0, -ENOENT},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spec_place place;
		struct spec spec;

		assert_int_equal(spec_parse(cases[i].text, i < 3 ? 'w' : 'x',
		    &spec, NULL), 0);
		assert_int_equal(spec_resolve(&spec, &process, &place, NULL),
		    cases[i].late);
		free(place.symbol);
		assert_int_equal(spec_resolve_early(&spec, &process, &place,
		    NULL), cases[i].early);
		free(place.symbol);
		spec_free(&spec);
	}
}

/* A module of very many symbols, none of which is meant. */
TEST(looks_for_near_names_quickly)
{
	enum { SYMBOLS = 1000000 };
	struct ex_symbol *symbols = calloc(SYMBOLS, sizeof(*symbols));
	char (*names)[16] = calloc(SYMBOLS, sizeof(*names));
	struct ex_module module = {"/big", NULL, 0, 0, symbols, SYMBOLS};
	struct ex_process big = {&module, 1};
	clock_t begin, made, end;
	struct wp_cause cause;
	struct spec_place place;
	struct spec spec;

	assert_non_null(symbols);
	assert_non_null(names);
	begin = clock();
	for (unsigned i = 0; i < SYMBOLS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "s_%x_name", i);
		symbols[i] = (struct ex_symbol)OBJECT(names[i], i, 1);
	}
	assert_int_equal(spec_parse("s_f423f0_name", 'w', &spec, NULL), 0);
	made = clock();
	assert_int_equal(spec_resolve(&spec, &big, &place, &cause), -ENOENT);
	end = clock();
	printf("%.1f times as long as making the names\n",
	    (double)(end - made) / (double)(made - begin));
	assert_true((end - made) / 40 < made - begin);
	assert_holds(cause.text,
	    ", nearest: s_423f0_name, s_f23f0_name, s_f4230_name");
	spec_free(&spec);
	free(names);
	free(symbols);
}

/* More symbols of one name than are kept apart. */
TEST(counts_many_of_one_name)
{
	struct ex_symbol symbols[300];
	struct ex_module module = {"m\033", NULL, 0, 0, symbols, 300};
	struct ex_process many = {&module, 1};
	struct wp_cause cause;
	struct spec_place place;
	struct spec spec;

	for (unsigned i = 0; i < 300; i++)
		symbols[i] = (struct ex_symbol)OBJECT("x\n", i, 1);
	assert_int_equal(spec_parse("x\n", 'w', &spec, NULL), 0);
	assert_int_equal(spec_resolve(&spec, &many, &place, &cause),
	    -ENOTUNIQ);
	assert_holds(cause.text, "'x\\n': 300 symbols are called "
	    "'x\\n': m\\x1b!x\\n at 0x0 (1 byte), ");
	assert_holds(cause.text, ", ...; ");
	assert_one_line(cause.text);
	spec_free(&spec);
}

/* --- expressions --- */

static const struct ex_symbol made_symbols[] = {
	{.name = "made", .value = 0x100, .size = 48, .global = true,
	 .object = true},
	{.name = "pointer", .value = 0x200, .size = 8, .global = true,
	 .object = true},
	{.name = "plain", .value = 0x300, .size = 16, .object = true},
	{.name = "made.number", .value = 0x400, .size = 2, .global = true,
	 .object = true},
};

static int
resolve_made(const char *text, struct spec_place *place,
    struct wp_cause *cause)
{
	struct ex_module module = {
		.path = "/bin/prog", .base = 0x400000, .size = 0x10000,
		.symbol = made_symbols, .nsymbols = COUNT(made_symbols),
	};
	struct ex_process made = {&module, 1};
	struct spec spec;
	int rc;

	if (spec_parse(text, 'w', &spec, cause) != 0)
		fail_msg("%s: %s", text, cause->text);
	rc = spec_resolve(&spec, &made, place, cause);
	spec_free(&spec);
	free(place->symbol);
	return rc;
}

/* Memory holds the address that it lies at (made_process.h). */
static const struct {
	const char *text;
	uint64_t addr, len;
} places[] = {
	{"made.number", 0x400400, 2},	/* there is such a symbol */
	{"(made).number", 0x400100, 4},
	{"made.next", 0x400108, 8},
	{"made.next->row", 0x400118, 8},
	{"made.next->next->number", 0x400110, 4},
	{"made.next[2].number", 0x400168, 4},
	{"made.next[-1].next", 0x4000e0, 8},
	{"made.list[3]", 0x400124, 4},
	{"*(made.list + 2)", 0x400120, 4},
	{"made.list", 0x400118, 16},
	{"made.list[TWO]", 0x400120, 4},
	{"made.bit", 0x400128, 1},
	{"pointer->list[1]", 0x40021c, 4},
	{"(*pointer).next", 0x400208, 8},
	{"*pointer:8", 0x400200, 8},
	{"plain", 0x400300, 16},
	{"((struct made *)&plain)->next", 0x400308, 8},
	{"*(long *)0x404090", 0x404090, 8},
	{"((char *)&plain)[sizeof(struct made) - 45]", 0x400303, 1},
	{"*((made.next + 2 - made.next) * 8 + (long *)&plain)", 0x400380, 8},
};

TEST(evaluates)
{
	for (size_t i = 0; i < COUNT(places); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec_place place;

		if (resolve_made(places[i].text, &place, &cause) != 0)
			fail_msg("%s: %s", places[i].text, cause.text);
		if (place.addr != places[i].addr || place.len != places[i].len)
			fail_msg("%s: %#llx:%llu", places[i].text,
			    (unsigned long long)place.addr,
			    (unsigned long long)place.len);
	}
}

static const struct {
	const char *text;
	int err;
	const char *why;
} no_places[] = {
	{"made.nxt", -EINVAL, "struct made has no member 'nxt', nearest: next "
	 "(column 6)"},
	{"made.foo", -EINVAL, "no member 'foo', but number, next, row, list, "
	 "bit (column 6)"},
	{"made->next", -EINVAL, "members are behind '.' (column 7)"},
	{"pointer.next", -EINVAL, "members are behind '->' (column 9)"},
	{"plain.x", -EINVAL, "'plain' has no debug information"},
	{"none.x", -ENOENT, "no symbol 'none'"},
	{"made.list[none]", -ENOENT, "no symbol 'none' in prog (column 11)"},
	{"*(made.list + none)", -ENOENT, "(column 15)"},
	{"*(long *)0", -EINVAL, "'(long *)0' is a null pointer now"},
	{"((struct made *)0x1008)->next->row", -EINVAL, "null pointer"},
	{"((struct made *)0xfffffffffffffff0)->next->row", -EINVAL,
	 "no memory can be read"},
	{"*(struct none *)&made", -EINVAL, "has no type 'none' (column 10)"},
	{"&made", -EINVAL, "perhaps you mean 'made' (column 1)"},
	{"pointer + 1", -EINVAL, "perhaps you mean '*(pointer + 1)' (column "
	 "9)"},
	{"sizeof made", -EINVAL, "perhaps you mean 'made'"},
	{"*made.number", -EINVAL, "is a number"},
	{"*(double)made.number", -EINVAL, "a whole number"},
	{"made.list[made]", -EINVAL, "a whole number"},
	{"made.list[1 / 0]", -EINVAL, "divides by zero"},
	{"made.list[1 << 32]", -EINVAL, "more bits"},
	{"&made.bit", -EINVAL, "a bit-field has no address"},
	{"*(void *)&made", -EINVAL, "is of type void"},
	{"made(1)", -EINVAL, "no function is called"},
};

TEST(reports_what_is_not_an_object)
{
	for (size_t i = 0; i < COUNT(no_places); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec_place place;

		if (resolve_made(no_places[i].text, &place, &cause) !=
		    no_places[i].err ||
		    strstr(cause.text, no_places[i].why) == NULL)
			fail_msg("%s: %s", no_places[i].text, cause.text);
		assert_one_line(cause.text);
	}
}

RUN_TESTS()
