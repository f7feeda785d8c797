/* thread_ids: code that finds out which thread made a hit. */
#include "bpf/code.h"

#include <stddef.h>
#include <sys/stat.h>

/* The first PID namespace has the same inode on every machine. */
#define FIRST_NAMESPACE 0xeffffffc

/* Both helpers store the thread's id, and the process's behind it. */
_Static_assert(offsetof(struct bpf_pidns_info, pid) == 0 &&
    offsetof(struct bpf_pidns_info, tgid) == 4, "in this order");

/* In the first namespace every thread has an id, and finding it takes a tenth
   of the time. */
unsigned
wp_code_thread_ids(struct code *c, int at)
{
	struct stat ns = {.st_dev = 0};

	(void)stat("/proc/self/ns/pid", &ns);
	if (ns.st_ino == FIRST_NAMESPACE) {
		call(c, BPF_FUNC_get_current_pid_tgid);
		store(c, BPF_DW, FP, at, BPF_REG_0);
		return jump(c, BPF_JEQ, BPF_REG_0, 0);
	}
	set_wide(c, BPF_REG_1, 0, ns.st_dev);
	set_wide(c, BPF_REG_2, 0, ns.st_ino);
	copy(c, BPF_REG_3, FP);
	add(c, BPF_REG_3, at);
	set(c, BPF_REG_4, sizeof(struct bpf_pidns_info));
	call(c, BPF_FUNC_get_ns_current_pid_tgid);
	return jump(c, BPF_JNE, BPF_REG_0, 0);
}
