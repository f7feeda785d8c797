/*
 * mutants: executables and debug information that are damaged at random, ten
 * thousand files with `bmake verify'.  Whatever becomes of the process that
 * reads them, watchctl lives, each hit is there, and SPECs mean something or
 * have a cause.
 */
#include "test.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "command.h"
#include "live.h"
#include "scratch.h"

enum {
	FILES = 16,		/* of a set; each run damages all of them */
	SETS = 2,		/* at a time */
	HITS = FILES + 3,
};

/* Libraries, a recording of a program that has them, and one that runs. */
struct set {
	char name[8];		/* of its directory */
	char *recording;
	char pid[16];
	struct running host;
	struct {
		char *path;
		uint8_t *whole, *bytes;
		size_t size;
	} file[FILES];
};

static struct set sets[SETS];

/* Each writes through a pointer, in a function that was inlined, and some of
   them into a structure of their own. */
static const char library[] =
    "struct pair { short a; unsigned b : 5, c : 11; };\n"
    "enum colour { RED = 1, GREEN };\n"
    "struct record { long key; struct pair pair[2]; enum colour colour;\n"
    "    const char *name; struct record *next; union { float f; int i; } u;\n"
    "} value;\n"
    "static struct record spare;\n"
    "static inline __attribute__((always_inline)) void\n"
    "put(long *to, long n) { *to += n; }\n"
    "static __attribute__((noinline)) void\n"
    "deeper(long *to, int n) { if (n > 0) deeper(to, n - 1); else\n"
    "    put(to, 3); __asm__ volatile(\"\" ::: \"memory\"); }\n"
    "void touch(long *to, int own) { deeper(to, 3);\n"
    "    if (own) { value.next = &spare; put(&value.key, 7); } }\n";

/* Until it is told to rest. */
static const char program[] =
    "#include <dlfcn.h>\n#include <poll.h>\n#include <stdio.h>\n"
    "#include <string.h>\n#include <unistd.h>\n"
    "long counter;\n"
    "int main(int argc, char **argv) {\n"
    "    void (*touch[64])(long *, int);\n"
    "    struct pollfd told = {0, POLLIN, 0};\n"
    "    for (int i = 1; i < argc; i++) {\n"
    "        void *library = dlopen(argv[i], RTLD_NOW), *at;\n"
    "        if (library == 0 || (at = dlsym(library, \"touch\")) == 0)\n"
    "            return 1;\n"
    "        memcpy(&touch[i], &at, sizeof(at)); }\n"
    "    printf(\"%d\\n\", getpid()); fflush(stdout);\n"
    "    while (poll(&told, 1, 2) == 0)\n"
    "        for (int i = 1; i < argc; i++) touch[i](&counter, i < 4);\n"
    "    puts(\"rests\"); fflush(stdout);\n"
    "    for (;;) pause(); }\n";

/* What compilers and linkers write. */
static const char *const flags[] = {
	"-O2 -gdwarf-5", "-O1 -gdwarf-4", "-O2 -gdwarf-5 -gz",
	"-O2 -g3 -gdwarf-5 -fdebug-types-section",
};

static void
read_file(struct set *set, unsigned i, const char *path)
{
	FILE *f = fopen(path, "r");
	long size;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	rewind(f);
	set->file[i].path = strdup(path);
	set->file[i].size = (size_t)size;
	set->file[i].whole = malloc((size_t)size);
	set->file[i].bytes = malloc((size_t)size);
	assert_non_null(set->file[i].whole);
	assert_non_null(set->file[i].bytes);
	assert_int_equal(fread(set->file[i].whole, 1, (size_t)size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* It touches each library in turn, and then rests: none of their pages is used
   any more. */
static void
record(struct set *set)
{
	struct outcome o;
	char line[16];

	run(&o, LIST(watchctl(), "-w", "host!counter", "-w",
	    "lib0.so!value:8", "-w", "lib1.so!value:8", "-w",
	    "lib2.so!value:8", "-n", "19", "-o", "perf", "-O", set->recording,
	    "-p", set->pid));
	if (o.status != 0 || strstr(o.err, "19 hits, 19 reported") == NULL)
		fail_msg("status %d: %s", o.status, o.err);
	say(&set->host, "\n");
	hear(&set->host, line, sizeof(line));
	assert_string_equal(line, "rests");
}

static void
make_set(struct set *set, unsigned number)
{
	char *host = strdup(scratch_path("host"));
	const char *argv[FILES + 2] = {host};
	char path[PATH_MAX + 32];

	(void)snprintf(set->name, sizeof(set->name), "set%u", number);
	scratch_run("mkdir %s", set->name);
	for (unsigned i = 0; i < FILES; i++) {
		scratch_run("%s -shared -fPIC -Wl,--build-id %s -o %s/lib%u.so "
		    "library.c", getenv("CC"), flags[i % COUNT(flags)],
		    set->name, i);
		(void)snprintf(path, sizeof(path), "%s/%s/lib%u.so",
		    scratch_dir, set->name, i);
		read_file(set, i, path);
		argv[1 + i] = set->file[i].path;
	}
	(void)snprintf(path, sizeof(path), "%s/%s/data", scratch_dir,
	    set->name);
	set->recording = strdup(path);
	start(&set->host, argv);
	hear(&set->host, set->pid, sizeof(set->pid));
	record(set);
	free(host);
}

static int
make_sets(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	scratch_write("library.c", library);
	scratch_write("host.c", program);
	scratch_run("%s -g -o host host.c -ldl", getenv("CC"));
	for (unsigned i = 0; i < SETS; i++)
		make_set(&sets[i], i);
	return 0;
}

static int
remove_sets(void **state)
{
	for (unsigned i = 0; i < SETS; i++) {
		end(&sets[i].host);
		for (unsigned k = 0; k < FILES; k++) {
			free(sets[i].file[k].path);
			free(sets[i].file[k].whole);
			free(sets[i].file[k].bytes);
		}
		free(sets[i].recording);
	}
	return scratch_remove(state);
}

/* Change some bytes of a file, at random; or cut it off. */
static void
mutate(uint8_t *bytes, size_t *len)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};

	for (long n = 1 + random() % 16; n > 0; n--) {
		uint8_t *at = &bytes[(size_t)random() % *len];

		*at = random() % 2 == 0 ? (uint8_t)random() :
		    values[(size_t)random() % COUNT(values)];
	}
	if (random() % 16 == 0)
		*len = 1 + (size_t)random() % *len;
}

/* In place: they stay the files that are mapped. */
static void
damage(struct set *set)
{
	for (unsigned i = 0; i < FILES; i++) {
		size_t len = set->file[i].size;
		FILE *f = fopen(set->file[i].path, "w");

		memcpy(set->file[i].bytes, set->file[i].whole, len);
		mutate(set->file[i].bytes, &len);
		assert_non_null(f);
		assert_int_equal(fwrite(set->file[i].bytes, 1, len, f), len);
		assert_int_equal(fclose(f), 0);
	}
}

/* What sanitizers say is no reason of this program's. */
static bool
is_sane(const struct outcome *o)
{
	return strstr(o->err, "AddressSanitizer") == NULL &&
	    strstr(o->err, "runtime error") == NULL;
}

/* Each hit is there; or three explainers died of one, and it says so. */
static void
expect_report(unsigned seed, struct running *w)
{
	struct outcome o;

	finish(w, &o);
	if (!is_sane(&o) || (o.status != 0 && (o.status != 125 ||
	    strstr(o.err, "as did two before it") == NULL)) || (o.status == 0 &&
	    strstr(o.err, "19 hits, 19 reported, 0 lost") == NULL))
		fail_msg("seed %u: status %d: %s", seed, o.status, o.err);
}

/* It means something, or has a cause. */
static void
expect_spec(unsigned seed, struct running *w)
{
	struct outcome o;

	finish(w, &o);
	if (!is_sane(&o) || (o.status != 0 && o.status != 125) ||
	    (o.status == 125 && strstr(o.err, "watchctl: ") == NULL))
		fail_msg("seed %u: status %d: %s", seed, o.status, o.err);
}

static const char *
spec_of(unsigned seed)
{
	static const char *const specs[] = {
		"lib3.so!value:8", "valu", "library.c!value+8",
		"lib1.so!touch", "set0!value",
	};

	return specs[seed % COUNT(specs)];
}

TEST(damaged_files_do_no_harm)
{
	const unsigned files = getenv("THOROUGH") == NULL ? 320 :
	    SANITIZED ? 2560 : 10016, runs = files / (SETS * FILES);
	struct running report[SETS], spec[SETS];
	struct rusage usage;

	for (unsigned i = 0; i < runs; i++) {
		for (unsigned k = 0; k < SETS; k++) {
			srandom(SETS * i + k);
			damage(&sets[k]);
			start(&report[k], LIST(watchctl(), "report", "-o",
			    i % 2 == 0 ? "json" : "text", "--no-cache",
			    sets[k].recording));
		}
		for (unsigned k = 0; k < SETS; k++)
			expect_report(SETS * i + k, &report[k]);
		for (unsigned k = 0; k < SETS; k++)
			start(&spec[k], LIST(watchctl(), "--count",
			    "--no-cache", "-t", "0.001", "-w",
			    spec_of(SETS * i + k), "-p", sets[k].pid));
		for (unsigned k = 0; k < SETS; k++)
			expect_spec(SETS * i + k, &spec[k]);
	}
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	if (!SANITIZED)
		assert_true(usage.ru_maxrss < 1 << 20);	/* KiB */
}

RUN_LIVE_TESTS(.before_all = make_sets, .after_all = remove_sets)
