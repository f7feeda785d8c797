/*
 * ends: intercepts the end of a process, or of the program in it.
 *
 *	exit(3)		a function that is registered before any other, and so
 *			comes last
 *	_exit(2), quick_exit(3), execve(2), posix_spawn(3) ...
 *			functions of these names
 *	a crash		a handler, behind the program's: it is there while the
 *			program wants the default action
 *
 * After the check a crash takes its usual course: the default action, at the
 * same instruction.
 */
#include "guard/ends.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard/cfi.h"
#include "guard/ledger.h"
#include "guard/next.h"
#include "guard/programs.h"
#include "guard/report.h"
#include "guard/sample.h"
#include "guard/state.h"
#include "guard/watch.h"

#define EXPORTED __attribute__((visibility("default")))

/* The C library's functions, once they have been looked up. */
static struct {
	void *quick_exit, *sigaction, *signal, *__sysv_signal, *execve,
	    *execvp, *execvpe, *fexecve, *posix_spawn, *posix_spawnp, *system,
	    *popen, *dlclose;
} kept;

#define NEXT(name)							\
	((__typeof__(&(name)))(uintptr_t)hg_next_once(&kept.name, #name))

/* Look them up in advance, because the child of a process with threads must not
   call the dynamic linker. */
static void
find_all(void)
{
	static const struct {
		void **kept;
		const char *name;
	} all[] = {
#define ROW(name) {&kept.name, #name}
		ROW(quick_exit), ROW(sigaction), ROW(signal),
		ROW(__sysv_signal), ROW(execve), ROW(execvp), ROW(execvpe),
		ROW(fexecve), ROW(posix_spawn), ROW(posix_spawnp),
		ROW(system), ROW(popen), ROW(dlclose),
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		*all[i].kept = dlsym(RTLD_NEXT, all[i].name);
}

/* Whether this is a child of vfork(2), which runs in its parent's memory: the
   parent does not end with it. */
static bool
is_borrowed(void)
{
	return atomic_load(&hg_state.pid) != (pid_t)syscall(SYS_getpid);
}

static void
sweep(enum hg_when when)
{
	if (is_borrowed())
		return;
	hg_report_sweep(when);
	hg_sample_account();
}

/* --- exits --- */

static void
at_exit(void *arg)
{
	(void)arg;
	sweep(HG_AT_EXIT);
}

EXPORTED _Noreturn void
_exit(int status)
{
	sweep(HG_AT_EXIT);
	for (;;)
		(void)syscall(SYS_exit_group, status);
}

__asm__(".globl _Exit\n.set _Exit, _exit");

EXPORTED _Noreturn void
quick_exit(int status)
{
	sweep(HG_AT_EXIT);
	NEXT(quick_exit)(status);
	for (;;)
		(void)syscall(SYS_exit_group, status);
}

/* --- crashes --- */

static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};

enum { CRASHES = sizeof(crashes) / sizeof(crashes[0]) };

static int
real_sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	return NEXT(sigaction)(sig, new, old);
}

static void
on_crash(int sig, siginfo_t *info, void *context)
{
	const struct sigaction usual = {.sa_handler = SIG_DFL};
	const int saved = errno;

	(void)context;
	sweep(HG_AT_CRASH);
	(void)real_sigaction(sig, &usual, NULL);
	errno = saved;
	if (info->si_code <= 0)		/* it was sent by a process, so no
					   instruction raises it again */
		(void)syscall(SYS_tgkill, syscall(SYS_getpid),
		    syscall(SYS_gettid), sig);
}

static const struct sigaction ours = {
	.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK,
};

static bool
is_crash(int sig)
{
	for (size_t i = 0; i < CRASHES; i++)
		if (crashes[i] == sig)
			return true;
	return false;
}

static bool
is_ours(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) != 0 &&
	    action->sa_sigaction == on_crash;
}

static bool
is_usual(const struct sigaction *action)
{
	return (action->sa_flags & SA_SIGINFO) == 0 &&
	    action->sa_handler == SIG_DFL;
}

/* Where the program wants the default action our handler is installed, and the
   default action is what the program sees. */
EXPORTED int
sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	int err;

	if (!hg_state.on || !is_crash(sig))
		return real_sigaction(sig, new, old);
	err = real_sigaction(sig, new != NULL && is_usual(new) ? &ours : new,
	    old);
	if (err == 0 && old != NULL && is_ours(old))
		*old = (struct sigaction){.sa_handler = SIG_DFL};
	return err;
}

static sighandler_t
set_signal(int sig, sighandler_t handler, int flags)
{
	const struct sigaction new = {
		.sa_handler = handler, .sa_flags = flags,
	};
	struct sigaction old;

	return sigaction(sig, &new, &old) < 0 ? SIG_ERR : old.sa_handler;
}

EXPORTED sighandler_t
signal(int sig, sighandler_t handler)
{
	return hg_state.on && is_crash(sig) ?
	    set_signal(sig, handler, SA_RESTART) : NEXT(signal)(sig, handler);
}

extern sighandler_t __sysv_signal(int, sighandler_t);
EXPORTED sighandler_t
__sysv_signal(int sig, sighandler_t handler)
{
	return hg_state.on && is_crash(sig) ?
	    set_signal(sig, handler, (int)SA_RESETHAND | SA_NODEFER) :
	    NEXT(__sysv_signal)(sig, handler);
}

/* --- programs --- */

/* Record that a program is about to be executed.  The result undoes that if
   execve(2) fails. */
static struct hg_program *
before_exec(const char *path)
{
	sweep(HG_AT_EXEC);
	return hg_program_executed(path);
}

static int
after_exec(struct hg_program *program, int result)
{
	const int saved = errno;

	hg_program_failed(program);
	errno = saved;
	return result;
}

EXPORTED int
execve(const char *path, char *const argv[], char *const env[])
{
	struct hg_program *p = before_exec(path);

	return after_exec(p, NEXT(execve)(path, argv, env));
}

EXPORTED int
execv(const char *path, char *const argv[])
{
	struct hg_program *p = before_exec(path);

	return after_exec(p, NEXT(execve)(path, argv, environ));
}

EXPORTED int
execvp(const char *file, char *const argv[])
{
	struct hg_program *p = before_exec(file);

	return after_exec(p, NEXT(execvp)(file, argv));
}

EXPORTED int
execvpe(const char *file, char *const argv[], char *const env[])
{
	struct hg_program *p = before_exec(file);

	return after_exec(p, NEXT(execvpe)(file, argv, env));
}

EXPORTED int
fexecve(int fd, char *const argv[], char *const env[])
{
	struct hg_program *p = before_exec("(a descriptor)");

	return after_exec(p, NEXT(fexecve)(fd, argv, env));
}

/* Count the arguments up to the null pointer. */
static size_t
count(const char *first, va_list ap)
{
	const char *volatile arg = first;	/* it may be null */
	size_t n = 0;

	for (; arg != NULL; arg = va_arg(ap, char *))
		n++;
	return n;
}

/* Call execve(2) or execvpe(3) with the arguments of a list, and with the
   environment that follows them, if has_env. */
static int
exec_list(int (*exec)(const char *, char *const *, char *const *),
    const char *name, const char *first, va_list ap, bool has_env)
{
	va_list again;
	size_t n;

	va_copy(again, ap);
	n = count(first, again);
	va_end(again);
	char *argv[n + 1];

	argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(ap, char *);
	return exec(name, argv, has_env ? va_arg(ap, char *const *) : environ);
}

#define EXEC_LIST(called, exec, has_env)				\
	EXPORTED int							\
	called(const char *name, const char *first, ...)		\
	{								\
		va_list ap;						\
		int err;						\
									\
		va_start(ap, first);					\
		err = exec_list(exec, name, first, ap, has_env);	\
		va_end(ap);						\
		return err;						\
	}
EXEC_LIST(execl, execve, false)
EXEC_LIST(execlp, execvpe, false)
EXEC_LIST(execle, execve, true)

#define SPAWN(name)							\
	EXPORTED int							\
	name(pid_t *restrict made, const char *restrict path,		\
	    const posix_spawn_file_actions_t *restrict actions,		\
	    const posix_spawnattr_t *restrict attr,			\
	    char *const argv[restrict], char *const env[restrict])	\
	{								\
		pid_t pid;						\
		const int err = NEXT(name)(&pid, path, actions, attr,	\
		    argv, env);						\
									\
		if (err == 0)						\
			hg_program_spawned(pid, path);			\
		if (err == 0 && made != NULL)				\
			*made = pid;					\
		return err;						\
	}
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

/* Count a program that is executed by a process whose number is not known. */
static void
note_unnamed(bool executed)
{
	if (executed && hg_state.evidence != NULL)
		(void)atomic_fetch_add(&hg_state.evidence->unnamed, 1);
}

EXPORTED int
system(const char *command)
{
	const int status = NEXT(system)(command);

	note_unnamed(command != NULL && status != -1 && status != 127 << 8);
	return status;
}

EXPORTED FILE *
popen(const char *command, const char *mode)
{
	FILE *file = NEXT(popen)(command, mode);

	note_unnamed(file != NULL);
	return file;
}

/* --- unloaded libraries, children --- */

EXPORTED int
dlclose(void *library)
{
	const int result = NEXT(dlclose)(library);

	hg_frame_forget();
	return result;
}

static void
in_child(void)
{
	hg_thread_forked();
	hg_ledger_forked();
	hg_report_forked();
	hg_watch_forked();
	hg_sample_forked();
}

extern int __cxa_atexit(void (*)(void *), void *, void *);
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void),
    void *);

/* The check at exit belongs to no library, so that it runs after the
   destructors of all. */
void
hg_ends_begin(void)
{
	find_all();
	(void)__cxa_atexit(at_exit, NULL, NULL);
	(void)__register_atfork(NULL, NULL, in_child, NULL);
	for (size_t i = 0; i < CRASHES; i++) {
		struct sigaction old;

		if (real_sigaction(crashes[i], NULL, &old) == 0 &&
		    is_usual(&old))
			(void)real_sigaction(crashes[i], &ours, NULL);
	}
}
