/*
 * uprobe_guard: the check with which each program of a uprobe begins.
 *
 * The kernel puts a uprobe into a file, and runs its programs wherever a
 * process that it is opened for maps that place of the file.  So each program
 * checks that the address is the one that is watched, and that the process is:
 * a child of vfork(2) shares its parent's memory.
 */
#ifndef WP_UPROBE_GUARD_H
#define WP_UPROBE_GUARD_H

#include <stdint.h>
#include <sys/types.h>

struct code;

/* The memory that user space and the programs of one place share. */
struct wp_guarded {
	uint64_t on;		/* whether the programs run */
	uint64_t count;		/* the hits; each is counted before anything
				   else */
};

struct wp_uprobe_guard {
	uint64_t addr;
	pid_t pid;		/* 0: the kernel runs the programs for those
				   processes only that are watched */
	int map;		/* an array that can be mapped */
	unsigned index;		/* the index of its struct wp_guarded in the
				   array */
};

/* Generate code that ends the program unless this is a hit, and counts the hit.
   R6 holds the program's context; the other registers are changed, and the end
   of the stack holds the thread's ID and, behind it, the process's. */
void wp_code_guard(struct code *, const struct wp_uprobe_guard *);

/* Generate a jump that is taken if another process runs.  The end of the stack
   holds the thread's ID and, behind it, the process's; R0 to R5 are changed. */
void wp_code_unless_process(struct code *, pid_t, unsigned other[2]);

/* When the process executes another program, turn off the programs of this
   guard and the n - 1 next ones before that program begins, until the
   descriptor is closed.  A descriptor or -errno. */
int wp_uprobe_guard_programs(const struct wp_uprobe_guard *, unsigned n);

#endif
