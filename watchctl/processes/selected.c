/* selected: finds the processes of -p. */
#include "processes/selected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/array.h"
#include "proc/proc.h"
#include "util/nearest.h"
#include "util/complain.h"
#include "util/visible.h"

/* A snapshot of all processes. */
struct listed {
	struct one {
		pid_t pid, parent;
		bool chosen;	/* descends from one that is wanted */
		char comm[64];
		char exe[NAME_MAX + 1];	/* last part of its path, or "" if
					   not known */
	} *one;
	size_t n, cap;
};

static bool
has(const struct selected *chosen, pid_t pid)
{
	for (size_t i = 0; i < chosen->n; i++)
		if (chosen->pid[i] == pid)
			return true;
	return false;
}

static int
add(struct selected *chosen, pid_t pid)
{
	if (has(chosen, pid))
		return 0;
	if (WP_ARRAY_ROOM(chosen, pid) < 0)
		return complain("out of memory");
	chosen->pid[chosen->n++] = pid;
	return 0;
}

/* Take the last part of the path of its executable, which may be deleted. */
static void
take_exe(struct one *one)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_MAX];
	const char *name;
	size_t len;

	if (wp_proc_exe(one->pid, path) < 0)
		return;
	name = basename(path);
	len = strlen(name);
	if (len > sizeof(deleted) - 1 &&
	    strcmp(name + len - (sizeof(deleted) - 1), deleted) == 0)
		len -= sizeof(deleted) - 1;
	if (len < sizeof(one->exe))
		memcpy(one->exe, name, len);
}

/* List a process unless it is this one or has ended. */
static int
list_one(struct listed *listed, pid_t pid)
{
	struct wp_proc_status status;
	struct one *one;

	if (pid == getpid() || wp_proc_status(pid, &status) < 0 ||
	    status.kernel_thread)
		return 0;
	if (WP_ARRAY_ROOM(listed, one) < 0)
		return -ENOMEM;
	one = &listed->one[listed->n++];
	*one = (struct one){.pid = pid, .parent = status.parent};
	if (status.state == 'Z' && status.threads <= 1)
		return 0;
	(void)snprintf(one->comm, sizeof(one->comm), "%s", status.comm);
	take_exe(one);
	return 0;
}

static int
list(struct listed *listed)
{
	pid_t *pids = NULL;
	size_t cap = 0;
	int err = 0, n = wp_proc_processes(&pids, &cap);

	for (int i = 0; i < n && err == 0; i++)
		err = list_one(listed, pids[i]);
	free(pids);
	if (n < 0 || err < 0)
		return complain_errno(n < 0 ? -n : -err, "looking for "
		    "processes");
	return 0;
}

/* Mark a process and all its descendants. */
static void
mark_family(struct listed *listed, pid_t first)
{
	bool more = true;

	for (size_t i = 0; i < listed->n; i++)
		listed->one[i].chosen = listed->one[i].pid == first;
	while (more) {
		more = false;
		for (size_t i = 0; i < listed->n; i++)
			for (size_t k = 0; !listed->one[i].chosen &&
			    k < listed->n; k++)
				if (listed->one[k].chosen &&
				    listed->one[k].pid == listed->one[i].parent)
					more = listed->one[i].chosen = true;
	}
}

/* The process itself comes first; if it cannot be watched, the cause is its
   own. */
static int
add_family(struct selected *chosen, struct listed *listed, pid_t first)
{
	int err = add(chosen, first);

	mark_family(listed, first);
	for (size_t i = 0; i < listed->n && err == 0; i++)
		if (listed->one[i].chosen && *listed->one[i].comm != '\0')
			err = add(chosen, listed->one[i].pid);
	return err;
}

static int
none_called(const struct listed *listed, const char *name)
{
	struct buffer near_names = {0}, shown = {0};
	struct nearest near;

	nearest_begin(&near, name);
	for (size_t i = 0; i < listed->n; i++) {
		if (*listed->one[i].comm != '\0')
			nearest_offer(&near, listed->one[i].comm);
		if (*listed->one[i].exe != '\0')
			nearest_offer(&near, listed->one[i].exe);
	}
	nearest_put(&near, &near_names);
	visible_put(&shown, name);
	(void)complain("-p '%s': no process has that name or executes a file "
	    "of that name%s%s; see ps -e", buffer_text(&shown), near.n > 0 ?
	    ", nearest: " : "", buffer_text(&near_names));
	nearest_free(&near);
	buffer_free(&near_names);
	buffer_free(&shown);
	return -ESRCH;
}

static int
add_called(struct selected *chosen, const struct listed *listed,
    const char *name)
{
	bool any = false;
	int err = 0;

	for (size_t i = 0; i < listed->n && err == 0; i++)
		if (strcmp(listed->one[i].comm, name) == 0 ||
		    strcmp(listed->one[i].exe, name) == 0) {
			any = true;
			err = add(chosen, listed->one[i].pid);
		}
	return any ? err : none_called(listed, name);
}

static int
add_fitting(struct selected *chosen, const struct listed *listed,
    bool (*fits)(void *, pid_t), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < listed->n && err == 0; i++)
		if (*listed->one[i].comm != '\0' &&
		    fits(arg, listed->one[i].pid))
			err = add(chosen, listed->one[i].pid);
	return err;
}

int
selected_find(struct selected *chosen, const struct options *o,
    bool (*fits)(void *, pid_t), void *arg)
{
	struct listed listed = {.n = 0};
	int err = 0;

	for (size_t i = 0; i < o->npids && err == 0; i++)
		err = add(chosen, o->pid[i]);
	if (err == 0 && (o->nnames > 0 || fits != NULL))
		err = list(&listed);
	if (err == 0 && fits != NULL)
		err = add_fitting(chosen, &listed, fits, arg);
	for (size_t i = 0; i < o->nnames && err == 0; i++) {
		const pid_t first = options_children_of(o->name[i]);

		err = first != 0 ? add_family(chosen, &listed, first) :
		    add_called(chosen, &listed, o->name[i]);
	}
	free(listed.one);
	return err;
}

void
selected_names(void (*fn)(void *, const char *), void *arg)
{
	struct listed listed = {.n = 0};

	if (list(&listed) == 0)
		for (size_t i = 0; i < listed.n; i++) {
			fn(arg, listed.one[i].comm);
			fn(arg, listed.one[i].exe);
		}
	free(listed.one);
}

pid_t
selected_missing(const struct selected *chosen, const struct options *o)
{
	struct listed listed = {.n = 0};
	pid_t missing = 0;

	for (size_t i = 0; i < o->nnames && missing == 0; i++) {
		const pid_t first = options_children_of(o->name[i]);

		if (first == 0 || (listed.n == 0 && list(&listed) < 0))
			continue;
		mark_family(&listed, first);
		for (size_t k = 0; k < listed.n && missing == 0; k++)
			if (listed.one[k].chosen &&
			    *listed.one[k].comm != '\0' &&
			    !has(chosen, listed.one[k].pid))
				missing = listed.one[k].pid;
	}
	free(listed.one);
	return missing;
}
