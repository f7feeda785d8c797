/*
 * space: processes and the names of their threads, learnt from records.
 *
 * A thread that has ended stays known until many others have: records of its
 * last moments may still come.  With its last known thread a process forgets
 * what it mapped; the process itself, which is small then, lives as long as the
 * space, since hits that are not written yet refer to it.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "space/files.h"
#include "space/jit.h"
#include "space/kernel_symbols.h"
#include "space/maps.h"
#include "proc/proc.h"
#include "space/space.h"

#define ENDED_MAX 1024	/* ended threads that are remembered */
#define COMM_MAX 64	/* size of a thread's name */
#define CODE_BITS 6  /* log2 of the number of places kept as unchanged code */
#define KERNEL "[kernel.kallsyms]"

struct ex_process {
	pid_t pid;
	unsigned nthreads;	/* including ended ones */
	struct ex_maps *maps;	/* NULL if empty */
	uint64_t generation;
	uint64_t mapped;	/* as of ex_space_mapped; 0: not known */
	struct ex_maps_hint hint;	/* the mappings found last */
	int root;		/* for ex_files_module */
	bool root_asked;	/* the root is its own, not its parent's, or
				   will not become known */
	bool live;		/* it is running */
	struct ex_jit *jit;	/* names of generated code; NULL if not known */
	void *objects;	/* objects declared to be in it (declared_object.c); */
	void (*release)(void *);	/* NULL if there are none */
	uint64_t *original;	/* a hash table of the ends of code that was
				   compared, 2 to CODE_BITS entries, 0 if
				   free; NULL if none was */
};

struct thread {
	pid_t tid;
	bool ended;
	struct ex_process *process;
	char comm[COMM_MAX];
};

/* A mapping whose record is still to come; its file is already open. */
struct foreseen {
	struct foreseen *next;
	struct ex_module *module;
	uint64_t time, start;
	pid_t pid;
};

struct ex_space {
	enum ex_source source;
	struct ex_files *files;
	void *processes;	/* of search.h, by pid */
	void *threads;		/* of search.h, by tid */
	struct ex_process *last;	/* found last, or NULL */
	struct foreseen *first, *newest;	/* in the order of their
						   records, or NULL */
	pid_t ended[ENDED_MAX];	/* tids in the order of their end, or 0 */
	size_t nended;		/* total number of ended threads */
	uint64_t generation;	/* the last one assigned to a process */
	char kernel_symbol[32];	/* a function of a recording's kernel; "":
				   not known */
	uint64_t kernel_addr;	/* and its address */
	bool kernel_asked;	/* kernel_same is valid */
	bool kernel_same;	/* the recorded kernel is the running one */
};

static int
process_compare(const void *a, const void *b)
{
	pid_t x = ((const struct ex_process *)a)->pid;
	pid_t y = ((const struct ex_process *)b)->pid;

	return (x > y) - (x < y);
}

static int
thread_compare(const void *a, const void *b)
{
	pid_t x = ((const struct thread *)a)->tid;
	pid_t y = ((const struct thread *)b)->tid;

	return (x > y) - (x < y);
}

struct ex_space *
ex_space_new(enum ex_source source)
{
	struct ex_space *space = calloc(1, sizeof(*space));

	if (space == NULL)
		return NULL;
	space->source = source;
	if ((space->files = ex_files_new(source)) == NULL) {
		free(space);
		return NULL;
	}
	return space;
}

static void
process_free(void *p)
{
	struct ex_process *process = p;

	ex_maps_release(process->maps);
	ex_jit_free(process->jit);
	free(process->original);
	if (process->release != NULL)
		process->release(process->objects);
	free(process);
}

static void
pop_foreseen(struct ex_space *space)
{
	struct foreseen *first = space->first;

	space->first = first->next;
	free(first);
}

void
ex_space_free(struct ex_space *space)
{
	if (space == NULL)
		return;
	while (space->first != NULL)
		pop_foreseen(space);
	tdestroy(space->threads, free);
	tdestroy(space->processes, process_free);
	ex_files_free(space->files);
	free(space);
}

void
ex_space_build_id(struct ex_space *space, const char *path, const uint8_t *id,
    size_t len)
{
	ex_files_build_id(space->files, path, id, len);
	space->kernel_asked = false;
}

/* The code compared before may have been replaced. */
static void
process_code_changed(struct ex_process *p)
{
	free(p->original);
	p->original = NULL;
}

static void
process_changed(struct ex_space *space, struct ex_process *p)
{
	p->generation = ++space->generation;
	p->hint = (struct ex_maps_hint){0};
	process_code_changed(p);
}

static void
process_forget_maps(struct ex_space *space, struct ex_process *p)
{
	ex_maps_release(p->maps);
	p->maps = NULL;
	process_changed(space, p);
}

struct ex_process *
ex_space_process(struct ex_space *space, pid_t pid)
{
	struct ex_process key = {.pid = pid}, *p = space->last, **found;

	if (p != NULL && p->pid == pid)
		return p;
	if ((found = tfind(&key, &space->processes, process_compare)) != NULL)
		return space->last = *found;
	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->pid = pid;
	p->root = -1;
	p->live = space->source == EX_LIVE;
	process_changed(space, p);
	if (tsearch(p, &space->processes, process_compare) == NULL) {
		free(p);
		return NULL;
	}
	return space->last = p;
}

struct ex_jit *
ex_process_jit(const struct ex_process *p)
{
	return p->jit;
}

uint64_t
ex_process_generation(const struct ex_process *p)
{
	return p->generation;
}

struct ex_module *
ex_process_module(struct ex_process *p, uint64_t addr, uint64_t *vaddr)
{
	struct ex_image image;

	if (p->maps == NULL || !ex_maps_find(p->maps, addr, &p->hint, &image))
		return NULL;
	*vaddr = addr - image.base;
	return image.module;
}

/* Does memory hold the module's code?  If there is none to read, only what is
   doubtful is not believed. */
static bool
is_in_memory(const struct ex_process *p, const struct ex_mapping *at,
    uint64_t start, size_t len)
{
	uint8_t file[EX_ORIGINAL], memory[EX_ORIGINAL];
	uint64_t base;

	if (!p->live || wp_proc_read(p->pid, start, memory, len) !=
	    (ssize_t)len)
		return !at->doubtful;
	return ex_module_base(at->module, at->first, at->pgoff, &base) &&
	    ex_module_bytes(at->module, start - base, file, len) == len &&
	    memcmp(file, memory, len) == 0;
}

bool
ex_process_is_original(struct ex_process *p, uint64_t end)
{
	const size_t place = end * UINT64_C(0x9e3779b97f4a7c15) >>
	    (64 - CODE_BITS);
	const struct ex_mapping *at;
	size_t len;

	if (p->maps == NULL || (p->original != NULL &&
	    p->original[place] == end))
		return p->maps != NULL;
	at = ex_maps_above(p->maps, end - 1, &p->hint);
	if (at == p->maps->at + p->maps->n || at->start >= end)
		return true;	/* no code that a record reported */
	len = end - at->start < EX_ORIGINAL ? end - at->start : EX_ORIGINAL;
	if (at->writable || ((at->doubtful || at->unseen) &&
	    !is_in_memory(p, at, end - len, len)))
		return false;
	if (p->original == NULL)
		p->original = calloc(1 << CODE_BITS, sizeof(*p->original));
	if (p->original != NULL)
		p->original[place] = end;
	return true;
}

void **
ex_process_objects(struct ex_process *p, void (*release)(void *))
{
	if (release != NULL)
		p->release = release;
	return &p->objects;
}

bool
ex_process_read(const struct ex_process *p, uint64_t addr, void *to, size_t len)
{
	return p->live && len <= SSIZE_MAX &&
	    wp_proc_read(p->pid, addr, to, len) == (ssize_t)len;
}

int
ex_process_modules(struct ex_process *p,
    int (*fn)(void *, struct ex_module *, uint64_t), void *arg)
{
	const struct ex_image *image;
	int result = 0;
	size_t n;

	if (p->maps == NULL)
		return 0;
	n = ex_maps_images(p->maps, &image);
	for (int others = 0; others <= 1; others++) {
		for (size_t i = 0; i < n && result == 0; i++) {
			if ((image[i].module != p->maps->executable) == others)
				result = fn(arg, image[i].module,
				    image[i].base);
		}
	}
	return result;
}

static struct thread *
thread_find(const struct ex_space *space, pid_t tid)
{
	struct thread key = {.tid = tid};
	struct thread **found = tfind(&key, &space->threads, thread_compare);

	return found != NULL ? *found : NULL;
}

static void
thread_leave(struct ex_space *space, struct thread *thread)
{
	struct ex_process *p = thread->process;

	if (p != NULL && --p->nthreads == 0 && thread->ended)
		process_forget_maps(space, p);
	thread->process = NULL;
}

/* The thread with this tid, known from now on as one that runs in pid. */
static struct thread *
thread_learn(struct ex_space *space, pid_t pid, pid_t tid)
{
	struct ex_process *p = ex_space_process(space, pid);
	struct thread *thread = thread_find(space, tid);

	if (p == NULL)
		return NULL;
	if (thread == NULL) {
		if ((thread = calloc(1, sizeof(*thread))) == NULL)
			return NULL;
		thread->tid = tid;
		if (tsearch(thread, &space->threads, thread_compare) == NULL) {
			free(thread);
			return NULL;
		}
	}
	if (thread->process != p) {
		thread_leave(space, thread);
		thread->process = p;
		p->nthreads++;
	}
	thread->ended = false;
	return thread;
}

static void
thread_name(struct thread *thread, const char *comm)
{
	size_t len = strnlen(comm, sizeof(thread->comm) - 1);

	memmove(thread->comm, comm, len);
	thread->comm[len] = '\0';
}

static void
thread_forget(struct ex_space *space, pid_t tid)
{
	struct thread *thread = thread_find(space, tid);

	if (thread == NULL || !thread->ended)
		return;
	thread_leave(space, thread);
	(void)tdelete(thread, &space->threads, thread_compare);
	free(thread);
}

const char *
ex_space_comm(const struct ex_space *space, pid_t pid, pid_t tid)
{
	const struct thread *thread = thread_find(space, tid);

	/* a thread without a name of its own began with that of its process */
	if (thread == NULL || thread->process->pid != pid)
		thread = thread_find(space, pid);
	return thread != NULL && thread->process->pid == pid ?
	    thread->comm : "";
}

/* The first of what is mapped where a record tells of a mapping; NULL: nothing
   is. */
static const struct ex_mapping *
mapped_at(struct ex_process *p, const struct ex_mmap *map)
{
	const struct ex_mapping *at;

	if (p->maps == NULL)
		return NULL;
	at = ex_maps_above(p->maps, map->start, &p->hint);
	return at == p->maps->at + p->maps->n ||
	    at->start >= map->start + map->len ? NULL : at;
}

/* Whether it is the very mapping that a record tells of: a program that changes
   the protection of its code causes records that say nothing new. */
static bool
mmap_known(const struct ex_mapping *at, const struct ex_mmap *map,
    const struct ex_module *m)
{
	if (at == NULL || m == NULL)
		return at == NULL && m == NULL;
	return at->module == m && at->start <= map->start &&
	    at->end >= map->start + map->len &&
	    at->pgoff + (map->start - at->first) == map->pgoff;
}

/* Whether a known mapping is as it was: any change of it would be known, too,
   and this record of it is no sign of one. */
static bool
is_nothing_new(const struct ex_process *p, const struct ex_mapping *at,
    const struct ex_record *record)
{
	return p->mapped != 0 && record->time <= p->mapped &&
	    !at->writable && !at->doubtful;
}

const struct ex_module *
ex_space_rejected_debug(struct ex_space *space, const char **why)
{
	const struct ex_module *m = ex_files_rejected_debug(space->files);

	*why = m == NULL ? NULL : m->rejection;
	return m;
}

/* The code that a program makes its data, to write there: as a rule it is made
   code again.  NULL: something else is mapped. */
static const struct ex_mapping *
code_made_data(struct ex_process *p, const struct ex_mmap *map)
{
	const struct ex_mapping *at;

	if (p->maps == NULL || map->ino == 0 || (map->prot & PROT_EXEC) != 0)
		return NULL;
	at = ex_maps_above(p->maps, map->start, &p->hint);
	return at < p->maps->at + p->maps->n && at->start <= map->start &&
	    at->module->id.ino == map->ino &&
	    at->pgoff + (map->start - at->first) == map->pgoff ? at : NULL;
}

bool
ex_space_live(const struct ex_space *space)
{
	return space->source == EX_LIVE;
}

bool
ex_space_kernel(struct ex_space *space)
{
	uint8_t id[20];
	size_t len;

	if (space->source == EX_LIVE)
		return true;
	if (!space->kernel_asked) {
		len = ex_files_find_id(space->files, KERNEL, id);
		space->kernel_same = ex_kernel_is(space->kernel_symbol,
		    space->kernel_addr, id, len);
		space->kernel_asked = true;
	}
	return space->kernel_same;
}

/* The kernel's own mapping names the function that it was measured by. */
static void
learn_kernel(struct ex_space *space, const struct ex_mmap *map)
{
	const size_t prefix = sizeof(KERNEL) - 1, len = strlen(map->path);

	if (strncmp(map->path, KERNEL, prefix) != 0 ||
	    len - prefix >= sizeof(space->kernel_symbol))
		return;
	memcpy(space->kernel_symbol, map->path + prefix, len - prefix + 1);
	space->kernel_addr = map->pgoff;
	space->kernel_asked = false;
}

void
ex_space_foresee(struct ex_space *space, const struct ex_record *record)
{
	const bool map = record->type == PERF_RECORD_MMAP ||
	    record->type == PERF_RECORD_MMAP2;
	struct foreseen *it;
	int root = -1;

	if (!map || (record->mmap.prot & PROT_EXEC) == 0 || record->pid <= 0 ||
	    space->source != EX_LIVE || (it = malloc(sizeof(*it))) == NULL)
		return;
	(void)ex_files_root(space->files, record->pid, &root);
	*it = (struct foreseen){
		.module = ex_files_module(space->files, record->pid, root,
		    &record->mmap),
		.time = record->time, .start = record->mmap.start,
		.pid = record->pid,
	};
	if (space->first == NULL)
		space->first = it;
	else
		space->newest->next = it;
	space->newest = it;
}

/* What was opened for it, if that was. */
static bool
was_foreseen(struct ex_space *space, const struct ex_record *record,
    struct ex_module **module)
{
	const struct foreseen *it;

	while ((it = space->first) != NULL && it->time < record->time)
		pop_foreseen(space);
	if (it == NULL || it->time != record->time || it->pid != record->pid ||
	    it->start != record->mmap.start)
		return false;
	*module = it->module;
	pop_foreseen(space);
	return true;
}

/* It may be allowed to ask only later, and then it is asked again.  A process
   that has ended, or whose root is refused, is not asked before it executes
   another program: it may map many files. */
static void
ask_for_root(struct ex_space *space, struct ex_process *p)
{
	const int err = ex_files_root(space->files, p->pid, &p->root);

	p->root_asked = err == 0 || err == -ESRCH || err == -EPERM;
	if (err == 0 && p->jit == NULL)
		p->jit = ex_jit_new(p->pid, p->root);
}

static void
learn_mmap(struct ex_space *space, const struct ex_record *record)
{
	const struct ex_mmap *map = &record->mmap;
	struct ex_mapping new = {
		.start = map->start, .end = map->start + map->len,
		.first = map->start, .pgoff = map->pgoff,
		.writable = (map->prot & PROT_WRITE) != 0,
	};
	const struct ex_mapping *at, *code;
	struct ex_process *p;
	bool known;

	if (record->pid == -1)
		learn_kernel(space, map);
	if (record->pid <= 0 || new.end <= new.start ||
	    (p = ex_space_process(space, record->pid)) == NULL)
		return;
	if ((map->prot & PROT_EXEC) != 0) {
		if (!p->root_asked && p->live)
			ask_for_root(space, p);
		if (!was_foreseen(space, record, &new.module))
			new.module = ex_files_module(space->files, p->pid,
			    p->root, map);
	}
	if ((code = code_made_data(p, map)) != NULL) {
		new.module = code->module;
		new.first = code->first;
		new.pgoff = code->pgoff;
	}
	at = mapped_at(p, map);
	known = code != NULL || mmap_known(at, map, new.module);
	if (known && (new.module == NULL ||
	    (code == NULL && is_nothing_new(p, at, record))))
		return;
	new.doubtful = known;
	new.unseen = record->time == 0;	/* it was there before */
	if (!ex_maps_own(&p->maps) || !ex_maps_set(p->maps, &new))
		return;
	if (known)
		process_code_changed(p);
	else
		process_changed(space, p);
}

static void
learn_comm(struct ex_space *space, const struct ex_record *record)
{
	struct thread *thread = thread_learn(space, record->comm.pid,
	    record->comm.tid);

	if (thread == NULL)
		return;
	thread_name(thread, record->comm.name);
	if ((record->misc & PERF_RECORD_MISC_COMM_EXEC) != 0) {
		process_forget_maps(space, thread->process);
		thread->process->root_asked = false;
	}
}

static void
learn_fork(struct ex_space *space, const struct ex_record *record)
{
	const struct thread *parent = thread_find(space, record->task.ptid);
	pid_t pid = record->task.pid, ppid = record->task.ppid;
	struct thread *thread = thread_learn(space, pid, record->task.tid);
	struct ex_process *p, *from;

	if (thread == NULL)
		return;
	thread_name(thread, parent != NULL ? parent->comm : "");
	if (pid == ppid || (from = ex_space_process(space, ppid)) == NULL)
		return;
	p = thread->process;
	process_forget_maps(space, p);
	if ((p->maps = from->maps) != NULL)
		p->maps->refs++;
	p->root = from->root;
	p->root_asked = false;
}

static void
learn_exit(struct ex_space *space, const struct ex_record *record)
{
	pid_t tid = record->task.tid;
	struct thread *thread = thread_find(space, tid);
	pid_t *slot = &space->ended[space->nended % ENDED_MAX];

	if (thread == NULL &&
	    (thread = thread_learn(space, record->task.pid, tid)) == NULL)
		return;
	thread->ended = true;
	if (*slot != 0)
		thread_forget(space, *slot);
	*slot = tid;
	space->nended++;
}

void
ex_space_mapped(struct ex_space *space, pid_t pid, uint64_t time)
{
	struct ex_process *p = ex_space_process(space, pid);

	if (p != NULL)
		p->mapped = time;
}

void
ex_space_learn(struct ex_space *space, const struct ex_record *record)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		learn_mmap(space, record);
		break;
	case PERF_RECORD_COMM:
		learn_comm(space, record);
		break;
	case PERF_RECORD_FORK:
		learn_fork(space, record);
		break;
	case PERF_RECORD_EXIT:
		learn_exit(space, record);
		break;
	default:
		break;
	}
}
