/*
 * module: spaces learn the mappings of real processes and are asked what is
 * where; the answers are compared with what the processes themselves and nm
 * report.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "capture.h"
#include "command.h"
#include "module/module_private.h"
#include "scratch.h"
#include "space/space.h"

TEST_KEEPS(kept, struct ex_space *, ex_space_free)

/* Says where its things are, then waits to be killed. */
static const char program_source[] =
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <unistd.h>\n"
    "long in_data = 7, in_bss[1000];\n"
    "const long in_rodata = 9;\n"
    "extern long lib_data, lib_bss[];\n"
    "extern int lib_function(void);\n"
    "int main(void)\n"
    "{\n"
    "	long on_stack = 1, *on_heap = malloc(100);\n"
    "#define SAY(p) printf(#p \" %p\\n\", (void *)(p))\n"
    "	SAY(&in_data);\n"
    "	SAY(&in_bss[999]);\n"
    "	SAY(&in_rodata);\n"
    "	SAY(main);\n"
    "#ifdef LIB\n"
    "	SAY(&lib_data);\n"
    "	SAY(&lib_bss[9]);\n"
    "	SAY(lib_function);\n"
    "#endif\n"
    "	SAY(&on_stack);\n"
    "	SAY(on_heap);\n"
    "	printf(\"end 0\\n\");\n"
    "	fflush(stdout);\n"
    "	for (;;)\n"
    "		pause();\n"
    "}\n";

static const char lib_source[] =
    "long lib_data = 3, lib_bss[10];\n"
    "int lib_function(void) { return 1; }\n";

static int
make(void **state)
{
	if (scratch_make(state) != 0)
		return -1;
	scratch_write("p.c", program_source);
	scratch_write("lib.c", lib_source);
	scratch_run("cc -shared -fPIC -o a lib.c && cp a b");
	return 0;
}

/* --- a process and what it says --- */

struct victim {
	pid_t pid;
	struct {
		char name[32];
		uint64_t addr;
	} place[16];
	size_t n;
};

static void
victim_hear(struct victim *v, int fd)
{
	FILE *f = fdopen(fd, "r");
	unsigned long long addr;

	assert_non_null(f);
	for (v->n = 0; v->n < 16; v->n++) {
		assert_int_equal(fscanf(f, "%31s %llx", v->place[v->n].name,
		    &addr), 2);
		v->place[v->n].addr = addr;
		if (strcmp(v->place[v->n].name, "end") == 0)
			break;
	}
	(void)fclose(f);
}

/* Start a program of ours; prepare is called in the child before. */
static void
victim_start(struct victim *v, const char *path, void (*prepare)(void))
{
	int out[2];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (v->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare != NULL)
			prepare();
		(void)dup2(out[1], STDOUT_FILENO);
		(void)execl(path, path, NULL);
		_exit(127);
	}
	(void)close(out[1]);
	victim_hear(v, out[0]);
}

static void
victim_end(struct victim *v)
{
	(void)kill(v->pid, SIGKILL);
	(void)waitpid(v->pid, NULL, 0);
}

static uint64_t
victim_place(const struct victim *v, const char *name)
{
	for (size_t i = 0; i < v->n; i++) {
		if (strcmp(v->place[i].name, name) == 0)
			return v->place[i].addr;
	}
	fail_msg("no %s", name);
	return 0;
}

/* What nm says of a name's value. */
static uint64_t
nm_value(const char *file, const char *name)
{
	unsigned long long value;
	char *text;

	scratch_run("nm %s | sed -n 's/ [A-Za-z] %s$//p' >value", file, name);
	text = scratch_read("value", NULL);
	assert_int_equal(sscanf(text, "%llx", &value), 1);
	return value;
}

/* --- where things are --- */

static void
expect_at(struct ex_process *p, uint64_t addr, const char *file,
    const char *symbol, uint64_t offset)
{
	uint64_t vaddr = 0;
	struct ex_module *m = ex_process_module(p, addr, &vaddr);

	assert_non_null(m);
	assert_string_equal(ex_module_name(m), file);
	assert_string_equal(ex_module_path(m), scratch_path(file));
	assert_null(ex_module_problem(m));
	assert_int_equal(vaddr, nm_value(file, symbol) + offset);
}

/* A program that refers to the library's data where that is. */
#define LIB_BUILD(flags)						\
	"cc -shared -fPIC " flags " -o lib.so lib.c && cc -DLIB -fPIE -pie " \
	"-mno-direct-extern-access -o p p.c -L. -l:lib.so -Wl,-rpath,'$ORIGIN'"

TEST(places_segments_of_live_processes)
{
	static const struct {
		const char *made;
		bool lib;
	} builds[] = {
		{"cc -o p p.c", false},
		{"cc -no-pie -o p p.c", false},
		{"cc -static -o p p.c", false},
		{"cc -static-pie -o p p.c", false},
		{"cc -Wl,-z,noseparate-code -o p p.c", false},
		{"cc -Wl,-z,max-page-size=0x200000 -o p p.c", false},
		{LIB_BUILD(""), true},
		{LIB_BUILD("-Wl,-z,noseparate-code"), true},
		{"clang -fuse-ld=lld -o p p.c", false},
	};

	for (size_t i = 0; i < COUNT(builds); i++) {
		struct ex_space *space = kept(ex_space_new(EX_LIVE));
		struct ex_process *p;
		struct victim v;
		uint64_t vaddr;

		if (scratch_try("%s 2>/dev/null", builds[i].made) != 0) {
			print_message("not tried: %s\n", builds[i].made);
			continue;
		}
		victim_start(&v, scratch_path("p"), NULL);
		capture_maps(space, v.pid);
		p = ex_space_process(space, v.pid);
		expect_at(p, victim_place(&v, "main"), "p", "main", 0);
		expect_at(p, victim_place(&v, "&in_data"), "p", "in_data", 0);
		expect_at(p, victim_place(&v, "&in_bss[999]"), "p", "in_bss",
		    999 * 8);
		expect_at(p, victim_place(&v, "&in_rodata"), "p", "in_rodata",
		    0);
		if (builds[i].lib) {
			expect_at(p, victim_place(&v, "lib_function"),
			    "lib.so", "lib_function", 0);
			expect_at(p, victim_place(&v, "&lib_data"), "lib.so",
			    "lib_data", 0);
			expect_at(p, victim_place(&v, "&lib_bss[9]"), "lib.so",
			    "lib_bss", 72);
		}
		assert_null(ex_process_module(p, victim_place(&v, "&on_stack"),
		    &vaddr));
		assert_null(ex_process_module(p, victim_place(&v, "on_heap"),
		    &vaddr));
		assert_null(ex_process_module(p, 0, &vaddr));
		assert_null(ex_process_module(p, UINT64_MAX, &vaddr));
		victim_end(&v);
	}
}

/* --- records made by hand --- */

struct map {
	uint64_t start, len, pgoff;
	uint32_t prot;
	const char *path;	/* below the scratch directory, or as it is */
};

static void
learn_map(struct ex_space *space, pid_t pid, const struct map *map)
{
	const struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .pid = pid, .tid = pid,
		.mmap = {
			.start = map->start, .len = map->len,
			.pgoff = map->pgoff, .prot = map->prot,
			.path = strchr("/[", map->path[0]) != NULL ?
			    map->path : scratch_path(map->path),
		},
	};

	ex_space_learn(space, &record);
}

static void
learn_comm(struct ex_space *space, pid_t pid, pid_t tid, const char *name,
    bool exec)
{
	const struct ex_record record = {
		.type = PERF_RECORD_COMM, .pid = pid, .tid = tid,
		.misc = exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
		.comm = {.pid = pid, .tid = tid, .name = name},
	};

	ex_space_learn(space, &record);
}

static void
learn_task(struct ex_space *space, uint32_t type, pid_t pid, pid_t tid,
    pid_t ppid, pid_t ptid)
{
	const struct ex_record record = {
		.type = type, .pid = pid, .tid = tid,
		.task = {.pid = pid, .tid = tid, .ppid = ppid, .ptid = ptid},
	};

	ex_space_learn(space, &record);
}

#define RX (PROT_READ | PROT_EXEC)
#define RW (PROT_READ | PROT_WRITE)

/* Where the executable segment of a file of ours is. */
static struct ex_segment
code_of(const char *file)
{
	unsigned long long offset, vaddr, filesz;
	char *text;

	scratch_run("readelf -lW %s | awk '$1 == \"LOAD\" && / R E /' >text",
	    file);
	text = scratch_read("text", NULL);
	assert_int_equal(sscanf(text, " LOAD %llx %llx %*s %llx", &offset,
	    &vaddr, &filesz), 3);
	return (struct ex_segment){
		.offset = offset, .vaddr = vaddr, .filesz = filesz,
	};
}

/* A mapping replaces what it overlaps: one module at 0x100000..0x104000, then
   another mapping; who is at each page? */
TEST(replaces_what_is_overlapped)
{
	static const struct {
		struct map over;
		const char *pages;	/* 0x0ff000 ... 0x104000 */
	} cases[] = {
		{{0x100000, 0x4000, 0, RX, "2nd"}, ".2222."},
		{{0x0ff000, 0x6000, 0, RX, "2nd"}, "222222"},
		{{0x101000, 0x1000, 0, RX, "2nd"}, ".1211."},
		{{0x100000, 0x1000, 0, RX, "2nd"}, ".2111."},
		{{0x103000, 0x1000, 0, RX, "2nd"}, ".1112."},
		{{0x103000, 0x2000, 0, RX, "2nd"}, ".11122"},
		{{0x0ff000, 0x2000, 0, RX, "2nd"}, "22111."},
		{{0x104000, 0x1000, 0, RX, "2nd"}, ".11112"},
		{{0x101000, 0x2000, 0, RW, "/data"}, ".1..1."},
		{{0x101000, 0x2000, 0, RX, "//anon"}, ".1..1."},
		{{0x101000, 0x2000, 0, RW, "[heap]"}, ".1..1."},
		{{0x0f0000, 0x1000, 0, RW, "//anon"}, ".1111."},
		{{0x101000, 0, 0, RX, "2nd"}, ".1111."},
		{{0x101000, UINT64_MAX, 0, RX, "2nd"}, ".1111."},
	};

	/* nothing but an executable segment */
	scratch_write("text.c", "void _start(void) {}\n");
	scratch_run("cc -static -nostdlib -no-pie -Wl,-z,noseparate-code "
	    "-o 1st text.c && cp 1st 2nd");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_space *space = kept(ex_space_new(EX_RECORDED));
		struct ex_process *p = ex_space_process(space, 1);
		const struct map first = {0x100000, 0x4000,
		    code_of("1st").offset, RX, "1st"};
		char pages[7] = "";

		learn_map(space, 1, &first);
		learn_map(space, 1, &cases[i].over);
		for (unsigned k = 0; k < 6; k++) {
			uint64_t vaddr;
			struct ex_module *m = ex_process_module(p,
			    0x0ff800 + k * 0x1000, &vaddr);

			pages[k] = m == NULL ? '.' : *ex_module_name(m);
			if (m != NULL && pages[k] == '1')
				assert_int_equal(vaddr, code_of("1st").vaddr +
				    (k - 1) * 0x1000 + 0x800);
		}
		if (strcmp(pages, cases[i].pages) != 0)
			fail_msg("case %zu: %s, not %s", i, pages,
			    cases[i].pages);
	}
}

TEST(has_no_module_for)
{
	static const char *const paths[] = {
		"//anon", "[heap]", "[stack]", "[anon:jit]", "[vsyscall]",
		"[uprobes]", "/anon_hugepage (deleted)", "/SYSV00000000",
		"/dev/zero (deleted)", "/dev/zero", "", "//toolong",
		"anon_inode:[perf_event]",
	};
	struct ex_space *space = kept(ex_space_new(EX_LIVE));
	struct ex_record kernel = {
		.type = PERF_RECORD_MMAP, .pid = -1, .tid = 0,
		.mmap = {
			.start = 0xffffffff81000000, .len = 0x1000000,
			.prot = PROT_EXEC, .path = "[kernel.kallsyms]_text",
		},
	};
	uint64_t vaddr;

	for (size_t i = 0; i < COUNT(paths); i++) {
		struct ex_record record = kernel;

		record.pid = getpid();
		record.mmap.start = 0x10000 * (i + 1);
		record.mmap.len = 0x10000;
		record.mmap.path = paths[i];
		ex_space_learn(space, &record);
		assert_null(ex_process_module(ex_space_process(space,
		    getpid()), record.mmap.start, &vaddr));
	}
	ex_space_learn(space, &kernel);
	assert_null(ex_process_module(ex_space_process(space, -1),
	    kernel.mmap.start, &vaddr));
}

/* --- processes and threads --- */

TEST(follows_fork_and_exec)
{
	const struct map a = {0x100000, 0x1000, code_of("a").offset, RX, "a"};
	const struct map b = {0x200000, 0x1000, code_of("a").offset, RX, "b"};
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	struct ex_process *one, *two;
	uint64_t vaddr, before, generation;

	learn_comm(space, 1, 1, "one", false);
	learn_map(space, 1, &a);
	one = ex_space_process(space, 1);
	generation = ex_process_generation(one);

	/* a thread changes nothing */
	learn_task(space, PERF_RECORD_FORK, 1, 11, 1, 1);
	assert_int_equal(ex_process_generation(one), generation);
	assert_string_equal(ex_space_comm(space, 1, 11), "one");

	/* a child has what its parent had, and then its own */
	learn_task(space, PERF_RECORD_FORK, 2, 2, 1, 11);
	two = ex_space_process(space, 2);
	assert_ptr_not_equal(one, two);
	assert_non_null(ex_process_module(two, 0x100800, &vaddr));
	assert_string_equal(ex_space_comm(space, 2, 2), "one");
	learn_map(space, 2, &b);
	assert_non_null(ex_process_module(two, 0x200800, &vaddr));
	assert_null(ex_process_module(one, 0x200800, &vaddr));
	learn_map(space, 1, &b);
	assert_non_null(ex_process_module(one, 0x200800, &vaddr));

	/* a new program has nothing of it, and its own name */
	before = ex_process_generation(two);
	learn_comm(space, 2, 2, "two", true);
	assert_int_not_equal(ex_process_generation(two), before);
	assert_null(ex_process_module(two, 0x100800, &vaddr));
	assert_string_equal(ex_space_comm(space, 2, 2), "two");
	assert_non_null(ex_process_module(one, 0x100800, &vaddr));

	/* a new name alone changes nothing */
	before = ex_process_generation(one);
	learn_comm(space, 1, 11, "worker", false);
	assert_string_equal(ex_space_comm(space, 1, 11), "worker");
	assert_string_equal(ex_space_comm(space, 1, 1), "one");
	assert_string_equal(ex_space_comm(space, 1, 12), "one");
	assert_string_equal(ex_space_comm(space, 2, 11), "two");
	assert_string_equal(ex_space_comm(space, 3, 3), "");
	assert_int_equal(ex_process_generation(one), before);

	/* the pid again, as another process */
	learn_task(space, PERF_RECORD_EXIT, 2, 2, 1, 1);
	assert_string_equal(ex_space_comm(space, 2, 2), "two");
	learn_task(space, PERF_RECORD_FORK, 2, 2, 3, 3);
	assert_ptr_equal(ex_space_process(space, 2), two);
	assert_null(ex_process_module(two, 0x100800, &vaddr));
	assert_string_equal(ex_space_comm(space, 2, 2), "");
}

/* Generations tell when a cache by address must go; records that tell nothing
   new must not make it go. */
TEST(changes_generation)
{
	static const struct {
		struct map map;
		bool changes;
	} steps[] = {
		{{0x100000, 0x3000, 0x1000, RX, "a"}, true},
		{{0x100000, 0x3000, 0x1000, RX, "a"}, false},
		/* part of it again, as mprotect(2) causes */
		{{0x101000, 0x1000, 0x2000, RX, "a"}, false},
		{{0x101000, 0x1000, 0x1000, RX, "a"}, true},
		{{0x500000, 0x1000, 0, RW, "a"}, false},
		{{0x500000, 0x1000, 0, RX, "//anon"}, false},
		{{0x100000, 0x1000, 0, RW, "[heap]"}, true},
		{{0x100000, 0x1000, 0, RW, "[heap]"}, false},
	};
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	struct ex_process *p = ex_space_process(space, 1);

	for (size_t i = 0; i < COUNT(steps); i++) {
		uint64_t before = ex_process_generation(p);

		learn_map(space, 1, &steps[i].map);
		if ((ex_process_generation(p) != before) != steps[i].changes)
			fail_msg("step %zu", i);
	}
}

TEST(doubts_code_that_may_be_other)
{
	static const struct {
		struct map map;
		bool original;
	} steps[] = {
		{{0x100000, 0x3000, 0x1000, RX, "a"}, true},
		{{0x101000, 0x1000, 0x2000, RX | RW, "a"}, false},
		{{0x101000, 0x1000, 0x2000, RX, "a"}, false},
		{{0x101000, 0x1000, 0x2000, RX, "b"}, true},
	};
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	struct ex_process *p = ex_space_process(space, 1);

	for (size_t i = 0; i < COUNT(steps); i++) {
		learn_map(space, 1, &steps[i].map);
		if (ex_process_is_original(p, 0x101003) != steps[i].original)
			fail_msg("step %zu", i);
		assert_true(ex_process_is_original(p, 0x101000));
	}
}

/* What a record tells of, /proc/PID/maps has, too, which is read meanwhile; the
   process has ended since. */
TEST(doubts_code_that_is_mapped_again)
{
	static const struct {
		uint64_t time;
		bool original;
	} steps[] = {
		{999, true}, {0, true}, {1000, true}, {1001, false},
		{0, false},
	};
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	struct ex_process *p = ex_space_process(space, 1);
	struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .pid = 1, .tid = 1,
		.mmap = {
			.start = 0x100000, .len = 0x3000, .pgoff = 0x1000,
			.prot = RX, .path = scratch_path("a"),
		},
	};

	ex_space_mapped(space, 1, 1000);
	for (size_t i = 0; i < COUNT(steps); i++) {
		record.time = steps[i].time;
		ex_space_learn(space, &record);
		if (ex_process_is_original(p, 0x101003) != steps[i].original)
			fail_msg("step %zu", i);
	}
}

/* A file's text, mapped here; one of its bytes is changed. */
TEST(compares_code_with_memory)
{
	const int fd = open(scratch_path("a"), O_RDONLY | O_CLOEXEC);
	struct ex_space *space = kept(ex_space_new(EX_LIVE));
	struct ex_process *p = ex_space_process(space, getpid());
	uint8_t *text = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
	    fd, (off_t)code_of("a").offset);
	const uint64_t at = (uintptr_t)text;

	assert_ptr_not_equal(text, MAP_FAILED);
	capture_maps(space, getpid());
	assert_true(ex_process_is_original(p, at + 1));
	assert_true(ex_process_is_original(p, at + 64));
	assert_int_equal(mprotect(text, 4096, RW), 0);
	text[60] ^= 1;
	assert_int_equal(mprotect(text, 4096, RX), 0);
	assert_false(ex_process_is_original(p, at + 70));
	capture_maps(space, getpid());
	assert_false(ex_process_is_original(p, at + 64));
	assert_true(ex_process_is_original(p, at + 60));
	assert_true(ex_process_is_original(p, at + 80));
	assert_int_equal(munmap(text, 4096), 0);
	assert_false(ex_process_is_original(p, at + 90));
	(void)close(fd);
}

TEST(survives_many_mappings)
{
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	const uint64_t offset = code_of("a").offset;
	struct ex_process *p;
	uint64_t vaddr;

	for (uint64_t i = 0; i < 2000; i++) {
		/* in no order */
		const struct map map = {
			0x10000000 + (i * 7919 % 2000) * 0x10000, 0x1000,
			offset, RX, "a",
		};

		learn_map(space, 1, &map);
	}
	p = ex_space_process(space, 1);
	for (uint64_t i = 0; i < 2000; i++) {
		assert_non_null(ex_process_module(p,
		    0x10000010 + i * 0x10000, &vaddr));
		assert_int_equal(vaddr, code_of("a").vaddr + 0x10);
		if (i > 3)
			i += 97;	/* readelf takes its time */
	}
	for (pid_t tid = 2; tid < 5002; tid++)
		learn_task(space, PERF_RECORD_FORK, 1, tid, 1, 1);
	for (pid_t tid = 2; tid < 5002; tid += 2)
		learn_comm(space, 1, tid, "even", false);
	assert_string_equal(ex_space_comm(space, 1, 4000), "even");
	assert_string_equal(ex_space_comm(space, 1, 4001), "");

	/* short-lived processes come and go; those alive are not forgotten */
	for (pid_t pid = 10000; pid < 20000; pid++) {
		learn_task(space, PERF_RECORD_FORK, pid, pid, 1, 1);
		learn_comm(space, pid, pid, "brief", true);
		learn_task(space, PERF_RECORD_EXIT, pid, pid, 1, 1);
	}
	assert_string_equal(ex_space_comm(space, 19999, 19999), "brief");
	assert_string_equal(ex_space_comm(space, 10001, 10001), "");
	assert_string_equal(ex_space_comm(space, 1, 4000), "even");
	assert_non_null(ex_process_module(p, 0x10000010, &vaddr));
}

struct list {
	char text[512];
	uint64_t base[8];
	unsigned n;
};

static int
list_module(void *arg, struct ex_module *m, uint64_t base)
{
	struct list *list = arg;

	(void)strcat(strcat(list->text, ex_module_name(m)), " ");
	list->base[list->n++] = base;
	return list->n == 4 ? 99 : 0;
}

TEST(lists_the_executable_first)
{
	const uint64_t offset = code_of("a").offset;
	const struct map maps[] = {
		{0x500000, 0x1000, offset, RX, "b"},
		{0x100000, 0x1000, offset, RX, "a"},
		{0x101000, 0x1000, offset + 0x1000, RX, "a"},
		{0x900000, 0x1000, offset, RX, "a"},
	};
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	struct ex_process *p = ex_space_process(space, 1);
	const uint64_t vaddr = code_of("a").vaddr;
	struct list list = {.n = 0};

	assert_int_equal(ex_process_modules(p, list_module, &list), 0);
	for (size_t i = 0; i < COUNT(maps); i++)
		learn_map(space, 1, &maps[i]);
	assert_int_equal(ex_process_modules(p, list_module, &list), 0);
	assert_string_equal(list.text, "b a a ");
	assert_int_equal(list.base[0], 0x500000 - vaddr);
	assert_int_equal(list.base[1], 0x100000 - vaddr);
	assert_int_equal(list.base[2], 0x900000 - vaddr);
	list.n = 3;
	assert_int_equal(ex_process_modules(p, list_module, &list), 99);
}

/* --- which file it is --- */

/* The build id of a file of ours. */
static size_t
build_id_of(const char *file, char hex[64], uint8_t id[20])
{
	char *text;
	size_t n;

	scratch_run("readelf -n %s | sed -n 's/.*Build ID: //p' >id", file);
	text = scratch_read("id", NULL);
	n = strcspn(text, "\n") / 2;
	assert_true(n <= 20);
	(void)snprintf(hex, 64, "%.*s", (int)n * 2, text);
	for (size_t i = 0; i < n; i++) {
		unsigned byte;

		assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
		id[i] = (uint8_t)byte;
	}
	return n;
}

/* Where the build id of a recording comes from. */
enum { BY_RECORD, BY_TABLE, BY_BOTH, TWICE, BY_NOTHING };

#define RECORDED_OFFSET 0x1000	/* of the text in lib.c's file, */
#define RECORDED_VADDR 0x1000	/* and its vaddr */

/* Learn of "r" as it is, and then change it. */
static void
learn_recorded(struct ex_space *space, int how, const char *change,
    char hex[64])
{
	const uint8_t other[20] = {1, 2, 3};
	uint8_t id[20];
	size_t n = build_id_of("r", hex, id);
	struct ex_record record = {
		.type = PERF_RECORD_MMAP2, .pid = 1, .tid = 1,
		.mmap = {
			.start = 0x100000, .len = 0x1000,
			.pgoff = RECORDED_OFFSET, .prot = RX,
		},
	};
	struct stat st;

	assert_int_equal(code_of("r").offset, RECORDED_OFFSET);
	assert_int_equal(code_of("r").vaddr, RECORDED_VADDR);
	assert_int_equal(stat(scratch_path("r"), &st), 0);
	if (how == BY_RECORD || how == BY_BOTH) {
		record.mmap.build_id = id;
		record.mmap.build_id_len = (uint8_t)n;
	} else {
		record.mmap.ino = st.st_ino;
		record.mmap.maj = major(st.st_dev);
		record.mmap.min = minor(st.st_dev);
	}
	if (how == BY_TABLE || how == TWICE)
		ex_space_build_id(space, scratch_path("r"), id, n);
	if (how == BY_BOTH || how == TWICE)
		ex_space_build_id(space, scratch_path("r"), other, 20);
	scratch_run("%s", change);
	record.mmap.path = scratch_path("r");
	ex_space_learn(space, &record);
}

TEST(checks_recorded_files)
{
	static const struct {
		const char *made;	/* the file as it is now */
		int how;
		const char *problem;	/* NULL: it is used */
	} cases[] = {
		{"true", BY_RECORD, NULL},
		{"true", BY_TABLE, NULL},
		{"true", BY_BOTH, NULL},
		{"true", BY_NOTHING, NULL},
		{"touch r && cp r t && mv t r", BY_RECORD, NULL},
		{"cc -O1 -DX -shared -fPIC -o t p.c && mv t r", BY_RECORD,
		    "build id"},
		{"cc -O1 -DX -shared -fPIC -o t p.c && mv t r", BY_TABLE,
		    "build id"},
		{"cc -shared -fPIC -Wl,--build-id=none -o t lib.c && mv t r",
		    BY_RECORD, "build id"},
		{"cp r t && mv t r", BY_NOTHING, "inode"},
		{"true", TWICE, "two different build ids"},
		{"rm r", BY_RECORD, "not on this machine"},
		{"rm r && mkdir r", BY_RECORD, "not an ELF file"},
		{"rm r && mkfifo r", BY_RECORD, "not an ELF file"},
		{"rm -r r && echo hello >r", BY_TABLE, "not an ELF file"},
		{"rm r && : >r", BY_TABLE, "not an ELF file"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_space *space = kept(ex_space_new(EX_RECORDED));
		struct ex_module *m;
		uint64_t vaddr;
		char hex[64];

		scratch_run("rm -rf r && cc -shared -fPIC -o r lib.c");
		learn_recorded(space, cases[i].how, cases[i].made, hex);
		m = ex_process_module(ex_space_process(space, 1), 0x100100,
		    &vaddr);
		assert_non_null(m);
		if (cases[i].problem == NULL) {
			assert_null(ex_module_problem(m));
			assert_string_equal(ex_module_build_id(m), hex);
			assert_int_equal(vaddr, RECORDED_VADDR + 0x100);
		} else {
			if (ex_module_problem(m) == NULL)
				fail_msg("case %zu: no problem", i);
			assert_holds(ex_module_problem(m), cases[i].problem);
			assert_string_equal(ex_module_build_id(m), "");
			/* the offset in the file is what can be told */
			assert_int_equal(vaddr, RECORDED_OFFSET + 0x100);
		}
	}
}

/* A shorter id, as the record's room is filled up with zeros. */
TEST(takes_short_build_ids)
{
	static const struct {
		const char *id;
		uint8_t len;
		bool matches;
	} cases[] = {
		{"\x11\x22\x33\x44\x55\x66\x77\x88", 8, true},
		{"\x11\x22\x33\x44\x55\x66\x77\x88", 20, true},
		{"\x11\x22\x33\x44\x55\x66\x77\x88\x01", 20, false},
		{"\x11\x22\x33\x44\x55\x66\x77", 7, false},
		{"\x11\x22\x33\x44\x55\x66\x77\x89", 8, false},
	};

	scratch_run("cc -shared -fPIC -Wl,--build-id=0x1122334455667788 "
	    "-o s lib.c");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_space *space = kept(ex_space_new(EX_RECORDED));
		const struct map map = {0x100000, 0x1000,
		    code_of("s").offset, RX, "s"};
		uint8_t id[20] = {0};
		struct ex_module *m;
		uint64_t vaddr;

		(void)strcpy((char *)id, cases[i].id);
		ex_space_build_id(space, scratch_path("s"), id,
		    cases[i].len);
		learn_map(space, 1, &map);
		m = ex_process_module(ex_space_process(space, 1), 0x100100,
		    &vaddr);
		assert_non_null(m);
		assert_int_equal(ex_module_problem(m) == NULL,
		    cases[i].matches);
	}
}

/* What is no program or library says what it is instead. */
TEST(refuses_other_files)
{
	static const struct {
		const char *made, *problem;
	} files[] = {
		{"cc -c -o x lib.c", "no program or shared library"},
		{"cc -c -o x.o lib.c && ar rc x x.o", "not an ELF file"},
		{"cc -shared -fPIC -o y lib.c && gzip -c y >x",
		    "not an ELF file"},
		{"cc -shared -fPIC -o x lib.c && "
		    "printf '\\002' | dd of=x bs=1 seek=5 conv=notrunc",
		    "unknown kind"},
		{"cc -shared -fPIC -o x lib.c && "
		    "printf '\\003' | dd of=x bs=1 seek=4 conv=notrunc",
		    "unknown kind"},
		{"cc -shared -fPIC -o x lib.c && truncate -s 40 x", "damaged"},
		{"cc -shared -fPIC -o x lib.c && "
		    "printf '\\000\\000' | dd of=x bs=1 seek=56 conv=notrunc",
		    "damaged"},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct ex_space *space = kept(ex_space_new(EX_RECORDED));
		const struct map map = {0x100000, 0x1000, 0, RX, "x"};
		struct ex_module *m;
		uint64_t vaddr;
		uint8_t bytes[16];

		scratch_run("(rm -f x; %s) 2>/dev/null", files[i].made);
		learn_map(space, 1, &map);
		m = ex_process_module(ex_space_process(space, 1), 0x100100,
		    &vaddr);
		assert_non_null(m);
		assert_non_null(ex_module_problem(m));
		assert_holds(ex_module_problem(m), files[i].problem);
		assert_int_equal(ex_module_bytes(m, 0, bytes, 16), 0);
		assert_null(ex_module_elf(m));
		assert_null(ex_module_eh_frame(m, &vaddr));
		assert_null(ex_module_dwarf(m, &vaddr));
	}
}

TEST(copies_bytes)
{
	struct ex_space *space = kept(ex_space_new(EX_RECORDED));
	struct ex_segment text;
	uint8_t got[4096], *file;
	struct ex_module *m;
	uint64_t vaddr;
	size_t len;

	scratch_run("cc -shared -fPIC -o a lib.c");
	text = code_of("a");
	const struct map map = {0x100000, 0x1000, text.offset, RX, "a"};

	learn_map(space, 1, &map);
	m = ex_process_module(ex_space_process(space, 1), 0x100000, &vaddr);
	assert_non_null(m);
	file = (uint8_t *)scratch_read("a", &len);
	assert_int_equal(ex_module_bytes(m, text.vaddr, got, 64), 64);
	assert_memory_equal(got, file + text.offset, 64);
	/* no further than the segment */
	assert_int_equal(ex_module_bytes(m, text.vaddr + text.filesz - 8, got,
	    64), 8);
	assert_memory_equal(got, file + text.offset + text.filesz - 8, 8);
	assert_int_equal(ex_module_bytes(m, text.vaddr + text.filesz, got, 64),
	    0);
	assert_int_equal(ex_module_bytes(m, UINT64_MAX - 3, got, 64), 0);
	assert_int_equal(ex_module_bytes(m, text.vaddr, got, 0), 0);
}

/* --- files that change under a running process --- */

static void
become_nobody(void)
{
	if (setgid(65534) != 0 || setuid(65534) != 0)
		_exit(126);
	/* a change of user makes a process one that others may not look into */
	(void)prctl(PR_SET_DUMPABLE, 1);
}

static void
expect_function(struct ex_space *space, struct victim *v, const char *symbol,
    const char *problem)
{
	uint64_t vaddr, bias;
	struct ex_module *m = ex_process_module(ex_space_process(space,
	    v->pid), victim_place(v, symbol), &vaddr);

	assert_non_null(m);
	if (problem == NULL)
		assert_null(ex_module_problem(m));
	else
		assert_holds(ex_module_problem(m), problem);
	assert_int_equal(vaddr, nm_value("copy", symbol));
	assert_non_null(ex_module_eh_frame(m, &bias));
}

TEST(finds_files_that_changed)
{
	static const struct {
		const char *change;
		bool late;	/* after the mappings were learnt */
	} cases[] = {
		{"rm p", false}, {"rm p", true},
		{"cc -O3 -o q p.c && mv q p", false},
		{"cc -O3 -o q p.c && mv q p", true},
		{"mv p elsewhere", false}, {"mv p elsewhere", true},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ex_space *space = kept(ex_space_new(EX_LIVE));
		struct victim v;
		int probe;
		char name[64];

		scratch_run("rm -f p && cc -g -O1 -o p p.c && cp p copy");
		victim_start(&v, scratch_path("p"), NULL);
		(void)snprintf(name, sizeof(name), "/proc/%d/map_files",
		    (int)v.pid);
		probe = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (cases[i].late)
			capture_maps(space, v.pid);
		scratch_run("%s", cases[i].change);
		if (!cases[i].late)
			capture_maps(space, v.pid);
		if (geteuid() != 0 && !cases[i].late)
			print_message("not root: no map_files\n");
		else
			expect_function(space, &v, "main", NULL);
		if (probe >= 0)
			(void)close(probe);
		victim_end(&v);
	}
}

/* In a process of its own: what is missing; 0: nothing. */
static int
read_memory_as_nobody(void)
{
	struct ex_space *space;
	struct victim v;
	uint64_t vaddr;
	struct ex_module *m;
	const char *name;

	become_nobody();
	space = kept(ex_space_new(EX_LIVE));
	victim_start(&v, scratch_path("p"), NULL);
	(void)rename(scratch_path("copy"), scratch_path("p"));
	capture_maps(space, v.pid);
	m = ex_process_module(ex_space_process(space, v.pid),
	    victim_place(&v, "main"), &vaddr);
	victim_end(&v);
	if (m == NULL || ex_module_problem(m) == NULL)
		return 1;
	if (strstr(ex_module_problem(m), "replaced on disk") == NULL)
		return 2;
	if (ex_module_elf(m) == NULL)
		return 3;
	if (ex_module_eh_frame(m, &(uint64_t){0}) == NULL)
		return 4;
	if (dwfl_module_getsymtab(m->dwfl_module) < 5)
		return 5;
	name = dwfl_module_addrname(m->dwfl_module, vaddr + m->bias);
	return name == NULL || strcmp(name, "main") != 0 ? 6 : 0;
}

/* An ordinary user may not open the mapping itself: names of exported functions
   and unwind information are read from the process's memory. */
static void
expect_memory_read(void)
{
	pid_t child;
	int status;

	scratch_run("cp p copy && chmod 777 . && chmod 755 p copy");
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(read_memory_as_nobody());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

TEST(reads_memory_when_there_is_no_file)
{
	if (geteuid() != 0) {
		print_message("setuid(2) takes root, not tried\n");
		skip();
	}
	scratch_run("rm -f p && cc -O1 -rdynamic -o p p.c");
	expect_memory_read();
}

TEST(reads_memory_of_a_32_bit_program)
{
	if (geteuid() != 0) {
		print_message("setuid(2) takes root, not tried\n");
		skip();
	}
	scratch_run("rm -f p; cc -m32 -idirafter /usr/include/x86_64-linux-gnu "
	    "-O1 -rdynamic -o p p.c 2> /dev/null || :");
	skip_unless_narrow_runs(scratch_path("p"));
	expect_memory_read();
}

/* The file is open before the process has gone. */
TEST(outlives_the_process)
{
	struct ex_space *space = kept(ex_space_new(EX_LIVE));
	struct victim v;

	scratch_run("rm -f p && cc -g -o p p.c && cp p copy");
	victim_start(&v, scratch_path("p"), NULL);
	capture_maps(space, v.pid);
	victim_end(&v);
	scratch_run("rm p");
	expect_function(space, &v, "main", NULL);
}

/* A file written anew in place is another one for those who map it later. */
TEST(distinguishes_versions)
{
	const struct map a = {0x100000, 0x1000, 0, RX, "a"};
	struct ex_space *space = kept(ex_space_new(EX_LIVE));
	struct ex_module *before, *same, *after;
	uint64_t vaddr;

	scratch_run("cc -shared -fPIC -o a lib.c");
	learn_map(space, getpid(), &a);
	before = ex_process_module(ex_space_process(space, getpid()),
	    0x100000, &vaddr);
	learn_map(space, 1, &a);
	same = ex_process_module(ex_space_process(space, 1), 0x100000, &vaddr);
	assert_non_null(before);
	assert_ptr_equal(before, same);
	scratch_run("cc -O2 -g -shared -fPIC -o b lib.c && cat b >a");
	learn_map(space, 1, &a);
	after = ex_process_module(ex_space_process(space, 1), 0x100000,
	    &vaddr);
	assert_non_null(after);
	assert_ptr_not_equal(before, after);
}

TEST(reads_the_vdso)
{
	struct ex_space *space = kept(ex_space_new(EX_LIVE));
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR), vaddr, bias;
	struct ex_process *p = ex_space_process(space, getpid());
	struct ex_module *m;

	if (vdso == 0) {
		print_message("this kernel has no vDSO\n");
		skip();
	}
	capture_maps(space, getpid());
	m = ex_process_module(p, vdso, &vaddr);
	assert_non_null(m);
	assert_string_equal(ex_module_path(m), "[vdso]");
	assert_string_equal(ex_module_name(m), "[vdso]");
	assert_null(ex_module_problem(m));
	assert_int_equal(vaddr, 0);
	assert_true(dwfl_module_getsymtab(m->dwfl_module) > 1);
	assert_non_null(ex_module_eh_frame(m, &bias));

	/* that of a recording only if its build id says that it is ours */
	for (int ours = 0; ours <= 1; ours++) {
		struct ex_space *recorded = kept(ex_space_new(EX_RECORDED));
		const struct map map = {vdso, 0x2000, 0, RX, "[vdso]"};
		uint8_t id[20] = {0};
		size_t n = strlen(ex_module_build_id(m)) / 2;
		struct ex_module *r;

		for (size_t i = 0; i < n && ours; i++) {
			unsigned byte;

			(void)sscanf(ex_module_build_id(m) + 2 * i, "%2x",
			    &byte);
			id[i] = (uint8_t)byte;
		}
		ex_space_build_id(recorded, "[vdso]", id, 20);
		learn_map(recorded, 1, &map);
		r = ex_process_module(ex_space_process(recorded, 1), vdso,
		    &vaddr);
		assert_non_null(r);
		if (m->image.size == 0x2000)
			assert_int_equal(ex_module_problem(r) == NULL, ours);
	}
}

/* --- another mount namespace --- */

static void
hide_in_a_namespace(void)
{
	/* what is in "other" shows through in "dir" to this process alone */
	if (unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount(scratch_path("other"), scratch_path("dir"), NULL, MS_BIND,
	    NULL) != 0)
		_exit(126);
}

TEST(looks_in_the_mount_namespace)
{
	struct ex_space *space;
	uint64_t vaddr, bias;
	struct ex_module *m;
	struct victim v;
	pid_t probe = fork();
	int status;

	assert_true(probe >= 0);
	if (probe == 0)
		_exit(unshare(CLONE_NEWNS) == 0 ? 0 : errno);
	assert_int_equal(waitpid(probe, &status, 0), probe);
	if (status != 0) {
		print_message("unshare(CLONE_NEWNS): %s, not tried\n",
		    strerror(WEXITSTATUS(status)));
		skip();
	}
	scratch_run("mkdir dir other && cc -o dir/p p.c && "
	    "cc -g -O3 -o other/p p.c && cp other/p copy && cd other && "
	    "objcopy --only-keep-debug p p.debug && strip p && "
	    "objcopy --add-gnu-debuglink=p.debug p");
	space = kept(ex_space_new(EX_LIVE));
	victim_start(&v, scratch_path("dir/p"), hide_in_a_namespace);
	capture_maps(space, v.pid);
	expect_function(space, &v, "main", NULL);
	m = ex_process_module(ex_space_process(space, v.pid),
	    victim_place(&v, "main"), &vaddr);
	assert_string_equal(ex_module_path(m), scratch_path("dir/p"));
	assert_non_null(ex_module_dwarf(m, &bias));
	victim_end(&v);
}

RUN_TESTS(.before_all = make, .after_all = scratch_remove)
