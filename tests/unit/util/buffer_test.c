/*
 * buffer: numbers agree with printf, and lines are written completely or not at
 * all.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/buffer.h"

/* A number in each form, against printf's. */
static void
check_number(uint64_t number)
{
	struct buffer b = {0};
	char want[80];

	(void)snprintf(want, sizeof(want),
	    "%" PRIu64 " 0x%" PRIx64 " %09" PRIu64 " %016" PRIx64,
	    number, number, number, number);
	buffer_dec(&b, number);
	buffer_puts(&b, " ");
	buffer_hex(&b, number);
	buffer_puts(&b, " ");
	buffer_digits(&b, number, 9);
	buffer_puts(&b, " ");
	buffer_hex_digits(&b, number, 16);
	assert_string_equal(buffer_text(&b), want);
	buffer_free(&b);
}

TEST(writes_numbers)
{
	static const uint64_t numbers[] = {
		0, 4711, 0x404090, UINT64_C(0x0123456789abcdef),
		UINT64_C(0xfedcba9876543210), UINT64_MAX / 10,
	};
	uint64_t ten = 1;

	for (size_t i = 0; i < COUNT(numbers); i++)
		check_number(numbers[i]);
	for (unsigned bit = 0; bit < 64; bit++) {
		check_number(UINT64_C(1) << bit);
		check_number((UINT64_C(1) << bit) - 1);
		check_number(UINT64_MAX - (UINT64_C(1) << bit));
	}
	for (unsigned digits = 1; digits < 20; digits++, ten *= 10) {
		check_number(ten - 1);
		check_number(ten);
	}
}

TEST(grows)
{
	struct buffer b = {0};

	for (unsigned i = 0; i < 10000; i++)
		buffer_printf(&b, "%u,", i % 10);
	buffer_fill(&b, '.', 5000);
	assert_int_equal(b.len, 25000);
	assert_memory_equal(b.bytes + 19996, "8,9,....", 8);
	assert_int_equal(buffer_commit(&b, 0), 0);
	buffer_free(&b);
	assert_string_equal(buffer_text(&b), "");
	buffer_free(&b);
}

TEST(drops_incomplete_lines)
{
	struct buffer b = {0};

	buffer_puts(&b, "whole\n");
	buffer_puts(&b, "par");
	buffer_fill(&b, 'x', SIZE_MAX / 2);
	buffer_puts(&b, "t\n");
	assert_true(b.failed);
	assert_int_equal(buffer_commit(&b, 6), -ENOMEM);
	buffer_puts(&b, "again\n");
	assert_int_equal(buffer_commit(&b, 6), 0);
	assert_string_equal(buffer_text(&b), "whole\nagain\n");
	buffer_free(&b);
}

TEST(says_when_a_stream_fails)
{
	struct buffer b = {0};
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	buffer_puts(&b, "lost\n");
	assert_int_equal(buffer_write(&b, full), -ENOSPC);
	assert_int_equal(b.len, 0);
	(void)fclose(full);
	buffer_free(&b);
}

/* The buffer's poll(2). */
static unsigned polls;

int
poll(struct pollfd *fds, nfds_t n, int ms)
{
	const struct timespec timeout = {ms / 1000, ms % 1000 * 1000000L};

	polls++;
	return ppoll(fds, n, ms < 0 ? NULL : &timeout, NULL);
}

TEST(asks_for_room_only_when_there_is_none)
{
	const struct iovec one = {(char[]){"x"}, 1};
	struct buffer b = {0};
	FILE *null = fopen("/dev/null", "w"), *out;
	size_t size;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	if (pwritev2(fd[1], &one, 1, -1, RWF_NOWAIT) < 0) {
		print_message("pwritev2(2) knows no RWF_NOWAIT for pipes\n");
		skip();
	}
	assert_int_equal(read(fd[0], &size, 1), 1);
	out = fdopen(fd[1], "w");
	assert_non_null(out);
	size = (size_t)fcntl(fd[1], F_GETPIPE_SZ);
	buffer_fill(&b, 'x', size);
	polls = 0;
	assert_int_equal(buffer_write(&b, out), 0);
	assert_int_equal(b.written, size);
	buffer_fill(&b, 'x', size);
	assert_int_equal(buffer_write(&b, null), 0);
	assert_int_equal(b.written, size);
	assert_int_equal(polls, 0);
	(void)fclose(null);
	(void)fclose(out);
	(void)close(fd[0]);
	buffer_free(&b);
}

/* Reads some of it whenever the pipe is full, so that all has to be waited for:
   the sum of bytes and places. */
static void *
read_slowly(void *fd)
{
	uint64_t sum = 0, at = 0;
	uint8_t bytes[1000];
	ssize_t n;

	while ((n = read(*(int *)fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			sum += ++at * bytes[i];
		(void)sched_yield();
	}
	return (void *)(uintptr_t)sum;
}

TEST(waits_for_a_reader)
{
	struct buffer b = {0};
	uint64_t sum = 0;
	pthread_t reader;
	void *got;
	FILE *out;
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	(void)fcntl(fd[1], F_SETPIPE_SZ, 4096);
	for (unsigned i = 0; i < 200000; i++)
		buffer_dec(&b, i);
	for (size_t i = 0; i < b.len; i++)
		sum += (i + 1) * (uint8_t)b.bytes[i];
	out = fdopen(fd[1], "w");
	assert_non_null(out);
	assert_int_equal(pthread_create(&reader, NULL, read_slowly, fd), 0);
	assert_int_equal(buffer_write(&b, out), 0);
	(void)fclose(out);
	assert_int_equal(pthread_join(reader, &got), 0);
	assert_true((uint64_t)(uintptr_t)got == sum);
	(void)close(fd[0]);
	buffer_free(&b);
}

/* What a reader has no room for stays, and comes once. */
TEST(waits_no_longer_than_it_may)
{
	enum { LEN = 20000 };
	static char got[LEN];
	struct buffer b = {0};
	size_t n = 0;
	FILE *out;
	int fd[2], err;

	assert_int_equal(pipe(fd), 0);
	assert_int_equal(fcntl(fd[1], F_SETPIPE_SZ, 4096), 4096);
	assert_non_null(out = fdopen(fd[1], "w"));
	for (unsigned i = 0; i < LEN / 5; i++)
		buffer_printf(&b, "%05u", i);
	while ((err = buffer_write_for(&b, out, 1)) == -EAGAIN) {
		assert_int_equal(b.written, 4096);
		assert_int_equal(read(fd[0], got + n, 4096), 4096);
		n += 4096;
	}
	assert_int_equal(err, 0);
	assert_int_equal(b.len, 0);
	assert_int_equal(read(fd[0], got + n, 4096), LEN - n);
	for (unsigned i = 0; i < LEN / 5; i++)
		assert_int_equal(strtoul((char[]){got[5 * i], got[5 * i + 1],
		    got[5 * i + 2], got[5 * i + 3], got[5 * i + 4], 0}, NULL,
		    10), i);
	(void)fclose(out);
	(void)close(fd[0]);
	buffer_free(&b);
}

RUN_TESTS()
