/* access: what the access of a hit did, and to which bytes. */
#include "hit/access.h"

#include "hit/sample_group.h"
#include "space/space.h"

/* What the access is known to do; neither if that is not known. */
static void
does(const struct ex_hit *hit, bool *reads, bool *writes)
{
	bool known = hit->insn.confidence >= EX_ADDRESS_UNVERIFIED;

	*reads = hit->kernel ? hit->call.reads : known && hit->insn.reads;
	*writes = hit->kernel ? hit->call.writes : known && hit->insn.writes;
}

const char *
ex_access_text(const struct ex_hit *hit)
{
	bool reads, writes;

	if (hit->watch->access == WP_WRITE)
		return "write";
	if (hit->watch->access == WP_EXEC)
		return "execute";
	does(hit, &reads, &writes);
	if (!reads && !writes)
		return "access";
	/* the system call may do either, and did at least one */
	if (reads && writes)
		return hit->kernel ? "access" : "read-write";
	return reads ? "read" : "write";
}

bool
ex_access_is_dropped(const struct ex_hit *hit)
{
	bool reads, writes;

	does(hit, &reads, &writes);
	return hit->watch->access == WP_READ && writes && !reads;
}

/* Extend the hit to the part of a sample's slot that lies in the watch. */
static void
touch(struct ex_hit *hit, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len, had = hit->addr + hit->len;

	if (hit->len == 0) {
		hit->addr = addr;
		hit->len = len;
		return;
	}
	if (addr < hit->addr)
		hit->addr = addr;
	hit->len = (end > had ? end : had) - hit->addr;
}

/* Intersect a range of bytes with another one. */
static void
cut(uint64_t *from, uint64_t *to, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len;

	if (end < addr || addr >= *to || end <= *from)
		return;
	*from = addr > *from ? addr : *from;
	*to = end < *to ? end : *to;
}

void
ex_access_narrow(struct ex_hit *hit)
{
	const struct ex_insn *insn = &hit->insn;
	const struct ex_watch *watch = hit->watch;
	uint64_t from = insn->addr, to = insn->addr + insn->size;
	uint64_t other = insn->other, end = insn->other + insn->other_size;

	if (insn->confidence != EX_EXACT || insn->size == 0 ||
	    watch->access == WP_EXEC)
		return;
	cut(&from, &to, watch->addr, watch->len);
	cut(&other, &end, watch->addr, watch->len);
	hit->addr = from;
	hit->len = to - from;
	if (insn->other_size != 0)
		touch(hit, other, end - other);
}

void
ex_access_slot(struct ex_hit *hit, const struct ex_slot *slot)
{
	uint64_t from = slot->addr, to = slot->addr + slot->len;

	if (hit->insn.within_size != 0)
		cut(&from, &to, hit->insn.within,
		    hit->insn.within_size);
	touch(hit, from, to - from);
}

/* Determine whether the kernel read or wrote.  The function that made the
   access may show more than the system call.  If there are several samples,
   some may be of reads and others of writes. */
static void
take_way(struct ex_hit *hit, const char *function, bool first)
{
	struct ex_syscall *call = &hit->call;
	const char way = ex_group_way(function);

	if (first) {
		call->may_read = call->reads;
		call->may_write = call->writes;
		call->reads = call->writes = false;
	}
	call->reads |= way == 'r' || (way == '\0' && call->may_read);
	call->writes |= way == 'w' || (way == '\0' && call->may_write);
	hit->access = ex_access_text(hit);
}

void
ex_access_kernel(struct ex_hit *hit, struct ex_space *space,
    const struct ex_slot *slot, const struct ex_record *record, bool first,
    bool *stepping)
{
	const struct ex_syscall *call = &hit->call;
	uint64_t reached = ex_group_reached(record, slot->addr, slot->len);
	uint64_t from = slot->addr, to = slot->addr + slot->len, at, len;
	const char *function = ex_space_kernel(space) ?
	    ex_kernel_symbol(record->sample.ip, &at) : NULL;

	/* a function that copies between user and kernel memory shows only what
	   it does to the user's */
	if (ex_watch_in_kernel(hit->watch))
		function = NULL;
	take_way(hit, function, first);
	if (call->has_bytes || call->bounded)
		cut(&from, &to, call->buffer, call->done);
	if (ex_group_single(record, function, &at, &len)) {
		cut(&from, &to, at, len);
		reached = 0;
	} else if (call->has_bytes && call->each != 0 && reached == 0 &&
	    hit->watch->access == WP_WRITE && from >= call->buffer) {
		at = (from - call->buffer) / call->each * call->each;
		cut(&from, &to, call->buffer + at + call->from,
		    call->each - call->from);
	}
	if (first)
		*stepping = reached == from + 1;
	if (*stepping && reached > slot->addr)
		touch(hit, reached - 1, 1);
	else
		touch(hit, from, to - from);
}

void
ex_access_check_buffer(struct ex_hit *hit)
{
	struct ex_syscall *call = &hit->call;

	if (hit->addr < call->buffer ||
	    hit->addr - call->buffer > call->bytes ||
	    hit->len > call->bytes - (hit->addr - call->buffer))
		call->has_bytes = false;
}
