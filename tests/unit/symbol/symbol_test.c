/*
 * symbol: programs are compiled in many ways, and their names, lines and
 * inlined calls are compared with the output of addr2line, nm and objdump.
 */
#include "test.h"

#include <endian.h>
#include <fcntl.h>

#include "symbol/demangle.h"
#include "debug/debug_info.h"
#include "module/module_private.h"
#include "scratch.h"
#include "symbol/symbol.h"

static const char c_source[] =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "long counter, other[4];\n"
    "static int hidden = 7;\n"
    "__thread int local_to_thread;\n"
    "static inline __attribute__((always_inline)) void leaf(long n)\n"
    "{\n"
    "	counter += n;\n"
    "	other[n & 3] ^= counter;\n"
    "}\n"
    "static inline __attribute__((always_inline)) void middle(long n)\n"
    "{\n"
    "	if (n > 2)\n"
    "		leaf(n - 1);\n"
    "	leaf(n + hidden);\n"
    "}\n"
    "__attribute__((noinline)) void outer(long n)\n"
    "{\n"
    "	for (long i = 0; i < n; i++) {\n"
    "		long twice = i * 2;\n"
    "		middle(twice);\n"
    "	}\n"
    "	local_to_thread++;\n"
    "}\n"
    "__attribute__((noinline, noreturn)) static void ending(void)\n"
    "{\n"
    "	abort();\n"
    "}\n"
    "__attribute__((noinline)) static int guarded(int n)\n"
    "{\n"
    "	if (__builtin_expect(n > 1000, 0)) {\n"
    "		puts(\"never\");\n"
    "		ending();\n"
    "	}\n"
    "	return n * hidden;\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "	outer(argc);\n"
    "	hidden = guarded(argc);\n"
    "	printf(\"%ld %zu\\n\", counter, strlen(argv[0]));\n"
    "	return 0;\n"
    "}\n";

static const char cxx_source[] =
    "#include <algorithm>\n"
    "#include <cstdio>\n"
    "#include <vector>\n"
    "namespace ns {\n"
    "long counter;\n"
    "__attribute__((abi_tag(\"v2\"))) long tagged;\n"
    "namespace { int inner_count; }\n"
    "class Class {\n"
    "	int v;\n"
    "public:\n"
    "	__attribute__((noinline)) Class(int x) : v(x) {}\n"
    "	__attribute__((noinline)) ~Class() { counter--; }\n"
    "	__attribute__((noinline)) void method(int n);\n"
    "	__attribute__((noinline)) void method(const char *s);\n"
    "	__attribute__((noinline)) bool operator<(const Class &o) const\n"
    "	{ return v < o.v; }\n"
    "	template <class T> __attribute__((noinline)) T scale(T x)\n"
    "	{ counter += (long)x; return x * v; }\n"
    "};\n"
    "static inline int add(int a, int b) { counter += a; return a + b; }\n"
    "void Class::method(int n)\n"
    "{\n"
    "	for (int i = 0; i < n; i++)\n"
    "		v = add(v, i);\n"
    "	inner_count++;\n"
    "}\n"
    "void Class::method(const char *s) { std::puts(s); v++; }\n"
    "}\n"
    "int main(int argc, char **argv)\n"
    "{\n"
    "	ns::Class a(argc), b(argc + 1);\n"
    "	a.method(argc);\n"
    "	a.method(argv[0]);\n"
    "	std::vector<int> w(argc + 20);\n"
    "	std::sort(w.begin(), w.end(),\n"
    "	    [](int x, int y) { return x > y; });\n"
    "	std::printf(\"%d %f\\n\", b.scale(3), b.scale(2.5));\n"
    "	return a < b ? w[0] : w[1];\n"
    "}\n";

static const char rust_source[] =
    "mod store {\n"
    "    pub struct Table { pub cells: Vec<u64> }\n"
    "    impl Table {\n"
    "        #[inline(never)]\n"
    "        pub fn bump(&mut self, i: usize) {\n"
    "            self.cells[i] += step(i as u64);\n"
    "        }\n"
    "    }\n"
    "    #[inline(always)]\n"
    "    fn step(n: u64) -> u64 { n.wrapping_mul(3) + 1 }\n"
    "}\n"
    "fn main() {\n"
    "    let mut t = store::Table { cells: vec![1, 2, 3] };\n"
    "    for i in 0..std::env::args().count() { t.bump(i); }\n"
    "    println!(\"{:?}\", t.cells);\n"
    "}\n";

static int
write_sources(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	scratch_write("p.c", c_source);
	scratch_write("p.cc", cxx_source);
	scratch_write("p.rs", rust_source);
	return 0;
}

TEST_KEEPS(kept, struct ex_module *, ex_module_free)

/* A module of an open file, which is closed. */
static struct ex_module *
map_module(const char *path, int fd)
{
	const struct ex_file_id id = {0};
	struct ex_module *m = ex_module_new(path, &id);

	assert_true(fd >= 0);
	assert_non_null(m);
	ex_module_map(m, fd);
	(void)close(fd);
	return m;
}

/* A module of a file of ours. */
static struct ex_module *
module_at(const char *path)
{
	struct ex_module *m = map_module(path, open(path, O_RDONLY |
	    O_CLOEXEC));

	assert_true(ex_module_open(m));
	return kept(m);
}

static struct ex_module *
module_of(const char *name)
{
	return module_at(scratch_path(name));
}

/* Symbols as nm prints them. */
struct nm {
	uint64_t value, size;
	char type;
	char name[256];
};

static size_t
nm_read(const char *file, const char *flags, struct nm *out, size_t max)
{
	char *text, *line, *rest;
	size_t n = 0;

	scratch_run("nm -n -S %s %s | grep -v ' [UwaA] ' >nm.out", flags, file);
	text = scratch_read("nm.out", NULL);
	for (rest = text; n < max && (line = strsep(&rest, "\n")) != NULL; ) {
		unsigned long long value, size;
		struct nm *s = &out[n];

		if (sscanf(line, "%llx %llx %c %255s", &value, &size, &s->type,
		    s->name) != 4)
			continue;
		s->value = value;
		s->size = size;
		n++;
	}
	return n;
}

static const struct nm *
nm_find(const struct nm *nm, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(nm[i].name, name) == 0)
			return &nm[i];
	}
	fail_msg("nm knows no %s", name);
	return NULL;
}

/* --- lines and inlining against addr2line --- */

/* Whether two names are one function's: a clone that the compiler made of part
   of one has a symbol of its own ("f.part.0", "f.cold"). */
static bool
same_function(const char *ours, const char *raw)
{
	char *owned;
	const char *theirs = ex_demangle(raw, &owned);
	size_t len = strlen(theirs);
	bool same = strncmp(ours, theirs, len) == 0 &&
	    (ours[len] == '\0' || ours[len] == '.' ||
	    strncmp(ours + len, " [clone", 7) == 0);

	free(owned);
	return same;
}

/* libdw leaves a relative path relative where addr2line completes it; where a
   path has "./" in it they differ as well; and for a unit made by link-time
   optimization addr2line knows no file. */
static bool
same_file(const char *ours, const char *theirs)
{
	size_t n, len = strlen(theirs);

	if (ours == NULL)
		return strcmp(theirs, "??") == 0;
	if (strstr(theirs, "<artificial>") != NULL)
		return true;
	if (strncmp(ours, "./", 2) == 0)
		ours += 2;
	n = strlen(ours);
	return n <= len && strcmp(theirs + len - n, ours) == 0;
}

/* One level as addr2line prints it, "FUNCTION\nFILE:LINE...".  It calls inlined
   functions without a linkage name by the name of the one around them, so names
   of inlined C++ functions are not compared here. */
static bool
same_level(const struct ex_frame *frame, const char *function, char *place)
{
	char *colon = strrchr(place, ':');
	int line;

	assert_non_null(colon);
	*colon = '\0';
	line = atoi(colon + 1);
	if (strcmp(function, "??") == 0 ? frame->function != NULL :
	    frame->function == NULL ||
	    (!same_function(frame->function, function) &&
	    !(frame->inlined && strstr(place, "p.cc") != NULL)))
		return false;
	return line == frame->line && (line == 0 ||
	    same_file(frame->file, place));
}

/* Compare all levels at one address; text: addr2line's lines for it, up to the
   next address. */
static bool
same_levels(const struct ex_frames *frames, char *text)
{
	char *function, *place;
	unsigned n = 0;

	while ((function = strsep(&text, "\n")) != NULL && *function != '\0') {
		place = strsep(&text, "\n");
		assert_non_null(place);
		if (n >= frames->n ||
		    frames->frame[n].inlined != (n < frames->n - 1) ||
		    !same_level(&frames->frame[n], function, place))
			return false;
		n++;
	}
	return n == frames->n;
}

static void
show_levels(const struct ex_frames *frames, const char *text)
{
	print_message("addr2line:\n%sours:\n", text);
	for (unsigned i = 0; i < frames->n; i++)
		print_message("%s\n%s:%d\n", frames->frame[i].function,
		    frames->frame[i].file, frames->frame[i].line);
}

/* Ask addr2line about addresses; its answer begins each with "0xADDRESS".
   Inlined calls in clang's DWARF 5 only LLVM's own understands. */
static char *
ask_addr2line(const char *compiler, const char *file, const uint64_t *addr,
    size_t n)
{
	const char *tool = strncmp(compiler, "clang", 5) == 0 ?
	    "$(clang -print-prog-name=llvm-addr2line)" : "addr2line";

	FILE *f = fopen(scratch_path("addresses"), "w");

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(f, "0x%llx\n", (unsigned long long)addr[i]);
	assert_int_equal(fclose(f), 0);
	scratch_run("%s -a -f -i -e %s <addresses >levels", tool, file);
	return scratch_read("levels", NULL);
}

/* Addresses in all functions whose names hold a word, at most max. */
static size_t
addresses_in(const char *file, const char *word, uint64_t *addr, size_t max)
{
	static struct nm nm[20000];
	size_t n = nm_read(file, "", nm, 20000), count = 0;

	for (size_t i = 0; i < n; i++) {
		if (strchr("tTwW", nm[i].type) == NULL ||
		    strstr(nm[i].name, word) == NULL)
			continue;
		for (uint64_t k = 0; k < nm[i].size && count < max; k++)
			addr[count++] = nm[i].value + k;
	}
	return count;
}

#define ADDRESSES_MAX 1000

static size_t
compare_levels(const char *compiler, const char *file, const char *word)
{
	static uint64_t addr[ADDRESSES_MAX];
	size_t n = addresses_in(file, word, addr, ADDRESSES_MAX), inlined = 0;
	char *answers = ask_addr2line(compiler, file, addr, n);
	char *rest = answers;
	struct ex_module *m = module_of(file);

	assert_true(n > 20);
	for (size_t i = 0; i < n; i++) {
		const struct ex_frames *frames =
		    ex_symbol_frames(m, addr[i], addr[i]);
		char *level, *next, copy[8192];

		assert_non_null(frames);
		inlined += frames->n > 1;
		level = strchr(rest, '\n') + 1;
		if ((next = strstr(level, "\n0x")) != NULL)
			*++next = '\0';
		(void)snprintf(copy, sizeof(copy), "%s", level);
		if (!same_levels(frames, copy)) {
			show_levels(frames, level);
			fail_msg("%s: %#llx", file,
			    (unsigned long long)addr[i]);
		}
		if (next != NULL)
			*next = '0';
		rest = next;
	}
	return inlined;
}

TEST(lines_as_addr2line)
{
	static const struct {
		const char *compiler, *flags, *source, *word;
		bool inlines;
	} builds[] = {
		{"cc", "-O0 -g", "p.c", "outer", true},
		{"cc", "-O2 -g", "p.c", "", true},
		{"cc", "-O2 -g -gdwarf-4", "p.c", "", true},
		{"cc", "-O2 -g -no-pie", "p.c", "outer", true},
		{"cc", "-O2 -g -static", "p.c", "outer", true},
		{"cc", "-O2 -g -shared -fPIC", "p.c", "outer", true},
		{"cc", "-O2 -g1", "p.c", "outer", true},
		{"cc", "-O2 -g -flto", "p.c", "outer", true},
		{"cc", "-O2 -g -gz", "p.c", "outer", true},
		{"cc", "-O2 -g -ffunction-sections -Wl,--gc-sections", "p.c",
		    "outer", true},
		{"c++", "-O2 -g", "p.cc", "2ns", true},
		{"c++", "-O0 -g", "p.cc", "2ns", false},
		{"clang", "-O2 -g", "p.c", "outer", true},
		{"clang", "-O2 -g -gdwarf-4", "p.c", "outer", true},
		{"clang++", "-O2 -g", "p.cc", "2ns", true},
		{"rustc", "-O -g", "p.rs", "4bump", false},
	};

	for (size_t i = 0; i < COUNT(builds); i++) {
		size_t inlined;

		if (!scratch_has(builds[i].compiler)) {
			print_message("%s: not here, not tried\n",
			    builds[i].compiler);
			continue;
		}
		scratch_run("%s %s -o p %s 2>/dev/null", builds[i].compiler,
		    builds[i].flags, builds[i].source);
		inlined = compare_levels(builds[i].compiler, "p",
		    builds[i].word);
		if (builds[i].inlines && inlined == 0)
			fail_msg("%s %s: nothing inlined",
			    builds[i].compiler, builds[i].flags);
	}
}

/* --- C++ names, as the source has them --- */

/* The line of the source that holds a text. */
static int
line_with(const char *source, const char *text)
{
	const char *at = strstr(source, text);
	int line = 1;

	assert_non_null(at);
	for (const char *p = source; p < at; p++)
		line += *p == '\n';
	return line;
}

/* Whether frames are of these two functions. */
static bool
frames_are(const struct ex_frames *frames, const char *inner, const char *outer)
{
	return frames->n == 2 && frames->frame[0].function != NULL &&
	    frames->frame[1].function != NULL &&
	    strcmp(frames->frame[0].function, inner) == 0 &&
	    strcmp(frames->frame[1].function, outer) == 0;
}

TEST(qualifies_inlined_names)
{
	int body = line_with(cxx_source, "static inline int add");
	int call = line_with(cxx_source, "v = add(v, i)");
	static const char *const compilers[] = {"c++ -O2 -g", "clang++ -O2 -g"};
	static struct nm nm[20000];

	for (size_t c = 0; c < 2; c++) {
		unsigned seen = 0;	/* in the body of add itself */
		struct ex_module *m;
		const struct nm *s;
		size_t n;

		if (!scratch_has(c == 0 ? "c++" : "clang++"))
			continue;
		scratch_run("%s -o p p.cc", compilers[c]);
		n = nm_read("p", "", nm, 20000);
		s = nm_find(nm, n, "_ZN2ns5Class6methodEi");
		m = module_of("p");
		for (uint64_t k = 0; k < s->size; k++) {
			const struct ex_frames *f = ex_symbol_frames(m,
			    s->value + k, s->value + k);

			assert_non_null(f);
			if (f->n == 1)
				continue;
			assert_true(frames_are(f, "ns::add",
			    "ns::Class::method"));
			seen += f->frame[0].line == body;
			assert_int_equal(f->frame[1].line, call);
			assert_int_equal(f->frame[0].offset, 0);
			assert_int_equal(f->frame[1].offset, k);
			assert_true(f->frame[1].column > 0);
		}
		assert_true(seen > 0);
	}
}

TEST(demangles)
{
	static const struct {
		const char *raw, *expect;
	} names[] = {
		{"main", "main"},
		{"_start", "_start"},
		{"_", "_"},
		{"", ""},
		{"_Znwm", "operator new"},
		{"_ZN2ns5Class6methodEi", "ns::Class::method"},
		{"_ZN2ns5ClassC2Ei", "ns::Class::Class"},
		{"_ZN2ns5ClassD1Ev", "ns::Class::~Class"},
		{"_ZNK2ns5ClassltERKS0_", "ns::Class::operator<"},
		{"_ZN2ns5Class5scaleIiEET_S2_", "ns::Class::scale<int>"},
		{"_ZN2ns12_GLOBAL__N_111inner_countE",
		    "ns::(anonymous namespace)::inner_count"},
		{"_ZN2ns7counterE", "ns::counter"},
		/* Rust's old and new manglings, without the hash */
		{"_ZN5store5Table4bump17h0123456789abcdefE",
		    "store::Table::bump"},
		{"_RNvMNtCs1234_1p5storeNtB2_5Table4bump",
		    "<p::store::Table>::bump"},
		{"_Z", "_Z"},
		{"_ZN", "_ZN"},
		{"_R", "_R"},
		{"_Zgarbage", "_Zgarbage"},
	};
	static const char twice[] = "_Z1fIPFviiEPFvS0_S0_EPFvS2_S2_E"
	    "PFvS4_S4_EPFvS6_S6_EPFvS8_S8_EPFvSA_SA_EPFvSC_SC_EPFvSE_SE_E"
	    "PFvSG_SG_EPFvSI_SI_EPFvSK_SK_EPFvSM_SM_EPFvSO_SO_EPFvSQ_SQ_E"
	    "PFvSS_SS_EPFvSU_SU_EPFvSW_SW_EPFvSY_SY_EPFvS10_S10_E"
	    "PFvS12_S12_EPFvS14_S14_EPFvS16_S16_EPFvS18_S18_EPFvS1A_S1A_E"
	    "PFvS1C_S1C_EPFvS1E_S1E_EPFvS1G_S1G_EPFvS1I_S1I_EEvv";
	char deep[40000] = "_Z1f", *rest;

	for (size_t i = 0; i < COUNT(names); i++) {
		char *owned;
		const char *text = ex_demangle(names[i].raw, &owned);

		assert_string_equal(text, names[i].expect);
		assert_int_equal(text == names[i].raw, owned == NULL);
		free(owned);
	}
	/* a name made to exhaust the memory: each part is two of the one
	   before */
	assert_true(strlen(twice) < 400);
	assert_ptr_equal(ex_demangle(twice, &rest), twice);
	assert_null(rest);

	/* a name made to exhaust the stack */
	memset(deep + 4, 'P', sizeof(deep) - 6);
	deep[sizeof(deep) - 2] = 'i';
	for (size_t len = 64; len < sizeof(deep); len *= 3) {
		char *owned;

		(void)ex_demangle(deep + sizeof(deep) - 1 - len, &owned);
		free(owned);
		(void)ex_demangle(deep, &owned);
		free(owned);
	}
}

/* --- the symbol table against nm --- */

TEST(symbols_as_nm)
{
	static const struct {
		const char *build, *flags;	/* nm's */
	} files[] = {
		{"cc -O2 -g -o p p.c", ""},
		{"cc -O2 -no-pie -o p p.c", ""},
		{"cc -O1 -m64 -shared -fPIC -o p p.c && strip p", "-D"},
		{"c++ -O0 -o p p.cc", ""},
	};
	static struct nm nm[20000];

	for (size_t i = 0; i < COUNT(files); i++) {
		struct ex_module *m;
		size_t n;

		scratch_run("%s", files[i].build);
		n = nm_read("p", files[i].flags, nm, 20000);
		m = module_of("p");
		assert_true(n >= 4);
		for (size_t k = 0; k < n; k++) {
			struct ex_symbol first, last;

			if (strchr("tTdDbBrRwWvV", nm[k].type) == NULL ||
			    strcmp(nm[k].name, "local_to_thread") == 0)
				continue;
			assert_true(ex_symbol_at(m, nm[k].value, &first));
			assert_true(ex_symbol_at(m, nm[k].value + nm[k].size -
			    1, &last));
			assert_int_equal(first.value, nm[k].value);
			assert_int_equal(last.value, nm[k].value);
			assert_int_equal(last.size, nm[k].size);
			assert_int_equal(first.function,
			    strchr("tTwW", nm[k].type) != NULL);
		}
	}
}

/* Of the names for one place, the best; and how far those without a size
   reach. */
static const char asm_source[] =
    "	.globl	better, __better, weak_one, sized, after\n"
    "	.weak	weak_one\n"
    "	.type	better, @function\n"
    "	.type	__better, @function\n"
    "	.type	weak_one, @function\n"
    "	.type	local_one, @function\n"
    "	.type	sized, @function\n"
    "	.text\n"
    "unsized:\n"
    "	.skip 16, 0x90\n"
    "better:\n"
    "__better:\n"
    "local_one:\n"
    "label:\n"
    "	.skip 8, 0x90\n"
    "inner:\n"
    "	.skip 8, 0x90\n"
    "	.size better, 16\n"
    "	.size __better, 16\n"
    "	.size local_one, 16\n"
    "	.skip 16, 0x90\n"
    "sized:\n"
    "weak_one:\n"
    "	.skip 4, 0x90\n"
    "	.size sized, 4\n"
    "	.skip 4, 0x90\n"
    "after:\n"
    "	.skip 8, 0x90\n"
    "	.section .text.other, \"ax\", @progbits\n"
    "	.skip 32, 0x90\n"
    "	.data\n"
    "	.globl	plain\n"
    "plain:	.quad 0\n"
    "	.quad 0\n"
    "	.section .note.GNU-stack, \"\", @progbits\n";

TEST(prefers_the_better_symbol)
{
	static const struct {
		unsigned at;	/* bytes after "unsized" */
		const char *name;	/* NULL: none */
		unsigned offset;
	} expect[] = {
		{0, "unsized", 0}, {15, "unsized", 15},
		{16, "better", 0}, {31, "better", 15},
		/* one with a size before one nearer by without */
		{24, "better", 8},
		/* not what came before one with a size, but a label in it */
		{40, "inner", 16},
		{48, "sized", 0}, {51, "sized", 3},
		/* the same place without a size */
		{52, "weak_one", 4},
		{56, "after", 0}, {63, "after", 7},
	};
	struct ex_symbol s;
	struct ex_module *m;
	uint64_t base;

	scratch_write("p.s", asm_source);
	scratch_run("cc -nostdlib -shared -o p p.s");
	m = module_of("p");
	assert_true(ex_symbol_at(m, 0x1000, &s));
	base = s.value;
	for (size_t i = 0; i < COUNT(expect); i++) {
		const struct ex_frames *f = ex_symbol_frames(m,
		    base + expect[i].at, base + expect[i].at);

		assert_non_null(f);
		assert_int_equal(f->n, 1);
		assert_non_null(f->frame[0].function);
		assert_string_equal(f->frame[0].function, expect[i].name);
		assert_int_equal(f->frame[0].offset, expect[i].offset);
		assert_null(f->frame[0].file);
	}
}

/* --- the procedure linkage table against objdump --- */

TEST(names_plt_stubs)
{
	static const char *const builds[] = {
		"c++ -O1 -o p p.cc", "cc -O1 -no-pie -o p p.c",
		"cc -fcf-protection=full -Wl,-z,ibtplt -o p p.c",
		"cc -Wl,-z,now -o p p.c", "cc -fno-plt -o p p.c",
		"cc -Wl,-z,lazy -shared -fPIC -o p p.c",
		"cc -fcf-protection=none -Wl,-z,lazy -no-pie -o p p.c",
	};
	size_t seen = 0;

	for (size_t i = 0; i < COUNT(builds); i++) {
		char *line, *rest, name[256];
		unsigned long long vaddr;
		struct ex_module *m;

		scratch_run("%s && (objdump -d p | grep '@plt>:$' >plt; true)",
		    builds[i]);
		rest = scratch_read("plt", NULL);
		m = module_of("p");
		while ((line = strsep(&rest, "\n")) != NULL) {
			const struct ex_frames *f;
			char *owned, *suffix;

			if (sscanf(line, "%llx <%255[^>]", &vaddr, name) != 2)
				continue;
			f = ex_symbol_frames(m, vaddr + 1, vaddr + 1);
			assert_non_null(f);
			assert_non_null(f->frame[0].function);
			suffix = strstr(f->frame[0].function, "@plt");
			assert_non_null(suffix);
			assert_string_equal(suffix, "@plt");
			*strstr(name, "@plt") = '\0';
			assert_memory_equal(f->frame[0].function,
			    ex_demangle(name, &owned),
			    (size_t)(suffix - f->frame[0].function));
			free(owned);
			assert_int_equal(f->frame[0].offset, 1);
			seen++;
		}
	}
	assert_true(seen > 20);
}

/* --- separate debug files, and none --- */

/* The frame at "leaf" in the file made by a command; it is outer's. */
static void
expect_outer(struct ex_module *m, uint64_t vaddr, bool lines)
{
	const struct ex_frames *f = ex_symbol_frames(m, vaddr, vaddr);

	assert_non_null(f);
	assert_string_equal(f->frame[f->n - 1].function, "outer");
	assert_int_equal(f->frame[f->n - 1].line != 0, lines);
	if (lines)
		assert_holds(f->frame[0].file, "p.c");
}

#define NO_ID "-Wl,--build-id=none"
#define LINK_TO(name) "printf '" name "\\0\\0\\0\\0\\0\\0\\0' >link && " \
	"objcopy --add-section .gnu_debuglink=link p"

enum { PATIENCE = 60 };		/* seconds for what must not wait at all */

TEST(finds_separate_debug_files)
{
	static const struct {
		const char *made;
		bool found;
		const char *flags;
	} ways[] = {
		{"objcopy --add-gnu-debuglink=p.debug p", true, ""},
		{"objcopy --add-gnu-debuglink=p.debug p && mkdir -p .debug && "
		    "mv p.debug .debug/", true, NO_ID},
		/* not the file that the link was made for */
		{"objcopy --add-gnu-debuglink=p.debug p && "
		    "cc -O1 -g " NO_ID " -o q p.c && "
		    "objcopy --only-keep-debug q p.debug", false, NO_ID},
		/* called like it, and nothing says whether it is */
		{"true", false, NO_ID},
		{"true", true, ""},
		{"mkdir -p tree/.build-id/$(cut -c1-2 id) && mv p.debug "
		    "tree/.build-id/$(cut -c1-2 id)/$(cut -c3- id).debug",
		    true, ""},
		{"rm p.debug", false, ""},
		/* no directories in the link's name */
		{LINK_TO("below/p.debug") " && mkdir -p below && "
		    "mv p.debug below/", false, ""},
		/* no regular files */
		{"objcopy --add-gnu-debuglink=p.debug p && rm p.debug && "
		    "mkfifo p.debug", false, ""},
		{"objcopy --add-gnu-debuglink=p.debug p && rm p.debug && "
		    "mkfifo p.debug", false, NO_ID},
		{"objcopy --add-gnu-debuglink=p.debug p && "
		    "ln -sf /dev/zero p.debug", false, ""},
		{"mkdir -p tree/.build-id/$(cut -c1-2 id) && rm p.debug && "
		    "mkfifo tree/.build-id/$(cut -c1-2 id)/$(cut -c3- id)"
		    ".debug", false, ""},
		/* what a FIFO hides is found behind it */
		{"objcopy --add-gnu-debuglink=p.debug p && mkdir -p .debug && "
		    "mv p.debug .debug/ && mkfifo p.debug", true, ""},
		{"mkdir -p tree\"$PWD\" && mv p.debug tree\"$PWD\"/", true,
		    ""},
		{"mkdir -p tree/\"${PWD#/*/}\" && "
		    "mv p.debug tree/\"${PWD#/*/}\"/p", true, ""},
	};
	static struct nm nm[20000];

	for (size_t i = 0; i < COUNT(ways); i++) {
		struct ex_file_id id;
		struct ex_module *m;
		uint64_t outer;
		size_t n;
		int fd;

		/* nobody writes into FIFOs */
		(void)alarm(PATIENCE);
		scratch_run("rm -rf tree below .debug p.debug && "
		    "cc -O2 -g %s -shared -fPIC -o p p.c && "
		    "readelf -n p | sed -n 's/.*Build ID: //p' >id && "
		    "objcopy --only-keep-debug p p.debug && strip p && %s",
		    ways[i].flags, ways[i].made);
		n = nm_read("p", "-D", nm, 20000);
		outer = nm_find(nm, n, "outer")->value;

		memset(&id, 0, sizeof(id));
		fd = open(scratch_path("p"), O_RDONLY);
		m = kept(ex_module_new(scratch_path("p"), &id));
		assert_non_null(m);
		assert_true(asprintf(&m->debug_path, ":.debug:%s/tree",
		    scratch_dir) > 0);
		ex_module_map(m, fd);
		(void)close(fd);
		expect_outer(m, outer, ways[i].found);
	}
	(void)alarm(0);
}

/* What debug information names, libdw opens. */
TEST(does_not_wait_for_split_units)
{
	Dwarf_Die unit;
	bool types;
	uint64_t at;

	for (int fifo = 0; fifo < 2; fifo++) {
		struct ex_module *m;
		const char *name;

		(void)alarm(PATIENCE);
		scratch_run("rm -f p.dwo && cc -O1 -g -gsplit-dwarf -c -fPIC "
		    "-o p.o p.c && cc -shared -o p p.o && [ -e p.dwo ]%s",
		    fifo ? " && rm p.dwo && mkfifo p.dwo" : "");
		m = module_of("p");
		at = 0;
		assert_true(ex_unit_next(m, &at, &unit, &types));
		name = dwarf_diename(&unit);
		/* it is in the other file */
		assert_int_equal(name == NULL || strcmp(name, "p.c") != 0,
		    fifo);
	}
	(void)alarm(0);
}

/* --- what compressed sections claim --- */

/* Have a section of p claim to become this many bytes. */
static void
claim(const char *file, const char *section, uint64_t size)
{
	int fd = open(scratch_path(file), O_RDWR | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;
	bool done = false;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn)) != NULL && !done) {
		assert_non_null(gelf_getshdr(scn, &sh));
		if (strcmp(elf_strptr(elf, names, sh.sh_name), section) != 0)
			continue;
		done = true;
		if ((sh.sh_flags & SHF_COMPRESSED) == 0)
			size = htobe64(size);
		assert_int_equal(pwrite(fd, &size, sizeof(size),
		    (off_t)sh.sh_offset + ((sh.sh_flags & SHF_COMPRESSED) != 0 ?
		    (off_t)offsetof(Elf64_Chdr, ch_size) : 4)), sizeof(size));
	}
	assert_true(done);
	(void)elf_end(elf);
	(void)close(fd);
}

#define ZLIB "-Wl,--compress-debug-sections=zlib"
#define ZGNU "-Wl,--compress-debug-sections=zlib-gnu"
#define ALONE " && objcopy --only-keep-debug p p.debug && strip p && "	\
	"objcopy --add-gnu-debuglink=p.debug p"

TEST(limits_claimed_sizes)
{
	static const struct {
		const char *flags, *file, *section;
		uint64_t size;		/* 0: what is true */
		const char *after;
	} cases[] = {
		{ZLIB, "p", ".debug_info", 0, ""},
		{ZLIB, "p", ".debug_info", 3ULL << 30, ""},
		{ZLIB, "p", ".debug_line", 1ULL << 62, ""},
		{ZLIB, "p", ".debug_str", 1ULL << 40, ""},
		{ZGNU, "p", ".zdebug_info", 0, ""},
		{ZGNU, "p", ".zdebug_info", 3ULL << 30, ""},
		{ZLIB ALONE, "p.debug", ".debug_info", 0, ""},
		{ZLIB ALONE, "p.debug", ".debug_info", 3ULL << 30, ""},
	};
	static struct nm nm[20000];

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_module *m;
		uint64_t outer;
		size_t n;

		scratch_run("rm -f p.debug && cc -O2 -g -shared -fPIC -o p p.c "
		    "%s", cases[i].flags);
		n = nm_read("p", "-D", nm, 20000);
		outer = nm_find(nm, n, "outer")->value;
		if (cases[i].size != 0)
			claim(cases[i].file, cases[i].section, cases[i].size);
		m = module_of("p");
		expect_outer(m, outer, cases[i].size == 0);
		if (cases[i].size == 0)
			assert_null(m->rejection);
		else
			assert_holds(m->rejection, "claim to " "become");
	}
}

/* What is taken for true is not more than libelf makes of it, and more than
   this is never claimed by what compilers write. */
TEST(knows_the_size_of_xz_streams)
{
	static const struct {
		const char *made;
		bool believed;
	} cases[] = {
		{"head -c 1000000 /dev/urandom | xz -0 >x", true},
		{"head -c 16000000 /dev/zero | xz -0 >x", true},
		{"head -c 17000000 /dev/zero | xz -0 >x", false},
		{"head -c 40000000 /dev/zero | xz -0 --block-size=1000000 >x",
		    false},
		{"head -c 40000000 /dev/zero | xz --check=sha256 --x86 "
		    "--lzma2 >x", false},
		{"head -c 40000000 /dev/zero | xz --format=lzma >x", false},
		{"echo hello >x", false},
	};

	if (!scratch_has("xz")) {
		print_message("xz: not here, not tried\n");
		skip();
	}
	scratch_run("cc -O1 -shared -fPIC -o bare p.c");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_module *m;

		scratch_run("%s && "
		    "objcopy --add-section .gnu_debugdata=x bare p",
		    cases[i].made);
		m = module_of("p");
		assert_true(ex_module_open(m));
		if ((m->rejection == NULL) != cases[i].believed)
			fail_msg("%s: %s", cases[i].made, m->rejection);
	}
}

TEST(reads_minidebuginfo)
{
	static struct nm nm[20000];
	uint64_t guarded;
	struct ex_module *m;
	struct ex_symbol s;
	size_t n;

	if (!scratch_has("xz")) {
		print_message("xz: not here, not tried\n");
		skip();
	}
	scratch_run("cc -O2 -o p p.c && nm -n p >all");
	n = nm_read("p", "", nm, 20000);
	guarded = nm_find(nm, n, "main")->value;
	scratch_run("objcopy -S --remove-section=.gnu_debugdata "
	    "--keep-symbol=main --keep-symbol=ending p mini && "
	    "xz -f mini && strip p && "
	    "objcopy --add-section .gnu_debugdata=mini.xz p");
	m = module_of("p");
	assert_true(ex_symbol_at(m, guarded, &s));
	assert_string_equal(s.name, "main");
	assert_false(s.size == 0);
}

/* With the linker's table of unwind entries, and without. */
static void
do_without_symbols(const char *flags)
{
	static struct nm nm[20000];
	struct ex_module *m;
	size_t n, checked = 0;

	scratch_run("cc -O2 %s -o p p.c && cp p stripped && strip stripped",
	    flags);
	n = nm_read("p", "", nm, 20000);
	m = module_of("stripped");
	for (size_t i = 0; i < n; i++) {
		const struct ex_frames *f;
		uint64_t start;

		if (strchr("tT", nm[i].type) == NULL || nm[i].size < 2 ||
		    nm[i].name[0] == '_')
			continue;
		f = ex_symbol_frames(m, nm[i].value + 1, nm[i].value + 1);
		assert_non_null(f);
		assert_int_equal(f->n, 1);
		assert_null(f->frame[0].function);
		assert_null(f->frame[0].file);
		assert_true(ex_symbol_function_start(m,
		    nm[i].value + nm[i].size - 1, &start));
		assert_int_equal(start, nm[i].value);
		checked++;
	}
	assert_true(checked >= 2);
	assert_false(ex_symbol_function_start(m, 0, &(uint64_t){0}));
}

TEST(does_without_symbols)
{
	do_without_symbols("");
	do_without_symbols("-Wl,--no-eh-frame-hdr");
}

/* A call that does not return may be a function's last instruction: its return
   address lies in the next function. */
TEST(looks_up_the_byte_before)
{
	const struct ex_frames *a, *b, *c;
	static struct nm nm[20000];
	struct ex_module *m;
	uint64_t end;
	size_t n;

	scratch_run("cc -O0 -g -o p p.c");
	n = nm_read("p", "", nm, 20000);
	end = nm_find(nm, n, "ending")->value + nm_find(nm, n, "ending")->size;
	m = module_of("p");
	a = ex_symbol_frames(m, end, end - 1);
	b = ex_symbol_frames(m, end, end);
	assert_non_null(a);
	assert_non_null(b);
	assert_string_equal(a->frame[0].function, "ending");
	assert_int_equal(a->frame[0].offset, nm_find(nm, n, "ending")->size);
	assert_int_equal(a->frame[0].vaddr, end);
	assert_string_equal(b->frame[0].function, "guarded");
	assert_int_equal(b->frame[0].offset, 0);

	/* asked again, the same answer, also when there are many */
	for (uint64_t k = 0; k < 1000; k++)
		assert_non_null(ex_symbol_frames(m, end + k, end + k));
	c = ex_symbol_frames(m, end, end - 1);
	assert_ptr_equal(a, c);
}

/* --- asking by name --- */

struct found {
	unsigned n;
	struct ex_symbol last;
};

static int
take(void *arg, const struct ex_symbol *s)
{
	struct found *found = arg;

	found->n++;
	found->last = *s;
	return 0;
}

static struct ex_symbol
find_one(struct ex_module *m, const char *name)
{
	struct found found = {0};

	assert_int_equal(ex_symbol_find(m, name, take, &found), 0);
	assert_int_equal(found.n, 1);
	return found.last;
}

static int
stop(void *arg, const struct ex_symbol *s)
{
	(void)arg;
	(void)s;
	return 17;
}

TEST(finds_by_name)
{
	static const struct {
		const char *source, *name;
		unsigned n;
		const char *raw;	/* of the only one */
	} names[] = {
		{"p.c", "counter", 1, "counter"},
		{"p.c", "hidden", 1, "hidden"},
		{"p.c", "nothing", 0, NULL},
		{"p.c", "", 0, NULL},
		{"p.c", "count", 0, NULL},
		{"p.c", "local_to_thread", 1, "local_to_thread"},
		{"p.c", "puts@plt", 1, "puts@plt"},
		{"p.c", "puts", 0, NULL},
		{"p.cc", "ns::counter", 1, "_ZN2ns7counterE"},
		{"p.cc", "_ZN2ns7counterE", 1, "_ZN2ns7counterE"},
		{"p.cc", "counter", 0, NULL},
		{"p.cc", "ns::tagged", 1, "_ZN2ns6taggedB2v2E"},
		{"p.cc", "ns::tagged[abi:v2]", 1, "_ZN2ns6taggedB2v2E"},
		{"p.cc", "ns::tagged[abi:v3]", 0, NULL},
		{"p.cc", "ns::(anonymous namespace)::inner_count", 1,
		    "_ZN2ns12_GLOBAL__N_111inner_countE"},
		{"p.cc", "ns::Class::method", 2, NULL},
		{"p.cc", "ns::Class::method(int)", 1,
		    "_ZN2ns5Class6methodEi"},
		{"p.cc", "ns::Class::method(char const*)", 1,
		    "_ZN2ns5Class6methodEPKc"},
		{"p.cc", "ns::Class::method(const char *)", 1,
		    "_ZN2ns5Class6methodEPKc"},
		{"p.cc", "ns::Class::method(long)", 0, NULL},
		{"p.cc", "ns::Class::operator<(const ns::Class&) const", 1,
		    "_ZNK2ns5ClassltERKS0_"},
		{"p.cc", "ns::Class::operator<", 1, "_ZNK2ns5ClassltERKS0_"},
		{"p.cc", "ns::Class::~Class", 2, NULL},
	};
	struct ex_module *c, *cxx;

	scratch_run("cc -O0 -o c p.c && c++ -O0 -o cxx p.cc");
	c = module_of("c");
	cxx = module_of("cxx");
	for (size_t i = 0; i < COUNT(names); i++) {
		bool is_c = strcmp(names[i].source, "p.c") == 0;
		struct found found = {0};

		assert_int_equal(ex_symbol_find(is_c ? c : cxx, names[i].name,
		    take, &found), 0);
		if (found.n != names[i].n)
			fail_msg("%s: %u", names[i].name, found.n);
		if (names[i].raw != NULL)
			assert_string_equal(found.last.name, names[i].raw);
	}
	assert_string_equal(find_one(c, "hidden").file, "p.c");
	assert_null(find_one(c, "counter").file);
	assert_int_equal(ex_symbol_find(c, "main", stop, NULL), 17);
	assert_int_equal(ex_symbol_each(c, stop, NULL), 17);
}

/* `const` is said of what stands before it. */
TEST(writes_const_as_demanglers_do)
{
	static const char *const forms[][2] = {
		{"f(const char*)", "f(char const*)"},
		{"f(int, const char *const *)", "f(int, char const *const *)"},
		{"f(const a::b<const int, c<const d&> >&)",
		 "f(a::b<int const, c<d const&> > const&)"},
		{"f(const (anonymous namespace)::a&) const",
		 "f((anonymous namespace)::a const&) const"},
		{"f(const int (&) [3])", "f(int const (&) [3])"},
		{"f(const)", "f(const)"}, {"f(const *)", "f(const *)"},
		{"f(const ", "f(const "}, {"constant(int)", "constant(int)"},
		{"f(char const*)", "f(char const*)"}, {"", ""},
	};

	for (size_t i = 0; i < COUNT(forms); i++) {
		char *owned;

		assert_string_equal(ex_demangle_form(forms[i][0], &owned),
		    forms[i][1]);
		free(owned);
	}
}

/* Names come without the version that shared libraries give them. */
TEST(cuts_versions)
{
	struct found found = {0};
	struct ex_module *m;

	scratch_write("v.map", "V_1 { global: versioned; local: *; };\n");
	scratch_write("v.c", "int versioned(void) { return 1; }\n");
	scratch_run("cc -shared -fPIC -Wl,--version-script=v.map -o v v.c");
	m = module_of("v");
	assert_int_equal(ex_symbol_find(m, "versioned", take, &found), 0);
	assert_int_equal(found.n, 1);
	assert_string_equal(found.last.name, "versioned");
	assert_true(found.last.function);
}

static int
take_either(void *arg, const struct ex_symbol *s)
{
	struct ex_symbol *either = arg;

	assert_null(either[s->old].name);
	either[s->old] = *s;
	return 0;
}

static int
take_current(void *arg, const struct ex_symbol *s)
{
	(void)arg;
	assert_false(s->old);
	return 0;
}

/* What new programs are linked with is not old; nor is what has one version. */
TEST(knows_old_versions)
{
	static const char *const flags[][2] = {{"old", ""}, {"olds", "-s"}};

	scratch_write("old.map", "V_1 { global: kept; only; both; local: *; };\n"
	    "V_2 { } V_1;\n");
	scratch_write("old.c", "int first(void) { return 1; }\n"
	    "int second(void) { return 2; }\n"
	    "int only(void) { return 3; }\n"
	    "__asm__(\".symver first, kept@V_1\");\n"
	    "__asm__(\".symver second, kept@@V_2\");\n"
	    "int third(void) { return 4; }\n"
	    "int fourth(void) __attribute__((alias(\"third\")));\n"
	    "__asm__(\".symver third, both@V_1\");\n"
	    "__asm__(\".symver fourth, both@@V_2\");\n");
	for (size_t i = 0; i < COUNT(flags); i++) {
		struct ex_symbol kept[2] = {{NULL}}, only[2] = {{NULL}};
		struct ex_module *m;

		scratch_run("cc -fno-toplevel-reorder -shared -fPIC %s "
		    "-Wl,--version-script=old.map -o %s old.c", flags[i][1],
		    flags[i][0]);
		m = module_of(flags[i][0]);
		(void)ex_symbol_find(m, "kept", take_either, kept);
		assert_string_equal(kept[0].name, "kept");
		assert_string_equal(kept[1].name, "kept");
		assert_true(kept[1].value < kept[0].value);
		(void)ex_symbol_find(m, "both", take_current, NULL);
		(void)ex_symbol_find(m, "only", take_either, only);
		assert_string_equal(only[0].name, "only");
		assert_null(only[1].name);
	}
}

TEST(reports_thread_local_symbols)
{
	struct found found = {0};
	struct ex_module *m;
	struct ex_symbol s;

	scratch_run("cc -O1 -o p p.c");
	m = module_of("p");
	(void)ex_symbol_find(m, "local_to_thread", take, &found);
	assert_int_equal(found.n, 1);
	assert_true(found.last.tls);
	assert_int_equal(found.last.size, 4);
	/* it lies at no address of the module's */
	assert_false(ex_symbol_at(m, found.last.value, &s) && s.tls);
}

/* --- damaged files --- */

/* Ask everything of a file that may be anything. */
static void
ask_everything(const char *name)
{
	const char *path = scratch_path(name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct ex_module *m;
	uint8_t bytes[64];
	struct found found = {0};
	uint64_t start;

	m = map_module(path, fd);
	assert_int_equal(ex_module_open(m), ex_module_problem(m) == NULL);
	(void)ex_symbol_find(m, "ns::Class::method", take, &found);
	(void)ex_symbol_each(m, take, &found);
	for (uint64_t vaddr = 0x1000; vaddr < 0x2400; vaddr += 29) {
		const struct ex_frames *f = ex_symbol_frames(m, vaddr, vaddr);

		assert_true(f == NULL || f->n > 0);
		(void)ex_symbol_function_start(m, vaddr, &start);
		(void)ex_module_bytes(m, vaddr, bytes, sizeof(bytes));
	}
	ex_module_free(m);
}

/* A number that is the same in every run. */
static uint32_t
next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

static void
survive_damage(const char *flags)
{
	uint32_t random = 1;
	size_t len;
	char *file;
	FILE *f;

	scratch_run("c++ -O2 %s -o p p.cc", flags);
	file = scratch_read("p", &len);
	for (int i = 0; i < 80; i++) {
		size_t keep = i < 30 ? len * (size_t)i / 30 : len;
		char *copy = malloc(len);

		assert_non_null(copy);
		memcpy(copy, file, len);
		/* the headers, the section headers, or anywhere */
		for (int k = 0; i >= 30 && k < 1 + i % 7; k++) {
			size_t at = i % 3 == 0 ? next_random(&random) % 1024 :
			    i % 3 == 1 ? len - 1 - next_random(&random) % 2400 :
			    next_random(&random) % len;

			copy[at] = (char)next_random(&random);
		}
		f = fopen(scratch_path("damaged"), "w");
		assert_non_null(f);
		assert_int_equal(fwrite(copy, 1, keep, f), keep);
		assert_int_equal(fclose(f), 0);
		free(copy);
		ask_everything("damaged");
	}
}

TEST(survives_damage)
{
	survive_damage("-g");
	survive_damage("-s -Wl,--no-eh-frame-hdr");
}

RUN_TESTS(.before_all = write_sources, .after_all = scratch_remove)
