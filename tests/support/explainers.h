/*
 * explainers: finds the processes that explain for watchctl, and lets the
 * victim `intruder' break into them.
 */
#ifndef EXPLAINERS_H
#define EXPLAINERS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "scratch.h"
#include "test.h"

/* The explainer among a process's children; 0: it has none now. */
static inline pid_t
explainer_of(pid_t pid)
{
	char path[64], comm[32];
	FILE *f, *name;
	int child, found = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid,
	    pid);
	if ((f = fopen(path, "r")) == NULL)
		return 0;
	while (fscanf(f, "%d", &child) == 1) {
		(void)snprintf(path, sizeof(path), "/proc/%d/comm", child);
		name = fopen(path, "r");
		if (name != NULL && fgets(comm, sizeof(comm), name) != NULL &&
		    strncmp(comm, "watchctl-expl", 13) == 0)
			found = child;
		if (name != NULL)
			(void)fclose(name);
	}
	(void)fclose(f);
	return found;
}

/* Kill the explainer, once there is one. */
static inline void
explainer_kill(pid_t pid)
{
	pid_t explainer;

	for (int ms = 0; (explainer = explainer_of(pid)) == 0; ms++) {
		assert_true(ms < COMMAND_PATIENCE_MS);
		(void)usleep(1000);
	}
	(void)kill(explainer, SIGKILL);
}

/* Whether a process has an explainer other than this one. */
static inline bool
has_other_explainer(pid_t pid, pid_t gone)
{
	const pid_t now = explainer_of(pid);

	return now > 0 && now != gone;
}

/* Check that an explainer has the state that the sandbox leaves, and is nobody
   if this is root. */
static inline void
explainer_expect_confined(pid_t pid)
{
	static const char *const lines[] = {
		"\nSeccomp:\t2\n", "\nNoNewPrivs:\t1\n",
		"\nCapEff:\t0000000000000000\n",
		"\nCapPrm:\t0000000000000000\n",
		/* if this is root */
		"\nUid:\t65534\t65534\t65534\t65534\n", "\nGroups:\t \n",
	};
	const size_t n = COUNT(lines) - (geteuid() == 0 ? 0 : 2);
	char path[64], text[8192] = "";
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	assert_non_null(f = fopen(path, "r"));
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	(void)fclose(f);
	for (size_t i = 0; i < n; i++)
		assert_holds(text, lines[i]);
}

/* From now on, have `intruder' do this in the explainers that are started. */
static inline void
intrude(const char *what)
{
	char *library = strdup(scratch_path(what));

	(void)unlink(library);
	assert_int_equal(symlink(victim("intruder"), library), 0);
	(void)setenv("LD_PRELOAD", library, 1);
	free(library);
}

/* Start a run with it. */
static inline void
start_intruded(const char *what, struct running *w, const char *const *argv)
{
	intrude(what);
	start(w, argv);
	(void)unsetenv("LD_PRELOAD");
}

#endif
