/*
 * proc: reads /proc/PID.  No other file does.
 *
 * The results are snapshots, because the process continues in the meantime.
 * Functions return 0 (or a count) or -errno; -ESRCH: no such process or thread.
 */
#ifndef WP_PROC_H
#define WP_PROC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/cause.h"

#pragma GCC visibility push(default)

struct wp_proc_status {
	pid_t tgid;		/* the process a thread belongs to */
	unsigned threads;	/* how many that process has now */
	pid_t inner;		/* the thread's id in its own PID namespace */
	pid_t parent;		/* the process that is notified of its end */
	pid_t tracer;		/* the thread that ptraces it; 0: none */
	uid_t uid;		/* real user id */
	gid_t gid;		/* real group id */
	char state;		/* R, S, D, T, t, Z, X */
	bool kernel_thread;	/* has no memory of its own */
	uint64_t blocked, ignored, caught;	/* signals, bit n-1 for n */
	int seccomp;		/* 0 none, 1 strict, 2 filter; -1 unknown */
	char comm[64];	/* name, at most 15 bytes but for kernel threads */
};

int wp_proc_status(pid_t pid, struct wp_proc_status *);

/* The most that a thread's process has mapped at a time, kB; 0: it has no
   memory (any more).  0 or -errno. */
int wp_proc_peak(pid_t tid, uint64_t *kb);

/* Whether a thread still has its process's memory, as far as /proc shows. */
bool wp_proc_has_memory(pid_t tid);

/* Whether a set of signals, as above, has this one. */
static inline bool
wp_proc_signal_in(uint64_t set, int sig)
{
	return sig > 0 && (set >> (sig - 1) & 1) != 0;
}

/* Whether the C library is creating a thread or a process: meanwhile it blocks
   even the signals that programs cannot block, and the mask does not show what
   the program itself blocks. */
static inline bool
wp_proc_is_making_thread(uint64_t blocked)
{
	return wp_proc_signal_in(blocked, 32) && wp_proc_signal_in(blocked, 33);
}

/* A number of /proc/sys/kernel; INT_MIN: this kernel has no such setting, or it
   cannot be read. */
int wp_proc_setting(const char *name);

/* For how long a thread has run, ns, by the scheduler.  0 or -errno. */
int wp_proc_ran(pid_t tid, uint64_t *ns);

/* Whether there is a /proc at all; and whether a process or thread exists that
   it does not show. */
bool wp_proc_mounted(void);
bool wp_proc_hides(pid_t pid);

/* Whether /proc has our own process ids, not those of an outer PID namespace.
   wp_proc_check returns 0, or -ENOENT with a cause if it has not, or there is
   no /proc. */
bool wp_proc_is_ours(void);
int wp_proc_check(struct wp_cause *);

/* The thread that ptraces it; 0: none, or not known.  Allocates
   nothing. */
pid_t wp_proc_tracer(pid_t tid);

/* The file that wp_proc_caught reads, as a descriptor to close, or -errno.  It
   is valid as long as the process has that id, whatever it executes. */
int wp_proc_caught_open(pid_t pid);

/* The signals below 32 that a process has handlers for at this moment, bit n-1
   for n: in a fourth of the time of wp_proc_status.  0 or -errno. */
int wp_proc_caught(int fd, uint64_t *caught);

/* The processor that a thread of a process ran on last, or < 0. */
int wp_proc_cpu(pid_t pid, pid_t tid);

/* Whether a thread has begun to end: it executes no more code of its program,
   but may still exist for some time.  True if there is no such thread. */
bool wp_proc_exiting(pid_t tid);

/* The signal that ended a process, which has gone or is a zombie; 0: no signal
   did, or it is not known. pidfd refers to the process. */
int wp_proc_killed(pid_t pid, int pidfd);

/* Whether a process has not executed a program since it was created, as seen
   now; a zombie has ended.  *start: when that was, ns of CLOCK_BOOTTIME, to a
   clock tick.  False when there is none. */
bool wp_proc_unexecuted(pid_t pid, uint64_t *start);

/* Whether a process has executed a program, or had done so before it ended: 1
   or 0; -ESRCH: there is not even a zombie. */
int wp_proc_has_executed(pid_t pid);

/* Store the thread ids of a process in *tids (NULL or malloc'd; grown with
   realloc; *cap is its size in elements).  The caller frees it.  Result: their
   number. */
int wp_proc_threads(pid_t pid, pid_t **tids, size_t *cap);

/* The number of threads that a process has now, including those that are
   ending; 0: none. */
int wp_proc_count_threads(pid_t pid);

/* As wp_proc_threads, for the ids of all processes in /proc. */
int wp_proc_processes(pid_t **pids, size_t *cap);

/* Whether a process has several threads. */
bool wp_proc_has_threads(pid_t pid);

/* The first thread of a process may end before the others: then it has no
   memory and no root any more.  Result: one that has, or the first if none
   has. */
pid_t wp_proc_living(pid_t pid);

/* One line of /proc/PID/maps. */
struct wp_proc_map {
	uint64_t start, end, offset;
	unsigned prot;		/* PROT_* */
	bool shared;
	unsigned maj, min;
	uint64_t ino;
	bool deleted;		/* path had " (deleted)", now cut off */
	char path[PATH_MAX + 16];	/* "" anonymous; "[stack]", ... */
};

/* Call fn for each mapping in order; fn's non-zero result ends it and is
   returned. */
int wp_proc_maps(pid_t pid, int (*fn)(void *, const struct wp_proc_map *),
    void *arg);

/* Whether all of these len bytes from *at on are mapped: 1; or 0, and *at is
   the first that is not; or -errno. */
int wp_proc_covers(pid_t pid, uint64_t *at, uint64_t len);

/* The address of the first page of the file whose mapping begins at start. 0 or
   -errno; -ENOENT: it is not a file, or its first page is not mapped at or
   before start. */
int wp_proc_first_page(pid_t pid, uint64_t start, uint64_t *first);

/* Whether others may have mapped some of these bytes too, and write them there;
   true unless it is known that they cannot. */
bool wp_proc_shares(pid_t pid, uint64_t addr, uint64_t len);

/* The mapping that contains these bytes, if it is known that no other process
   can have mapped it; else both are 0. */
void wp_proc_own(pid_t pid, uint64_t addr, uint64_t len, uint64_t *start,
    uint64_t *end);

/* The contents of a mapping, by /proc/PID/smaps. */
struct wp_proc_usage {
	uint64_t present;	/* bytes in memory, or swapped out */
	uint64_t own;		/* those that belong to no file (any more) */
	bool io;		/* it is not memory */
	bool no_dump;		/* not for core files: MADV_DONTDUMP */
	bool huge;		/* huge pages of hugetlbfs */
};

/* As wp_proc_maps, with the contents of each mapping.  This takes the kernel
   some time. */
int wp_proc_smaps(pid_t pid, int (*fn)(void *, const struct wp_proc_map *,
    const struct wp_proc_usage *), void *arg);

/*
 * Narrow start..end, of whole pages in anonymous memory, to the first pages in
 * it that are in memory or swapped out, by a descriptor of wp_proc_pagemap:
 * others are zero, and stay unused when they are not read.  False: none.
 */
int wp_proc_pagemap(pid_t pid);
bool wp_proc_pages(int pagemap, uint64_t *start, uint64_t *end);

/* Read a small file of a process ("auxv", "cmdline", ...), at most size - 1
   bytes, and end it with NUL.  Result: its length. */
ssize_t wp_proc_text(pid_t pid, const char *name, char *to, size_t size);

/* The path of the file that a process executes, as it is in that process's
   root. 0; or -errno, and path is unchanged. */
int wp_proc_exe(pid_t pid, char path[PATH_MAX]);

/* Whether a process executes the file with this device and inode: 1 or 0; or
   -errno. */
int wp_proc_executes(pid_t pid, dev_t dev, ino_t ino);

/* A number that changes whenever the executable mappings of a process
   change. */
int wp_proc_code(pid_t pid, uint64_t *code);

/* A number that changes when a process executes another program; -ENOENT: it is
   doing that now. */
int wp_proc_program(pid_t pid, uint64_t *program);

/* The name of a thread, at most 15 bytes and a NUL. */
int wp_proc_comm(pid_t pid, pid_t tid, char comm[64]);

/* Whether it is a 32-bit program; false also if that cannot be read. */
bool wp_proc_is_narrow(pid_t pid);

/* A value of the auxiliary vector (AT_*). */
int wp_proc_auxv(pid_t pid, uint64_t type, uint64_t *value);

/* The file of a descriptor of a process's thread, or of the process if the
   thread has ended: "/etc/hosts", "socket:[4711]". 0, or -errno: it is not
   open, or size is too small. */
int wp_proc_fd(pid_t pid, pid_t tid, int fd, char *name, size_t size);

/* An O_PATH descriptor of the process's root directory (its mount namespace),
   good after the process has ended; -errno. */
int wp_proc_root(pid_t pid);

/* Open a regular file for reading, below a directory (AT_FDCWD: by the path
   alone).  If ino is not 0, it must have this device and inode, as a mapping
   names them.  Result: a descriptor, or -errno; -ESTALE: it is another file, or
   not a regular one; such a file is not opened, because opening it can have
   effects. */
int wp_proc_open_same(int dir, const char *path, unsigned maj, unsigned min,
    uint64_t ino);

/*
 * Open the file that is mapped at start..end of a process, read-only: by its
 * path under root (a descriptor from wp_proc_root, or -1 for ours) when device
 * and inode still are those, else through /proc/PID/map_files (which reaches
 * deleted and replaced files too, with privilege).  ino 0: not checked.
 * Result: a descriptor, or -errno; -ESTALE: another file has that path now.
 */
int wp_proc_open_mapped(pid_t pid, int root, uint64_t start, uint64_t end,
    const char *path, unsigned maj, unsigned min, uint64_t ino);

/* Open the file whose code is mapped at an address, read-only; *offset: the
   offset in the file of the byte at this address.  A descriptor, or -errno;
   -ENOEXEC: it is no file, or one that is mapped shared. */
int wp_proc_open_code(pid_t pid, uint64_t addr, uint64_t *offset);

/* Whether a process is in our own PID namespace. */
bool wp_proc_has_our_pids(pid_t pid);

/* Read a process's memory (process_vm_readv, else /proc/PID/mem).  Result: the
   number of bytes that could be read from addr on, or -errno if none could. */
ssize_t wp_proc_read(pid_t pid, uint64_t addr, void *to, size_t len);

/* Read n words, at most WP_PROC_WORDS, each at an address of its own.  Result:
   their number, up to the first that cannot be read. */
enum { WP_PROC_WORDS = 64 };
size_t wp_proc_read_words(pid_t pid, const uint64_t *addr, uint64_t *to,
    size_t n);

#pragma GCC visibility pop

#endif
