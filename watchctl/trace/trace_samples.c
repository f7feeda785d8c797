/* trace_samples: numbers of variable length, each as the difference from the
   previous one. */
#include "trace/trace_samples.h"

enum { SAMPLES_BYTES_MAX = 64 << 20 };

/* A number takes seven bits of each byte, the lowest first; the eighth is not
   set in the last byte. */
static void
put_number(struct buffer *b, uint64_t number)
{
	char bytes[10];
	size_t n = 0;

	for (; number >= 128; number >>= 7)
		bytes[n++] = (char)(number | 128);
	bytes[n++] = (char)number;
	buffer_put(b, bytes, n);
}

static uint64_t
take_number(const struct buffer *b, size_t *at)
{
	uint64_t number = 0;
	unsigned char byte;

	for (unsigned shift = 0; *at < b->len && shift < 64; shift += 7) {
		byte = (unsigned char)b->bytes[(*at)++];
		number |= (uint64_t)(byte & 127) << shift;
		if (byte < 128)
			break;
	}
	return number;
}

/* Small differences in both directions become small numbers. */
static uint64_t
difference(uint64_t from, uint64_t to)
{
	const uint64_t up = to - from;

	return up << 1 ^ (0 - (up >> 63));
}

static uint64_t
sum(uint64_t from, uint64_t difference)
{
	return from + (difference >> 1 ^ (0 - (difference & 1)));
}

void
trace_samples_add(struct trace_samples *s, const struct trace_sample *sample)
{
	const struct trace_sample *last = &s->last;
	struct buffer *b = &s->packed;
	const size_t start = b->len;

	put_number(b, difference(last->time, sample->time));
	put_number(b, difference((uint64_t)last->pid, (uint64_t)sample->pid));
	put_number(b, difference((uint64_t)last->tid, (uint64_t)sample->tid));
	put_number(b, difference(last->frame, sample->frame));
	if (!b->failed && b->len <= SAMPLES_BYTES_MAX) {
		s->last = *sample;
		return;
	}
	b->failed = false;
	b->len = start;
	s->left_out++;
}

bool
trace_samples_next(const struct trace_samples *s, size_t *at,
    struct trace_sample *sample)
{
	const struct buffer *b = &s->packed;

	if (*at >= b->len)
		return false;
	sample->time = sum(sample->time, take_number(b, at));
	sample->pid = (pid_t)sum((uint64_t)sample->pid, take_number(b, at));
	sample->tid = (pid_t)sum((uint64_t)sample->tid, take_number(b, at));
	sample->frame = (unsigned)sum(sample->frame, take_number(b, at));
	return true;
}
