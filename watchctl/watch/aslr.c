/* aslr: personality(2), which a child inherits and execve(2) obeys. */
#include "watch/aslr.h"

#include <errno.h>
#include <string.h>
#include <sys/personality.h>

#include "session/session.h"
#include "util/complain.h"

#define ASK 0xffffffffUL

int
aslr_begin(const struct options *o)
{
	int before = personality(ASK);

	if (!o->no_aslr)
		return before < 0 ? 0 : before;
	if (before >= 0 &&
	    personality((unsigned)before | ADDR_NO_RANDOMIZE) >= 0)
		return before;
	before = -errno;
	(void)complain("--no-aslr: personality(2) is refused (%s), as "
	    "container seccomp filters do: allow that system call, or leave "
	    "out the option", strerror(errno));
	return before;
}

void
aslr_end(int before)
{
	if (personality(ASK) != before)
		(void)personality((unsigned)before);
}

void
aslr_warn_unmapped(struct session *session, const struct options *o, size_t i)
{
	session_warn(session, "%s is not mapped yet, and is watched all the "
	    "same%s", o->spec[i].text, o->no_aslr ? "" : "; --no-aslr keeps "
	    "addresses the same in each run");
}
