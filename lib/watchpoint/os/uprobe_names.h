/*
 * uprobe_names: uprobes that have a name in the kernel's tracing file system
 * (tracefs), and whose events children and threads inherit.
 *
 * Overview: an event that is opened by the path of a file makes fork(2) fail
 * where it is inherited; one that is opened by the id of a named uprobe does
 * not.  A name is watchctl/pPID_NUMBER, by the process that made it.  It
 * outlives that process if this is killed.  So whoever makes names first
 * removes all those that no event uses: as an event is opened under the same
 * lock as its name is made, these are of processes that have ended.
 *
 * Two events are needed.  One, on a thread of this process, keeps the name and
 * has the BPF program, which runs for all events of the name: the kernel would
 * detach the program from an inherited event as soon as one of its heirs ends.
 * The other one is inherited.  It asks for PERF_SAMPLE_READ, with which the
 * kernel never exchanges the events of parent and child at a context switch
 * (nr_no_switch_fast): after an exchange the end of the one would remove the
 * uprobes of the other.
 */
#ifndef WP_UPROBE_NAMES_H
#define WP_UPROBE_NAMES_H

#include <stdint.h>
#include <sys/types.h>

struct wp_uprobe_name {
	unsigned number;	/* the number in its name */
	uint64_t id;		/* config of its events */
};

/* Why uprobes cannot follow children here, as the end of a sentence; NULL: they
   can. */
const char *wp_uprobe_names_why_not(void);

/* Name a place of a file.  Result: the event that keeps it, to which the
   program is to be attached; or -errno. */
int wp_uprobe_name_open(struct wp_uprobe_name *, int file, uint64_t offset);

/* Open the event that a thread's children and later threads inherit: a
   descriptor or -errno. */
int wp_uprobe_name_follow(const struct wp_uprobe_name *, pid_t tid);

/* Remove a name, when all events of it are closed. */
void wp_uprobe_name_remove(unsigned number);

#endif
