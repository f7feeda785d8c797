/* programs: the executed programs, which register themselves.  See
   programs.h. */
#include "guard/programs.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/state.h"

void
hg_program_name(char path[HG_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, HG_PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
}

static uint64_t
hash_byte(uint64_t sum, char byte)
{
	sum = (sum ^ (unsigned char)byte) * UINT64_C(0x9e3779b97f4a7c15);
	return sum ^ sum >> 29;
}

/* If a text begins with this directory and a slash, their length, otherwise
   0. */
static size_t
begins_with(const char *text, const char *directory)
{
	size_t len = directory[0] == '/' ? strlen(directory) : 0;

	while (len > 0 && directory[len - 1] == '/')
		len--;
	return len > 0 && strncmp(text, directory, len) == 0 &&
	    text[len] == '/' ? len + 1 : 0;
}

/* Hash a path or an argument without the names of temporary files and
   directories, such as those that a compiler passes to the programs that it
   executes: these names differ from run to run.  The name of the directory for
   temporary files may differ, too. */
static uint64_t
hash(uint64_t sum, const char *text, const char *temporary)
{
	while (*text != '\0') {
		size_t len = begins_with(text, temporary);

		if (len == 0)
			len = begins_with(text, "/tmp");
		sum = hash_byte(sum, len > 0 ? '\0' : *text);
		text += len > 0 ? len + strcspn(text + len, "/") : 1;
	}
	return hash_byte(sum, '\0');
}

/* Count one more execution of this kind.  Result: its number; 0: there is no
   room. */
static uint32_t
count_image(struct hg_evidence *e, uint64_t kind)
{
	for (uint32_t i = 0; i < HG_IMAGES_MAX; i++) {
		struct hg_images *at = &e->images[(kind + i) % HG_IMAGES_MAX];
		uint64_t other = 0;

		if (atomic_compare_exchange_strong(&at->kind, &other, kind) ||
		    other == kind)
			return atomic_fetch_add(&at->count, 1) + 1;
	}
	return 0;
}

void
hg_program_image(int argc, char **argv, const char *temporary,
    struct hg_image *image)
{
	struct hg_evidence *e = hg_state.evidence;
	char path[HG_PATH_MAX];

	hg_program_name(path);
	*image = (struct hg_image){
		.path = hash(1, path, temporary), .arguments = 1,
	};
	for (int i = 0; i < argc && argv[i] != NULL; i++)
		image->arguments = hash(image->arguments, argv[i],
		    temporary);
	if (e != NULL)
		image->order = count_image(e,
		    (image->path ^ image->arguments) | 1);
}

bool
hg_program_is(const struct hg_image *image, bool any)
{
	const struct hg_image *self = &hg_state.image;

	return image->path == self->path && (any ||
	    (image->arguments == self->arguments &&
	    image->order == self->order));
}

/* The number of entries that were ever used. */
static unsigned
places(const struct hg_evidence *e)
{
	const uint32_t n = atomic_load(&e->nprograms);

	return n < HG_PROGRAMS_MAX ? n : HG_PROGRAMS_MAX;
}

static struct hg_program *
claim_place(struct hg_evidence *e, pid_t pid)
{
	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];
		uint32_t n = atomic_load(&e->nprograms);
		int32_t nobody = 0;

		while (n <= i && !atomic_compare_exchange_weak(&e->nprograms,
		    &n, i + 1))
			;
		if (atomic_load(&p->pid) == 0 &&
		    atomic_compare_exchange_strong(&p->pid, &nobody,
		    (int32_t)pid))
			return p;
	}
	return NULL;
}

/* Release the entries of ended programs that registered themselves and that no
   process has recorded as executed by it (system(3) executed them); only their
   number is kept. */
static bool
forget_ended(struct hg_evidence *e)
{
	bool any = false;

	for (unsigned i = 0; i < HG_PROGRAMS_MAX; i++) {
		struct hg_program *p = &e->program[i];
		int32_t pid = atomic_load(&p->pid);

		if (pid <= 0 || p->balance != -1 ||
		    syscall(SYS_kill, pid, 0) == 0 || errno != ESRCH ||
		    !atomic_compare_exchange_strong(&p->pid, &pid, 0))
			continue;
		(void)atomic_fetch_add(&e->answers, 1);
		any = true;
	}
	return any;
}

static struct hg_program *
claim(struct hg_evidence *e, pid_t pid, int balance, const char *path)
{
	struct hg_program *p = claim_place(e, pid);

	if (p == NULL && forget_ended(e))
		p = claim_place(e, pid);
	if (p == NULL) {
		atomic_store(&e->overflowed, 1);
		return NULL;
	}
	p->balance = balance;
	strncpy(p->path, path, sizeof(p->path) - 1);
	p->path[sizeof(p->path) - 1] = '\0';
	return p;
}

/* Release the entry that matches, of a program that has registered itself and
   was recorded as executed.  Returns false if there is none. */
static bool
settle(struct hg_evidence *e, pid_t pid, int balance)
{
	const unsigned n = places(e);

	for (unsigned i = 0; i < n; i++) {
		struct hg_program *p = &e->program[i];

		if (atomic_load(&p->pid) != pid || p->balance != balance)
			continue;
		p->balance = 0;
		atomic_store(&p->pid, 0);
		return true;
	}
	return false;
}

struct hg_program *
hg_program_executed(const char *path)
{
	struct hg_evidence *e = hg_state.evidence;

	return e == NULL ? NULL : claim(e, (pid_t)syscall(SYS_getpid), 1,
	    path == NULL ? "" : path);
}

void
hg_program_spawned(pid_t pid, const char *path)
{
	struct hg_evidence *e = hg_state.evidence;

	if (e != NULL && !settle(e, pid, -1))
		(void)claim(e, pid, 1, path == NULL ? "" : path);
}

void
hg_program_failed(struct hg_program *p)
{
	if (p == NULL)
		return;
	p->balance = 0;
	atomic_store(&p->pid, 0);
}

void
hg_program_hello(enum hg_hello how)
{
	struct hg_evidence *e = hg_state.evidence;
	const pid_t pid = (pid_t)syscall(SYS_getpid);

	if (e == NULL)
		return;
	if (!settle(e, pid, 1))
		(void)claim(e, pid, -1, "");
	if (how == HG_GUARDED) {
		(void)atomic_fetch_add(&e->hellos, 1);
		return;
	}
	hg_program_name(e->refused_path);
	atomic_store(&e->refusal, how);
	(void)atomic_fetch_add(&e->refused, 1);
}
