/*
 * index: what was found out about a file is kept, used for that file only, and
 * may say anything.  The store is a file of the test.
 */
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <zlib.h>

#include "capture.h"
#include "child.h"
#include "debug/index.h"
#include "space/space.h"
#include "type/declared_object.h"
#include "units.h"

#define LINK "cc -shared -Wl,--build-id -o p first.o much.o last.o plain.o "
#define ZLIB LINK "-Wl,--compress-debug-sections=zlib"

enum { LISTS_END = 8 * 12 + 16 * 5 };	/* of the header */

static int written = -1;	/* being written */
static unsigned kept;		/* so many were */

static int
store_open(const char *key)
{
	assert_int_equal(strspn(key, "0123456789abcdef"), strlen(key));
	return open(scratch_path("index"), O_RDONLY | O_CLOEXEC);
}

static int
store_begin(const char *key)
{
	(void)key;
	written = open(scratch_path("new"), O_WRONLY | O_CREAT | O_TRUNC |
	    O_CLOEXEC, 0600);
	assert_true(written >= 0);
	return 0;
}

static int
store_put(const void *bytes, size_t len)
{
	assert_int_equal(write(written, bytes, len), len);
	return 0;
}

static int
store_end(bool good)
{
	assert_true(good);
	assert_int_equal(close(written), 0);
	scratch_run("mv new index");
	kept++;
	return 0;
}

static int
begin(void **state)
{
	static const struct ex_index_store store = {
		store_open, store_begin, store_put, store_end,
	};

	if (scratch_make(state) != 0)
		return -1;
	write_units(16000);
	compile_units("");
	ex_index_store(&store);
	return 0;
}

static int
nothing_kept(void **state)
{
	(void)state;
	kept = 0;
	(void)unlink(scratch_path("index"));
	return 0;
}

static char last_name[64];	/* of the variable that was found last */

/* Ask for all there is: a variable has that name. */
static void
expect(const char *file, const char *name)
{
	struct ex_module *m = module_of(file);

	assert_true(has_variable(m, "last_v", last_name));
	assert_string_equal(last_name, name);
	assert_int_equal(line_of(m, "last"), 6);
	assert_int_equal(line_of(m, "first"), 5);
	assert_int_equal(line_of(m, "plain"), 0);
	ex_module_free(m);
}

/* Replace a text wherever it is. */
static void
replace(char *bytes, size_t len, const char *from, const char *to)
{
	char *at = bytes;
	unsigned n = 0;

	while ((at = memmem(at, len - (size_t)(at - bytes), from,
	    strlen(from))) != NULL) {
		memcpy(at, to, strlen(to));
		n++;
	}
	assert_true(n > 0);
}

/* Have the index say that the variable has another name. */
static void
lie(void)
{
	size_t len;
	char *bytes = scratch_read("index", &len);

	replace(bytes, len, "last_v", "lies_v");
	scratch_write_bytes("index", bytes, len);
}

/* --- it is used --- */

static const char *const ways[] = {
	ZLIB,
	ZLIB " && objcopy --remove-section=.debug_aranges p",
	ZLIB " && objcopy --only-keep-debug p p.debug && strip p && "
	    "objcopy --add-gnu-debuglink=p.debug p",
};

TEST_WITH(the_second_time_it_is_read, nothing_kept, NULL)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		scratch_run("%s", ways[i]);
		kept = 0;
		expect("p", "last_v");
		assert_int_equal(kept, 1);
		/* nothing is new then */
		expect("p", "last_v");
		assert_int_equal(kept, 1);
		lie();
		expect("p", "lies_v");
	}
}

/* A process has thousands of modules: none holds a descriptor. */
TEST_WITH(no_module_holds_a_descriptor, nothing_kept, NULL)
{
	static const char *const more[] = {
		LINK,
		LINK " && objcopy --only-keep-debug p p.debug && strip p && "
		    "objcopy --add-gnu-debuglink=p.debug p",
		LINK " && objcopy --only-keep-debug p p.debug && strip p && "
		    "cp p.debug q.debug && dwz -m shared p.debug q.debug && "
		    "objcopy --add-gnu-debuglink=p.debug p",
		/* a package; the others are compiled as before again */
		"cp last.o whole.o && cc -g -O1 -gdwarf-5 -gsplit-dwarf -fPIC -c "
		    "last.c && " LINK " && llvm-dwp -e p -o p.dwp && "
		    "rm last.dwo && mv whole.o last.o",
	};

	for (size_t i = 0; i < COUNT(ways) + COUNT(more); i++) {
		scratch_run("%s", i < COUNT(ways) ? ways[i] :
		    more[i - COUNT(ways)]);
		for (int k = 0; k < 2; k++) {
			const unsigned before = open_descriptors();
			struct ex_module *m = module_of("p");

			assert_true(has_variable(m, "last_v", last_name));
			assert_int_equal(line_of(m, "last"), 6);
			assert_int_equal(open_descriptors(), before);
			ex_module_free(m);
			assert_int_equal(open_descriptors(), before);
		}
	}
}

/* What is not in it yet is found, and is there the next time. */
TEST_WITH(grows, nothing_kept, NULL)
{
	struct ex_module *m;

	scratch_run(ZLIB);
	m = module_of("p");
	assert_int_equal(line_of(m, "first"), 5);
	ex_module_free(m);
	assert_int_equal(kept, 1);
	for (int i = 0; i < 2; i++) {
		m = module_of("p");
		assert_int_equal(line_of(m, "much"), 16001);
		assert_true(has_variable(m, "last_v", last_name));
		assert_int_equal(line_of(m, "last"), 6);
		ex_module_free(m);
		assert_int_equal(kept, 2);
	}
}

/* Where code is, no variable is searched. */
TEST_WITH(does_not_search_for_code, nothing_kept, NULL)
{
	static const char *const names[] = {"much", "last_v"};
	void *p;

	scratch_run(LINK);
	assert_non_null(p = dlopen(scratch_path("p"), RTLD_NOW));
	for (unsigned i = 0; i < COUNT(names); i++) {
		struct ex_space *space = ex_space_new(EX_LIVE);

		assert_non_null(space);
		capture_maps(space, getpid());
		assert_int_equal(ex_object_at(ex_space_process(space,
		    getpid()), (uintptr_t)dlsym(p, names[i]), 8) != NULL, i);
		ex_space_free(space);
		assert_int_equal(kept, i);
	}
	assert_int_equal(dlclose(p), 0);
}

/* A search of information that is not packed is remembered, too. */
TEST_WITH(remembers_searches, nothing_kept, NULL)
{
	scratch_run(LINK);
	expect("p", "last_v");
	assert_int_equal(kept, 1);
	expect("p", "last_v");
	assert_int_equal(kept, 1);
}

/* A unit that it has not is unpacked from the point before it. */
TEST_WITH(goes_on_from_a_point, nothing_kept, NULL)
{
	struct ex_module *m;

	scratch_run(ZLIB);
	m = module_of("p");
	assert_true(has_variable(m, "last_v", last_name));
	ex_module_free(m);
	assert_int_equal(kept, 1);
	m = module_of("p");
	assert_int_equal(line_of(m, "much"), 16001);
	assert_int_equal(line_of(m, "first"), 5);
	ex_module_free(m);
	assert_int_equal(kept, 2);
}

/* --- it is not believed --- */

/* Neither for another file with the same build id, nor for one that was
   changed. */
TEST_WITH(is_of_one_file, nothing_kept, NULL)
{
	scratch_run(ZLIB);
	expect("p", "last_v");
	lie();
	expect("p", "lies_v");
	scratch_run("cp p q");
	expect("q", "last_v");
	assert_int_equal(kept, 2);
	lie();
	scratch_run("chmod +r q && cp -p q s && cat s > q && touch -r s q");
	expect("q", "last_v");
	assert_int_equal(kept, 3);
}

/* The sum, as it has to be. */
static void
make_sum(uint8_t *bytes, size_t len)
{
	uint64_t sum = 0, end = LISTS_END;
	static const unsigned sizes[] = {56, 32, 144, 48, 24};

	for (unsigned i = 0; i < COUNT(sizes); i++) {
		uint64_t n;

		memcpy(&n, bytes + 96 + 16 * i + 8, sizeof(n));
		if (n < len)
			end += n * sizes[i];
	}
	memcpy(bytes + 8, &sum, sizeof(sum));
	sum = adler32_z(adler32_z(0, NULL, 0), bytes, end < len ? end : len);
	memcpy(bytes + 8, &sum, sizeof(sum));
}

/* Any byte may be wrong, with a sum that is right. */
TEST_WITH(survives_any_index, nothing_kept, NULL)
{
	size_t len;
	uint8_t *good, *bad;
	const unsigned n = getenv("THOROUGH") != NULL ? 200 : 80;
	unsigned seed = 1;

	scratch_run(ZLIB);
	expect("p", "last_v");
	good = (uint8_t *)scratch_read("index", &len);
	bad = malloc(len);
	for (unsigned i = 0; i < n; i++) {
		size_t size = len;
		struct ex_module *m;

		memcpy(bad, good, len);
		for (unsigned k = 0; k <= i % 4; k++) {
			/* most of what matters comes first */
			const size_t within = i % 3 == 0 ? len : 1400;

			seed = seed * 1664525 + 1013904223;
			bad[64 * (i % 3 == 1) + (seed >> 8) % (within - 64)] =
			    (uint8_t)(i % 5 == 0 ? 0xff : seed >> 4);
		}
		if (i % 20 == 19)
			size = len * (i / 20) / (n / 20);
		if (size >= 400)
			make_sum(bad, size);
		scratch_write_bytes("index", bad, size);
		m = module_of("p");
		(void)line_of(m, "last");
		(void)has_variable(m, "first_v", last_name);
		(void)line_of(m, "much");
		ex_module_free(m);
	}
	free(bad);
}

RUN_TESTS(.before_all = begin, .after_all = scratch_remove)
