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

/* What a process has, as far as a file may give it. */
struct privileges {
	uid_t uid;		/* effective, as gid */
	gid_t gid;
	uint64_t capabilities;	/* permitted */
};

/* Whether a file gives privileges beyond those. */
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

/* What a process has, if executing a file may give it more; false: it may not,
   or that is not known. */
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

/* Whether there is a program header of this type, the first of which is it. */
static bool
find_header(int fd, const Elf64_Ehdr *elf, uint32_t type, Elf64_Phdr *header)
{
	for (unsigned i = 0; i < elf->e_phnum && i < HEADERS_MAX; i++) {
		off_t at = (off_t)(elf->e_phoff + i * sizeof(*header));

		if (at < 0 || pread(fd, header, sizeof(*header), at) !=
		    (ssize_t)sizeof(*header))
			return false;
		if (header->p_type == type)
			return true;
	}
	return false;
}

/* Whether the dynamic loader is to load a library for it. */
static bool
needs_library(int fd, const Elf64_Ehdr *elf)
{
	Elf64_Phdr header;
	Elf64_Dyn entry = {.d_tag = DT_NULL};
	unsigned i = 0;

	if (!find_header(fd, elf, PT_DYNAMIC, &header))
		return false;
	do {
		off_t at = (off_t)(header.p_offset + i * sizeof(entry));

		if (at < 0 || pread(fd, &entry, sizeof(entry), at) !=
		    (ssize_t)sizeof(entry))
			return false;
	} while (entry.d_tag != DT_NULL && entry.d_tag != DT_NEEDED &&
	    ++i < ENTRIES_MAX);
	return entry.d_tag == DT_NEEDED;
}

static int
check_elf(const char *path, int fd, const Elf64_Ehdr *elf)
{
	struct privileges have;
	Elf64_Phdr header;

	if (elf->e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf->e_machine != EXECUTABLE_MACHINE)
		return complain("%s: not a 64-bit program of this processor, "
		    "as libwatchpoint is: leave out --inside", path);
	if (elf->e_phentsize != sizeof(Elf64_Phdr) || !find_header(
	    fd, elf, PT_INTERP, &header))
		return complain("%s: statically linked, and so takes no "
		    "library to watch it from inside: leave out --inside",
		    path);
	if (!needs_library(fd, elf))
		return complain("%s: needs no library, as Go programs without "
		    "cgo do, so it would set handlers of signals unnoticed, "
		    "and could end at a hit: leave out --inside", path);
	if (privileges_of(getpid(), &have) && gives_privileges(path, &have))
		return complain("%s: runs with privileges of its own "
		    "(set-user-ID, set-group-ID or capabilities), and so takes "
		    "no library to watch it from inside", path);
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
executable_check(const char *path)
{
	char name[PATH_MAX];
	union {
		Elf64_Ehdr elf;
		char line[LINE_MAX_ + 1];
	} head;
	ssize_t n;
	int err = 0, fd;

	(void)snprintf(name, sizeof(name), "%s", path);
	for (unsigned i = 0; i <= SCRIPTS_MAX; i++) {
		memset(&head, 0, sizeof(head));
		if ((fd = wp_open_regular(name)) < 0)
			return 0;
		n = pread(fd, &head, LINE_MAX_, 0);
		if (n >= (ssize_t)sizeof(head.elf) &&
		    memcmp(head.elf.e_ident, ELFMAG, SELFMAG) == 0)
			err = check_elf(name, fd, &head.elf);
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
