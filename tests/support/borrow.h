/* borrow: maps memory that watchctl shares with its BPF programs, to examine
   it. */
#ifndef BORROW_H
#define BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BORROW_DESCRIPTORS = 1024 };	/* most descriptors of watchctl */

/* Whether a descriptor of a process is a map of values of this size. */
static inline bool
borrow_is_map(const char *info, size_t wanted)
{
	char line[256];
	FILE *f = fopen(info, "re");
	size_t size = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "value_size: %zu", &size);
	if (f != NULL)
		(void)fclose(f);
	return size == wanted;
}

/* Map that of watchctl; NULL: it has none. */
static inline const void *
borrow_map(pid_t pid, size_t size)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	char info[64];
	void *at;
	int map = -1;

	assert_true(pidfd >= 0);
	for (int fd = 0; map < 0 && fd < BORROW_DESCRIPTORS; fd++) {
		(void)snprintf(info, sizeof(info), "/proc/%d/fdinfo/%d",
		    (int)pid, fd);
		if (borrow_is_map(info, size))
			map = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	}
	(void)close(pidfd);
	if (map < 0)
		return NULL;
	at = mmap(NULL, size, PROT_READ, MAP_SHARED, map, 0);
	(void)close(map);
	return at == MAP_FAILED ? NULL : at;
}

static inline void
borrow_end(const void *at, size_t size)
{
	(void)munmap((void *)(uintptr_t)at, size);
}

#endif
