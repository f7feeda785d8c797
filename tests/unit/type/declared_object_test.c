/*
 * declared_object: programs are compiled in many ways and loaded, and the
 * description of their variables is compared with the source; then their debug
 * information is damaged.
 */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>

#include "capture.h"
#include "module/module_private.h"
#include "scratch.h"
#include "space/space.h"
#include "symbol/symbol.h"
#include "type/declared_object.h"

/* --- what is expected --- */

struct row {
	const char *symbol;	/* as its source calls it; of a static variable
				   of a function: its own name */
	uint64_t off, len;	/* the bytes asked for */
	const char *path;	/* NULL: none */
	const char *type;	/* one of several ways: "long|long int" */
	int64_t at;		/* offset of what is found */
	uint64_t size;		/* 0: not the same everywhere */
	const char *text;	/* NULL: none; of a pointer: from its '<' on */
};

#define ANY "*"		/* a text that has addresses in it */
#define BITS "{on = 1, mode = 5, level = -3, state = CONN_CLOSED, "	\
    "done = true"

static const struct row c_rows[] = {
	/* numbers */
	{"signed_char", 0, 1, "signed_char", "signed char", 0, 1, "-5"},
	{"unsigned_char", 0, 1, "unsigned_char", "unsigned char", 0, 1,
	 "'B' (66)"},
	{"byte", 0, 1, "byte", "uint8_t", 0, 1, "3"},
	{"letter", 0, 1, "letter", "char", 0, 1, "'a' (97)"},
	{"newline", 0, 1, "newline", "char", 0, 1, "'\\n' (10)"},
	{"quote", 0, 1, "quote", "char", 0, 1, "'\\'' (39)"},
	{"high", 0, 1, "high", "char", 0, 1, "-128"},
	{"yes", 0, 1, "yes", "_Bool", 0, 1, "true"},
	{"shorter", 0, 2, "shorter", "short", 0, 2, "-12345"},
	{"ushort", 0, 2, "ushort", "unsigned short", 0, 2, "54321"},
	{"number", 0, 4, "number", "int", 0, 4, "-42"},
	{"unumber", 0, 4, "unumber", "unsigned int", 0, 4, "4000000000"},
	{"counter", 0, 8, "counter", "long", 0, 8, "-1234567890123"},
	{"counter", 4, 4, "counter", "long", -4, 8, "-1234567890123"},
	{"counter", 7, 1, "counter", "long", -7, 8, "-1234567890123"},
	{"ulong", 0, 8, "ulong", "unsigned long", 0, 8,
	 "18364758544493064720"},
	{"longlong", 0, 8, "longlong", "long long", 0, 8, "7"},
	{"clicks", 0, 8, "clicks", "clicks_t", 0, 8, "99"},
	{"atomic_count", 0, 4, "atomic_count", "_Atomic int|int", 0, 4, "17"},
	{"size", 0, 8, "size", "size_t", 0, 8, "123"},
	{"ratio", 0, 4, "ratio", "float", 0, 4, "0.1"},
	{"precise", 0, 8, "precise", "double", 0, 8, "0.1"},
	{"infinite", 0, 8, "infinite", "double", 0, 8, "-inf"},
	{"extended", 0, 16, "extended", "long double", 0, 16, "0.1"},
	{"impedance", 0, 16, "impedance", "complex double|complex", 0, 16,
	 "1.5 + 2.5i"},
	{"huge", 0, 16, "huge", "__int128", 0, 16,
	 "-1267650600228229401496703205376"},
	{"enormous", 0, 16, "enormous", "unsigned __int128", 0, 16,
	 "340282366920938463463374607431768211455"},
	{"steady", 0, 4, "steady", "const volatile int", 0, 4, "3"},
	{"state", 0, 4, "state", "enum state", 0, 4, "CONN_OPEN"},
	{"strange", 0, 4, "strange", "enum state", 0, 4, "77"},
	{"flags", 0, 4, "flags", "enum flags", 0, 4, "FLAG_A | FLAG_C"},
	{"nothing", 0, 4, "nothing", "enum flags", 0, 4, "0"},
	{"more", 0, 4, "more", "enum flags", 0, 4, "FLAG_B | 0x40"},
	{"mask", 0, 4, "mask", "enum flags", 0, 4, "FLAG_A | FLAG_MASK"},
	{"sign", 0, 4, "sign", "enum signs", 0, 4, "MINUS"},
	{"unnamed", 0, 4, "unnamed", "enum {...}", 0, 4, "LARGE"},
	{"hidden", 0, 8, "hidden", "long", 0, 8, "12"},
	{"calls", 0, 8, "bump::calls", "long", 0, 8, "21"},
	{"calls_inside", 0, 4, "bump::calls_inside", "int", 0, 4, "22"},

	/* pointers */
	{"string", 0, 8, "string", "const char *", 0, 8, "<text>"},
	{"nowhere", 0, 8, "nowhere", "void *", 0, 8, "NULL"},
	{"inside_table", 0, 8, "inside_table", "void *", 0, 8, "<table+16>"},
	{"odd", 0, 8, "odd", "void *", 0, 8, "<counter+3>"},
	{"element", 0, 8, "element", "long *", 0, 8, "<table[1]>"},
	{"second", 0, 8, "second", "struct conn *", 0, 8, "<conns[1]>"},
	{"fixed", 0, 8, "fixed", "char *const *const", 0, 8, "NULL"},
	{"no_arguments", 0, 8, "no_arguments", "int (*)(void)", 0, 8, "NULL"},
	{"callback", 0, 8, "callback", "callback_t", 0, 8, "<printf>"},
	{"closer", 0, 8, "closer", "void (*)(struct conn *, int)", 0, 8,
	 "<conn_close>"},
	{"rows", 0, 8, "rows", "int (*)[3]", 0, 8, "<matrix[1]>"},
	{"pointers", 0, 16, "pointers", "char **[2]", 0, 16, "{NULL, NULL}"},
	{"handlers", 0, 16, "handlers",
	 "void (*(*[2])(int, void (*)(int)))(int)", 0, 16, "{NULL, NULL}"},
	{"undefined", 0, 8, "undefined", "struct undefined *", 0, 8, "NULL"},

	/* arrays */
	{"table", 0, 32, "table", "long[4]", 0, 32, "{1, 2, 3, 4}"},
	{"table", 8, 8, "table[1]", "long", 0, 8, "2"},
	{"table", 12, 4, "table[1]", "long", -4, 8, "2"},
	{"table", 8, 16, "table[1]@2", "long[2]", 0, 16, "{2, 3}"},
	{"table", 12, 8, "table[1]@2", "long[2]", -4, 16, "{2, 3}"},
	{"table", 24, 16, NULL},
	{"matrix", 0, 24, "matrix", "int[2][3]", 0, 24,
	 "{{1, 2, 3}, {4, 5, 6}}"},
	{"matrix", 12, 12, "matrix[1]", "int[3]", 0, 12, "{4, 5, 6}"},
	{"matrix", 16, 8, "matrix[1][1]@2", "int[2]", 0, 8, "{5, 6}"},
	{"matrix", 16, 4, "matrix[1][1]", "int", 0, 4, "5"},
	{"text", 0, 8, "text", "char[8]", 0, 8, "\"ab\\n\\\"c\""},
	{"text", 2, 4, "text[2]@4", "char[4]", 0, 4, "\"\\n\\\"c\""},
	{"digest", 0, 4, "digest", "unsigned char[4]", 0, 4,
	 "{1, 200, 'A' (65), 0}"},
	{"large", 0, 64, "large.number", "long[8]", 0, 64, NULL},
	{"large", 8, 16, "large.number[1]@2", "long[2]", 0, 16, "{0, 0}"},
	{"open_array", 0, 4, "open_array.n", "int", 0, 4, "3"},
	{"open_array", 4, 2, "open_array.data[0]", "short", 0, 2, "10"},
	{"open_array", 8, 2, "open_array.data[2]", "short", 0, 2, "30"},

	/* members */
	{"point", 0, 8, "point", "struct {...}", 0, 8, "{x = 1, y = -2}"},
	{"point", 4, 4, "point.y", "int", 0, 4, "-2"},
	{"conn", 0, 4, "conn.state", "enum state", 0, 4, "CONN_OPEN"},
	{"conn", 0, 64, "conn", "struct conn", 0, 64, NULL},
	{"conns", 0, 192, "conns", "conn_t[3]", 0, 192, NULL},
	{"conns", 60, 8, "conns[0]@2", "conn_t[2]", -60, 128, NULL},
	{"conns", 64, 64, "conns[1]", "conn_t", 0, 64, NULL},
	{"conns", 64, 8, "conns[1]", "conn_t", 0, 64, NULL},
	{"conns", 68, 4, "conns[1].fd", "int", 0, 4, "5"},
	{"conns", 72, 8, "conns[1].next", "struct conn *", 0, 8, "<conns[2]>"},
	{"conns", 80, 16, "conns[1].name", "char[16]", 0, 16, "\"second\""},
	{"conns", 82, 1, "conns[1].name[2]", "char", 0, 1, "'c' (99)"},
	{"conns", 80, 8, "conns[1].name[0]@8", "char[8]", 0, 8, "\"second\""},
	{"conns", 96, 2, "conns[1].peer[0].port", "uint16_t", 0, 2, "80"},
	{"conns", 98, 4, "conns[1].peer[0].address", "uint8_t[4]", 0, 4,
	 "{127, 0, 0, 1}"},
	{"conns", 102, 6, "conns[1].peer[1]", "struct {...}", 0, 6,
	 "{port = 443, address = {10, 0, 0, 7}}"},
	{"conns", 96, 12, "conns[1].peer", "struct {...}[2]", 0, 12,
	 "{{port = 80, address = {127, 0, 0, 1}}, "
	 "{port = 443, address = {10, 0, 0, 7}}}"},
	{"conns", 108, 4, "conns[1].level", "float", 0, 4, "0.5"},
	{"conns", 108, 2, "conns[1].level", "float", 0, 4, "0.5"},
	{"conns", 111, 1, "conns[1].byte[3]", "unsigned char", 0, 1,
	 "'?' (63)"},
	{"conns", 112, 4, "conns[1].u.half", "struct {...}", 0, 4,
	 "{low = 1, high = 2}"},
	{"conns", 114, 2, "conns[1].u.half.high", "short", 0, 2, "2"},
	{"conns", 120, 8, "conns[1].close", "void (*)(struct conn *, int)",
	 0, 8, "<conn_close>"},

	/* bit-fields */
	{"bits", 0, 16, "bits", "struct bits", 0, 16, BITS ", plain = 9, "
	 "lone = 2748, wide = 78187493530}"},
	{"bits", 0, 4, "bits", "struct bits", 0, 16, BITS ", plain = 9, "
	 "lone = 2748, wide = 78187493530}"},
	{"bits", 0, 2, "bits", "unsigned int", 0, 2, BITS "}"},
	{"bits", 0, 1, "bits", "unsigned int", 0, 1, "{on = 1, mode = 5}"},
	{"bits", 2, 1, "bits.plain", "unsigned char", 0, 1, "9"},
	{"bits", 4, 4, "bits.lone", "unsigned int", 0, 4, "2748"},
	{"bits", 4, 2, "bits.lone", "unsigned int", 0, 2, "2748"},
	{"bits", 5, 1, "bits.lone", "unsigned int", -1, 4, "2748"},
	{"bits", 8, 8, "bits.wide", "unsigned long", 0, 8, "78187493530"},
	{"halves", 0, 8, "halves", "struct halves", 0, 8,
	 "{low = -3, high = 60}"},
	{"halves", 4, 4, "halves.high", "int", 0, 4, "60"},
	{"packed", 0, 9, "packed", "struct packed", 0, 9,
	 "{three = 5, sixty = 81985529216486895, nine = 300}"},
	{"packed", 8, 1, "packed.nine", "unsigned int", -1, 2, "300"},
	{"wider", 0, 16, "wider", "struct wider", 0, 16, NULL},
	{"wider", 12, 4, "wider", "struct wider", -12, 16, NULL},
};

#define STRING(member)							\
    "std::__cxx11::" BASIC_STRING member "|" BASIC_STRING member
#define BASIC_STRING							\
    "basic_string<char, std::char_traits<char>, std::allocator<char> >"

static const struct row cxx_rows[] = {
	{"net::object", 0, 32, "net::object", "net::derived", 0, 32, ANY},
	{"net::object", 8, 8, "net::object.id", "long", 0, 8, "11"},
	{"net::object", 16, 1, "net::object.how", "net::mode", 0, 1, "busy"},
	{"net::object", 20, 8, "net::object.both", "std::pair<int, char>",
	 0, 8, "{first = 5, second = 'z' (122)}"},
	{"net::object", 24, 1, "net::object.both.second", "char", 0, 1,
	 "'z' (122)"},
	{"net::object", 28, 2, "net::object.wide", "char16_t", 0, 2, "U+00E9"},
	{"net::branch", 8, 4, "net::branch.l", "int", 0, 4, "1"},
	{"net::branch", 0, 32, "net::branch", "net::left", 0, 32, NULL},
	{"net::tail", 8, 4, "net::tail.number", "int", 0, 4, "3"},
	{"net::tail", 8, 8, "net::tail", "net::filled", -8, 16, ANY},
	{"net::tail", 12, 1, "net::tail.own", "unsigned char", 0, 1, "4"},
	{"net::tail", 13, 1, "net::tail", "unsigned int", 0, 1,
	 "{low = 5, high = 9}"},
	{"net::small", 0, 8, "net::small",
	 "net::ring<short int, 3>|net::ring<short, 3>", 0, 8,
	 "{slot = {1, 2, 3}, head = 4, tail = 5}"},
	{"net::small", 6, 1, "net::small", "unsigned int", 0, 1,
	 "{head = 4, tail = 5}"},
	{"net::(anonymous namespace)::unseen", 0, 4,
	 "net::(anonymous namespace)::unseen", "int", 0, 4, "8"},
	{"net::inner::counter", 0, 8, "net::inner::counter",
	 "std::atomic<long int>|std::atomic<long>", 0, 8, "1234"},
	{"net::inner::ready", 0, 1, "net::inner::ready", "std::atomic<bool>",
	 0, 1, "true"},
	{"net::base::made", 0, 4, "net::base::made", "int", 0, 4, "3"},
	{"net::base::shared", 0, 4, "net::base::shared", "int", 0, 4, "6"},
	{"reference", 0, 8, "reference", "long &", 0, 8, "<target>"},
	{"data_member", 0, 8, "data_member", "long net::base::*", 0, 8, NULL},
	{"smile", 0, 4, "smile", "char32_t", 0, 4, "U+1F600"},
	{"options", 0, 4, "options", "net::options", 0, 4, "fast | both"},
	{"pointer", 0, 8, "pointer", "net::base *", 0, 8, "<net::object>"},
	{"owner", 0, 8, "owner", "std::unique_ptr<long int, closer>|"
	 "std::unique_ptr<long, closer>", 0, 8, "<target>"},
	{"count::calls", 0, 8, "count::calls", "long", 0, 8, "9"},
	{"net::derived::touch()::touched", 0, 8,
	 "net::derived::touch::touched", "long", 0, 8, "13"},
	{"title[abi:cxx11]", 0, 8, "title._M_dataplus._M_p",
	 STRING("::pointer"), 0, 8, "<title._M_local_buf[0]>"},
	{"title[abi:cxx11]", 8, 8, "title._M_string_length",
	 STRING("::size_type"), 0, 8, "0"},
};

/* --- a library of ours, loaded --- */

struct loaded {
	void *handle;
	char name[32];
	struct ex_space *space;
	struct ex_process *process;
	struct ex_module *module;
	uint64_t base;
};

static int
take_module(void *arg, struct ex_module *m, uint64_t base)
{
	struct loaded *l = arg;

	if (strcmp(ex_module_name(m), l->name) != 0)
		return 0;
	l->module = m;
	l->base = base;
	return 1;
}

/* Each library has a name of its own: files are distinguished by it. */
static void
load(struct loaded *l)
{
	l->handle = dlopen(scratch_path(l->name), RTLD_NOW | RTLD_LOCAL);
	if (l->handle == NULL)
		fail_msg("%s", dlerror());
	l->space = ex_space_new(EX_LIVE);
	assert_non_null(l->space);
	capture_maps(l->space, getpid());
	l->process = ex_space_process(l->space, getpid());
	assert_int_equal(ex_process_modules(l->process, take_module, l), 1);
}

static void
unload(struct loaded *l)
{
	ex_space_free(l->space);
	assert_int_equal(dlclose(l->handle), 0);
}

struct search {
	const char *name;
	struct ex_symbol found;
};

static int
take_first(void *arg, const struct ex_symbol *s)
{
	((struct search *)arg)->found = *s;
	return 1;
}

/* "calls.0" of gcc, "bump.calls" of clang. */
static int
take_local(void *arg, const struct ex_symbol *s)
{
	struct search *search = arg;
	size_t len = strlen(search->name);
	const char *dot = strchr(s->name, '.');

	if (dot == NULL || (strcmp(dot + 1, search->name) != 0 &&
	    ((size_t)(dot - s->name) != len ||
	    strncmp(s->name, search->name, len) != 0)))
		return 0;
	search->found = *s;
	return 1;
}

static uint64_t
address_of(const struct loaded *l, const char *name)
{
	struct search search = {.name = name};

	if (ex_symbol_find(l->module, name, take_first, &search) != 1 &&
	    ex_symbol_each(l->module, take_local, &search) != 1)
		fail_msg("no symbol %s", name);
	return l->base + search.found.value;
}

/* --- compared --- */

static bool
is_one_of(const char *text, const char *ways)
{
	size_t len = strlen(text);

	for (;; ways++) {
		if (strncmp(ways, text, len) == 0 &&
		    (ways[len] == '\0' || ways[len] == '|'))
			return true;
		if ((ways = strchr(ways, '|')) == NULL)
			return false;
	}
}

/* The value that lies there, without addresses; "": it has no text. */
static void
text_of_memory(const struct loaded *l, const struct ex_object *o,
    uint64_t addr, char text[256])
{
	const uint8_t *bytes = (const uint8_t *)(uintptr_t)(addr +
	    (uint64_t)o->offset);
	char *pointed;

	if (!ex_object_text(l->process, o, bytes, text, 256))
		text[0] = '\0';
	if (strncmp(text, "0x", 2) == 0 &&
	    (pointed = strchr(text, '<')) != NULL)
		memmove(text, pointed, strlen(pointed) + 1);
}

static bool
same(const struct loaded *l, const struct row *row)
{
	uint64_t addr = address_of(l, row->symbol) + row->off;
	const struct ex_object *o = ex_object_at(l->process, addr, row->len);
	char text[256];
	bool as_it_is;

	assert_ptr_equal(ex_object_at(l->process, addr, row->len), o);
	if (o == NULL || row->path == NULL) {
		if (o != NULL || row->path != NULL)
			print_message("%s+%d %d: %s\n", row->symbol,
			    (int)row->off, (int)row->len,
			    o != NULL ? o->path : "nothing");
		return o == NULL && row->path == NULL;
	}
	text_of_memory(l, o, addr, text);
	as_it_is = strcmp(o->path, row->path) == 0 &&
	    is_one_of(o->type, row->type) &&
	    o->offset == row->at &&
	    (row->size == 0 || o->size == row->size) &&
	    (row->text != NULL && strcmp(row->text, ANY) == 0 ?
	    text[0] != '\0' :
	    strcmp(text, row->text != NULL ? row->text : "") == 0);
	if (!as_it_is)
		print_message("%s+%d %d: %s (%s) at %d of %d: %s\n",
		    row->symbol, (int)row->off, (int)row->len,
		    o->path, o->type,
		    (int)o->offset, (int)o->size, text);
	return as_it_is;
}

/* A build: the compiler, and its flags. */
static void
compare(const char *const build[2], const struct row *row, size_t n)
{
	static unsigned count;
	struct loaded l;
	size_t wrong = 0;
	const char *source = row == c_rows ? "typed.c" : "typed_cxx.cc";

	if (!scratch_has(build[0])) {
		print_message("%s: not here, not tried\n", build[0]);
		return;
	}
	(void)snprintf(l.name, sizeof(l.name), "typed%u.so", count++);
	scratch_run("%s %s -shared -fPIC -o %s %s/tests/victim/%s", build[0],
	    build[1], l.name, getenv("TOP"), source);
	load(&l);
	for (size_t i = 0; i < n; i++)
		wrong += !same(&l, &row[i]);
	unload(&l);
	if (wrong != 0)
		fail_msg("%zu are wrong with %s %s", wrong, build[0],
		    build[1]);
}

TEST(types_of_c)
{
	static const char *const builds[][2] = {
		{"gcc", "-gdwarf-5"},
		{"gcc", "-gdwarf-4 -O2"},
		{"gcc", "-gdwarf-3 -gstrict-dwarf"},	/* older bit-fields */
		{"gcc", "-gdwarf-5 -fdebug-types-section"},
		{"gcc", "-gdwarf-4 -fdebug-types-section"},
		{"gcc", "-gdwarf-5 -gsplit-dwarf"},
		{"gcc", "-gdwarf-4 -gsplit-dwarf"},
		{"gcc", "-g -O2 -flto"},
		{"clang", "-gdwarf-5"},
		{"clang", "-gdwarf-4 -O2"},
		{"clang", "-gdwarf-5 -gsplit-dwarf"},
	};

	for (size_t i = 0; i < COUNT(builds); i++)
		compare(builds[i], c_rows, COUNT(c_rows));
}

TEST(types_of_cxx)
{
	static const char *const builds[][2] = {
		{"g++", "-std=c++17 -gdwarf-5"},
		{"g++", "-std=c++17 -gdwarf-4 -O2"},
		{"g++", "-std=c++17 -gdwarf-5 -fdebug-types-section"},
		{"clang++", "-std=c++17 -gdwarf-5 -fstandalone-debug"},
	};

	for (size_t i = 0; i < COUNT(builds); i++)
		compare(builds[i], cxx_rows, COUNT(cxx_rows));
}

/* Arrays begin at 1, and their first index runs fastest: they are shown as a
   whole. */
TEST(types_of_fortran)
{
	static const struct row rows[] = {
		{"__state_MOD_count", 0, 4, "state::count", "integer(kind=4)",
		 0, 4, "7"},
		{"__state_MOD_grid", 8, 8, "state::grid",
		 "real(kind=8)[3][2]", -8, 48, NULL},
		{"__state_MOD_point", 4, 4, "state::point.good",
		 "logical(kind=4)", 0, 4, "true"},
		{"__state_MOD_word", 0, 5, "state::word", "character*5", 0, 5,
		 "\"hello\""},
		{"__state_MOD_later", 0, 8, "state::later",
		 "integer(kind=4)[]", 0, 0, NULL},
		{"shared_", 0, 4, "set::shared::first", "integer(kind=8)", 0,
		 8, "0"},
		{"shared_", 8, 8, "set::shared::second", "real(kind=8)", 0, 8,
		 "0"},
	};
	struct loaded l = {.name = "fortran.so"};

	if (!scratch_has("gfortran")) {
		print_message("gfortran: not here, not tried\n");
		return;
	}
	scratch_write("state.f90", "module state\n"
	    "  integer :: count = 7\n"
	    "  real(8) :: grid(3,2) = 0\n"
	    "  type pair\n"
	    "    integer :: number = 1\n"
	    "    logical :: good = .true.\n"
	    "  end type\n"
	    "  type(pair) :: point\n"
	    "  character(len=5) :: word = 'hello'\n"
	    "  integer, allocatable :: later(:)\n"
	    "end module\n"
	    "subroutine set\n"
	    "  integer(8) :: first\n"
	    "  real(8) :: second\n"
	    "  common /shared/ first, second\n"
	    "  first = 1\n"
	    "  second = 2\n"
	    "end subroutine\n");
	scratch_run("gfortran -g -shared -fPIC -o fortran.so state.f90");
	load(&l);
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(same(&l, &rows[i]));
	unload(&l);
}

/* Go has places in a form that is older than its DWARF 4. */
TEST(takes_old_blocks)
{
	static const struct row row = {
		"blocked", 0, 8, "blocked", "long", 0, 8, "3",
	};
	struct loaded l = {.name = "block.so"};

	scratch_write("block.c", "long blocked = 3;\n");
	scratch_run("gcc -gdwarf-4 -dA -fPIC -S -o block.s block.c");
	scratch_run("sed '/DW_AT_location/{n;s/0x18/0xa/}' block.s > old.s");
	scratch_run("! cmp -s block.s old.s");
	scratch_run("gcc -shared -o block.so old.s");
	load(&l);
	assert_true(same(&l, &row));
	unload(&l);
}

/* Functions of 16 functions of 16 functions of 16 types with names of 8,000
   characters. */
TEST(long_names_take_little_room)
{
	static char source[16384];
	struct loaded l = {.name = "long.so"};
	const struct ex_object *o;
	size_t before;

	(void)snprintf(source, sizeof(source), "#define A struct %08000d *\n",
	    0);
	memset(strchr(source, '0'), 'a', 8000);
	(void)strcat(source, "#define T(x) x, x, x, x, x, x, x, x, x, x, x, x, "
	    "x, x, x, x\n"
	    "#define B void (*)(T(A))\n#define C void (*)(T(B))\n"
	    "void (*deep)(T(C));\n");
	scratch_write("long.c", source);
	scratch_run("gcc -w -g -shared -fPIC -o long.so long.c");
	load(&l);
	(void)ex_object_at(l.process, address_of(&l, "deep"), 4);
	before = mallinfo2().uordblks;
	o = ex_object_at(l.process, address_of(&l, "deep"), 8);
	assert_non_null(o);
	assert_holds(o->type, "...");
	assert_true(mallinfo2().uordblks - before < 1 << 20);
	unload(&l);
}

/* A class whose virtual functions are compiled elsewhere is described there
   only. */
TEST(finds_definitions)
{
	static const struct row rows[] = {
		{"away", 8, 4, "away.x", "int", 0, 4, "5"},
		{"away", 0, 16, "away", "net::homed", 0, 16, ANY},
		{"holder", 24, 4, "holder.after", "int", 0, 4, "7"},
		{"holder", 16, 4, "holder.in.x", "int", 0, 4, "5"},
	};
	struct loaded l = {.name = "homed.so"};

	if (!scratch_has("g++")) {
		print_message("g++: not here, not tried\n");
		return;
	}
	scratch_write("homed.h", "namespace net {\n"
	    "struct homed { homed(); virtual void f(); int x; };\n"
	    "}\n");
	scratch_write("declares.cc", "#include \"homed.h\"\n"
	    "net::homed away;\n"
	    "struct { long before; net::homed in; int after = 7; } holder;\n");
	scratch_write("defines.cc", "#include \"homed.h\"\n"
	    "namespace other { struct homed { char x[24]; } one; }\n"
	    "namespace { struct homed { double x; } two; }\n"
	    "net::homed::homed() : x(5) { two.x = other::one.x[0]; }\n"
	    "void net::homed::f() {}\n");
	scratch_run("g++ -g -shared -fPIC -o homed.so declares.cc defines.cc");
	load(&l);
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(same(&l, &rows[i]));
	unload(&l);
}

/* --- values of any bytes --- */

/* The same in every run (xorshift64*). */
static uint64_t
any_bits(void)
{
	static uint64_t x = 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

static const struct ex_object *
object_of(const struct loaded *l, const char *name, uint64_t len)
{
	const struct ex_object *o = ex_object_at(l->process,
	    address_of(l, name), len);

	assert_non_null(o);
	return o;
}

static void
load_plain(struct loaded *l, const char *name)
{
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	scratch_run("gcc -g -shared -fPIC -o %s %s/tests/victim/typed.c", name,
	    getenv("TOP"));
	load(l);
}

/* Floating point numbers read back as the same. */
TEST(floats_read_back)
{
	const struct ex_object *single, *twice;
	struct loaded l;
	char text[64];

	load_plain(&l, "floats.so");
	single = object_of(&l, "ratio", 4);
	twice = object_of(&l, "precise", 8);
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = any_bits();
		double d;
		float f;

		memcpy(&d, &bits, sizeof(d));
		memcpy(&f, &bits, sizeof(f));
		assert_true(ex_object_text(l.process, twice,
		    (const uint8_t *)&d, text, sizeof(text)));
		assert_true(isnan(d) ? strstr(text, "nan") != NULL :
		    strtod(text, NULL) == d);
		assert_true(ex_object_text(l.process, single,
		    (const uint8_t *)&f, text, sizeof(text)));
		assert_true(isnan(f) ? strstr(text, "nan") != NULL :
		    strtof(text, NULL) == f);
	}
	unload(&l);
}

TEST(other_bytes)
{
	static const struct {
		const char *symbol;
		uint64_t len;
		uint8_t bytes[16];
		const char *text;
	} rows[] = {
		{"yes", 1, {0}, "false"},
		{"yes", 1, {2}, "2"},
		{"letter", 1, {0}, "'\\0' (0)"},
		{"letter", 1, {'\\'}, "'\\\\' (92)"},
		{"letter", 1, {0x1b}, "27"},
		{"letter", 1, {0x7f}, "127"},
		{"unsigned_char", 1, {0xff}, "255"},
		{"sign", 4, {1}, "PLUS"},
		{"sign", 4, {0xfe, 0xff, 0xff, 0xff}, "-2"},
		{"state", 4, {3}, "3"},
		{"flags", 4, {0x37}, "FLAG_A | FLAG_B | FLAG_C | FLAG_MASK"},
		{"flags", 4, {0x10}, "16"},
		{"text", 8, "\1\377", "\"\\001\\377\""},
		{"text", 8, "12345678", "\"12345678\""},
		{"second", 8, {1, 2}, "0x201"},
		{"bits", 2, {0xfe, 0xff},
		 "{on = 0, mode = 7, level = -1, state = 15, done = true}"},
	};
	struct loaded l;
	char text[256];

	load_plain(&l, "bytes.so");
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(ex_object_text(l.process, object_of(&l,
		    rows[i].symbol, rows[i].len), rows[i].bytes, text,
		    sizeof(text)));
		assert_string_equal(text, rows[i].text);
	}
	unload(&l);
}

/* A text never takes more than its room, and shows that there was more. */
TEST(little_room)
{
	static const uint8_t bytes[32] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct ex_object *o;
	struct loaded l;
	char whole[128];

	load_plain(&l, "room.so");
	o = object_of(&l, "table", 32);
	assert_true(ex_object_text(l.process, o, bytes, whole, sizeof(whole)));
	for (size_t size = 0; size <= strlen(whole) + 1; size++) {
		char *text = malloc(size + 1);

		assert_non_null(text);
		text[size] = '#';
		if (size < 4)
			assert_false(ex_object_text(l.process, o, bytes, text,
			    size));
		else {
			assert_true(ex_object_text(l.process, o, bytes, text,
			    size));
			if (size <= strlen(whole))
				assert_string_equal(text + size - 4, "...");
			else
				assert_string_equal(text, whole);
		}
		assert_int_equal(text[size], '#');
		free(text);
	}
	unload(&l);
}

/* --- where there is nothing to show --- */

TEST(reports_nothing)
{
	struct loaded l;
	uint64_t counter;
	long on_stack = 0;

	load_plain(&l, "nothing.so");
	counter = address_of(&l, "counter");
	assert_null(ex_object_at(l.process, counter, 0));
	assert_null(ex_object_at(l.process, counter, UINT64_MAX));
	assert_null(ex_object_at(l.process, counter, 9));
	assert_null(ex_object_at(l.process, l.base, 8));
	assert_null(ex_object_at(l.process, UINT64_MAX, 8));
	assert_null(ex_object_at(l.process, 0, 8));
	assert_null(ex_object_at(l.process, (uint64_t)(uintptr_t)&on_stack,
	    sizeof(on_stack)));
	unload(&l);

	(void)strcpy(l.name, "stripped.so");
	scratch_run("strip --strip-debug -o stripped.so nothing.so");
	load(&l);
	assert_null(ex_object_at(l.process, address_of(&l, "counter"), 8));
	unload(&l);
}

/* Nothing is said of thread-local variables, in whose place another one could
   seem to be. */
TEST(leaves_out_thread_local)
{
	struct loaded l = {.name = "tls.so"};
	uint64_t end;

	scratch_write("tls.c", "__thread long own[1000] = {1};\n"
	    "long shared = 1;\n");
	scratch_run("gcc -g -shared -fPIC -o tls.so tls.c");
	load(&l);
	end = address_of(&l, "shared") + 8;
	for (uint64_t addr = l.base; addr < end; addr += 8) {
		const struct ex_object *o = ex_object_at(l.process, addr, 8);

		assert_true(o == NULL ||
		    strcmp(o->path, "shared") == 0);
	}
	unload(&l);
}

/* --- files that nobody runs --- */

/* Map a file's second page, which is where linkers put code, into a process;
   its vaddr 0 lies at base. */
static struct ex_process *
recorded(struct ex_space *space, const char *path, uint64_t base)
{
	struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .pid = 1, .tid = 1,
		.mmap = {
			.prot = PROT_READ | PROT_EXEC, .start = base + 0x1000,
			.len = 0x1000, .pgoff = 0x1000, .path = path,
		},
	};

	ex_space_learn(space, &record);
	return ex_space_process(space, 1);
}

#define PROGRAM	UINT64_C(0x10000000)
#define LIBRARY	UINT64_C(0x20000000)

/* A library's variable that lies in the program, whose own debug information
   does not report it: known as soon as the library is. */
TEST(follows_copies)
{
	struct ex_space *space = ex_space_new(EX_RECORDED);
	struct loaded l = {.name = "program", .space = space};
	const struct ex_object *o;
	uint64_t copy;

	scratch_write("lib.c", "long lib_first = 1;\n"
	    "struct { int on, how; } lib_config = {2, 3};\n");
	scratch_write("p.c", "extern int lib_config[2];\n"
	    "long own = 4;\n"
	    "int main(void) { return lib_config[0] + own; }\n");
	scratch_run("gcc -g -shared -fPIC -o libcopied.so lib.c && "
	    "gcc -g -o program p.c ./libcopied.so && "
	    "readelf -rW program | grep -q R_X86_64_COPY.*lib_config");
	l.process = recorded(space, scratch_path("program"), PROGRAM);
	assert_int_equal(ex_process_modules(l.process, take_module, &l), 1);
	copy = address_of(&l, "lib_config");
	assert_null(ex_object_at(l.process, copy, 4));
	assert_non_null(ex_object_at(l.process, address_of(&l, "own"), 8));
	(void)recorded(space, scratch_path("libcopied.so"), LIBRARY);
	o = ex_object_at(l.process, copy + 4, 2);
	assert_non_null(o);
	assert_string_equal(o->path, "lib_config.how");
	assert_string_equal(o->type, "int");
	assert_int_equal(o->offset, 0);
	assert_int_equal(o->size, 4);
	o = ex_object_at(l.process, copy, 4);
	assert_non_null(o);
	assert_string_equal(o->path, "lib_config.on");
	ex_space_free(space);
}

/* --- debug information that lies --- */


static unsigned
ask_everything(const char *name, const uint64_t *vaddr, size_t n)
{
	static const uint8_t bytes[32] = {0xff, 1, 2, 3, 0x80};
	struct ex_space *space = ex_space_new(EX_RECORDED);
	struct ex_process *process = recorded(space, scratch_path(name),
	    PROGRAM);
	unsigned known = 0;
	char text[64];

	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 0; k < 6; k++) {
			const struct ex_object *o = ex_object_at(process,
			    PROGRAM + vaddr[i] + k * 2, UINT64_C(1) << k);

			if (o == NULL)
				continue;
			known++;
			assert_true(o->offset <= 0);
			assert_non_null(o->path);
			assert_non_null(o->type);
			if (o->size <= sizeof(bytes))
				(void)ex_object_text(process, o, bytes, text,
				    sizeof(text));
		}
	}
	ex_space_free(space);
	return known;
}

struct thread_regs {
	uint64_t vaddr[128];
	size_t n;
};

static int
take_place(void *arg, const struct ex_symbol *s)
{
	struct thread_regs *places = arg;

	if (s->object && s->size != 0 && places->n < 128)
		places->vaddr[places->n++] = s->value;
	return 0;
}

/* Where a section's contents lie in a file. */
static void
find_section(const char *file, const char *name, size_t *from, size_t *size)
{
	char *text, *line;
	unsigned long offset = 0, len = 0;

	scratch_run("readelf -SW %s >sections", file);
	text = scratch_read("sections", NULL);
	line = strstr(text, name);
	assert_non_null(line);
	assert_int_equal(sscanf(line, "%*s %*s %*s %lx %lx", &offset, &len), 2);
	*from = offset;
	*size = len;
}

TEST(survives_damage)
{
	static const char *const sections[] = {
		".debug_info", ".debug_abbrev", ".debug_info",
	};
	struct thread_regs places = {.n = 0};
	struct loaded l;
	size_t len, from, size;
	unsigned whole, less = 0;
	char *file;

	load_plain(&l, "whole.so");
	(void)ex_symbol_each(l.module, take_place, &places);
	unload(&l);
	file = scratch_read("whole.so", &len);
	whole = ask_everything("whole.so", places.vaddr, places.n);
	assert_true(whole > places.n);
	for (unsigned i = 0; i < 300; i++) {
		char *copy = malloc(len);

		assert_non_null(copy);
		memcpy(copy, file, len);
		find_section("whole.so", sections[i % 3], &from, &size);
		for (uint64_t k = any_bits() % 8 + 1; k > 0; k--)
			copy[from + any_bits() % size] ^=
			    (char)(1 << any_bits() % 8);
		scratch_write_bytes("damaged.so", copy, len);
		free(copy);
		less += ask_everything("damaged.so", places.vaddr,
		    places.n) < whole;
	}
	assert_true(less > 0);
}

/*
 * Types that hold themselves, and arrays and members beyond every bound, as no
 * compiler writes them: in assembler.
 */
TEST(survives_lies)
{
	/* a typedef, and an array, of itself; 2^62 + 1 longs */
	static const char *const unknown[] = {"alias", "array", "endless"};
	struct loaded l = {.name = "lies.so"};
	const struct ex_object *o;
	char path[600] = "self";
	char text[64];

	scratch_run("gcc -shared -fPIC -nostdlib -o lies.so "
	    "%s/tests/victim/lies.S", getenv("TOP"));
	load(&l);
	/* struct self { struct self me; } */
	o = object_of(&l, "self", 8);
	while (strlen(path) + 3 <= strlen(o->path))
		(void)strcat(path, ".me");
	assert_string_equal(o->path, path);
	assert_false(ex_object_text(l.process, o, (const uint8_t *)"12345678",
	    text, sizeof(text)));
	for (size_t i = 0; i < 3; i++) {
		o = object_of(&l, unknown[i], 8);
		assert_string_equal(o->path, unknown[i]);
		assert_int_equal(o->size, 8);
		assert_false(ex_object_text(l.process, o,
		    (const uint8_t *)"12345678", text, sizeof(text)));
	}
	/* members that begin or end outside, bit-fields of 100 bits */
	o = object_of(&l, "beyond", 8);
	assert_string_equal(o->path, "beyond");
	assert_false(ex_object_text(l.process, o, (const uint8_t *)"12345678",
	    text, sizeof(text)));
	unload(&l);
}

RUN_TESTS(.before_all = scratch_make, .after_all = scratch_remove)
