/*
 * heap_trace: the guard of --heap, which instead of watching writes down every
 * block that a program allocates, as another run of it would know the block.
 *
 * Linked with the guard's other objects into a library that takes its place.
 * HEAP_TRACE is the directory; there is a file for each process, with a line
 * for each block: program, callers, size, and its number among those of the
 * callers, in the program and in the thread.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/callers.h"
#include "guard/sample.h"
#include "guard/watch.h"

enum { LINE = 4 * 17 + 9 };

static char text[1 << 16];
static size_t len;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void
write_all(void)
{
	const char *dir = getenv("HEAP_TRACE");
	char name[256] = "";
	size_t at;
	int fd;

	if (dir == NULL || (at = strlen(dir)) > sizeof(name) - 32)
		return;
	memcpy(name, dir, at);
	name[at++] = '/';
	for (long pid = syscall(SYS_getpid); pid > 0; pid /= 10)
		name[at++] = (char)('0' + pid % 10);
	fd = (int)syscall(SYS_openat, AT_FDCWD, name,
	    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0 && syscall(SYS_write, fd, text, len) < 0)
		abort();
	(void)syscall(SYS_close, fd);
	len = 0;
}

static void
put(uint64_t value, unsigned digits, char end)
{
	while (digits-- > 0)
		text[len++] = "0123456789abcdef"[value >> 4 * digits & 15];
	text[len++] = end;
}

static void
enter(void)
{
	while (atomic_flag_test_and_set(&lock))
		(void)syscall(SYS_sched_yield);
}

void
hg_watch_allocated(struct hg_entry *e, uint64_t block)
{
	const struct hg_image *image = &hg_state.image;

	(void)block;
	enter();
	if (len + LINE + 9 > sizeof(text))
		write_all();
	put((image->path * 31 + image->arguments) * 31 + image->order, 16,
	    ' ');
	put(hg_callers_hash(e->alloc), 16, ' ');
	put(hg_entry_size(e), 12, ' ');
	put(e->number, 8, ' ');
	put(hg_ledger_in_thread(e), 8, '\n');
	atomic_flag_clear(&lock);
}

void
hg_sample_account(void)
{
	enter();
	write_all();
	atomic_flag_clear(&lock);
}

/* What its parent has not written yet is its parent's. */
void
hg_watch_forked(void)
{
	len = 0;
	atomic_flag_clear(&lock);
}

uint32_t
hg_watch_wants(uint64_t callers)
{
	(void)callers;
	return 1;
}

void
hg_watch_begin(void)
{
}

void
hg_watch_freed(struct hg_entry *e, uint64_t block)
{
	(void)e;
	(void)block;
}

void
hg_watch_end(const struct hg_entry *e)
{
	(void)e;
}

void
hg_watch_written(const void *p, int64_t bytes, const struct hg_record *from)
{
	(void)p;
	(void)bytes;
	(void)from;
}

uint32_t
hg_watch_id(const struct hg_entry *e)
{
	(void)e;
	return 0;
}

void
hg_sample_damaged(const struct hg_finding *f)
{
	(void)f;
}

void
hg_sample_forked(void)
{
}
