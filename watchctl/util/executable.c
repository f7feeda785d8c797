/* executable: determines what kind of program a command is. */
#include "util/executable.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "os/trap_cpu.h"
#include "util/complain.h"
#include "proc/proc.h"
#include "proc/regular_file.h"

enum {
	SCRIPTS_MAX = 5,	/* scripts' interpreters, as the kernel */
	LINE_MAX_ = 256,	/* its first line */
	HEADERS_MAX = 256,
	ENTRIES_MAX = 4096,	/* of the dynamic section */
};

/* Whether a file can be executed; *err is kept when it only may not. */
static bool
is_executable(const char *path, int *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode) && access(path, X_OK) == 0)
		return true;
	*err = -EACCES;
	return false;
}

int
executable_find(const char *command, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *next;
	int n, err = -ENOENT;

	if (strchr(command, '/') != NULL || *command == '\0') {
		(void)snprintf(path, PATH_MAX, "%s", command);
		return is_executable(path, &err) ? 0 : err;
	}
	for (dirs = dirs != NULL ? dirs : "/bin:/usr/bin"; dirs != NULL;
	    dirs = next) {
		size_t len = strcspn(dirs, ":");

		next = dirs[len] == ':' ? dirs + len + 1 : NULL;
		n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, dirs,
		    len > 0 ? "/" : "", command);
		if (n > 0 && n < PATH_MAX && is_executable(path, &err))
			return 0;
	}
	return err;
}

/* The capabilities that a file gives to a process that executes it. */
static uint64_t
capabilities_of(const char *path)
{
	struct vfs_ns_cap_data data = {0};

	if (getxattr(path, "security.capability", &data, sizeof(data)) <= 0)
		return 0;
	return (uint64_t)data.data[1].permitted << 32 | data.data[0].permitted;
}

/* The privileges of a process that a file can change. */
struct privileges {
	uid_t uid;		/* effective, as gid */
	gid_t gid;
	uint64_t capabilities;	/* permitted */
};

/* Whether executing a file gives more privileges than these. */
static bool
gives_privileges(const char *path, const struct privileges *have)
{
	struct statvfs mount;
	struct stat st;

	return stat(path, &st) == 0 && statvfs(path, &mount) == 0 &&
	    (mount.f_flag & ST_NOSUID) == 0 &&
	    (((st.st_mode & S_ISUID) != 0 && st.st_uid != have->uid) ||
	    ((st.st_mode & S_ISGID) != 0 && (st.st_mode & S_IXGRP) != 0 &&
	    st.st_gid != have->gid) ||
	    (capabilities_of(path) & ~have->capabilities) != 0);
}

/* Get the privileges of a process.  False: executing a file cannot give it
   more, or they are not known. */
static bool
privileges_of(pid_t pid, struct privileges *have)
{
	const char *uid, *gid, *capabilities;
	char text[8192];

	if (wp_proc_text(pid, "status", text, sizeof(text)) <= 0 ||
	    strstr(text, "\nNoNewPrivs:\t1") != NULL ||
	    (uid = strstr(text, "\nUid:")) == NULL ||
	    (gid = strstr(text, "\nGid:")) == NULL ||
	    (capabilities = strstr(text, "\nCapPrm:")) == NULL)
		return false;
	return sscanf(uid, " Uid: %*u %u", &have->uid) == 1 &&
	    sscanf(gid, " Gid: %*u %u", &have->gid) == 1 &&
	    sscanf(capabilities, " CapPrm: %" SCNx64,
	    &have->capabilities) == 1;
}

bool
executable_lost_privileges(pid_t pid)
{
	struct privileges have;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return privileges_of(pid, &have) && gives_privileges(path, &have);
}

/* An ELF file, of 64 or 32 bits. */
struct elf_file {
	int fd;
	bool narrow;
	uint64_t at;		/* of its program headers */
	unsigned n, size;	/* of these, and of one */
};

/* The parts of such a file that are read. */
union elf {
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;
};

static bool
read_at(const struct elf_file *program, void *to, size_t size, uint64_t at)
{
	return at <= INT64_MAX &&
	    pread(program->fd, to, size, (off_t)at) == (ssize_t)size;
}

/* Whether there is a program header of this type; *at is the offset in the file
   of the content of the first one. */
static bool
find_header(const struct elf_file *program, uint32_t type, uint64_t *at)
{
	union {
		Elf64_Phdr wide;
		Elf32_Phdr narrow;
	} header;
	const size_t size = program->narrow ? sizeof(header.narrow) :
	    sizeof(header.wide);

	if (program->size != size)
		return false;
	for (unsigned i = 0; i < program->n && i < HEADERS_MAX; i++) {
		if (!read_at(program, &header, size, program->at + i * size))
			return false;
		*at = program->narrow ? header.narrow.p_offset :
		    header.wide.p_offset;
		if (header.wide.p_type == type)	/* first in both */
			return true;
	}
	return false;
}

/* Whether the program needs libraries that the dynamic loader loads. */
static bool
needs_library(const struct elf_file *program)
{
	union {
		Elf64_Dyn wide;
		Elf32_Dyn narrow;
	} entry;
	const size_t size = program->narrow ? sizeof(entry.narrow) :
	    sizeof(entry.wide);
	int64_t tag = DT_NULL;
	unsigned i = 0;
	uint64_t at;

	if (!find_header(program, PT_DYNAMIC, &at))
		return false;
	do {
		if (!read_at(program, &entry, size, at + i * size))
			return false;
		tag = program->narrow ? entry.narrow.d_tag : entry.wide.d_tag;
	} while (tag != DT_NULL && tag != DT_NEEDED && ++i < ENTRIES_MAX);
	return tag == DT_NEEDED;
}

/* Read the ELF header of a program.  False: it is for another processor. */
static bool
describe(int fd, const union elf *elf, struct elf_file *program)
{
	*program = (struct elf_file){
		.fd = fd, .narrow = elf->wide.e_ident[EI_CLASS] == ELFCLASS32,
	};
	if (program->narrow) {
		program->at = elf->narrow.e_phoff;
		program->n = elf->narrow.e_phnum;
		program->size = elf->narrow.e_phentsize;
		return elf->narrow.e_machine == EXECUTABLE_MACHINE_NARROW;
	}
	program->at = elf->wide.e_phoff;
	program->n = elf->wide.e_phnum;
	program->size = elf->wide.e_phentsize;
	return elf->wide.e_machine == EXECUTABLE_MACHINE;
}

static int
check_elf(const char *path, int fd, const union elf *elf, bool *narrow)
{
	struct privileges have;
	struct elf_file program;
	uint64_t at;

	if (!describe(fd, elf, &program))
		return complain("%s: not a 64-bit program of this processor, "
		    "as libwatchpoint is: %s", path, wp_cpu_watches_narrow() ?
		    "leave out --inside" : "use a 64-bit build of it");
	if (!find_header(&program, PT_INTERP, &at))
		return complain("%s: statically linked, and so takes no "
		    "library to watch it from inside: leave out --inside",
		    path);
	if (!needs_library(&program))
		return complain("%s: needs no library, as Go programs without "
		    "cgo do, so it would set handlers of signals unnoticed, "
		    "and could end at a hit: leave out --inside", path);
	if (privileges_of(getpid(), &have) && gives_privileges(path, &have))
		return complain("%s: runs with privileges of its own "
		    "(set-user-ID, set-group-ID or capabilities), and so takes "
		    "no library to watch it from inside", path);
	*narrow = program.narrow;
	return 0;
}

/* The interpreter that a script's first line names; false: it is no script. */
static bool
interpreter(const char *line, char path[PATH_MAX])
{
	size_t len;

	if (strncmp(line, "#!", 2) != 0)
		return false;
	line += 2 + strspn(line + 2, " \t");
	len = strcspn(line, " \t\n");
	(void)snprintf(path, PATH_MAX, "%.*s", (int)len, line);
	return len > 0;
}

int
executable_check(const char *path, bool *narrow)
{
	char name[PATH_MAX];
	union {
		union elf elf;
		char line[LINE_MAX_ + 1];
	} head;
	ssize_t n;
	int err = 0, fd;

	*narrow = false;
	(void)snprintf(name, sizeof(name), "%s", path);
	for (unsigned i = 0; i <= SCRIPTS_MAX; i++) {
		memset(&head, 0, sizeof(head));
		if ((fd = wp_open_regular(name)) < 0)
			return 0;
		n = pread(fd, &head, LINE_MAX_, 0);
		if (n >= (ssize_t)sizeof(head.elf) &&
		    memcmp(head.line, ELFMAG, SELFMAG) == 0)
			err = check_elf(name, fd, &head.elf, narrow);
		(void)close(fd);
		if (!interpreter(head.line, name))
			break;
	}
	return err < 0 ? -ENOEXEC : 0;
}

int
executable_companion(const char *const *places, size_t n,
    const char *installed, char path[PATH_MAX])
{
	char self[PATH_MAX], name[2 * PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *end;

	self[len > 0 ? len : 0] = '\0';
	if ((end = strrchr(self, '/')) != NULL)
		*end = '\0';
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", self, places[i]);
		if (realpath(name, path) != NULL)
			return 0;
	}
	return realpath(installed, path) == NULL ? -ENOENT : 0;
}
