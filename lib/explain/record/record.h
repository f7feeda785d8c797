/*
 * record: one perf record, decoded.
 *
 * Whether a hit comes from the kernel's ring buffer or a perf.data file, it is
 * a perf record, and this is the only decoder.  The bytes are untrusted: every
 * length is checked against the record's own size, and a record that does not
 * fit is refused with -EBADMSG.
 *
 * Layouts and their order are those of perf_event_open(2) and the kernel's
 * include/uapi/linux/perf_event.h.
 *
 * All functions are thread-safe on distinct objects; none allocates unless it
 * says so.  Pointers inside a decoded record point into the record's bytes and
 * live as long as those.
 */
#ifndef EX_RECORD_H
#define EX_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The largest register set that a sample carries here (64 bits of mask). */
#define EX_REGS_MAX 64

/* Registers of a sample: values in the order of the mask's set bits. */
struct ex_perf_regs {
	uint64_t abi;		/* PERF_SAMPLE_REGS_ABI_*; 0: none */
	uint64_t mask;		/* which, by PERF_REG_* number */
	const uint8_t *values;	/* u64s, maybe unaligned; NULL: none */
};

/* A sample's fields; those its sample_type does not name are 0 or NULL. */
struct ex_sample {
	uint64_t ip;		/* reported instruction pointer */
	uint64_t addr;		/* PERF_SAMPLE_ADDR: a breakpoint's bp_addr */
	uint64_t period;
	uint64_t value;		/* PERF_SAMPLE_READ; of a group, its leader's */
	uint64_t callchain_len;	/* entries, PERF_CONTEXT_* markers included */
	const uint8_t *callchain; /* u64s, maybe unaligned; NULL: none */
	const uint8_t *raw;	/* PERF_SAMPLE_RAW */
	uint32_t raw_len;
	uint64_t branch_len;	/* entries of struct perf_branch_entry */
	const uint8_t *branch;	/* maybe unaligned; NULL: none */
	uint64_t branch_hw_idx;	/* PERF_SAMPLE_BRANCH_HW_INDEX */
	const uint8_t *branch_counters;	/* a u64 for each entry; NULL: none */
	struct ex_perf_regs user;	/* PERF_SAMPLE_REGS_USER */
	const uint8_t *stack;	/* PERF_SAMPLE_STACK_USER: from user sp up */
	uint64_t stack_len;	/* bytes that were really copied */
	uint64_t stack_asked;	/* bytes the record has room for; if stack_len
				   is less, the copy met the mapping's end */
	uint64_t weight;	/* WEIGHT, or all of WEIGHT_STRUCT's parts */
	uint64_t data_src, transaction, phys_addr, cgroup;
	uint64_t data_page_size, code_page_size;
	struct ex_perf_regs intr;	/* PERF_SAMPLE_REGS_INTR */
	const uint8_t *aux;
	uint64_t aux_len;
	uint64_t block;		/* not in a record: the thread's control block,
				   0: not known */
};

/* PERF_RECORD_MMAP and MMAP2. */
struct ex_mmap {
	uint64_t start, len, pgoff;
	uint32_t maj, min;	/* device, MMAP2 without build id only */
	uint64_t ino, ino_generation;
	uint32_t prot, flags;	/* of MMAP only prot: PROT_EXEC, or 0 with
				   MISC_MMAP_DATA */
	const char *path;	/* NUL-terminated inside the record */
	const uint8_t *build_id;	/* NULL: none */
	uint8_t build_id_len;	/* at most 20 */
};

/* One record of any type. */
struct ex_record {
	uint32_t type;		/* PERF_RECORD_* */
	uint16_t misc;		/* PERF_RECORD_MISC_* */
	uint16_t size;		/* bytes, header included */
	const uint8_t *bytes;	/* the record, header first */
	int attr;		/* index in the formats of the event that made
				   it; -1: unknown or none */
	uint64_t id;		/* event id; 0: not carried */
	uint64_t stream_id;	/* id of the inherited copy; 0: not carried */
	pid_t pid, tid;		/* the process and thread that the record is
				   about: as its body says, else those that ran;
				   -1: not carried (and mappings of the
				   kernel) */
	uint64_t time;		/* ns on the event's clock; 0: not carried */
	uint32_t cpu;		/* UINT32_MAX: not carried */
	union {
		struct ex_sample sample;	/* SAMPLE */
		struct ex_mmap mmap;		/* MMAP, MMAP2 */
		struct {			/* FORK, EXIT */
			pid_t pid, ppid, tid, ptid;
			uint64_t time;
		} task;
		struct {			/* COMM; exec: MISC_COMM_EXEC */
			pid_t pid, tid;
			const char *name;
		} comm;
		struct {			/* LOST; id: whose */
			uint64_t id, count;
		} lost;				/* LOST_SAMPLES: count only */
		struct {			/* READ */
			pid_t pid, tid;
			/* of a group, its leader's */
			uint64_t value, enabled, running, id, lost;
		} read;
		struct {			/* THROTTLE, UNTHROTTLE */
			uint64_t time, id, stream;
		} throttle;
		struct {			/* AUX: all but hw_id */
			uint64_t offset, size, flags;
			uint64_t hw_id;		/* AUX_OUTPUT_HW_ID */
		} aux;
		struct {			/* SWITCH, SWITCH_CPU_WIDE */
			bool out;
			pid_t other_pid, other_tid;	/* CPU_WIDE; else -1 */
		} sw;
		struct {			/* NAMESPACES: raw link infos */
			pid_t pid, tid;
			uint64_t count;
			const uint8_t *links;
		} ns;
		struct {			/* KSYMBOL */
			uint64_t addr;
			uint32_t len;
			uint16_t ksym_type, flags;
			const char *name;
		} ksymbol;
		struct {			/* BPF_EVENT */
			uint16_t what, flags;
			uint32_t prog;
			const uint8_t *tag;	/* 8 bytes */
		} bpf;
		struct {			/* CGROUP */
			uint64_t cgroup;
			const char *path;
		} cgroup;
		struct {			/* TEXT_POKE */
			uint64_t addr;
			uint16_t old_len, new_len;
			const uint8_t *bytes;	/* old, then new */
		} poke;
	};
};

/*
 * The events that records may belong to: what is needed of each perf_event_attr
 * to decode its records, and which ids are whose.
 */
struct ex_formats;

/* A new, empty set, or NULL when out of memory.  Owned by the caller. */
struct ex_formats *ex_formats_new(void);
void ex_formats_free(struct ex_formats *);

/*
 * Add an event with its ids (copied).  Result: its index, from 0 in the order
 * of adding; -EINVAL when its records could not be told from those of an event
 * already there (differing layouts and no usable id, or an id of that event);
 * -ENOTSUP when it asks for fields that this decoder does not know; -ENOMEM.
 */
int ex_formats_add(struct ex_formats *, const struct perf_event_attr *,
    const uint64_t *ids, size_t nids);

/* More ids for an event that is there.  An id of 0 is none and passed over.
   0; -EINVAL: no such event, or an id is another's; -ENOMEM. */
int ex_formats_ids(struct ex_formats *, int attr, const uint64_t *ids,
    size_t nids);

/* The index of the event with this id, or -1. */
int ex_formats_find(const struct ex_formats *, uint64_t id);

/*
 * Decode the record at bytes, of which len bytes may be read.
 *  1        decoded into *out
 *  0        a type this decoder does not know: out->type, misc, size and bytes
 *           are set; skip it by out->size and count it
 *  -EBADMSG not a record: it does not fit in len, or its parts not in its size
 *  -ENOENT  its event is not in the formats, and so its layout is not known:
 *           type, misc, size and bytes are set.  Of samples always; of other
 *           records when the events' layouts differ
 * After an error the rest of *out means nothing.
 */
int ex_record_decode(const struct ex_formats *, const void *bytes, size_t len,
    struct ex_record *out);

/* Register number PERF_REG_* of a set: true and *value when it is there. */
bool ex_regs_get(const struct ex_perf_regs *, unsigned reg, uint64_t *value);

/* Entry i of a sample's callchain; i < callchain_len. */
uint64_t ex_callchain_at(const struct ex_sample *, uint64_t i);

#endif
