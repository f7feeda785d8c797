/*
 * core: a debugger finds what it needs in a core file of a live process, and
 * the process does not notice.
 */
#include "test.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "child.h"
#include "action/core.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"
#include "scratch.h"

#define OWN __attribute__((noinline))

enum { THREADS = 4, PATTERN = 0x5ca1ab1e };

/* Kinds of memory. */
enum kind {
	PRIVATE, SPARSE, RESERVED, UNDUMPED, SHARED, FILE_READ, FILE_WRITTEN,
	FILE_SHARED, PROGRAM, KINDS,
};

static struct shared {
	volatile int ready;
	volatile bool end;
	bool plain;			/* no memory but the program's */
	volatile pid_t tid[THREADS];
	volatile unsigned turns[THREADS];
	uint8_t *at[KINDS];		/* four pages, of SPARSE many */
} *shared;

SHARED_FIXTURE

/* The child's is another. */
static volatile long marker = 1;

static const size_t sparse = (size_t)8 << 30;

/* --- the child --- */

static OWN void
stay(volatile unsigned *turns)
{
	while (!shared->end) {
		nap_us(500);
		++*turns;
	}
}

static OWN void
work(unsigned n)
{
	shared->tid[n] = gettid();
	__atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
	stay(&shared->turns[n]);
	__asm__ volatile("");		/* no tail call */
}

static void *
worker(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;

	__asm__ volatile("" : "+r"(n));	/* no copy of it for one n */
	work(n);
	return NULL;
}

static uint8_t *
map(size_t len, int prot, int flags, int fd)
{
	uint8_t *at = mmap(NULL, len, prot, flags |
	    (fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0), fd, 0);

	if (at == MAP_FAILED)
		_exit(1);
	if (fd < 0 && (prot & PROT_WRITE) != 0)
		*(volatile long *)at = PATTERN;
	return at;
}

static void
make_memory(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 4 * page;
	const int rw = PROT_READ | PROT_WRITE;
	int program = open("/proc/self/exe", O_RDONLY);
	int file = open(scratch_path("data"), O_RDWR);
	uint8_t **at = shared->at;

	at[PRIVATE] = map(len, rw, MAP_PRIVATE, -1);
	at[SPARSE] = map(sparse, rw, MAP_PRIVATE, -1);
	*(volatile long *)(at[SPARSE] + sparse / 2) = PATTERN;
	at[RESERVED] = map(len, PROT_NONE, MAP_PRIVATE, -1);
	at[UNDUMPED] = map(len, rw, MAP_PRIVATE, -1);
	(void)madvise(at[UNDUMPED], len, MADV_DONTDUMP);
	at[SHARED] = map(len, rw, MAP_SHARED, -1);
	at[FILE_READ] = map(len, PROT_READ, MAP_PRIVATE, file);
	at[FILE_WRITTEN] = map(len, rw, MAP_PRIVATE, file);
	*(volatile long *)at[FILE_WRITTEN] = PATTERN;
	at[FILE_SHARED] = map(len, PROT_READ, MAP_SHARED, file);
	at[PROGRAM] = map(len, PROT_READ, MAP_PRIVATE, program);
}

static void
filter(const char *text)
{
	int fd = open("/proc/self/coredump_filter", O_WRONLY);

	if (write(fd, text, strlen(text)) < 0)
		_exit(1);
	(void)close(fd);
}

static void
be_many(void *coredump_filter)
{
	pthread_t thread[THREADS];

	marker = 4242;
	filter(coredump_filter);
	if (!shared->plain)
		make_memory();
	for (uintptr_t i = 1; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, worker, (void *)i) != 0)
			_exit(1);
	(void)worker(NULL);
	for (unsigned i = 1; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	_exit(marker == 4242 && (shared->plain ||
	    *(volatile long *)shared->at[PRIVATE] == PATTERN) ? 7 : 1);
}

static pid_t
start_many(const char *coredump_filter)
{
	const pid_t pid = child_start(be_many,
	    (void *)(uintptr_t)coredump_filter);

	await(shared->ready == THREADS);
	return pid;
}

/* It goes on, all of it, to its end. */
static void
expect_untouched(pid_t pid)
{
	unsigned before[THREADS];
	int status;

	for (unsigned i = 0; i < THREADS; i++)
		before[i] = shared->turns[i];
	for (unsigned i = 0; i < THREADS; i++)
		await(shared->turns[i] > before[i]);
	shared->end = true;
	status = child_wait(pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

/* --- writing one --- */

static int core = -1;
static struct core_size size;

static int
write_core(pid_t pid, bool (*give_up)(void *))
{
	const struct core_of of = {
		.pid = pid, .tid = shared->tid[2], .give_up = give_up,
		.why = {
			.si_signo = SIGTRAP, .si_code = TRAP_HWBKPT,
			.si_addr = (void *)(uintptr_t)&marker,
		},
	};
	struct wp_hold hold = {0};
	int err;

	core = open(scratch_path("core"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(core >= 0);
	assert_int_equal(wp_hold_process(&hold, pid), 0);
	err = core_write(core, &of, &size);
	wp_hold_release(&hold);
	return err;
}

static int
begin(void **state)
{
	memset(shared, 0, sizeof(*shared));
	return scratch_make(state);
}

static int
finish(void **state)
{
	if (core >= 0)
		(void)close(core);
	core = -1;
	(void)children_end(state);
	return scratch_remove(state);
}

/* Three pages, so that a fourth of a mapping is behind its end. */
static void
make_data(void)
{
	const size_t len = 3 * (size_t)sysconf(_SC_PAGESIZE);
	char *text = malloc(len + 1);

	assert_non_null(text);
	memset(text, 'x', len);
	text[len] = '\0';
	scratch_write("data", text);
	free(text);
}

/* --- reading it: ELF --- */

/* The load that an address is in. */
static GElf_Phdr
load_of(Elf *elf, uint64_t addr)
{
	size_t n;

	assert_int_equal(elf_getphdrnum(elf, &n), 0);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		assert_non_null(gelf_getphdr(elf, (int)i, &ph));
		if (ph.p_type == PT_LOAD && addr - ph.p_vaddr < ph.p_memsz)
			return ph;
	}
	fail_msg("nothing at %#llx", (unsigned long long)addr);
	return (GElf_Phdr){0};
}

/* Whether a byte of memory is in the file. */
static bool
holds(Elf *elf, const uint8_t *at)
{
	const GElf_Phdr ph = load_of(elf, (uintptr_t)at);

	return (uintptr_t)at - ph.p_vaddr < ph.p_filesz;
}

static long
long_at(Elf *elf, const volatile void *at)
{
	const GElf_Phdr ph = load_of(elf, (uintptr_t)at);
	long value;

	assert_true(holds(elf, (const uint8_t *)(uintptr_t)at));
	assert_int_equal(pread(core, &value, sizeof(value),
	    (off_t)(ph.p_offset + ((uintptr_t)at - ph.p_vaddr))),
	    sizeof(value));
	return value;
}

/* What is expected of a kind: nothing, the first page, all. */
enum part { NONE, PAGE, ALL };

static enum part
part_of(Elf *elf, enum kind kind)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uint8_t *at = shared->at[kind];

	if (holds(elf, at + 3 * page))
		return ALL;
	return holds(elf, at) && !holds(elf, at + page) ? PAGE : NONE;
}

static const struct filtered {
	const char *name, *filter;
	enum part part[KINDS];
} filters[] = {
	{"default", "0x33", {ALL, ALL, NONE, NONE, ALL, NONE, ALL, NONE, PAGE}},
	{"nothing", "0", {NONE}},
	{"shared", "0x02", {[SHARED] = ALL}},
	{"files", "0x0c", {[FILE_READ] = ALL, [FILE_WRITTEN] = ALL,
	    [FILE_SHARED] = ALL, [PROGRAM] = ALL}},
};

static Elf *
open_elf(void)
{
	Elf *elf;

	assert_true(elf_version(EV_CURRENT) != EV_NONE);
	elf = elf_begin(core, ELF_C_READ, NULL);
	assert_non_null(elf);
	return elf;
}

TEST(honours_the_filter)
{
	for (size_t i = 0; i < COUNT(filters); i++) {
		const struct filtered *f = &filters[i];
		pid_t pid;
		Elf *elf;

		memset(shared, 0, sizeof(*shared));
		make_data();
		pid = start_many(f->filter);
		assert_int_equal(write_core(pid, NULL), 0);
		elf = open_elf();
		for (enum kind k = 0; k < KINDS; k++)
			if (part_of(elf, k) != f->part[k])
				fail_msg("%s: kind %d is %d", f->name, k,
				    part_of(elf, k));
		(void)elf_end(elf);
		(void)close(core);
		core = -1;
		expect_untouched(pid);
	}
}

/* A number of kilobytes that status has. */
static unsigned long
kilobytes(pid_t pid, const char *name)
{
	char text[4096];
	const char *at;

	assert_true(wp_proc_text(pid, "status", text, sizeof(text)) > 0);
	at = strstr(text, name);
	assert_non_null(at);
	return strtoul(at + strlen(name), NULL, 10);
}

TEST(holds_the_memory)
{
	unsigned long resident, tables;
	struct stat st;
	pid_t pid;
	Elf *elf;

	make_data();
	pid = start_many("0x33");
	resident = kilobytes(pid, "VmRSS:");
	tables = kilobytes(pid, "VmPTE:");
	assert_int_equal(write_core(pid, NULL), 0);
	/* what was not used is not used now, and takes no room */
	assert_true(kilobytes(pid, "VmRSS:") < resident + 8192);
	assert_true(kilobytes(pid, "VmPTE:") < tables + 1024);
	assert_int_equal(fstat(core, &st), 0);
	assert_int_equal(st.st_size, size.bytes);
	assert_true(size.bytes > sparse);
	assert_true(size.used < sparse / 8);
	assert_true((uint64_t)st.st_blocks * 512 < size.used + (1u << 20));

	elf = open_elf();
	assert_int_equal(long_at(elf, &marker), 4242);
	assert_int_equal(long_at(elf, shared->at[PRIVATE]), PATTERN);
	assert_int_equal(long_at(elf, shared->at[PRIVATE] + 4096), 0);
	assert_int_equal(long_at(elf, shared->at[SPARSE]), PATTERN);
	assert_int_equal(long_at(elf, shared->at[SPARSE] + sparse / 2),
	    PATTERN);
	assert_int_equal(long_at(elf, shared->at[SPARSE] + sparse - 8), 0);
	assert_int_equal(long_at(elf, shared->at[SHARED]), PATTERN);
	assert_int_equal(long_at(elf, shared->at[FILE_WRITTEN]), PATTERN);
	(void)elf_end(elf);
	expect_untouched(pid);
}

/* --- notes --- */

/* What the notes say. */
struct said {
	unsigned threads, sets;		/* NT_PRSTATUS, NT_PRFPREG */
	pid_t first;
	int signal;			/* the last thread's */
	struct elf_prpsinfo info;
	siginfo_t why;
	uint64_t entry;			/* AT_ENTRY */
	bool file;			/* our data is among the files */
};

static void
take_note(struct said *said, unsigned type, const char *desc, size_t len)
{
	struct elf_prstatus status;
	uint64_t pair[2];

	switch (type) {
	case NT_PRSTATUS:
		assert_int_equal(len, sizeof(status));
		memcpy(&status, desc, len);
		if (said->threads++ == 0)
			said->first = status.pr_pid;
		said->signal = status.pr_cursig;
		break;
	case NT_PRFPREG:
		said->sets++;
		break;
	case NT_PRPSINFO:
		assert_int_equal(len, sizeof(said->info));
		memcpy(&said->info, desc, len);
		break;
	case NT_SIGINFO:
		assert_int_equal(len, sizeof(said->why));
		memcpy(&said->why, desc, len);
		break;
	case NT_AUXV:
		for (size_t i = 0; i + sizeof(pair) <= len; i += sizeof(pair)) {
			memcpy(pair, desc + i, sizeof(pair));
			if (pair[0] == AT_ENTRY)
				said->entry = pair[1];
		}
		break;
	case NT_FILE:
		said->file = memmem(desc, len, scratch_path("data"),
		    strlen(scratch_path("data")) + 1) != NULL;
		break;
	default:
		break;
	}
}

static void
read_notes(Elf *elf, struct said *said)
{
	GElf_Phdr ph;
	GElf_Nhdr note;
	size_t name, desc, next = 0;
	Elf_Data *data;

	assert_non_null(gelf_getphdr(elf, 0, &ph));
	assert_int_equal(ph.p_type, PT_NOTE);
	data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
	    ELF_T_NHDR);
	assert_non_null(data);
	while ((next = gelf_getnote(data, next, &note, &name, &desc)) > 0)
		take_note(said, note.n_type, (const char *)data->d_buf + desc,
		    note.n_descsz);
}

TEST(reports_the_process)
{
	struct said said = {0};
	pid_t pid;
	Elf *elf;

	make_data();
	pid = start_many("0x33");
	assert_int_equal(write_core(pid, NULL), 0);
	elf = open_elf();
	read_notes(elf, &said);
	(void)elf_end(elf);
	assert_int_equal(size.threads, THREADS);
	assert_int_equal(size.missing, 0);
	assert_int_equal(said.threads, THREADS);
	assert_int_equal(said.sets, THREADS);
	assert_int_equal(said.first, shared->tid[2]);
	assert_int_equal(said.signal, SIGTRAP);
	assert_int_equal(said.info.pr_pid, pid);
	assert_int_equal(said.info.pr_ppid, getpid());
	assert_int_equal(said.info.pr_uid, getuid());
	assert_int_equal(said.info.pr_gid, getgid());
	assert_string_equal(said.info.pr_fname, program_invocation_short_name);
	assert_holds(said.info.pr_psargs, program_invocation_short_name);
	assert_int_equal(said.why.si_signo, SIGTRAP);
	assert_int_equal(said.why.si_code, TRAP_HWBKPT);
	assert_ptr_equal(said.why.si_addr, &marker);
	assert_int_equal(said.entry, getauxval(AT_ENTRY));
	assert_true(said.file);
	expect_untouched(pid);
}

/* --- reading it: debuggers --- */

/* What of a backtrace is there, innermost first. */
struct walked {
	Dwfl *dwfl;
	unsigned threads;
	pid_t first;
	bool stay, work;		/* of the thread at hand */
};

static int
take_frame(Dwfl_Frame *frame, void *arg)
{
	struct walked *w = arg;
	bool activation;
	const char *name = NULL;
	Dwarf_Addr pc;
	Dwfl_Module *module;

	assert_true(dwfl_frame_pc(frame, &pc, &activation));
	module = dwfl_addrmodule(w->dwfl, pc - !activation);
	if (module != NULL)
		name = dwfl_module_addrname(module, pc - !activation);
	if (name != NULL && strcmp(name, "stay") == 0)
		w->stay = true;
	if (name != NULL && strcmp(name, "work") == 0)
		w->work = w->stay;
	return DWARF_CB_OK;
}

static int
take_thread(Dwfl_Thread *thread, void *arg)
{
	struct walked *w = arg;

	if (w->threads++ == 0)
		w->first = dwfl_thread_tid(thread);
	w->stay = w->work = false;
	(void)dwfl_thread_getframes(thread, take_frame, w);
	if (!w->work)
		fail_msg("thread %d is not where it was",
		    dwfl_thread_tid(thread));
	return DWARF_CB_OK;
}

TEST(is_unwound)
{
	static char *debug_path;
	const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &debug_path,
	};
	struct walked w = {0};
	pid_t pid;
	Elf *elf;

	/* libdwfl takes a second mapping of the program for the program */
	shared->plain = true;
	pid = start_many("0x33");
	assert_int_equal(write_core(pid, NULL), 0);
	elf = open_elf();
	w.dwfl = dwfl_begin(&callbacks);
	assert_non_null(w.dwfl);
	assert_true(dwfl_core_file_report(w.dwfl, elf, NULL) > 0);
	assert_int_equal(dwfl_report_end(w.dwfl, NULL, NULL), 0);
	assert_int_equal(dwfl_core_file_attach(w.dwfl, elf), pid);
	assert_int_equal(dwfl_getthreads(w.dwfl, take_thread, &w), 0);
	assert_int_equal(w.threads, THREADS);
	assert_int_equal(w.first, shared->tid[2]);
	dwfl_end(w.dwfl);
	(void)elf_end(elf);
	expect_untouched(pid);
}

static unsigned
count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		n++;
	return n;
}

TEST(gdb_reads_it)
{
	static char thread[32];
	const char *const expected[] = {
		"signal SIGTRAP", thread, "$1 = 4242", "<marker>", "$3 = 1",
	};
	char program[PATH_MAX] = "", *out;
	pid_t pid;

	make_data();
	assert_true(readlink("/proc/self/exe", program,
	    sizeof(program) - 1) > 0);
	pid = start_many("0x33");
	assert_int_equal(write_core(pid, NULL), 0);
	(void)scratch_try("gdb -q -nx -batch -iex 'set debuginfod enabled off' "
	    "-ex 'info threads' -ex 'thread apply all bt' -ex 'print marker' "
	    "-ex 'print $_siginfo._sifields._sigfault.si_addr' "
	    "-ex 'print $xmm0.v2_int64[0] == $xmm0.v2_int64[0]' "
	    "'%s' core > out 2>&1", program);
	out = scratch_read("out", NULL);
	(void)snprintf(thread, sizeof(thread), "(LWP %d)", shared->tid[2]);
	for (size_t i = 0; i < COUNT(expected); i++)
		if (strstr(out, expected[i]) == NULL)
			fail_msg("no \"%s\"; gdb: %s", expected[i], out);
	assert_int_equal(count(out, " stay ("), THREADS);
	assert_int_equal(count(out, " in work ("), THREADS);
	expect_untouched(pid);
}

/* --- what does not work out --- */

static unsigned asked;
static pid_t victim;

static bool
enough(void *arg)
{
	(void)arg;
	return ++asked == 3;
}

static bool
kill_it(void *arg)
{
	(void)arg;
	if (++asked == 3) {
		(void)kill(victim, SIGKILL);
		while (!wp_proc_exiting(shared->tid[2]))
			nap_us(100);
	}
	return false;
}

TEST(fails_as_it_should)
{
	struct rlimit before, small = {.rlim_cur = 4 << 20};

	make_data();
	victim = start_many("0x33");
	asked = 0;
	assert_int_equal(write_core(victim, enough), -EINTR);
	(void)close(core);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(write_core(victim, NULL), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	(void)close(core);
	asked = 0;
	assert_int_equal(write_core(victim, kill_it), -ESRCH);
	for (unsigned i = 1; i < THREADS; i++)
		assert_int_equal(waitpid(shared->tid[i], NULL, __WALL),
		    shared->tid[i]);
	assert_int_equal(child_wait(victim), SIGKILL);
}

RUN_TESTS(.before_each = begin, .after_each = finish)
