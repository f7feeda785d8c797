/*
 * policy: which backtraces are allowed, which function is blamed for the
 * others, and how stray hits are counted.
 */
#include "test.h"

#include <string.h>

#include "insn/jump_index.h"
#include "symbol/line.h"
#include "made_hits.h"
#include "policy/learned.h"
#include "policy/policy.h"

/* --- modules, and what libexplain would say of them --- */

static const struct ex_module program = {"victim", "c0ffee"};
static const struct ex_module plain = {"plain", ""};
static const struct ex_module unreadable = {"unreadable", "", "no file"};
static const struct ex_module libc = {"libc.so.6", "11bc"};
static const struct ex_module old_libc = {"libc-2.28.so", ""};
static const struct ex_module libpthread = {"libpthread.so.0", ""};
static const struct ex_module libstdcxx = {"libstdc++.so.6.0.30", ""};
static const struct ex_module libgcc = {"libgcc_s.so.1", ""};
static const struct ex_module vdso = {"[vdso]", ""};
static const struct ex_module loader = {"ld-linux-x86-64.so.2", "1d"};
static const struct ex_module old_loader = {"ld-2.28.so", ""};

enum { LOAD = 0x1000, INLINED = 0x2000, OTHER = 0x3000 };

/* The symbol at LOAD; there are none elsewhere. */
bool
ex_symbol_at(struct ex_module *module, uint64_t vaddr, struct ex_symbol *out)
{
	*out = (struct ex_symbol){.name = "_ZN6Config4loadERK4Path.isra.0"};
	return module == &program && vaddr == LOAD;
}

/* Lines of what is inlined in a call that returns to INLINED. */
unsigned
ex_lines_at(struct ex_module *module, uint64_t vaddr,
    struct ex_line out[EX_LINES_MAX])
{
	if (module != &program || vaddr != INLINED - 1)
		return 0;
	out[0] = (struct ex_line){.function = "_ZN6Config3setEi"};
	out[1] = (struct ex_line){0};
	return 2;
}

/* Who jumps to what begins at JUMPED: one function. */
enum { JUMPED = 0x4000, JUMP = 0x5000 };

int
ex_jump_index_each(struct ex_module *const *in, unsigned n,
    struct ex_module *of,
    uint64_t vaddr, int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	assert_true(n > 0);
	assert_ptr_equal(in[0], of);
	return vaddr == JUMPED ? fn(arg, of, JUMP) : 0;
}

/* Who jumps through a pointer: the same, or nobody. */
static bool jumps_anywhere;

bool
ex_jump_index_anywhere(struct ex_module *const *in, unsigned n,
    int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	for (unsigned i = 0; i < n; i++)
		assert_ptr_equal(in[i], &program);
	return n > 0 && jumps_anywhere && fn(arg, in[0], JUMP) != 0;
}

const struct ex_frames *
ex_symbol_frames(struct ex_module *module, uint64_t vaddr, uint64_t lookup)
{
	static struct ex_frame frame = {.function = "config_load"};
	static const struct ex_frames frames = {1, &frame};

	frame.module = module;
	assert_int_equal(vaddr, JUMP);
	assert_int_equal(lookup, JUMP);
	return &frames;
}

/* --- frames --- */

#define IN(m, name) {.module = &(m), .function = (name),		\
	.pc = 0x400100, .vaddr = 0x100}
#define AT(m, name, v) {.module = &(m), .function = (name),		\
	.pc = 0x400000 + (v), .vaddr = (v)}
#define NAMED(name) IN(program, name)
#define OF_FILE(path) {.module = &program, .function = "f", .file = (path)}
#define KERNEL(name) {.function = (name), .kernel = true}

enum { FRAMES_MAX = 6 };

/* A backtrace of these frames, up to the first that is nothing at all. */
static struct ex_stack
stack_of(const struct ex_frame *frames)
{
	struct ex_stack stack = {.id = 1, .frame = frames};

	while (stack.n < FRAMES_MAX && (frames[stack.n].function != NULL ||
	    frames[stack.n].pc != 0))
		stack.n++;
	return stack;
}

static struct ex_hit
hit_of(const struct ex_stack *stack, uint64_t seq)
{
	return (struct ex_hit){.seq = seq, .watch = &made_watches[0],
	    .access = "write", .stack = stack};
}

/* Whether a hit by these frames is stray. */
static bool
is_stray(const char *const *allow, size_t n, const struct ex_frame *frames)
{
	struct policy *p = policy_new(allow, n);
	const struct ex_stack stack = stack_of(frames);
	struct ex_hit hit = hit_of(&stack, 1);

	assert_non_null(p);
	assert_int_equal(policy_judge(p, &hit), 0);
	policy_free(p);
	return hit.stray;
}

/* --- who is allowed --- */

TEST(patterns)
{
	static const struct {
		const char *pattern;
		struct ex_frame frame;
		bool allowed;
	} cases[] = {
		{"load", NAMED("load"), true},
		{"load", NAMED("reload"), false},
		{"load", NAMED("loads"), false},
		{"*load", NAMED("reload"), true},
		{"load?", NAMED("loads"), true},
		{"[kl]oad", NAMED("load"), true},
		{"load", {.pc = 1}, false},
		{"*", {.pc = 1}, false},
		/* copies and parts that compilers make */
		{"load", NAMED("load.constprop.0"), true},
		{"load", NAMED("load.part.0.cold"), true},
		{"load.part.0", NAMED("load.part.0.cold"), false},
		{"load.part.0.cold", NAMED("load.part.0.cold"), true},
		{"load", NAMED("load.isra.0.cold.12"), true},
		{"load", NAMED("load [clone .isra.0]"), true},
		{"main", NAMED("main.load"), false},
		{"main", NAMED("main.coldLoad"), false},
		{"main", NAMED("main.part.Load"), false},
		{"main", NAMED("main.part"), false},
		{"main", NAMED("main.llvm.x1"), false},
		/* C++: by each form of its name */
		{"Config::load", AT(program, "Config::load", LOAD), true},
		{"load", AT(program, "Config::load", LOAD), false},
		{"*::load", AT(program, "Config::load", LOAD), true},
		{"Config::load(Path const&)",
		    AT(program, "Config::load", LOAD), true},
		{"Config::load(*)", AT(program, "Config::load", LOAD), true},
		{"Config::load(int)", AT(program, "Config::load", LOAD), false},
		{"_ZN6Config4loadERK4Path",
		    AT(program, "Config::load", LOAD), true},
		{"_ZN6Config4loadERK4Path.isra.0",
		    AT(program, "Config::load", LOAD), true},
		/* what is passed a Path is not called so */
		{"*Path*", AT(program, "Config::load", LOAD), false},
		{"Config::set(int)", {.module = &program, .inlined = true,
		    .function = "Config::set", .vaddr = INLINED}, true},
		{"Config::set(long)", {.module = &program, .inlined = true,
		    .function = "Config::set", .vaddr = INLINED}, false},
		{"*(int)", {.module = &program, .inlined = true,
		    .function = "Other::set", .vaddr = INLINED}, false},
		{"*(*)", {.function = "in no module", .pc = 1}, false},
		/* files */
		{"config.c", OF_FILE("/src/lib/config.c"), true},
		{"config.c", OF_FILE("config.c"), true},
		{"config.c", OF_FILE("/src/config.c/x.c"), false},
		{"onfig.c", OF_FILE("/src/lib/config.c"), false},
		{"config.*", OF_FILE("/src/lib/config.c"), true},
		{"lib/config.c", OF_FILE("/src/lib/config.c"), true},
		{"ib/config.c", OF_FILE("/src/lib/config.c"), false},
		{"src/*", OF_FILE("/src/lib/config.c"), true},
		{"/src/lib/config.c", OF_FILE("/src/lib/config.c"), true},
		{"/lib/config.c", OF_FILE("/src/lib/config.c"), false},
		{"./config.c", OF_FILE("./config.c"), true},
		{"lib/*.h", OF_FILE("/src/lib/config.c"), false},
		{"config.c", OF_FILE(""), false},
		/* the kernel's functions are nobody's */
		{"ksys_read", KERNEL("ksys_read"), false},
		{"*", KERNEL("ksys_read"), false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_frame frames[FRAMES_MAX] = {cases[i].frame};

		if (is_stray(&cases[i].pattern, 1, frames) == cases[i].allowed)
			fail_msg("%s: %s, %s", cases[i].pattern,
			    cases[i].frame.function, cases[i].frame.file);
	}
}

/* Any of the frames, by any of the patterns. */
TEST(any_caller_may_be_allowed)
{
	static const char *const allow[] = {"nobody", "config_load", "set"};
	static const struct {
		struct ex_frame frames[FRAMES_MAX];
		bool stray;
	} cases[] = {
		{{NAMED("config_load"), NAMED("main")}, false},
		{{IN(libc, "memcpy"), NAMED("config_load"), NAMED("main")},
		    false},
		{{IN(libc, "memcpy"), NAMED("scribble"), NAMED("main")}, true},
		{{KERNEL("ksys_read"), IN(libc, "read"), NAMED("config_load")},
		    false},
		{{KERNEL("config_load"), IN(libc, "read"), NAMED("scribble")},
		    true},
		{{{.function = "set", .inlined = true, .module = &program},
		    NAMED("scribble")}, false},
		/* a signal's handler, for whom it interrupted */
		{{NAMED("handler"), {.function = "__restore_rt",
		    .signal = true, .module = &libc}, NAMED("config_load")},
		    false},
		{{{0}}, true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		if (is_stray(allow, 3, cases[i].frames) != cases[i].stray)
			fail_msg("case %zu", i);
		/* without a pattern, nobody may */
		assert_true(is_stray(NULL, 0, cases[i].frames));
	}
}

/* The loader's relocations are never stray; whom it calls may be. */
TEST(the_loader)
{
	static const struct {
		struct ex_frame frames[FRAMES_MAX];
		bool stray;
	} cases[] = {
		{{IN(loader, "_dl_relocate_object"), IN(loader, "dl_main")},
		    false},
		{{IN(loader, "memcpy"), IN(loader, "dl_main")}, false},
		{{IN(old_loader, "_dl_relocate_object"),
		    IN(old_loader, "dl_main")}, false},
		{{NAMED("_dl_relocate_static_pie"), NAMED("_start")}, false},
		{{NAMED("constructor"), IN(loader, "_dl_init")}, true},
		{{IN(libc, "__libc_start_main"), NAMED("_start")}, true},
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		if (is_stray(NULL, 0, cases[i].frames) != cases[i].stray)
			fail_msg("case %zu", i);
}

/* --- whom to blame --- */

TEST(culprits)
{
	static const struct {
		struct ex_frame frames[FRAMES_MAX];
		unsigned culprit;
	} cases[] = {
		{{NAMED("scribble"), NAMED("main")}, 0},
		{{{.pc = 1}, NAMED("main")}, 0},
		/* libraries */
		{{IN(libc, "memcpy"), IN(libc, "qsort"), NAMED("scribble"),
		    IN(libc, "qsort"), NAMED("main")}, 2},
		{{IN(old_libc, "x"), IN(libpthread, "y"), NAMED("a")}, 2},
		{{IN(libstdcxx, "x"), IN(libgcc, "y"), NAMED("a")}, 2},
		{{IN(vdso, "clock_gettime"), IN(libc, "clock_gettime"),
		    NAMED("a")}, 2},
		{{IN(libc, "memset"), IN(loader, "__tls_get_addr"),
		    NAMED("a")}, 2},
		{{KERNEL("ksys_read"), KERNEL("entry"), IN(libc, "read"),
		    NAMED("a"), NAMED("main")}, 3},
		/* templates of the C++ library are in the program */
		{{NAMED("std::vector<int, std::allocator<int> >::push_back"),
		    NAMED("a")}, 1},
		{{NAMED("mystd::f"), NAMED("a")}, 0},
		/* a C library that is linked statically, or inlined */
		{{NAMED("__memcpy_avx_unaligned_erms"), NAMED("a")}, 1},
		{{NAMED("__memset_avx2_unaligned_erms"), NAMED("a")}, 1},
		{{NAMED("__strcpy_chk"), NAMED("strcpy"), NAMED("a")}, 2},
		{{NAMED("_IO_default_xsputn"), NAMED("outstring_func.part.0"),
		    NAMED("__vsprintf_internal"), NAMED("sprintf"),
		    NAMED("a")}, 4},
		{{NAMED("__isoc99_sscanf"), NAMED("a")}, 1},
		{{NAMED("_IO_vsprintf"), NAMED("a")}, 1},
		{{NAMED("__libc_memmove"), NAMED("a")}, 1},
		{{NAMED("wmemset"), NAMED("a")}, 1},
		{{NAMED("strtok_r"), NAMED("a")}, 1},
		{{NAMED("memcpy.part.0"), NAMED("a")}, 1},
		/* functions that are only called like those */
		{{NAMED("memory_set"), NAMED("a")}, 0},
		{{NAMED("memcpy_to_config"), NAMED("a")}, 0},
		{{NAMED("strike"), NAMED("a")}, 0},
		{{NAMED("stream"), NAMED("a")}, 0},
		{{NAMED("log_printf"), NAMED("a")}, 0},
		{{NAMED("mem"), NAMED("a")}, 0},
		{{NAMED("_"), NAMED("a")}, 0},
		{{NAMED(""), NAMED("a")}, 0},
		{{NAMED("Config::memcpy"), NAMED("a")}, 0},
		/* nobody is left */
		{{KERNEL("f"), IN(libc, "memcpy"), IN(libc, "clone")}, 1},
		{{KERNEL("f"), KERNEL("g")}, 0},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct policy *p = policy_new(NULL, 0);
		const struct ex_stack stack = stack_of(cases[i].frames);
		struct ex_hit hit = hit_of(&stack, 1);
		const struct finding *const *f;

		assert_int_equal(policy_judge(p, &hit), 0);
		assert_int_equal(policy_findings(p, false, &f), 1);
		if (f[0]->culprit != &stack.frame[cases[i].culprit])
			fail_msg("case %zu: %s", i, f[0]->culprit->function);
		policy_free(p);
	}
}

/* --- findings --- */

/* Judge a hit, by a backtrace with this index, on a watch. */
static bool
judge(struct policy *p, struct ex_stack *stack, unsigned index, unsigned watch,
    uint64_t seq)
{
	struct ex_hit hit = hit_of(stack, seq);

	stack->index = index;
	hit.watch = &made_watches[watch];
	assert_int_equal(policy_judge(p, &hit), 0);
	return hit.stray;
}

TEST(one_for_each_writer)
{
	static const char *const allow[] = {"config_load"};
	static const struct ex_frame frames[][FRAMES_MAX] = {
		{AT(program, "scribble", 0x10), NAMED("main")},
		{AT(program, "scribble", 0x10), NAMED("other")},
		{AT(program, "scribble", 0x14), NAMED("main")},
		{AT(libc, "memcpy", 0x1), AT(program, "smear", 0x20)},
		{AT(libc, "memcpy", 0x2), AT(program, "smear", 0x20)},
		{AT(libc, "memcpy", 0x1), AT(program, "smudge", 0x30)},
		{AT(plain, "scribble", 0x10), NAMED("main")},
		{AT(program, "scribble", 0x10), NAMED("config_load")},
		{{.pc = 0x7000}}, {{.pc = 0x8000}},
	};
	enum { STACKS = COUNT(frames) };
	/* of each backtrace: its finding; -1: it is allowed */
	static const int finding[STACKS] = {0, 0, 1, 2, 2, 3, 4, -1, 5, 6};
	struct ex_stack stack[STACKS];
	struct policy *p = policy_new(allow, 1);
	const struct finding *const *f;

	for (unsigned turn = 0; turn < 3; turn++) {
		for (unsigned i = 0; i < STACKS; i++) {
			stack[i] = stack_of(frames[i]);
			assert_int_equal(judge(p, &stack[i], 50 * i, 0,
			    turn * STACKS + i + 1), finding[i] >= 0);
		}
	}
	assert_int_equal(policy_findings(p, false, &f), 7);
	for (unsigned i = STACKS; i-- > 0;) {
		unsigned n = i == 0 || i == 1 || i == 3 || i == 4 ? 6 : 3;

		if (finding[i] < 0)
			continue;
		assert_int_equal(f[finding[i]]->count, n);
		assert_true(f[finding[i]]->first_seq <= i + 1);
	}
	assert_int_equal(f[2]->first_seq, 4);
	assert_ptr_equal(f[2]->stack, &stack[3]);
	assert_string_equal(f[2]->culprit->function, "smear");
	assert_string_equal(f[2]->access, "write");
	policy_free(p);
}

/* One backtrace that hits two watches by turns; and what has none. */
TEST(one_for_each_watch)
{
	const struct ex_frame frames[FRAMES_MAX] = {NAMED("scribble")};
	struct ex_stack stack = stack_of(frames);
	struct policy *p = policy_new(NULL, 0);
	struct ex_hit hit = hit_of(NULL, 9);
	const struct finding *const *f;

	for (unsigned i = 0; i < 8; i++)
		assert_true(judge(p, &stack, 0, i % 2, i + 1));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(policy_judge(p, &hit), 0);
	assert_true(hit.stray);
	assert_int_equal(policy_findings(p, false, &f), 3);
	for (unsigned i = 0; i < 2; i++) {
		assert_ptr_equal(f[i]->watch, &made_watches[i]);
		assert_int_equal(f[i]->count, 4);
		assert_int_equal(f[i]->first_seq, i + 1);
	}
	assert_null(f[2]->culprit);
	assert_int_equal(f[2]->count, 2);
	policy_free(p);
}

/* An allowed function may be missing from a backtrace that is not whole: nobody
   is blamed, unless every function would be. */
TEST(incomplete_backtraces)
{
	static const char *const allow[] = {"config_load"};
	const struct ex_frame frames[FRAMES_MAX] = {NAMED("scribble")};
	const struct ex_frame loads[FRAMES_MAX] = {NAMED("scribble"),
	    NAMED("config_load")};
	struct ex_stack cut = stack_of(frames), gap = stack_of(frames);
	struct ex_stack whole = stack_of(frames), allowed = stack_of(loads);
	const struct ex_frame unread[FRAMES_MAX] = {NAMED("scribble"),
	    IN(unreadable, NULL)};
	struct ex_stack nameless = stack_of(unread);

	nameless.index = 4;
	cut.end = EX_END_STACK;
	gap.gap = allowed.gap = true;
	gap.index = 1;
	whole.index = 2;
	allowed.index = 3;
	for (unsigned n = 0; n < 2; n++) {
		struct policy *p = policy_new(allow, n);
		const struct finding *const *f;

		assert_int_equal(judge(p, &cut, 0, 0, 1), n == 0);
		assert_int_equal(judge(p, &gap, 1, 0, 2), n == 0);
		assert_int_equal(judge(p, &nameless, 4, 0, 3), n == 0);
		assert_int_equal(judge(p, &allowed, 3, 0, 4), n == 0);
		assert_int_equal(policy_findings(p, false, &f), n == 0);
		assert_int_equal(policy_findings(p, true, &f), n);
		if (n == 1) {
			assert_true(f[0]->incomplete);
			assert_int_equal(f[0]->count, 3);
			assert_int_equal(f[0]->first_seq, 1);
		}
		/* one that is whole is another finding of the same place */
		assert_true(judge(p, &whole, 2, 0, 5));
		assert_int_equal(policy_findings(p, false, &f), 1);
		assert_false(f[0]->incomplete);
		assert_int_equal(f[0]->count, n == 0 ? 5 : 1);
		assert_int_equal(policy_findings(p, true, &f), n);
		policy_free(p);
	}
}

/* What was called through a pointer may have been an allowed function that
   jumped to the one that wrote. */
TEST(calls_through_pointers)
{
	static const struct {
		const char *allowed;
		bool pointer;
		uint64_t vaddr;
		uint64_t offset;
		bool inlined;		/* the writer is, in it */
		bool stray;
	} cases[] = {
		{"config_load", true, JUMPED, 0, false, false},
		{"config_save", true, JUMPED, 0, false, true},
		{"config_load", false, JUMPED, 0, false, true},
		{"config_load", true, OTHER, 0, false, true},
		{"config_load", true, JUMPED, 0, true, false},
		{"config_load", true, JUMPED + 8, 8, true, false},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_frame put = {.module = &program,
		    .function = "put", .vaddr = cases[i].vaddr, .inlined =
		    true};
		const struct ex_frame of = {.module = &program,
		    .function = "scribble", .vaddr = cases[i].vaddr,
		    .offset = cases[i].offset, .pointer = cases[i].pointer};
		const struct ex_frame frames[FRAMES_MAX] = {
			cases[i].inlined ? put : of,
			cases[i].inlined ? of : (struct ex_frame)NAMED("main"),
		};
		struct ex_stack stack = stack_of(frames);
		struct policy *p = policy_new(&cases[i].allowed, 1);
		struct ex_hit hit = hit_of(&stack, 1);

		assert_int_equal(policy_judge(p, &hit), 0);
		assert_int_equal(hit.stray, cases[i].stray);
		assert_int_equal(hit.unjudged, !cases[i].stray);
		policy_free(p);
	}
}

/* It may have jumped through a pointer, too: to any function but main, and not
   where the C library alone made the calls. */
TEST(jumps_through_pointers)
{
	static const struct {
		const char *name;
		const struct ex_module *module;
		const char *allowed;
		bool pointer;
		bool anywhere;
		bool stray;
	} cases[] = {
		{"scribble", &program, "config_load", true, true, false},
		{"scribble", &program, "config_load", true, false, true},
		{"scribble", &program, "config_load", false, true, true},
		{"scribble", &program, "config_save", true, true, true},
		{"scribble", &libc, "config_load", true, true, true},
		{"main", &program, "config_load", true, true, true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct ex_frame frames[FRAMES_MAX] = {
			{.module = cases[i].module, .vaddr = OTHER,
			    .function = cases[i].name,
			    .pointer = cases[i].pointer},
			IN(libc, "__libc_start_main"),
		};
		struct ex_stack stack = stack_of(frames);
		struct policy *p = policy_new(&cases[i].allowed, 1);
		struct ex_hit hit = hit_of(&stack, 1);

		jumps_anywhere = cases[i].anywhere;
		assert_int_equal(policy_judge(p, &hit), 0);
		jumps_anywhere = false;
		assert_int_equal(hit.stray, cases[i].stray);
		assert_int_equal(hit.unjudged, !cases[i].stray);
		policy_free(p);
	}
}

/* The place where the signal was unblocked shows neither a function that is
   allowed nor one that is not; and the next hit from there is judged by
   itself. */
TEST(late_hits)
{
	static const char *const allow[] = {"load", "save"};
	const struct ex_frame frames[2][FRAMES_MAX] = {
		{NAMED("load"), NAMED("main")}, {NAMED("poke"), NAMED("main")},
	};

	for (size_t i = 0; i < 4; i++) {
		struct ex_stack stack = stack_of(frames[i / 2]);
		struct policy *p = policy_new(allow, i % 2);
		struct ex_hit hit = hit_of(&stack, 1);
		const struct finding *const *f;

		assert_non_null(p);
		hit.late = true;
		assert_int_equal(policy_judge(p, &hit), 0);
		assert_int_equal(hit.stray, i % 2 == 0);
		assert_int_equal(hit.unjudged, i % 2 != 0);
		assert_int_equal(policy_findings(p, hit.unjudged, &f), 1);
		assert_null(f[0]->culprit);
		assert_true(f[0]->late);
		hit = hit_of(&stack, 2);
		assert_int_equal(policy_judge(p, &hit), 0);
		assert_int_equal(hit.stray, i != 1);
		assert_false(hit.unjudged);
		policy_free(p);
	}
}

/* What is not judged is reported neither as stray nor as fine. */
TEST(unjudged_hits)
{
	static const char *const allow[] = {"config_load"};
	const struct ex_frame frames[FRAMES_MAX] = {NAMED("scribble")};
	struct ex_stack gap = stack_of(frames);
	struct policy *p = policy_new(allow, 1);
	struct ex_hit hit = hit_of(&gap, 1);

	gap.gap = true;
	assert_int_equal(policy_judge(p, &hit), 0);
	assert_true(hit.unjudged && !hit.stray);
	hit.stray = true;	/* as who delivers it knows */
	hit.unjudged = false;
	assert_int_equal(policy_judge(p, &hit), 0);
	assert_true(hit.stray && !hit.unjudged);
	hit = hit_of(NULL, 2);
	assert_int_equal(policy_judge(p, &hit), 0);
	assert_true(hit.unjudged);	/* no backtrace */
	policy_free(p);
}

TEST(words)
{
	const struct finding w = {.access = "write"}, r = {.access = "read"};
	const struct finding *const writers[] = {&w, &w};
	const struct finding *const both[] = {&w, &r};

	assert_string_equal(policy_word(writers, 1), "writer");
	assert_string_equal(policy_word(writers, 2), "writers");
	assert_string_equal(policy_word(both, 2), "places");
	assert_string_equal(policy_word(&both[1], 1), "place");
}

/* --- a policy file --- */

static struct policy *
policy_of(struct policy_file *file, const char *text)
{
	struct policy *p = policy_new(NULL, 0);

	assert_non_null(p);
	assert_int_equal(policy_file_parse(file, "p", text, strlen(text)), 0);
	assert_true(policy_add_file(p, file));
	return p;
}

#define OF(name_, file_) {.module = &program, .function = (name_),	\
	.file = (file_), .pc = 0x400100, .vaddr = 0x100}

/* What is made of hits of the first watch, or another, by these frames. */
static enum { ALLOWED, STRAY, UNJUDGED }
made_of(struct policy *p, const struct ex_watch *watch, struct ex_stack stack)
{
	static struct ex_stack kept[64];	/* findings point to them */
	static unsigned index;
	struct ex_hit hit;

	index = (index + 1) % COUNT(kept);
	kept[index] = stack;
	kept[index].index = index;
	hit = hit_of(&kept[index], 1);
	hit.watch = watch;
	assert_int_equal(policy_judge(p, &hit), 0);
	return hit.stray ? STRAY : hit.unjudged ? UNJUDGED : ALLOWED;
}

static struct ex_stack
whole(const struct ex_frame *frames)
{
	struct ex_stack stack = stack_of(frames);

	stack.end = EX_END_OUTERMOST;
	return stack;
}

TEST(writers_of_a_file_are_exact)
{
	static const struct {
		struct ex_frame frames[FRAMES_MAX];
		int is;
	} cases[] = {
		{{OF("load", "/src/config.c")}, ALLOWED},
		{{OF("load.isra.0", "config.c")}, ALLOWED},
		{{OF("load", "/src/other.c")}, STRAY},
		{{OF("reload", "config.c")}, STRAY},
		{{OF("load", NULL)}, STRAY},
		{{NAMED("plain")}, ALLOWED},
		/* what it calls in the library, and nothing else */
		{{IN(libc, "memcpy"), OF("load", "config.c")}, ALLOWED},
		{{OF("f", "config.c"), OF("load", "config.c")}, STRAY},
		{{OF("A::operator=", "a.cc")}, ALLOWED},
		{{OF("A::operator==", "a.cc")}, STRAY},
		{{OF("t<std::pair<int, long>, 3>::put", "a.cc")}, ALLOWED},
		{{{.module = &program, .function = "load", .file = "config.c",
		    .jit = true}}, STRAY},
		/* allowed by a pattern, as --allow does */
		{{OF("f", "x.c"), OF("test_it", "t.c")}, ALLOWED},
	};
	struct policy_file file;
	struct policy *p = policy_of(&file, "[watch]\nspec = counter\n"
	    "writer = config.c!load\nwriter = victim!plain\n"
	    "writer = a.cc!A::operator=\nallow = test_*\n"
	    "writer = a.cc!t<std::pair<int, long>, 3>::put\n"
	    "[watch]\nspec = 0x4040c0:64\naccess = read\n"
	    "writer = config.c!load\n");

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int is = made_of(p, &made_watches[0],
		    whole(cases[i].frames));

		if (is != cases[i].is)
			fail_msg("case %zu: %d", i, is);
	}
	/* another watch, and another access to it, have no rules */
	assert_int_equal(made_of(p, &made_watches[1],
	    whole(cases[0].frames)), STRAY);
	policy_free(p);
	policy_file_free(&file);
}

/* A function that is missing may be the writer, or hide one. */
TEST(writers_that_are_not_certain)
{
	static const struct ex_frame by_gap[FRAMES_MAX] = {
		IN(libc, "memcpy"), {.module = &program, .function = "load",
		    .file = "config.c", .vaddr = 0x100, .gap = true},
	}, by_pointer[FRAMES_MAX] = {
		{.module = &program, .function = "memcpy", .vaddr = JUMPED,
		    .pointer = true}, OF("load", "config.c"),
	}, outside[FRAMES_MAX] = {
		OF("load", "config.c"), {.module = &program, .function = "main",
		    .vaddr = 0x200, .gap = true},
	};
	struct policy_file file;
	struct policy *p = policy_of(&file, "[watch]\nspec = counter\n"
	    "writer = config.c!load\n");
	struct ex_stack stack = whole(by_gap);

	stack.gap = true;
	assert_int_equal(made_of(p, &made_watches[0], stack), UNJUDGED);
	assert_int_equal(made_of(p, &made_watches[0], whole(by_pointer)),
	    UNJUDGED);
	stack = whole(outside);
	stack.gap = true;
	assert_int_equal(made_of(p, &made_watches[0], stack), ALLOWED);
	policy_free(p);
	policy_file_free(&file);
}

/* A caller that is missing may be one that is allowed with what it calls; a
   writer is not. */
TEST(callers_that_are_not_certain)
{
	static const struct ex_frame other[FRAMES_MAX] = {OF("f", "config.c"),
	    OF("g", "config.c")}, kernel[FRAMES_MAX] = {
		KERNEL("ksys_read"),
	}, library[FRAMES_MAX] = {IN(libc, "memcpy")};
	static const char *const texts[] = {
		"[watch]\nspec = counter\nwriter = config.c!g\n",
		"[watch]\nspec = counter\nwriter = config.c!g\nallow = t*\n",
	};

	for (int callees = 0; callees < 2; callees++) {
		struct policy_file file;
		struct policy *p = policy_of(&file, texts[callees]);
		struct ex_stack stack = whole(other);

		stack.end = EX_END_STACK;
		assert_int_equal(made_of(p, &made_watches[0], stack),
		    callees ? UNJUDGED : STRAY);
		stack = whole(kernel);
		stack.end = EX_END_STACK;
		assert_int_equal(made_of(p, &made_watches[0], stack),
		    UNJUDGED);
		stack = whole(library);
		stack.end = EX_END_STACK;
		assert_int_equal(made_of(p, &made_watches[0], stack),
		    UNJUDGED);
		policy_free(p);
		policy_file_free(&file);
	}
}

TEST(rules_that_nothing_used)
{
	static const struct ex_frame used[FRAMES_MAX] = {OF("b", "b.c"),
	    OF("test", "t.c")};
	struct policy_file file;
	struct policy *p = policy_of(&file, "[watch]\nspec = counter\n"
	    "writer = a.c!a\nwriter = b.c!b\nallow = tes*\nallow = no\n");

	assert_int_equal(made_of(p, &made_watches[0], whole(used)), ALLOWED);
	assert_int_equal(policy_unused(p, 0)->number, 3);
	assert_int_equal(policy_unused(p, 1)->number, 6);
	assert_null(policy_unused(p, 2));
	policy_free(p);
	policy_file_free(&file);
}

/* --- learning --- */

TEST(what_is_learned_and_what_is_not)
{
	static const struct ex_frame frames[][FRAMES_MAX] = {
		{IN(libc, "memcpy"), OF("b.part.0", "/src/b.c")},
		{OF("a", "/src/b.c")},
		{{.module = &program, .pc = 1}},	/* no name */
		{OF("new\nline", "b.c")},
		{IN(libc, "memcpy"), {.module = &program, .function = "c",
		    .file = "c.c", .gap = true}},
		{IN(loader, "relocate")},
	};
	struct learned *l = learned_new();
	struct buffer b = {0};
	struct learned_rest rest;

	assert_non_null(l);
	for (unsigned i = 0; i < 7; i++) {
		struct ex_stack stack = whole(frames[i % 6]);
		struct ex_hit hit = hit_of(&stack, i + 1);

		stack.index = i;
		stack.gap = i == 4;
		hit.late = i == 6;
		for (int twice = 0; twice < 2; twice++)
			assert_int_equal(learned_take(l, &hit, 1), 0);
	}
	rest = learned_put(l, &b);
	assert_string_equal(buffer_text(&b),
	    "# who writes what; made by watchctl --learn\n[watch]\n"
	    "spec = counter\naccess = write\nwriter = b.c!a\n"
	    "writer = b.c!b\n");
	assert_int_equal(rest.unnamed, 4);
	assert_int_equal(rest.missing, 2);
	assert_int_equal(rest.late, 2);
	buffer_free(&b);
	learned_free(l);
}

RUN_TESTS()
