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

#include "module/module.h"
#include "processes/synthetic_records.h"
#include "scratch.h"
#include "space/space.h"
#include "spec/spec.h"
#include "type/declared_object.h"

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

/* Bytes of a virtual base class are in no member of the class that the object
   is of, nor of its base classes: what the expression names is reported. */
TEST_WITH(names_members_of_virtual_bases_of_bases, scratch_make, scratch_remove)
{
	static const struct {
		const char *text, *address;	/* and the function that returns
						   it */
		const char *path, *type;
	} rows[] = {
		{"as_left->shared", "shared", "as_left->shared", "long"},
		{"as_left->x", "x", "both.x", "long"},
		{"as_right->z", "z", "both.z", "int"},
		{"last->shared", "last_shared", "last->shared", "long"},
		{"hides.Base::shared", "hidden", "hides.Base::shared", "long"},
		{"lowest.Left::shared", "last_shared", "last->shared", "long"},
	};
	void *library;

	if (!scratch_has("g++")) {
		print_message("g++: not here, not tried\n");
		return;
	}
	scratch_write("bases.cc",
	    "struct Base { virtual ~Base() {} long shared = 1; };\n"
	    "struct Left : virtual Base { long x = 2; };\n"
	    "struct Right : virtual Base { int z = 3; };\n"
	    "struct Both : Left, Right { long own = 4; } both;\n"
	    "struct Last : Both { char more = 5; } lowest;\n"
	    "struct Hides : virtual Base { int shared = 6; } hides;\n"
	    "Left *as_left = &both;\n"
	    "Right *as_right = &both;\n"
	    "Last *last = &lowest;\n"
	    "#define GET(f, e) extern \"C\" void *f() { return &(e); }\n"
	    "GET(shared, both.shared) GET(x, both.x) GET(z, both.z)\n"
	    "GET(last_shared, lowest.shared)\n"
	    "GET(hidden, hides.Base::shared)\n");
	scratch_run("g++ -g -shared -fPIC -o bases.so bases.cc");
	library = dlopen(scratch_path("bases.so"), RTLD_NOW);
	assert_non_null(library);
	(void)forget_self(NULL);
	(void)look_at_self(NULL);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct wp_cause cause = {.text = ""};
		const struct ex_object *object;
		struct spec_place place = {0};
		struct spec spec;
		void *(*get)(void);

		*(void **)&get = dlsym(library, rows[i].address);
		assert_int_equal(spec_parse(rows[i].text, 'w', &spec, &cause),
		    0);
		if (spec_resolve(&spec, self, &place, &cause) != 0)
			fail_msg("%s", cause.text);
		assert_int_equal(place.addr, (uintptr_t)get());
		spec_declare(&spec, self, place.addr, place.len);
		object = ex_object_at(self, place.addr, place.len);
		assert_non_null(object);
		assert_string_equal(object->path, rows[i].path);
		assert_string_equal(object->type, rows[i].type);
		spec_free(&spec);
		free(place.symbol);
	}
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

TEST_WITH(says_that_a_function_is_only_inlined, scratch_make, scratch_remove)
{
	struct wp_cause cause = {.text = ""};
	struct spec_place place = {0};
	void *library;

	scratch_write("inlined.c",
	    "static inline int twice(int n) { return 2 * n; }\n"
	    "int caller(int n) { return twice(n) + 1; }\n");
	scratch_run("cc -O2 -g -shared -fPIC -o libinlined.so inlined.c");
	library = dlopen(scratch_path("libinlined.so"), RTLD_NOW);
	assert_non_null(library);
	assert_int_equal(forget_self(NULL), 0);
	assert_int_equal(look_at_self(NULL), 0);
	assert_int_equal(resolve("libinlined.so!twice", 'x', &place, &cause),
	    -ENOENT);
	assert_non_null(strstr(cause.text, "libinlined.so has a function of "
	    "that name, but the compiler inlined it everywhere"));
	cause.text[0] = '\0';
	assert_int_equal(resolve("libinlined.so!thrice", 'x', &place, &cause),
	    -ENOENT);
	assert_null(strstr(cause.text, "inlined it"));
	(void)dlclose(library);
}

/* Where a descriptor has the elements of Fortran's arrays: C has been given the
   addresses of some. */
TEST_WITH(finds_the_elements_of_fortrans_arrays, scratch_make, scratch_remove)
{
	static const struct {
		const char *text;
		int wanted;	/* its element of where[] */
		size_t size;
	} arrays[] = {
		{"state::later", 0, 20}, {"state::later(2)", 1, 4},
		{"state::later+4:4", 1, 4}, {"state::grid:4", 2, 4},
		{"state::part(7)", 3, 4}, {"state::people(2)%age", 4, 4},
		{"state::holder%inside(3)", 5, 8},
	}, wrong[] = {
		{"state::nothing", .wanted = 5}, {"state::sparse", .wanted = 4},
	};
	static const char *const reasons[] = {
		[5] = "this array is not allocated, or points to nothing, now",
		[4] = "do not lie side by side",
	};
	void *where[6] = {NULL}, *library;
	void (*fill)(void **), (*release)(void);

	if (!scratch_has("gfortran")) {
		print_message("gfortran: not here, not tried\n");
		return;
	}
	scratch_write("state.f90", "module state\n"
	    "  use iso_c_binding\n"
	    "  type person\n    integer :: number, age\n  end type\n"
	    "  type box\n    real(8), allocatable :: inside(:)\n"
	    "  end type\n"
	    "  integer, allocatable, target :: later(:), grid(:,:)\n"
	    "  integer, allocatable :: nothing(:)\n"
	    "  integer, pointer :: part(:), sparse(:)\n"
	    "  type(person), allocatable, target :: people(:)\n"
	    "  type(box), target :: holder\n"
	    "contains\n"
	    "  subroutine fill(w) bind(c, name='fill')\n"
	    "    type(c_ptr) :: w(6)\n"
	    "    allocate(later(5), grid(2,3), people(3))\n"
	    "    allocate(holder%inside(4))\n"
	    "    part(7:8) => later(3:4)\n"
	    "    sparse => later(1:5:2)\n"
	    "    w(1) = c_loc(later(1)); w(2) = c_loc(later(2))\n"
	    "    w(3) = c_loc(grid(1,1)); w(4) = c_loc(later(3))\n"
	    "    w(5) = c_loc(people(2)%age)\n"
	    "    w(6) = c_loc(holder%inside(3))\n"
	    "  end subroutine\n"
	    "  subroutine release() bind(c, name='release')\n"
	    "    deallocate(later, grid, people, holder%inside)\n"
	    "  end subroutine\n"
	    "end module\n");
	scratch_run("gfortran -g -shared -fPIC -o libstate.so state.f90");
	library = dlopen(scratch_path("libstate.so"), RTLD_NOW);
	assert_non_null(library);
	*(void **)&fill = dlsym(library, "fill");
	*(void **)&release = dlsym(library, "release");
	fill(where);
	assert_int_equal(forget_self(NULL), 0);
	assert_int_equal(look_at_self(NULL), 0);
	for (size_t i = 0; i < COUNT(arrays); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec_place place = {0};

		if (resolve(arrays[i].text, 'w', &place, &cause) != 0)
			fail_msg("%s", cause.text);
		if (place.addr != (uintptr_t)where[arrays[i].wanted] ||
		    place.len != arrays[i].size)
			fail_msg("%s: %#lx:%zu", arrays[i].text,
			    (unsigned long)place.addr, (size_t)place.len);
		free(place.symbol);
	}
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct wp_cause cause = {.text = ""};
		struct spec_place place = {0};

		assert_true(resolve(wrong[i].text, 'w', &place, &cause) < 0);
		assert_non_null(strstr(cause.text, reasons[wrong[i].wanted]));
	}
	release();
	(void)dlclose(library);
}

/* What a library calls by the name is no answer while it is not known what the
   program does. */
TEST(takes_no_enumerator_for_what_cannot_be_read)
{
	static const struct {
		const char *aside, *why;
	} cases[] = {
		{"", "'spec_test_kind': this is a value, not an object that "
		    "could be watched"},
		{"spec_process_test", "'spec_test_kind': no symbol "
		    "'spec_test_kind' in "},
	};
	char program[PATH_MAX];
	void *library;

	assert_int_equal(scratch_make(NULL), 0);
	scratch_write("kinds.c", "enum kinds { spec_test_kind = 3 } kinds;\n");
	scratch_run("cc -g -shared -fPIC -o libkinds.so kinds.c");
	library = dlopen(scratch_path("libkinds.so"), RTLD_NOW);
	assert_non_null(library);
	assert_non_null(realpath("/proc/self/exe", program));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct spec_place place;
		struct wp_cause cause = {.text = ""};

		if (*cases[i].aside != '\0')
			assert_true(ex_module_leave_aside(program));
		(void)forget_self(NULL);
		(void)look_at_self(NULL);
		assert_true(resolve("spec_test_kind", 'w', &place, &cause) <
		    0);
		if (strstr(cause.text, cases[i].why) == NULL)
			fail_msg("want \"%s\", got \"%s\"", cases[i].why,
			    cause.text);
		if (*cases[i].aside != '\0')
			assert_non_null(strstr(cause.text, cases[i].aside));
	}
	(void)dlclose(library);
	assert_int_equal(scratch_remove(NULL), 0);
}

RUN_TESTS(.before_all = look_at_self, .after_all = forget_self)
