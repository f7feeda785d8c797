/* heap_evidence: the findings of guarded programs.  Programs write there, so
   everything is checked before it is used. */
#include "heap/heap_evidence.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/trap_cpu.h"
#include "probe/probe.h"
#include "proc/proc.h"
#include "util/complain.h"

enum { ENDING = 500 };		/* ms for what the command leaves behind */

/* Debug registers that are set by ptrace do not report the kernel's writes
   either, and those of some processors never do. */
static bool
is_user_only(void)
{
	struct wp_features features;
	struct wp_cause cause;

	return !wp_cpu_traps_kernel() ||
	    wp_probe_features(&features, &cause) < 0 || !features.kernel;
}

int
heap_evidence_make(struct heap_evidence *evidence)
{
	struct hg_evidence *e = MAP_FAILED;

	*evidence = (struct heap_evidence){
		.fd = memfd_create("watchpoint-heap",
		    MFD_CLOEXEC | MFD_ALLOW_SEALING),
	};
	if (evidence->fd >= 0 && ftruncate(evidence->fd, sizeof(*e)) == 0 &&
	    fcntl(evidence->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED,
		    evidence->fd, 0);
	if (e == MAP_FAILED)
		return complain_errno(errno, "memory to share with the "
		    "command");
	e->magic = HG_MAGIC;
	e->version = HG_VERSION;
	e->size = sizeof(*e);
	e->user_only = is_user_only();
	/* the first entry is reserved for the command */
	e->program[0].pid = (int32_t)getpid();
	e->nprograms = 1;
	evidence->at = e;
	return 0;
}

void
heap_evidence_close(struct heap_evidence *evidence)
{
	if (evidence->at != NULL)
		(void)munmap(evidence->at, sizeof(*evidence->at));
	if (evidence->fd >= 0)
		(void)close(evidence->fd);
	*evidence = (struct heap_evidence){.fd = -1};
}

int
heap_evidence_set(const struct heap_evidence *evidence,
    const struct options *options)
{
	const uint64_t quarantine = options->quarantine == QUARANTINE_NONE ?
	    QUARANTINE_USUAL : options->quarantine;
	char where[96];

	(void)snprintf(where, sizeof(where), "/proc/%d/fd/%d %" PRIu64,
	    (int)getpid(), evidence->fd, quarantine);
	return setenv(HG_VARIABLE, where, 1) != 0 ?
	    complain("out of memory") : 0;
}

/* --- its end --- */

/* Whether a process is just executing a program, whose guard will announce
   itself. */
static bool
is_beginning(const struct hg_evidence *e)
{
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		const struct hg_program *p = &e->program[i];
		const int32_t pid = atomic_load(&p->pid);

		if (pid > 0 && p->balance == 1 && kill(pid, 0) == 0)
			return true;
	}
	return false;
}

/* Whether programs may still add to the evidence, which includes those that
   just begin or end. */
static bool
is_in_use(const struct heap_evidence *evidence)
{
	for (int ms = 0; ms < ENDING; ms += 5) {
		if (!is_beginning(evidence->at) && fcntl(evidence->fd,
		    F_ADD_SEALS, F_SEAL_WRITE) == 0)
			return false;
		(void)usleep(5000);
	}
	return fcntl(evidence->fd, F_ADD_SEALS, F_SEAL_WRITE) != 0;
}

bool
heap_evidence_in_use(struct heap_evidence *evidence)
{
	void *copy = mmap(NULL, sizeof(*evidence->at), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE, evidence->fd, 0);

	if (copy != MAP_FAILED) {
		(void)munmap(evidence->at, sizeof(*evidence->at));
		evidence->at = copy;
	}
	return is_in_use(evidence);
}

struct mapping_search {
	struct stat stat;
	bool found;
};

static int
look_at(void *arg, const struct wp_proc_map *map)
{
	struct mapping_search *look = arg;

	look->found = look->found || (map->ino == look->stat.st_ino &&
	    map->maj == major(look->stat.st_dev) &&
	    map->min == minor(look->stat.st_dev));
	return 0;
}

/* The pidfd is opened first, so that the process that is examined is the one
   that is killed. */
static bool
end_user(pid_t pid, const struct stat *stat)
{
	struct mapping_search look = {.stat = *stat};
	const int pidfd = pidfd_open(pid, 0);

	if (pidfd < 0)
		return false;
	(void)wp_proc_maps(pid, look_at, &look);
	if (look.found)
		(void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
	(void)close(pidfd);
	return look.found;
}

static bool
end_all(const struct stat *stat)
{
	size_t cap = 0;
	pid_t *pids = NULL;
	const int n = wp_proc_processes(&pids, &cap);
	bool any = false;

	for (int i = 0; i < n; i++)
		any |= pids[i] != getpid() && end_user(pids[i], stat);
	free(pids);
	return any;
}

/* They are sought again after each round, because one may have had a child
   meanwhile. */
void
heap_evidence_end_users(const struct heap_evidence *evidence)
{
	struct stat stat;

	if (fstat(evidence->fd, &stat) != 0)
		return;
	for (int ms = 0; ms < ENDING && end_all(&stat); ms++)
		(void)usleep(1000);
}

/* --- what was found --- */

/* Copy a finding, so that no program can change it any more.  False: it is not
   valid, or its writer was killed meanwhile. */
static bool
take_finding(const struct hg_finding *from, struct hg_finding *f)
{
	if (atomic_load(&from->ready) == 0)
		return false;
	*f = *from;
	f->program[HG_PATH_MAX - 1] = '\0';
	if (f->nmaps > HG_MAPS_MAX)
		f->nmaps = HG_MAPS_MAX;
	for (uint32_t i = 0; i < f->nmaps; i++)
		f->map[i].path[HG_PATH_MAX - 1] = '\0';
	f->nhits = 0;
	return f->kind >= HG_OVERFLOW && f->kind < HG_KINDS && f->pid > 0 &&
	    f->tid > 0 && f->nbytes <= HG_BYTES_MAX;
}

uint32_t
heap_evidence_count(const struct heap_evidence *evidence)
{
	const uint32_t all = atomic_load(&evidence->at->nfindings);

	return all < HG_FINDINGS_MAX ? all : HG_FINDINGS_MAX;
}

uint32_t
heap_evidence_more(const struct heap_evidence *evidence)
{
	return atomic_load(&evidence->at->nfindings) -
	    heap_evidence_count(evidence);
}

bool
heap_evidence_finding(const struct heap_evidence *evidence, uint32_t i,
    struct hg_finding *f)
{
	return take_finding(&evidence->at->finding[i], f);
}

void
heap_evidence_cover(const struct heap_evidence *evidence, struct coverage *c)
{
	const struct hg_evidence *e = evidence->at;

	c->heap = true;
	c->all += atomic_load(&e->blocks);
	c->on += atomic_load(&e->watched);
	c->sites += atomic_load(&e->sites);
	c->sites_watched += atomic_load(&e->sites_watched);
}

int
heap_evidence_take(const struct heap_evidence *evidence,
    struct heap_findings *found)
{
	const uint32_t n = heap_evidence_count(evidence);

	*found = (struct heap_findings){
		.one = calloc(n + 1, sizeof(*found->one)),
		.more = heap_evidence_more(evidence),
	};
	if (found->one == NULL)
		return complain("out of memory");
	for (uint32_t i = 0; i < n; i++) {
		if (take_finding(&evidence->at->finding[i],
		    &found->one[found->n]))
			found->n++;
		else
			found->bad++;
	}
	return 0;
}
