/*
 * page N: a victim that has two threads write(2) 8 bytes N times each to a page
 * of a file in memory, which is descriptor 9, whenever it is told to go.
 *
 * Says "pid PID page ADDRESS" first: where the page is in the kernel, by the
 * registers of a hit, which is made by a copy from it.  Then "done WRITES", or
 * "done 0" if the kernel has moved the page meanwhile.  Ends by "end", with
 * status 7.
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_FD = 9, PAGE = 4096 };

static volatile char byte;
static long writes;

/* A page with one sample. */
static uint64_t
copied_from(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W, .bp_addr = (uintptr_t)&byte,
		.bp_len = 1, .sample_period = 1,
		.sample_type = PERF_SAMPLE_REGS_INTR,
		.sample_regs_intr = 1ull << PERF_REG_X86_SI,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	struct perf_event_mmap_page *ring = mmap(NULL, (size_t)2 * PAGE,
	    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct {
		struct perf_event_header header;
		uint64_t abi, si;
	} sample;

	if (fd < 0 || ring == MAP_FAILED ||
	    pread(FILE_FD, (void *)&byte, 1, 0) != 1 ||
	    ring->data_head < sizeof(sample))
		abort();
	memcpy(&sample, (const char *)ring + PAGE, sizeof(sample));
	(void)munmap(ring, (size_t)2 * PAGE);
	(void)close(fd);
	return sample.si & ~(uint64_t)(PAGE - 1);
}

static __attribute__((noinline)) void
write_page(long value)
{
	if (pwrite(FILE_FD, &value, sizeof(value), 0) != sizeof(value))
		abort();
}

static void *
write_all(void *arg)
{
	for (long i = 0; i < writes; i++)
		write_page(i);
	return arg;
}

int
main(int argc, char **argv)
{
	const char page[PAGE] = "";
	char line[64];
	uint64_t addr;
	const int fd = memfd_create("page", 0);

	if (dup2(fd, FILE_FD) != FILE_FD ||
	    write(FILE_FD, page, PAGE) != PAGE)
		return 1;
	writes = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
	addr = copied_from();
	(void)printf("pid %d page %#llx\n", (int)getpid(),
	    (unsigned long long)addr);
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL &&
	    strcmp(line, "go\n") == 0) {
		pthread_t other;

		if (pthread_create(&other, NULL, write_all, NULL) != 0)
			return 1;
		(void)write_all(NULL);
		(void)pthread_join(other, NULL);
		(void)printf("done %ld\n", copied_from() == addr ? 2 * writes :
		    0);
		(void)fflush(stdout);
	}
	return 7;
}
