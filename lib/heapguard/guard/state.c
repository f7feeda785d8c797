/* state: the guard's state in this process and in its threads.  See state.h. */
#include "guard/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/block.h"
#include "guard/callers.h"
#include "guard/ends.h"
#include "guard/ledger.h"
#include "guard/malloc.h"
#include "guard/next.h"
#include "guard/programs.h"
#include "guard/watch.h"

struct hg_state hg_state;

_Thread_local struct hg_thread *hg_self
    __attribute__((tls_model("initial-exec")));
static _Thread_local bool has_ended
    __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static bool has_key;

/* --- threads --- */

/* The next thread takes over the quarantine and the spare entries. */
static void
end_thread(void *arg)
{
	struct hg_thread *t = arg;

	hg_self = NULL;
	has_ended = true;
	atomic_store(&t->used, false);
}

/* Whether the state's last user was a thread in its last destructors that has
   ended.  Nothing reports the end of such a thread, so the kernel is asked. */
static bool
is_left(struct hg_thread *t)
{
	pid_t late = atomic_load(&t->late);

	return late != 0 && syscall(SYS_tgkill, syscall(SYS_getpid), late,
	    0) != 0 && errno == ESRCH &&
	    atomic_compare_exchange_strong(&t->late, &late, 0);
}

/* Set all counts to 0.  Most pages of the array were never touched, and stay
   unallocated. */
static void
forget_counts(struct hg_thread *t)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uintptr_t from = ((uintptr_t)t->count + page - 1) / page * page;
	const uintptr_t to = (uintptr_t)(t + 1) / page * page;

	memset(t->count, 0, from - (uintptr_t)t->count);
	(void)madvise((void *)from, to - from, MADV_DONTNEED);
	memset((void *)to, 0, (uintptr_t)(t + 1) - to);
}

static struct hg_thread *
reuse(void)
{
	for (struct hg_thread *t = atomic_load(&hg_state.threads); t != NULL;
	    t = t->next) {
		bool used = false;

		if (is_left(t) || (!atomic_load(&t->used) &&
		    atomic_compare_exchange_strong(&t->used, &used, true))) {
			forget_counts(t);
			atomic_store(&hg_state.several, true);
			return t;
		}
	}
	return NULL;
}

static struct hg_thread *
make(void)
{
	struct hg_thread *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	atomic_store(&t->used, true);
	atomic_store(&hg_state.share, hg_state.quarantine /
	    (atomic_fetch_add(&hg_state.nthreads, 1) + 1));
	t->next = atomic_load(&hg_state.threads);
	atomic_store(&hg_state.several, t->next != NULL);
	while (!atomic_compare_exchange_weak(&hg_state.threads, &t->next, t))
		;
	return t;
}

struct hg_thread *
hg_thread_make(void)
{
	const int saved = errno;

	if ((hg_self = reuse()) == NULL)
		hg_self = make();
	if (hg_self != NULL && has_ended)
		atomic_store(&hg_self->late, (pid_t)syscall(SYS_gettid));
	else if (hg_self != NULL && has_key)
		(void)pthread_setspecific(key, hg_self);
	errno = saved;
	return hg_self;
}

void
hg_thread_forked(void)
{
	for (struct hg_thread *t = atomic_load(&hg_state.threads); t != NULL;
	    t = t->next) {
		if (t == hg_self)
			continue;
		atomic_store(&t->busy, false);
		atomic_store(&t->late, 0);
		atomic_store(&t->used, false);
	}
	atomic_store(&hg_state.pid, (pid_t)syscall(SYS_getpid));
	atomic_store(&hg_state.sweeper, 0);
}

/* --- start --- */

static struct hg_evidence *
map_evidence(const char *path, size_t len)
{
	struct hg_evidence *e = MAP_FAILED;
	char name[64];
	struct stat st;
	int fd;

	if (len >= sizeof(name))
		return NULL;
	memcpy(name, path, len);
	name[len] = '\0';
	if ((fd = open(name, O_RDWR | O_CLOEXEC | O_NOCTTY)) < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size == sizeof(*e))
		e = mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	(void)close(fd);
	if (e == MAP_FAILED)
		return NULL;
	if (e->magic == HG_MAGIC && e->version == HG_VERSION)
		return e;
	(void)munmap(e, sizeof(*e));
	return NULL;
}

/* A variable of the environment that the constructor received: it may run
   before the C library's, which sets environ. */
static const char *
setting(char **env, const char *name)
{
	const size_t len = strlen(name);

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, name, len) == 0 &&
		    (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

/* Whether the program can be guarded, and if not, why. */
static enum hg_hello
look_at_program(void)
{
	if (dlsym(RTLD_DEFAULT, "__asan_init") != NULL)
		return HG_SANITIZED;
	if (!hg_next_is_before("malloc", (void *)(uintptr_t)&malloc))
		return HG_OWN_MALLOC;
	return hg_ledger_begin() < 0 || hg_callers_begin() < 0 ||
	    hg_thread() == NULL ? HG_NO_MEMORY : HG_GUARDED;
}

static void
begin(int argc, char **argv, char **env)
{
	const char *text = setting(env, HG_VARIABLE),
	    *temporary = setting(env, "TMPDIR");
	const size_t len = text == NULL ? 0 : strcspn(text, " ");
	enum hg_hello how;

	atomic_store(&hg_state.pid, (pid_t)syscall(SYS_getpid));
	if (text == NULL || (hg_state.evidence = map_evidence(text,
	    len)) == NULL)
		return;
	hg_state.quarantine = strtoull(text + len, NULL, 10);
	how = look_at_program();
	hg_block_begin();
	hg_state.cxx = hg_cxx_look();
	hg_program_image(argc, argv, temporary != NULL ? temporary : "",
	    &hg_state.image);
	hg_program_hello(how);
	if (how == HG_GUARDED)
		hg_watch_begin();
	hg_state.on = how == HG_GUARDED;
	if (!hg_state.on)
		return;
	has_key = pthread_key_create(&key, end_thread) == 0;
	if (has_key)
		(void)pthread_setspecific(key, hg_self);
	hg_ends_begin();
}

static __attribute__((constructor)) void
construct(int argc, char **argv, char **env)
{
	if (hg_next.malloc == NULL)
		hg_next_begin();
	begin(argc, argv, environ != NULL ? environ : env);
}
