/*
 * shared_vm: memory that unwatched children share with their parents: after
 * vfork(2) until the child executes a program or ends, and after clone(2) with
 * CLONE_VM and without CLONE_THREAD for longer.  No event sees what such
 * children write.
 */
#ifndef WP_SHARED_VM_H
#define WP_SHARED_VM_H

#include <stdbool.h>
#include <sys/types.h>

enum { WP_LENT_MAX = 32 };

/* All zero: no memory is shared. */
struct wp_shared_vm {
	struct wp_loan {
		pid_t pid, tid;		/* its maker */
		pid_t child;
	} loan[WP_LENT_MAX];
	unsigned n;
	bool more;		/* children for which there was no room */
};

/* Report that a thread made another process, by an unknown system call. */
void wp_shared_vm_add(struct wp_shared_vm *, const struct wp_loan *);

/* Whether a child may still share the memory of process pid (0: of any
   process), according to shares (wp_sharers_has); NULL: that cannot be asked.
   Children that do not share it any more are forgotten. */
bool wp_shared_vm_left(struct wp_shared_vm *, pid_t pid,
    bool (*shares)(pid_t tid, pid_t child));

#endif
