/*
 * executable: determines what kind of program a command is, before it is
 * executed; and finds the files that are installed with this program.
 */
#ifndef EXECUTABLE_H
#define EXECUTABLE_H

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The processor, as ELF files name it; and that of 32-bit programs, for which
   there is a library. */
#if defined(__x86_64__)
#define EXECUTABLE_MACHINE EM_X86_64
#define EXECUTABLE_MACHINE_NARROW EM_386
#elif defined(__aarch64__)
#define EXECUTABLE_MACHINE EM_AARCH64
#define EXECUTABLE_MACHINE_NARROW EM_NONE
#endif

/*
 * Find a command as execvp(3) does.  0; -ENOENT if it does not exist; -EACCES
 * if it may not be executed.
 */
int executable_find(const char *command, char path[PATH_MAX]);

/*
 * Whether the dynamic loader can put a library of ours into a program (or into
 * the interpreter of a script); *narrow: it has to be one for 32-bit programs.
 * 0, or -ENOEXEC after a line on stderr.  A file that cannot be read passes.
 */
int executable_check(const char *path, bool *narrow);

/* Whether a process that has just executed a program did not get the privileges
   that its file gives, because an ordinary user traces it.  False also if the
   file gives none, or that is not known. */
bool executable_lost_privileges(pid_t);

/* Find a file that comes with watchctl: at one of n places relative to the
   directory of this program (built or installed), or else at its installed
   path.  0 or -ENOENT. */
int executable_companion(const char *const *places, size_t n,
    const char *installed, char path[PATH_MAX]);

#endif
