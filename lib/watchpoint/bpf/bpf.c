/* bpf: maps and programs. */
#include "bpf/bpf.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int
call(enum bpf_cmd cmd, union bpf_attr *attr)
{
	const long got = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return got < 0 ? -errno : (int)got;
}

int
wp_bpf_ringbuf(size_t size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_RINGBUF;
	attr.max_entries = (unsigned)size;
	return call(BPF_MAP_CREATE, &attr);
}

int
wp_bpf_shared(size_t size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = (unsigned)size;
	attr.max_entries = 1;
	attr.map_flags = BPF_F_MMAPABLE;
	return call(BPF_MAP_CREATE, &attr);
}

static int
make(enum bpf_map_type type, size_t key, size_t value, unsigned max)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = (unsigned)key;
	attr.value_size = (unsigned)value;
	attr.max_entries = max;
	return call(BPF_MAP_CREATE, &attr);
}

int
wp_bpf_hash(size_t key, size_t value, unsigned max)
{
	return make(BPF_MAP_TYPE_HASH, key, value, max);
}

int
wp_bpf_events(unsigned max)
{
	return make(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(uint32_t),
	    sizeof(uint32_t), max);
}

int
wp_bpf_per_cpu(size_t size)
{
	return make(BPF_MAP_TYPE_PERCPU_ARRAY, sizeof(uint32_t), size, 1);
}

/* A command for an element of a map.  For the next key, `value' is where that
   is put. */
static int
element(enum bpf_cmd command, int map, const void *key, const void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (unsigned)map;
	attr.key = (uintptr_t)key;
	attr.value = (uintptr_t)value;
	return call(command, &attr);
}

int
wp_bpf_update(int map, const void *key, const void *value)
{
	return element(BPF_MAP_UPDATE_ELEM, map, key, value);
}

int
wp_bpf_next(int map, const void *key, void *next)
{
	return element(BPF_MAP_GET_NEXT_KEY, map, key, next);
}

int
wp_bpf_lookup(int map, const void *key, void *value)
{
	return element(BPF_MAP_LOOKUP_ELEM, map, key, value);
}

static int
load(enum bpf_prog_type type, const struct bpf_insn *insns, unsigned n)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = n;
	attr.license = (uintptr_t)"Dual BSD/GPL";
	/* a signal interrupts the verification of a long program */
	for (unsigned tries = 5; (fd = call(BPF_PROG_LOAD, &attr)) == -EAGAIN &&
	    tries > 1; tries--)
		;
	return fd;
}

int
wp_bpf_load(const struct bpf_insn *insns, unsigned n)
{
	return load(BPF_PROG_TYPE_PERF_EVENT, insns, n);
}

int
wp_bpf_load_uprobe(const struct bpf_insn *insns, unsigned n)
{
	return load(BPF_PROG_TYPE_KPROBE, insns, n);
}

int
wp_bpf_trace(const char *name, const struct bpf_insn *insns, unsigned n)
{
	const int program = load(BPF_PROG_TYPE_RAW_TRACEPOINT, insns, n);
	union bpf_attr attr;
	int got;

	if (program < 0)
		return program;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = (uintptr_t)name;
	attr.raw_tracepoint.prog_fd = (unsigned)program;
	got = call(BPF_RAW_TRACEPOINT_OPEN, &attr);
	(void)close(program);
	return got;
}
