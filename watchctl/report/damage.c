/* damage: findings in a program's heap, as text. */
#include "report/damage.h"

enum { SHOWN = 16 };		/* bytes in a text */

const char *
damage_kind(const struct hg_finding *f)
{
	static const char *const text[] = {
		[HG_OVERFLOW] = "overflow", [HG_UNDERFLOW] = "underflow",
		[HG_USE_AFTER_FREE] = "use-after-free",
		[HG_DOUBLE_FREE] = "double-free",
		[HG_INVALID_FREE] = "invalid-free",
		[HG_MISMATCH] = "mismatch",
	};

	return f->kind >= HG_OVERFLOW && f->kind < HG_KINDS ? text[f->kind] :
	    "unknown";
}

static const struct {
	const char *name, *words;
} whens[] = {
	[HG_AT_FREE] = {"free", "free"},
	[HG_AT_REALLOC] = {"realloc", "realloc"},
	[HG_AT_REUSE] = {"reuse", "the end of its quarantine"},
	[HG_AT_EXIT] = {"exit", "the process's end"},
	[HG_AT_EXEC] = {"exec", "execve"},
	[HG_AT_CRASH] = {"crash", "a crash"},
	[HG_AT_WRITE] = {"write", "the write"},
};

static unsigned
when(const struct hg_finding *f)
{
	return f->when < sizeof(whens) / sizeof(whens[0]) ? f->when : 0;
}

const char *
damage_when(const struct hg_finding *f)
{
	return whens[when(f)].name;
}

const char *
damage_when_words(const struct hg_finding *f)
{
	return whens[when(f)].words;
}

const char *
damage_allocator(const struct hg_finding *f)
{
	return f->allocated_by == HG_NEW ? "new" :
	    f->allocated_by == HG_NEW_ARRAY ? "new[]" : "malloc";
}

const char *
damage_freer(const struct hg_finding *f)
{
	return f->freed_by == HG_NEW ? "delete" :
	    f->freed_by == HG_NEW_ARRAY ? "delete[]" : "free";
}

unsigned
damage_bytes(const struct hg_finding *f)
{
	return f->nbytes < HG_BYTES_MAX ? f->nbytes : HG_BYTES_MAX;
}

static void
put_count(struct buffer *b, uint64_t n, const char *rest)
{
	buffer_dec(b, n);
	buffer_puts(b, n == 1 ? " byte" : " bytes");
	buffer_puts(b, rest);
}

/* "a 40-byte block" */
static void
put_size(struct buffer *b, const struct hg_finding *f)
{
	buffer_puts(b, hg_article(f->size));
	buffer_puts(b, " ");
	buffer_dec(b, f->size);
	buffer_puts(b, "-byte block");
}

/* "a 40-byte block at 0x4052a0" */
static void
put_block(struct buffer *b, const struct hg_finding *f)
{
	put_size(b, f);
	buffer_puts(b, " at ");
	buffer_hex(b, f->kind == HG_INVALID_FREE ?
	    f->addr - (uint64_t)f->offset : f->addr);
}

/* ": 61 62 "ab"" */
static void
put_bytes(struct buffer *b, const struct hg_finding *f)
{
	const unsigned n = damage_bytes(f) < SHOWN ? damage_bytes(f) : SHOWN;

	buffer_puts(b, ":");
	for (unsigned i = 0; i < n; i++)
		buffer_printf(b, " %02x", f->bytes[i]);
	if (n < f->nbytes)
		buffer_puts(b, " ...");
	buffer_puts(b, " \"");
	for (unsigned i = 0; i < n; i++) {
		const char c = (char)f->bytes[i];

		buffer_put(b, c >= ' ' && c <= '~' ? &c : ".", 1);
	}
	buffer_puts(b, "\"");
}

/* Put where the first damaged byte is, in words. */
static void
put_distance(struct buffer *b, const struct hg_finding *f)
{
	const uint64_t end = (uint64_t)f->offset - f->size;

	if (f->offset < 0)
		put_count(b, 0 - (uint64_t)f->offset, " in front of ");
	else if ((uint64_t)f->offset < f->size)
		put_count(b, (uint64_t)f->offset, " from the start of ");
	else if (end == 0)
		buffer_puts(b, "right past the end of ");
	else
		put_count(b, end, " past the end of ");
}

void
damage_put_place(struct buffer *b, const struct hg_finding *f)
{
	put_distance(b, f);
	put_size(b, f);
}

static void
put_damage(struct buffer *b, const struct hg_finding *f)
{
	put_count(b, f->nbytes, ", ");
	put_distance(b, f);
	put_block(b, f);
	if (f->kind == HG_USE_AFTER_FREE)
		buffer_puts(b, ", which is freed");
	put_bytes(b, f);
}

void
damage_put(struct buffer *b, const struct hg_finding *f)
{
	switch (f->kind) {
	case HG_DOUBLE_FREE:
		put_block(b, f);
		buffer_puts(b, ", which is freed already");
		break;
	case HG_INVALID_FREE:
		buffer_hex(b, f->addr);
		buffer_puts(b, " is no block");
		if (f->offset == 0)
			break;
		buffer_puts(b, ", but ");
		put_count(b, (uint64_t)f->offset, " from the start of ");
		put_block(b, f);
		break;
	case HG_MISMATCH:
		put_block(b, f);
		buffer_printf(b, " from %s is freed by %s",
		    damage_allocator(f), damage_freer(f));
		break;
	default:
		put_damage(b, f);
	}
}
