/* preloaded: starts a command with one of our libraries preloaded. */
#include "helper/preloaded.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/cause.h"
#include "util/buffer.h"
#include "util/complain.h"
#include "util/executable.h"
#include "watch/aslr.h"


/* Used by the signal handlers. */
static struct {
	volatile pid_t command;		/* 0 until it is started */
	volatile bool quiet;	/* another command of the same session */
	volatile bool interrupted;
	struct wp_channel *volatile channel;
} handlers;

/* Find the library: where the user says it is, beside this program as installed
   or built, or where it is to be installed. */
static int
find(const struct preloaded_library *library, char path[PATH_MAX])
{
	const char *named = library->variable == NULL ? NULL :
	    getenv(library->variable);

	if (named != NULL && *named != '\0')
		return realpath(named, path) == NULL ? -ENOENT : 0;
	return executable_companion(library->beside, 2, library->installed,
	    path);
}

int
preloaded_find(const struct preloaded_library *library, char path[PATH_MAX])
{
	if (find(library, path) < 0)
		return complain("%s needs %s, which is neither beside watchctl "
		    "nor %s: install it%s%s", library->option, library->name,
		    library->installed, library->variable == NULL ? "" :
		    ", or name it in ", library->variable == NULL ? "" :
		    library->variable);
	if (strpbrk(path, " :") != NULL)
		return complain("%s: the dynamic loader takes no library whose "
		    "path has a space or ':' in it", path);
	return 0;
}

int
preloaded_check(const char *command, char path[PATH_MAX])
{
	struct wp_cause cause;

	switch (executable_find(command, path)) {
	case -ENOENT:
		(void)wp_cause_set(&cause, WP_CAUSE_NOT_FOUND, command);
		(void)complain("%s", cause.text);
		return STATUS_NOT_FOUND;
	case -EACCES:
		(void)wp_cause_set(&cause, WP_CAUSE_NOT_EXECUTABLE, command,
		    "no permission, or not a program");
		(void)complain("%s", cause.text);
		return STATUS_NOT_EXECUTABLE;
	default:
		return 0;
	}
}

/* the user's LD_PRELOAD, or NULL */
static char *preload_before;

int
preloaded_set(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	struct buffer b = {0};
	int err;

	buffer_puts(&b, library);
	if (others != NULL && *others != '\0')
		buffer_printf(&b, ":%s", others);
	free(preload_before);
	preload_before = others == NULL ? NULL : strdup(others);
	err = setenv("LD_PRELOAD", buffer_text(&b), 1);
	buffer_free(&b);
	return err;
}

/* The terminal sends its signals to the command as well; others are passed on
   to it.  SIGCHLD and the like only interrupt the wait. */
static void
on_signal(int sig)
{
	int saved = errno;
	pid_t command = handlers.command;
	const bool ends = sig != SIGCHLD && sig != SIGXFSZ;

	if (ends)
		handlers.interrupted = true;
	if (ends && handlers.quiet && command > 0)
		(void)kill(-command, SIGKILL);
	else if ((sig == SIGTERM || sig == SIGHUP) && command > 0)
		(void)kill(command, sig);
	if (handlers.channel != NULL)
		wp_channel_ring(handlers.channel);
	errno = saved;
}

/* Handlers are used because the command would inherit ignored signals.  Signals
   that are ignored already stay so, for both. */
void
preloaded_catch(struct wp_channel *channel)
{
	static const int caught[] = {
		SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD,
	};
	struct sigaction old, action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART,
	};

	handlers.channel = channel;
	(void)sigfillset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		if (sigaction(caught[i], NULL, &old) == 0 &&
		    (old.sa_handler != SIG_IGN || caught[i] == SIGCHLD))
			(void)sigaction(caught[i], &action, NULL);
}

void
preloaded_forget_channel(void)
{
	handlers.channel = NULL;
}

/* Called once the command runs, so that other children do not get the
   library. */
static void
restore_preload(void)
{
	(void)unsetenv("LD_PRELOAD");
	if (preload_before != NULL)
		(void)setenv("LD_PRELOAD", preload_before, 1);
	free(preload_before);
	preload_before = NULL;
}

static int
start(const struct options *o, const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attr, pid_t *pid)
{
	char *const *argv = o->command;
	struct wp_cause cause;
	int err, before = aslr_begin(o);

	if (before < 0)
		return STATUS_OWN_FAILURE;
	err = posix_spawnp(pid, argv[0], actions, attr, argv, environ);
	restore_preload();
	aslr_end(before);
	if (err == 0) {
		handlers.command = *pid;
		return 0;
	}
	if (err == ENOENT)	/* the command itself exists */
		(void)wp_cause_set(&cause, WP_CAUSE_NO_INTERPRETER, argv[0]);
	else
		(void)wp_cause_set(&cause, WP_CAUSE_NOT_EXECUTABLE, argv[0],
		    err == ENOEXEC ? "not in a format that the kernel runs" :
		    strerror(err));
	(void)complain("%s", cause.text);
	return err == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

int
preloaded_start(const struct options *o, pid_t *pid)
{
	return start(o, NULL, NULL, pid);
}

int
preloaded_start_quiet(const struct options *o, int input, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int status;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attr);
	handlers.quiet = true;
	if (posix_spawn_file_actions_adddup2(&actions, input, 0) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY,
	    0) != 0 || posix_spawn_file_actions_adddup2(&actions, 1, 2) != 0 ||
	    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID) != 0)
		status = (complain("out of memory"), STATUS_OWN_FAILURE);
	else
		status = start(o, &actions, &attr, pid);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return status;
}

bool
preloaded_is_interrupted(void)
{
	return handlers.interrupted;
}

int
preloaded_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_OWN_FAILURE;
	handlers.command = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status);
}
