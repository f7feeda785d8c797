/*
 * core: a core file of a live process.
 *
 * Overview.  The mappings are listed, and of each it is decided how much of it
 * is written, by the kernel's rules (vma_dump_size in fs/coredump.c, and
 * core(5) on the filter).  Then the file is written from its front:
 *
 *	ELF header
 *	program headers		one for the notes, one for each mapping
 *	section header		only if there are too many of those
 *	notes			registers and more, thread by thread
 *	memory			by pages; those of zeros are holes
 */
#include "action/core.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "util/buffer.h"
#include "util/executable.h"
#include "proc/proc.h"
#include "ptrace/ptrace.h"

/* Bits of the filter: core(5). */
enum {
	ANON_PRIVATE = 1 << 0,
	ANON_SHARED = 1 << 1,
	MAPPED_PRIVATE = 1 << 2,
	MAPPED_SHARED = 1 << 3,
	ELF_HEADERS = 1 << 4,
	HUGE_PRIVATE = 1 << 5,
	HUGE_SHARED = 1 << 6,
	FILTER_DEFAULT = ANON_PRIVATE | ANON_SHARED | ELF_HEADERS |
	    HUGE_PRIVATE,
};

enum {
	CHUNK = 1 << 20,	/* bytes of memory read at once */
	SET_MAX = 32 << 10,	/* of a register set */
};

struct load {
	uint64_t start, end;
	uint64_t size;		/* bytes to be written, from start on */
	uint64_t at;		/* offset in the file */
	unsigned prot;		/* PROT_* */
	bool sparse;		/* pages that are not in memory are zero */
};

struct core {
	const struct core_of *of;
	struct core_size *account;
	int fd;
	unsigned filter;
	uint64_t page;
	struct load *load;	/* nloads of them */
	size_t nloads, cap;
	uint64_t nfiles;	/* mapped files listed in NT_FILE: */
	struct buffer ranges, names;
	struct buffer notes;
	int pagemap;
	uint8_t *chunk;		/* CHUNK bytes */
};

/* --- what is written of the memory --- */

static bool
is_named(const struct wp_proc_map *map, const char *prefix)
{
	return strncmp(map->path, prefix, strlen(prefix)) == 0;
}

/* Memory that only the process itself fills. */
static bool
is_plain(const struct wp_proc_map *map)
{
	return map->ino == 0 && !map->shared && (*map->path == '\0' ||
	    is_named(map, "[heap]") || is_named(map, "[stack") ||
	    is_named(map, "[anon:"));
}

/* Whether the mapping starts with an ELF header. */
static bool
has_elf_header(const struct core *core, const struct wp_proc_map *map)
{
	char magic[SELFMAG];

	return map->ino != 0 && map->offset == 0 &&
	    (map->prot & PROT_READ) != 0 && wp_proc_read(core->of->pid,
	    map->start, magic, SELFMAG) == SELFMAG &&
	    memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* The bits of the filter that include a mapping. */
static unsigned
filter_bits(const struct wp_proc_map *map, const struct wp_proc_usage *usage)
{
	if (usage->huge)
		return map->shared ? HUGE_SHARED : HUGE_PRIVATE;
	if (map->shared)
		return map->ino == 0 || map->deleted ? ANON_SHARED :
		    MAPPED_SHARED;
	return (usage->own > 0 ? ANON_PRIVATE : 0u) |
	    (map->ino != 0 ? MAPPED_PRIVATE : 0u);
}

/* The number of bytes of a mapping that belong in the file. */
static uint64_t
wanted(const struct core *core, const struct wp_proc_map *map,
    const struct wp_proc_usage *usage)
{
	const uint64_t all = map->end - map->start;

	if (is_named(map, "[vdso]"))
		return all;
	if (usage->io || usage->no_dump)
		return 0;
	if ((core->filter & filter_bits(map, usage)) != 0)
		return all;
	if ((core->filter & ELF_HEADERS) != 0 && !map->shared && !usage->huge &&
	    has_elf_header(core, map))
		return core->page;
	return 0;
}

static void
put_word(struct buffer *b, uint64_t word)
{
	buffer_put(b, &word, sizeof(word));
}

static void
add_file(struct core *core, const struct wp_proc_map *map)
{
	put_word(&core->ranges, map->start);
	put_word(&core->ranges, map->end);
	put_word(&core->ranges, map->offset / core->page);
	buffer_put(&core->names, map->path, strlen(map->path) + 1);
	core->nfiles++;
}

/* Called for each mapping, in order. */
static int
add_load(void *arg, const struct wp_proc_map *map,
    const struct wp_proc_usage *usage)
{
	struct core *core = arg;

	if (is_named(map, "[vsyscall]"))	/* belongs to the kernel */
		return 0;
	if (!ex_array_room(&core->load, core->nloads, 1, &core->cap,
	    sizeof(*core->load), SIZE_MAX))
		return -ENOMEM;
	core->load[core->nloads++] = (struct load){
		.start = map->start, .end = map->end, .prot = map->prot,
		.size = wanted(core, map, usage), .sparse = is_plain(map),
	};
	if (map->ino != 0)
		add_file(core, map);
	return 0;
}

static unsigned
filter_of(pid_t pid)
{
	char text[32];

	return wp_proc_text(pid, "coredump_filter", text, sizeof(text)) > 0 ?
	    (unsigned)strtoul(text, NULL, 16) : (unsigned)FILTER_DEFAULT;
}

/* --- notes --- */

static void
put_padded(struct buffer *b, const void *bytes, size_t len)
{
	buffer_put(b, bytes, len);
	buffer_fill(b, '\0', -len % 4);
}

static void
put_note(struct core *core, const char *name, unsigned type, const void *desc,
    size_t len)
{
	const Elf64_Nhdr header = {
		.n_namesz = (Elf64_Word)strlen(name) + 1,
		.n_descsz = (Elf64_Word)len, .n_type = type,
	};

	buffer_put(&core->notes, &header, sizeof(header));
	put_padded(&core->notes, name, header.n_namesz);
	put_padded(&core->notes, desc, len);
}

/* Fields of stat that follow the name; the name may contain anything, but no
   bracket follows it. */
struct family {
	char state;
	int parent, group, session;
};

static struct family
family_of(pid_t pid)
{
	struct family f = {.state = '?'};
	char text[1024];
	const char *name_end;

	if (wp_proc_text(pid, "stat", text, sizeof(text)) > 0 &&
	    (name_end = strrchr(text, ')')) != NULL)
		(void)sscanf(name_end + 1, " %c %d %d %d", &f.state, &f.parent,
		    &f.group, &f.session);
	return f;
}

/* The process's name, and its arguments separated by blanks. */
static void
put_process(struct core *core, const struct family *family)
{
	const pid_t pid = core->of->pid;
	struct elf_prpsinfo info = {
		.pr_sname = family->state, .pr_pid = pid,
		.pr_ppid = family->parent, .pr_pgrp = family->group,
		.pr_sid = family->session,
	};
	struct wp_proc_status status;
	char text[sizeof(info.pr_psargs)];
	ssize_t n;

	if (wp_proc_status(pid, &status) == 0) {
		info.pr_uid = status.uid;
		info.pr_gid = status.gid;
		memcpy(info.pr_fname, status.comm, sizeof(info.pr_fname) - 1);
	}
	n = wp_proc_text(pid, "cmdline", text, sizeof(text));
	for (ssize_t i = 0; i < n; i++)
		info.pr_psargs[i] = text[i];
	for (ssize_t i = 0; i + 1 < n; i++)
		if (info.pr_psargs[i] == '\0')
			info.pr_psargs[i] = ' ';
	put_note(core, "CORE", NT_PRPSINFO, &info, sizeof(info));
}

static void
put_auxv(struct core *core)
{
	char text[4096 + 1];
	ssize_t n = wp_proc_text(core->of->pid, "auxv", text, sizeof(text));

	if (n > 0)
		put_note(core, "CORE", NT_AUXV, text, (size_t)n);
}

/* count, page size, count times (start, end, page in the file), then the
   names. */
static void
put_files(struct core *core)
{
	struct buffer b = {0};

	put_word(&b, core->nfiles);
	put_word(&b, core->page);
	buffer_put(&b, core->ranges.bytes, core->ranges.len);
	buffer_put(&b, core->names.bytes, core->names.len);
	if (!b.failed && !core->ranges.failed && !core->names.failed)
		put_note(core, "CORE", NT_FILE, b.bytes, b.len);
	else
		core->notes.failed = true;
	buffer_free(&b);
}

/* Add the other register sets of a thread.  Sets that the processor does not
   have are refused. */
static void
put_sets(struct core *core, pid_t tid)
{
	static const struct {
		const char *name;
		unsigned set;
	} sets[] = {
		{"CORE", NT_PRFPREG}, {"LINUX", NT_X86_XSTATE},
		{"LINUX", NT_ARM_TLS}, {"LINUX", NT_ARM_SVE},
		{"LINUX", NT_ARM_PAC_MASK},
	};
	uint8_t bytes[SET_MAX];

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		ssize_t n = wp_trace_regset(tid, sets[i].set, bytes,
		    sizeof(bytes));

		if (n > 0)
			put_note(core, sets[i].name, sets[i].set, bytes,
			    (size_t)n);
	}
}

/* Add the general registers, which start the notes of a thread.  As in the
   kernel's core files every thread has the signal.  Returns 0 or -errno. */
static int
put_registers(struct core *core, pid_t tid, const struct family *family)
{
	const int sig = core->of->why.si_signo;
	struct elf_prstatus status = {
		.pr_info = {.si_signo = sig}, .pr_cursig = (short)sig,
		.pr_sighold = wp_trace_blocked(tid), .pr_pid = tid,
		.pr_ppid = family->parent, .pr_pgrp = family->group,
		.pr_sid = family->session, .pr_fpvalid = 1,
	};
	ssize_t n = wp_trace_regset(tid, NT_PRSTATUS, &status.pr_reg,
	    sizeof(status.pr_reg));

	if (n < 0)
		return (int)n;
	if ((size_t)n != sizeof(status.pr_reg))
		return -ENOTSUP;
	put_note(core, "CORE", NT_PRSTATUS, &status, sizeof(status));
	core->account->threads++;
	return 0;
}

static int
put_others(struct core *core, const struct family *family)
{
	pid_t *tids = NULL;
	size_t cap = 0;
	int err = 0, n = wp_proc_threads(core->of->pid, &tids, &cap);

	for (int i = 0; i < n && (err == 0 || err == -ESRCH); i++) {
		/* a first thread that has ended stays until the last has */
		if (tids[i] == core->of->tid || wp_proc_exiting(tids[i]))
			continue;
		if ((err = put_registers(core, tids[i], family)) == 0)
			put_sets(core, tids[i]);
		else
			core->account->missing++;
	}
	free(tids);
	return n < 0 ? n : err == -ESRCH ? 0 : err;
}

/* Readers take the description of the process from the first thread. */
static int
put_notes(struct core *core)
{
	const struct family family = family_of(core->of->pid);
	int err = put_registers(core, core->of->tid, &family);

	if (err < 0)
		return err;
	put_process(core, &family);
	put_note(core, "CORE", NT_SIGINFO, &core->of->why,
	    sizeof(core->of->why));
	put_auxv(core);
	put_files(core);
	put_sets(core, core->of->tid);
	err = put_others(core, &family);
	return err < 0 ? err : buffer_commit(&core->notes, 0);
}

/* --- headers --- */

static unsigned
flags_of(unsigned prot)
{
	return ((prot & PROT_READ) != 0 ? PF_R : 0u) |
	    ((prot & PROT_WRITE) != 0 ? PF_W : 0u) |
	    ((prot & PROT_EXEC) != 0 ? PF_X : 0u);
}

/* Memory starts on a page boundary. */
static uint64_t
place_loads(struct core *core, uint64_t at)
{
	at += -at % core->page;
	for (size_t i = 0; i < core->nloads; i++) {
		core->load[i].at = at;
		at += core->load[i].size;
	}
	return at;
}

/* If the number does not fit e_phnum, it is in section header 0: elf(5). */
static void
put_elf_header(struct buffer *b, size_t nheaders)
{
	const bool many = nheaders >= PN_XNUM;
	const Elf64_Ehdr elf = {
		.e_ident = {
			ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE,
		},
		.e_type = ET_CORE, .e_machine = EXECUTABLE_MACHINE,
		.e_version = EV_CURRENT, .e_phoff = sizeof(elf),
		.e_ehsize = sizeof(elf), .e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = many ? PN_XNUM : (Elf64_Half)nheaders,
		.e_shentsize = many ? sizeof(Elf64_Shdr) : 0, .e_shnum = many,
		.e_shoff = many ? sizeof(elf) + nheaders * sizeof(Elf64_Phdr) :
		    0,
	};

	buffer_put(b, &elf, sizeof(elf));
}

/* Put everything before the memory, whose place is known. */
static void
put_headers(struct core *core, struct buffer *b)
{
	const size_t nheaders = core->nloads + 1;
	const bool many = nheaders >= PN_XNUM;
	const Elf64_Shdr count = {
		.sh_info = (Elf64_Word)nheaders, .sh_size = 1,
	};
	Elf64_Phdr header = {
		.p_type = PT_NOTE, .p_filesz = core->notes.len, .p_align = 4,
		.p_offset = sizeof(Elf64_Ehdr) + nheaders * sizeof(header) +
		    (many ? sizeof(count) : 0),
	};

	core->account->bytes = place_loads(core,
	    header.p_offset + header.p_filesz);
	put_elf_header(b, nheaders);
	buffer_put(b, &header, sizeof(header));
	for (size_t i = 0; i < core->nloads; i++) {
		const struct load *load = &core->load[i];

		header = (Elf64_Phdr){
			.p_type = PT_LOAD, .p_flags = flags_of(load->prot),
			.p_offset = load->at, .p_vaddr = load->start,
			.p_filesz = load->size, .p_align = core->page,
			.p_memsz = load->end - load->start,
		};
		buffer_put(b, &header, sizeof(header));
	}
	if (many)
		buffer_put(b, &count, sizeof(count));
	buffer_put(b, core->notes.bytes, core->notes.len);
}

/* --- the file --- */

static int
write_at(struct core *core, const void *bytes, size_t len, uint64_t at)
{
	const uint8_t *from = bytes;

	core->account->used += len;
	while (len > 0) {
		ssize_t n = pwrite(core->fd, from, len, (off_t)at);

		if (n < 0 && errno != EINTR)
			return -errno;
		n = n < 0 ? 0 : n;
		from += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool
is_zero(const uint8_t *bytes, size_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Write len bytes of the chunk except pages of zeros. */
static int
write_chunk(struct core *core, size_t len, uint64_t at)
{
	size_t begun = 0, next;
	int err = 0;

	for (size_t i = 0; i < len && err == 0; i = next) {
		next = i + core->page < len ? i + core->page : len;
		if (!is_zero(core->chunk + i, next - i))
			continue;
		err = write_at(core, core->chunk + begun, i - begun,
		    at + begun);
		begun = next;
	}
	return err < 0 ? err : write_at(core, core->chunk + begun, len - begun,
	    at + begun);
}

/* Copy at most a chunk of memory.  Returns how much has been handled, or
   -errno.  What cannot be read, such as pages after the end of a mapped file,
   remains a hole. */
static int64_t
copy_some(struct core *core, const struct load *load, uint64_t addr,
    uint64_t len)
{
	ssize_t n;
	int err;

	if (core->of->give_up != NULL && core->of->give_up(core->of->arg))
		return -EINTR;
	n = wp_proc_read(core->of->pid, addr, core->chunk,
	    len < CHUNK ? len : CHUNK);
	if (n <= 0)
		return wp_proc_exiting(core->of->tid) ? -ESRCH :
		    (int64_t)(core->page - addr % core->page);
	err = write_chunk(core, (size_t)n, load->at + (addr - load->start));
	return err < 0 ? err : n;
}

static int
copy_range(struct core *core, const struct load *load, uint64_t addr,
    uint64_t end)
{
	while (addr < end) {
		int64_t done = copy_some(core, load, addr, end - addr);

		if (done < 0)
			return (int)done;
		addr += (uint64_t)done;
	}
	return 0;
}

static int
copy_load(struct core *core, const struct load *load)
{
	const uint64_t end = load->start + load->size;
	uint64_t from = load->start, to = end;
	int err = 0;

	if (!load->sparse || core->pagemap < 0)
		return copy_range(core, load, from, end);
	while (err == 0 && wp_proc_pages(core->pagemap, &from, &to)) {
		err = copy_range(core, load, from, to);
		from = to;
		to = end;
	}
	return err;
}

/* Writing a file beyond the limit raises a signal that would end the
   process. */
static int
may_write(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur ?
	    -EFBIG : 0;
}

static int
write_file(struct core *core)
{
	struct buffer front = {0};
	int err;

	put_headers(core, &front);
	if ((err = buffer_commit(&front, 0)) == 0 &&
	    (err = may_write(core->account->bytes)) == 0 &&
	    ftruncate(core->fd, (off_t)core->account->bytes) < 0)
		err = -errno;
	if (err == 0)
		err = write_at(core, front.bytes, front.len, 0);
	buffer_free(&front);
	for (size_t i = 0; i < core->nloads && err == 0; i++)
		err = copy_load(core, &core->load[i]);
	return err;
}

int
core_write(int fd, const struct core_of *of, struct core_size *account)
{
	struct core core = {
		.of = of, .account = account, .fd = fd,
		.filter = filter_of(of->pid),
		.page = (uint64_t)sysconf(_SC_PAGESIZE),
		.pagemap = wp_proc_pagemap(of->pid), .chunk = malloc(CHUNK),
	};
	int err = core.chunk == NULL ? -ENOMEM : 0;

	*account = (struct core_size){0};
	if (err == 0)
		err = wp_proc_smaps(of->pid, add_load, &core);
	if (err == 0)
		err = put_notes(&core);
	if (err == 0)
		err = write_file(&core);
	if (core.pagemap >= 0)
		(void)close(core.pagemap);
	buffer_free(&core.ranges);
	buffer_free(&core.names);
	buffer_free(&core.notes);
	free(core.load);
	free(core.chunk);
	return err;
}
