/* buffer: growing buffers, and numbers without the cost of printf. */
#include "util/buffer.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/clock.h"
#include "util/interrupt.h"

/* The ms between checks for a signal, and those that a reader may still take
   after one. */
enum { LOOK_MS = 100, GIVE_UP_MS = 500 };

void
buffer_free(struct buffer *b)
{
	free(b->bytes);
	memset(b, 0, sizeof(*b));
}

bool
buffer_grow(struct buffer *b, size_t more)
{
	size_t cap = b->cap == 0 ? 256 : b->cap;
	char *bytes;

	if (b->failed || more > SIZE_MAX / 4 - b->len) {
		b->failed = true;
		return false;
	}
	if (b->cap - b->len >= more)
		return true;
	while (cap - b->len < more)
		cap *= 2;
	bytes = realloc(b->bytes, cap);
	if (bytes == NULL) {
		b->failed = true;
		return false;
	}
	b->bytes = bytes;
	b->cap = cap;
	return true;
}

void
buffer_printf(struct buffer *b, const char *format, ...)
{
	va_list ap, again;
	int len;

	va_start(ap, format);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, format, ap);
	if (len >= 0 && buffer_grow(b, (size_t)len + 1)) {
		(void)vsnprintf(b->bytes + b->len, (size_t)len + 1, format,
		    again);
		b->len += (size_t)len;
	}
	va_end(again);
	va_end(ap);
}

void
buffer_fill(struct buffer *b, char c, size_t n)
{
	if (n == 0 || !buffer_grow(b, n))
		return;
	memset(b->bytes + b->len, c, n);
	b->len += n;
}

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324"
    "25262728293031323334353637383940414243444546474849"
    "50515253545556575859606162636465666768697071727374"
    "75767778798081828384858687888990919293949596979899";

/* Put the digits of a number, at least one, so that they end at p.  Returns
   where they begin. */
static char *
digits_before(char *p, uint64_t n)
{
	char *const end = p;

	for (; n >= 10; n /= 100)
		memcpy(p -= 2, pairs + n % 100 * 2, 2);
	if (n > 0 || p == end)
		*--p = (char)('0' + n);
	return p;
}

void
buffer_digits(struct buffer *b, uint64_t n, unsigned digits)
{
	char text[20], *const end = text + sizeof(text);
	char *p = digits_before(end, n);

	while (p > text && (size_t)(end - p) < digits)
		*--p = '0';
	buffer_put(b, p, (size_t)(end - p));
}

void
buffer_dec(struct buffer *b, uint64_t n)
{
	char text[20], *const end = text + sizeof(text);
	const char *p = digits_before(end, n);

	buffer_put(b, p, (size_t)(end - p));
}

void
buffer_fixed(struct buffer *b, uint64_t n, unsigned digits)
{
	char text[41], *const end = text + sizeof(text), *p = end;

	for (; digits >= 2; digits -= 2, n /= 100)
		memcpy(p -= 2, pairs + n % 100 * 2, 2);
	for (; digits > 0; digits--, n /= 10)
		*--p = (char)('0' + n % 10);
	*--p = '.';
	p = digits_before(p, n);
	buffer_put(b, p, (size_t)(end - p));
}

/* The eight digits of a number, the highest in the lowest byte: its nibbles are
   spread, and converted to digits all at once. */
static uint64_t
hex_digits(uint32_t n)
{
	uint64_t x = n, letters;

	x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
	x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	letters = (x + UINT64_C(0x0606060606060606)) >> 4 &
	    UINT64_C(0x0101010101010101);
	return __builtin_bswap64(x + UINT64_C(0x3030303030303030) +
	    letters * ('a' - '9' - 1));
}

void
buffer_hex_digits(struct buffer *b, uint64_t n, unsigned digits)
{
	const uint64_t text[] = {
		hex_digits((uint32_t)(n >> 32)), hex_digits((uint32_t)n),
	};
	const unsigned some = (67 - (unsigned)__builtin_clzll(n | 1)) / 4;
	const unsigned len = some > digits ? some :
	    digits < sizeof(text) ? digits : sizeof(text);

	buffer_put(b, (const char *)text + sizeof(text) - len, len);
}

void
buffer_hex(struct buffer *b, uint64_t n)
{
	buffer_put(b, "0x", 2);
	buffer_hex_digits(b, n, 1);
}

int
buffer_commit(struct buffer *b, size_t start)
{
	if (!b->failed)
		return 0;
	b->failed = false;
	b->len = start;
	return -ENOMEM;
}

const char *
buffer_text(struct buffer *b)
{
	if (!buffer_grow(b, 1))
		return "";
	b->bytes[b->len] = '\0';
	return b->bytes;
}

/* Whether writing may have to wait for a reader. */
static bool
has_reader(int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && !S_ISREG(status.st_mode);
}

/* The ms that are left until a time of wp_clock_ms(); -1: no limit. */
static int
ms_left(long until)
{
	const long now = wp_clock_ms();

	return until < 0 ? -1 : until > now ? (int)(until - now) : 0;
}

/* Wait until PIPE_BUF bytes can be written. */
static int
await_reader(int fd, long until)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int waited = 0, left;

	for (;;) {
		left = ms_left(until);
		if (poll(&p, 1, left >= 0 && left < LOOK_MS ? left :
		    LOOK_MS) != 0)
			return 0;
		if (left == 0)
			return -EAGAIN;
		if (interrupt_pending() && (waited += LOOK_MS) >= GIVE_UP_MS)
			return until < 0 ? -EINTR : -EAGAIN;
	}
}

/* Write as much as fits now.  Result: how much; 0: nothing fits, the kernel
   does not support this for such a file, or it failed. */
static size_t
write_at_once(int fd, const char *bytes, size_t len)
{
	const struct iovec all = {(void *)(uintptr_t)bytes, len};
	const ssize_t n = pwritev2(fd, &all, 1, -1, RWF_NOWAIT);

	return n > 0 ? (size_t)n : 0;
}

/* Write all, however long it takes. */
static int
write_all(int fd, const char *bytes, size_t len, size_t *written)
{
	ssize_t n;

	while (len > 0) {
		if ((n = write(fd, bytes, len)) < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
		*written += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Write all to something that is read while it is written. */
static int
write_to_reader(int fd, const char *bytes, size_t len, size_t *written,
    long until)
{
	size_t done = 0, n;
	int err = 0;

	while (err == 0 && done < len) {
		n = write_at_once(fd, bytes + done, len - done);
		*written += n;
		done += n;
		if (n > 0)
			continue;
		n = len - done > PIPE_BUF ? PIPE_BUF : len - done;
		if ((err = await_reader(fd, until)) == 0)
			err = write_all(fd, bytes + done, n, written);
		done += n;
	}
	return err;
}

/* Write to a stream without a descriptor, in memory. */
static int
write_stream(const char *bytes, size_t len, FILE *out, size_t *written)
{
	const size_t n = fwrite(bytes, 1, len, out);

	*written += n;
	if (n != len || fflush(out) != 0)
		return errno == 0 ? -EIO : -errno;
	return 0;
}

int
buffer_write_for(struct buffer *b, FILE *out, int ms)
{
	const char *bytes = b->bytes == NULL ? "" : b->bytes;
	const int fd = fileno(out);
	const size_t len = b->len;
	int err;

	b->len = b->written = 0;
	errno = 0;
	if (fflush(out) != 0)
		return errno == 0 ? -EIO : -errno;
	if (fd < 0)
		return write_stream(bytes, len, out, &b->written);
	if (!has_reader(fd))
		return write_all(fd, bytes, len, &b->written);
	err = write_to_reader(fd, bytes, len, &b->written,
	    ms < 0 ? -1 : wp_clock_ms() + ms);
	if (err != -EAGAIN || b->bytes == NULL)
		return err;
	b->len = len - b->written;
	memmove(b->bytes, b->bytes + b->written, b->len);
	return err;
}

int
buffer_write(struct buffer *b, FILE *out)
{
	return buffer_write_for(b, out, -1);
}
