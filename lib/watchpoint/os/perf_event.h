/*
 * perf_event: <linux/perf_event.h>; where the system's is older than Linux 5.13,
 * with what was added until then.  Whether the kernel knows it is found by trying.
 */
#ifndef WP_PERF_EVENT_H
#define WP_PERF_EVENT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0)
#include <linux/perf_event.h>
#else
#define perf_event_attr perf_event_attr_of_system
#include <linux/perf_event.h>
#undef perf_event_attr

/* As of Linux 5.13, include/uapi/linux/perf_event.h. */
struct perf_event_attr {
	__u32 type, size;
	__u64 config;
	union {
		__u64 sample_period, sample_freq;
	};
	__u64 sample_type, read_format;
	__u64 disabled : 1, inherit : 1, pinned : 1, exclusive : 1,
	    exclude_user : 1, exclude_kernel : 1, exclude_hv : 1,
	    exclude_idle : 1, mmap : 1, comm : 1, freq : 1, inherit_stat : 1,
	    enable_on_exec : 1, task : 1, watermark : 1, precise_ip : 2,
	    mmap_data : 1, sample_id_all : 1, exclude_host : 1,
	    exclude_guest : 1, exclude_callchain_kernel : 1,
	    exclude_callchain_user : 1, mmap2 : 1, comm_exec : 1,
	    use_clockid : 1, context_switch : 1, write_backward : 1,
	    namespaces : 1, ksymbol : 1, bpf_event : 1, aux_output : 1,
	    cgroup : 1, text_poke : 1, build_id : 1, inherit_thread : 1,
	    remove_on_exec : 1, sigtrap : 1, __reserved_1 : 26;
	union {
		__u32 wakeup_events, wakeup_watermark;
	};
	__u32 bp_type;
	union {
		__u64 bp_addr, kprobe_func, uprobe_path, config1;
	};
	union {
		__u64 bp_len, kprobe_addr, probe_offset, config2;
	};
	__u64 branch_sample_type, sample_regs_user;
	__u32 sample_stack_user;
	__s32 clockid;
	__u64 sample_regs_intr;
	__u32 aux_watermark;
	__u16 sample_max_stack, __reserved_2;
	__u32 aux_sample_size, __reserved_3;
	__u64 sig_data;
};
#endif

#endif
