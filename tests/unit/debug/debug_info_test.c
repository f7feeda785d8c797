/*
 * debug_info: units are found, and no more is unpacked than they need.  A
 * shared object of a few units, made in many ways, is asked for the line of a
 * function of each.
 */
#include "test.h"

#include <sys/resource.h>

#include "module/section.h"
#include "units.h"

TEST_KEEPS(kept, struct ex_module *, ex_module_free)

#define ZLIB "-Wl,--compress-debug-sections=zlib"

static int
begin(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	write_units(4000);
	return 0;
}

/* How much of .debug_info libdw may see, and how much there is. */
static size_t
shown(struct ex_module *m, size_t *all)
{
	uint64_t bias;
	Dwarf *dwarf = ex_module_dwarf(m, &bias);
	Elf_Scn *scn;
	GElf_Shdr sh;

	assert_non_null(dwarf);
	scn = ex_section_find(dwarf_getelf(dwarf), ".debug_info", &sh);
	assert_non_null(scn);
	*all = sh.sh_size;
	return elf_getdata(scn, NULL)->d_size;
}

/* Let this process have so much private memory more than it has. */
static void
limit_memory(rlim_t more, struct rlimit *before)
{
	FILE *statm = fopen("/proc/self/statm", "r");
	struct rlimit limit;
	unsigned long pages;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages), 1);
	(void)fclose(statm);
	assert_int_equal(getrlimit(RLIMIT_DATA, before), 0);
	limit = *before;
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
}

/* --- how they are found --- */

#define ALONE " && objcopy --only-keep-debug p p.debug && strip p && "	\
	"objcopy --add-gnu-debuglink=p.debug p"
#define GDB_INDEX " && gdb -nx -batch -ex 'save gdb-index .' p && "	\
	"objcopy --add-section=.gdb_index=p.gdb-index p"
#define DEBUG_NAMES " && objcopy --remove-section=.debug_aranges p && "	\
	"gdb-add-index -dwarf-5 p && objcopy --compress-debug-sections=zlib p"
#define LINK "cc -shared -o p first.o much.o last.o plain.o "
#define LINK_SHARED "cc -shared -o p both.o last.o plain.o "

static const struct way {
	const char *flags;	/* to compile */
	const char *link;
	bool part;		/* a function is found without those behind */
} ways[] = {
	{"", LINK, false},
	{"", LINK ZLIB, true},
	{"-gdwarf-4", LINK ZLIB, true},
	{"-gdwarf-3 -gstrict-dwarf", LINK ZLIB, true},
	{"-gdwarf64", LINK ZLIB, true},
	{"-ffunction-sections", LINK ZLIB, true},
	{"", LINK "-Wl,--build-id " ZLIB ALONE, true},
	{"", LINK "-Wl,--build-id=none " ZLIB ALONE, true},
	/* one of them is not in .debug_aranges, or none is */
	{"", "objcopy --remove-section=.debug_aranges last.o bare.o && "
	    "cc -shared -o p first.o much.o bare.o plain.o " ZLIB, true},
	{"", LINK ZLIB " && objcopy --remove-section=.debug_aranges p",
	    false},
	/* but gdb's index says which has it */
	{"", LINK ZLIB " && objcopy --remove-section=.debug_aranges p"
	    GDB_INDEX, true},
	{"", LINK " && objcopy --remove-section=.debug_aranges p" GDB_INDEX,
	    false},
	{"", LINK ZLIB " && objcopy --remove-section=.debug_aranges p"
	    GDB_INDEX ALONE, true},
	/* the same of the index that DWARF 5 has */
	{"", LINK DEBUG_NAMES, true},
	{"", LINK DEBUG_NAMES ALONE, true},
	/* units refer to others, or to types of their own section */
	{"-flto", LINK "-flto -g -O1 " ZLIB, false},
	{"-gdwarf-4 -fdebug-types-section", LINK ZLIB, false},
	{"-fdebug-types-section", LINK ZLIB, false},
	{"-gsplit-dwarf", LINK ZLIB, false},
	{"", LINK "-Wl,--compress-debug-sections=zlib-gnu", false},
};

TEST(finds_units)
{
	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ex_module *m;
		size_t all, some;

		if (i == 0 || strcmp(ways[i].flags, ways[i - 1].flags) != 0)
			compile_units(ways[i].flags);
		scratch_run("%s", ways[i].link);
		m = kept(module_of("p"));
		if (line_of(m, "first") != 5 ||
		    !has_variable(m, "first_v", NULL))
			fail_msg("first: %s: %s", ways[i].flags, ways[i].link);
		if (ways[i].part && (some = shown(m, &all)) > all / 10)
			fail_msg("%zu of %zu bytes: %s: %s", some, all,
			    ways[i].flags, ways[i].link);
		if (line_of(m, "last") != 6 ||
		    !has_variable(m, "last_v", NULL) ||
		    line_of(m, "much") != 4001 || line_of(m, "plain") != 0)
			fail_msg("last: %s: %s", ways[i].flags, ways[i].link);
	}
}

/* Code without debug information is known to have none. */
TEST(reads_no_more_than_aranges_name)
{
	struct ex_module *m;
	size_t all;

	compile_units("");
	scratch_run(LINK ZLIB);
	m = kept(module_of("p"));
	assert_int_equal(line_of(m, "plain"), 0);
	assert_true(shown(m, &all) < all / 10);
	assert_int_equal(line_of(m, "last"), 6);
	assert_true(shown(m, &all) == all);
}

/* Two units that share a table of abbreviations, as clang's do that were
   optimized together, are in .debug_aranges; one that has its own table is not,
   though there are as many tables as units that are. */
TEST(knows_not_all_of_shared_tables)
{
	static const char *const links[] = {LINK_SHARED, LINK_SHARED ZLIB};

	compile_units("");
	scratch_run("clang -g -O1 -fPIC -emit-llvm -c first.c -o first.bc && "
	    "clang -g -O1 -fPIC -emit-llvm -c much.c -o much.bc && "
	    "llvm-link first.bc much.bc -o both.bc && "
	    "clang -O1 -fPIC -gdwarf-aranges -c both.bc -o both.o && "
	    "objcopy --remove-section=.debug_aranges last.o");
	for (size_t i = 0; i < COUNT(links); i++) {
		struct ex_module *m;

		scratch_run("%s", links[i]);
		m = kept(module_of("p"));
		assert_int_equal(line_of(m, "first"), 4);
		assert_int_equal(line_of(m, "last"), 6);
		assert_int_equal(line_of(m, "plain"), 0);
	}
}

/* clang writes names of all units, so that what is not among them is known to
   be nowhere; gdb does not. */
TEST(reads_no_more_than_names_name)
{
	static const struct {
		const char *link;
		bool none;	/* it is known that there is none */
	} names[] = {
		{LINK ZLIB, true},
		{"cc -shared -fuse-ld=lld -o p first.o much.o last.o plain.o "
		    ZLIB, true},
		/* a unit without them may have anything */
		{"objcopy --remove-section=.debug_names last.o && " LINK ZLIB,
		    false},
		{LINK " && objcopy --remove-section=.debug_names p"
		    DEBUG_NAMES, false},
	};

	for (size_t i = 0; i < COUNT(names); i++) {
		struct ex_module *m;
		size_t all;

		compile_units_by("clang", "-gpubnames");
		scratch_run("%s", names[i].link);
		m = kept(module_of("p"));
		assert_int_equal(line_of(m, "first"), 4);
		assert_true(has_variable(m, "first_v", NULL));
		assert_true(shown(m, &all) < all / 10);
		assert_int_equal(line_of(m, "plain"), 0);
		if ((shown(m, &all) < all / 10) != names[i].none)
			fail_msg("%s", names[i].link);
		assert_int_equal(line_of(m, "last"), 5);
		assert_int_equal(line_of(m, "much"), 4001);
	}
}

/* --- what files share --- */

/* The name of a variable's type; "": it is not known. */
static const char *
type_of(struct ex_module *m, const char *name)
{
	struct ex_variables *variables = ex_variables_new(m);
	const struct ex_variable *found =
	    ex_variables_find(variables, value_of(m, name));
	Dwarf_Die die = {0}, type = {0};
	Dwarf_Attribute attr;
	static char text[64];

	if (found != NULL)
		die = found->die;
	(void)snprintf(text, sizeof(text), "%s", found != NULL &&
	    dwarf_formref_die(dwarf_attr(&die, DW_AT_type, &attr), &type) !=
	    NULL ? dwarf_diename(&type) : "");
	ex_variables_free(variables);
	return text;
}

/* dwz has put what two programs share into a third file. */
TEST(finds_what_files_share)
{
	static const struct {
		const char *link;	/* what their link says */
		const char *then;
		const char *type;
	} cases[] = {
		{"common.debug", "true", "config"},
		{"sub/../common.debug", "mkdir -p sub", "config"},
		{"$PWD/common.debug", "true", "config"},
		{"common.debug", "true" ALONE, "config"},
		{"../common.debug", "true" ALONE
		    " && mkdir -p .debug && mv p.debug .debug", "config"},
		{"common.debug", "objcopy --compress-debug-sections=zlib p",
		    "config"},
		{"common.debug", "true" ALONE
		    " && objcopy --compress-debug-sections=zlib p.debug"
		    " && objcopy --remove-section=.gnu_debuglink p"
		    " && objcopy --add-gnu-debuglink=p.debug p", "config"},
		/* it has another build id, or is not there */
		{"common.debug", "cp q common.debug", ""},
		{"other.debug", "rm -f other.debug", ""},
	};

	if (!scratch_has("dwz")) {
		print_message("dwz is not installed\n");
		skip();
	}
	scratch_run("for i in $(seq 300); do echo \"struct s$i {int a$i;};\"; "
	    "done > types.h; echo 'struct config {int limit; long weight;} "
	    "config; int set(int to) {return config.limit = to;}' >> types.h;"
	    "echo '#include \"types.h\"' > p.c; (cat p.c; "
	    "echo 'int q;') > q.c");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_module *m;

		scratch_run("rm -rf .debug common.debug; for f in p q; do "
		    "cc -g -O1 -fno-eliminate-unused-debug-types -shared "
		    "-fPIC -o $f $f.c || exit 1; done; "
		    "dwz -m common.debug -M \"%s\" p q && %s", cases[i].link,
		    cases[i].then);
		m = kept(module_of("p"));
		if (strcmp(type_of(m, "config"), cases[i].type) != 0)
			fail_msg("%s, %s: '%s'", cases[i].link, cases[i].then,
			    type_of(m, "config"));
		if (*cases[i].type != '\0')
			assert_int_equal(line_of(m, "set"), 301);
	}
}

/* --- what is damaged --- */

/* Where a section lies in a file. */
static uint64_t
section_place(const char *file, const char *section, uint64_t *size)
{
	int fd = open(scratch_path(file), O_RDONLY | O_CLOEXEC);
	GElf_Shdr sh;
	Elf *elf;

	(void)elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(ex_section_find(elf, section, &sh));
	(void)elf_end(elf);
	(void)close(fd);
	*size = sh.sh_size;
	return sh.sh_offset;
}

static void
overwrite(const char *file, uint64_t at, const void *bytes, size_t len)
{
	int fd = open(scratch_path(file), O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
	(void)close(fd);
}

/* What was unpacked before the damage is used; nothing behind it is. */
TEST(stops_where_it_is_damaged)
{
	static const uint8_t wrong[64];
	uint64_t at, size = 0;
	struct ex_module *m;

	compile_units("");
	scratch_run(LINK ZLIB);
	at = section_place("p", ".debug_info", &size);
	overwrite("p", at + size / 2, wrong, sizeof(wrong));
	m = kept(module_of("p"));
	assert_int_equal(line_of(m, "first"), 5);
	assert_true(has_variable(m, "first_v", NULL));
	assert_int_equal(line_of(m, "last"), 0);
	assert_false(has_variable(m, "last_v", NULL));
}

/* .debug_aranges may say anything: another unit, or a place where none
   begins. */
TEST(does_not_trust_aranges)
{
	compile_units("");
	scratch_run(LINK);
	for (uint32_t lie = 0; lie < 200; lie += 7) {
		uint64_t size = 0, at;
		struct ex_module *m;

		scratch_run("cp p q");
		at = section_place("q", ".debug_aranges", &size);
		overwrite("q", at + 6, &lie, sizeof(lie));
		m = kept(module_of("q"));
		assert_int_equal(line_of(m, "first"), 5);
		assert_int_equal(line_of(m, "last"), 6);
	}
}

/* The first set ends with its header, where pairs are not aligned. */
TEST(ends_with_a_set_of_aranges)
{
	const uint32_t header = 8;
	uint64_t size = 0;
	struct ex_module *m;

	compile_units("");
	scratch_run(LINK);
	overwrite("p", section_place("p", ".debug_aranges", &size), &header,
	    sizeof(header));
	m = kept(module_of("p"));
	assert_int_equal(line_of(m, "first"), 5);
	assert_int_equal(line_of(m, "last"), 6);
}

/* A file that is larger than the memory that may be used is only mapped. */
TEST(a_large_file_takes_no_memory)
{
	static const char *const link[] = {
		LINK " && objcopy --add-section .debug_junk=junk p",
		LINK " && objcopy --add-section .debug_junk=junk p" ALONE,
	};

	compile_units("");
	scratch_run("truncate -s 256M junk");
	for (size_t i = 0; i < COUNT(link); i++) {
		struct rlimit before;
		struct ex_module *m;

		scratch_run("%s", link[i]);
		limit_memory(64 << 20, &before);
		m = kept(module_of("p"));
		assert_int_equal(line_of(m, "first"), 5);
		assert_int_equal(line_of(m, "last"), 6);
		assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	}
	scratch_run("rm -f junk p p.debug");
}

#if !SANITIZED	/* whose malloc(3) ends a program that has no memory left */
/* Some of the symbols would give wrong names: none is known, and why. */
TEST(too_many_symbols_are_none)
{
	FILE *f = fopen(scratch_path("many.s"), "w");
	struct rlimit before;
	struct ex_module *m;
	uint64_t value;
	const char *problem;

	assert_non_null(f);
	for (unsigned i = 0; i < 300000; i++)
		(void)fprintf(f, "s%u: .byte 0\n", i);
	assert_int_equal(fclose(f), 0);
	scratch_run("cc -shared -nostdlib -o p many.s");
	m = kept(module_of("p"));
	limit_memory(16 << 20, &before);
	assert_int_equal(ex_symbol_find_raw(m, "s1", take_value, &value), 0);
	problem = ex_module_problem(m);
	assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
	assert_non_null(problem);
	assert_string_equal(problem, "its symbols take more memory than "
	    "--explain-memory allows");
	m = kept(module_of("p"));
	assert_int_equal(ex_symbol_find_raw(m, "s1", take_value, &value), 1);
	assert_null(ex_module_problem(m));
}
#endif

/* Each byte of what is read here first may be any. */
TEST(survives_damage)
{
	static const char *const sections[] = {".debug_aranges",
	    ".debug_abbrev", ".debug_info", ".debug_names"};

	compile_units_by("clang", "-gpubnames -gdwarf-aranges");
	scratch_run("cc -shared -o p first.o last.o plain.o " ZLIB
	    " && cc -shared -o r first.o last.o plain.o");
	for (unsigned i = 0; i < 400; i++) {
		const char *file = i % 2 == 0 ? "p" : "r";
		const uint8_t byte = (uint8_t)(i * 83 / 2);
		uint64_t size = 0, at;
		struct ex_module *m;

		scratch_run("cp %s q", file);
		at = section_place("q", sections[i % COUNT(sections)], &size);
		overwrite("q", at + i / 2 * 7 % size, &byte, 1);
		m = kept(module_of("q"));
		(void)line_of(m, "first");
		(void)has_variable(m, "last_v", NULL);
		(void)line_of(m, "plain");
	}
}

RUN_TESTS(.before_all = begin, .after_all = scratch_remove)
