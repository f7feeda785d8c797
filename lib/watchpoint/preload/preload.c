/*
 * preload: watches from the environment, for programs that cannot be rebuilt.
 *
 *	LD_PRELOAD=libwatchpoint.so.0 WATCHPOINT_WATCH='w:config' program
 *
 * which is what `watchctl --inside` sets up.  The watches are opened by a
 * constructor, before the program begins, and stay open.  If one fails, the
 * program does not begin: it ends with status 125.
 *
 * The variables are taken out of the environment, so the program's children are
 * not affected; and so is the library's name in LD_PRELOAD.
 */
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arming/helper.h"
#include "program/table.h"

enum { STATUS_UNWATCHED = 125 };

/* The length of the first file name in a list as of LD_PRELOAD. */
static size_t
name_length(const char *list)
{
	return strcspn(list, ": ");
}

static bool
is_ours(const char *path, size_t len)
{
	static const char name[] = "libwatchpoint.so";
	const char *slash = memrchr(path, '/', len);
	const char *base = slash == NULL ? path : slash + 1;

	return (size_t)(path + len - base) >= sizeof(name) - 1 &&
	    memcmp(base, name, sizeof(name) - 1) == 0;
}

/* Remove this library from the list, in place.  False: nothing is left. */
static bool
trim(char *list)
{
	char *to = list;

	for (const char *from = list; *from != '\0'; ) {
		size_t len = name_length(from);
		size_t all = len + (from[len] != '\0');

		if (!is_ours(from, len)) {
			memmove(to, from, all);
			to += all;
		}
		from += all;
	}
	if (to > list && (to[-1] == ':' || to[-1] == ' '))
		to--;
	*to = '\0';
	return to > list;
}

/* The value of a variable, "NAME=value"; NULL: it has another name. */
static char *
value_of(char *variable, const char *name)
{
	size_t len = strlen(name);

	return strncmp(variable, name, len) == 0 && variable[len] == '=' ?
	    variable + len + 1 : NULL;
}

/* Whether a variable is ours, and must not reach the program's children. */
static bool
is_ours_alone(char *variable)
{
	char *value = value_of(variable, "LD_PRELOAD");

	return value_of(variable, "WATCHPOINT_WATCH") != NULL ||
	    value_of(variable, "WATCHPOINT_CHANNEL") != NULL ||
	    value_of(variable, "WATCHPOINT_PAD") != NULL ||
	    (value != NULL && !trim(value));
}

/*
 * Remove our variables.  The auxiliary vector lies behind the kernel's list,
 * and some programs look for it behind the first NULL.  So the space that
 * becomes free is filled with entries of that vector, of a kind that every
 * reader skips.  Such an entry takes the space of two variables; if their
 * number is odd, one stays, empty.
 */
static void
clean_environment(char **env)
{
	static const ElfW(auxv_t) passed_over = {.a_type = AT_IGNORE};
	char **to = env, **from = env, *odd = NULL;

	for (; env != NULL && *from != NULL; from++)
		if (!is_ours_alone(*from))
			*to++ = *from;
		else if (value_of(*from, "WATCHPOINT_WATCH") != NULL)
			odd = value_of(*from, "WATCHPOINT_WATCH");
	if (env == NULL || to == from)
		return;
	if ((from - to) % 2 != 0 && odd != NULL) {
		*odd = '\0';
		*to++ = odd - sizeof("WATCHPOINT_WATCH");
	}
	for (*to++ = NULL; to < from; to += sizeof(passed_over) / sizeof(*to))
		memcpy(to, &passed_over, sizeof(passed_over));
}

/* The SPECs that are to be watched, and the helper's answer. */
static struct {
	char text[WP_TEXT_MAX];
	struct wp_cell_watch region[WP_REGIONS_MAX];
} wanted;

/* Ask the helper where the SPECs are.  Result: the number of regions, or
   -errno. */
static int
resolve(struct wp_cause *cause)
{
	struct wp_request *request = wp_helper_request(WP_ASK_RESOLVE);
	int n;

	if (request == NULL)
		return wp_cause_set(cause, WP_CAUSE_HELPER_DIED);
	memcpy(request->text, wanted.text, sizeof(wanted.text));
	n = wp_helper_ask(cause);
	if (n > WP_REGIONS_MAX)
		return wp_cause_errno(cause, "WATCHPOINT_WATCH", E2BIG);
	if (n > 0)
		memcpy(wanted.region, request->region,
		    (size_t)n * sizeof(wanted.region[0]));
	return n;
}

/* The flags that the letters after a line's access stand for. */
static unsigned
flags_of(const char *line)
{
	const size_t n = strcspn(line, ":");
	unsigned flags = 0;

	for (size_t i = 1; i < n; i++)
		flags |= line[i] == 'u' ? WP_USER_ONLY :
		    line[i] == 'f' ? WP_FORK : 0;
	return flags;
}

/* Open the watch of a region, whose line begins with "ACCESS" and the letters
   of its flags. */
static int
open_one(const struct wp_cell_watch *region, const char *line,
    struct wp_cause *cause)
{
	const struct wp_attr attr = {
		.size = sizeof(attr),
		.addr = (const volatile void *)(uintptr_t)region->addr,
		.len = region->len, .access = (enum wp_access)region->access,
		.label = region->label, .action = WP_PRINT,
		.flags = flags_of(line),
	};
	struct wp_watch *watch;
	int err = wp_open(&attr, &watch);

	if (err < 0) {
		(void)wp_cause_errno(cause, region->label, -err);
		(void)snprintf(cause->text, sizeof(cause->text), "'%.63s': %s",
		    region->label, wp_cause());
	}
	return err;
}

static int
open_all(int n, struct wp_cause *cause)
{
	const char *line = wanted.text;
	int err = 0;

	for (int i = 0; i < n && err == 0; i++) {
		err = open_one(&wanted.region[i], line, cause);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return err;
}

/* Report to the helper that all watches are open, or why they are not, which it
   prints like all its messages.  -EPIPE: there is no helper. */
static int
report_armed(int err, const struct wp_cause *cause)
{
	int answer;

	wp_watches_lock();
	answer = wp_helper_armed(err < 0 ? cause : NULL);
	wp_watches_unlock();
	return answer;
}

/* Whether the process that wanted the program to be watched has ended. */
static bool
is_abandoned(int answer, const struct wp_cause *cause)
{
	return answer == -EPIPE && (atomic_load(&wp_state.channel) != NULL ||
	    cause->code == WP_CAUSE_HELPER_DIED);
}

/* The program must not begin unwatched; but it does not end either because
   watchctl has ended. */
static void
decide(int err, int answer, const struct wp_cause *cause)
{
	const bool abandoned = is_abandoned(answer, cause);
	char line[sizeof(cause->text) + 32];

	if (err < 0 && answer < 0) {
		(void)snprintf(line, sizeof(line), "%s%s", abandoned ?
		    "not watched: " : "", cause->text);
		wp_fallback_line(line);
	}
	if ((err < 0 || answer < 0) && !abandoned)
		_exit(STATUS_UNWATCHED);
}

/* Another library may have made a new list, so both are cleaned. */
static void
clean_environments(char **env)
{
	clean_environment(environ);
	if (env != environ)
		clean_environment(env);
}

/* The variable of the channel is read before it is removed.  If it names
   another process, the environment is not meant for this one. */
static void
watch(const char *text, char **env)
{
	const bool joins = wp_setting("WATCHPOINT_CHANNEL") != NULL;
	struct wp_cause cause = {0};
	int n;

	(void)snprintf(wanted.text, sizeof(wanted.text), "%s", text);
	wp_watches_lock();
	n = joins ? wp_helper_join(&cause) : 0;
	clean_environments(env);
	if (n == 0 && !joins)
		n = wp_helper_start(&cause);
	if (n == 0)
		n = resolve(&cause);
	wp_watches_unlock();
	if (n == -EBUSY && joins)
		return;
	wp_state.begins = true;
	if (n >= 0)
		n = open_all(n, &cause);
	wp_state.begins = false;
	decide(n, report_armed(n, &cause), &cause);
}

/* Constructors may run before the C library's own, which sets environ. */
static __attribute__((constructor)) void
begin(int argc, char **argv, char **env)
{
	const char *text;

	(void)argc;
	(void)argv;
	if (environ == NULL)
		environ = env;
	if (environ != NULL &&
	    (text = wp_setting("WATCHPOINT_WATCH")) != NULL && *text != '\0')
		watch(text, env);
}
