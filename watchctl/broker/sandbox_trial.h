/*
 * sandbox_trial: tries what an explainer could still do, by starting one.
 */
#ifndef SANDBOX_TRIAL_H
#define SANDBOX_TRIAL_H

#include <stdbool.h>
#include <sys/types.h>

/* As it was when it asked for its first file. */
struct sandbox_trial {
	bool started;		/* it did ask */
	bool filtered;		/* it can make no other system call than those
				   that it needs (seccomp) */
	bool powerless;		/* it has no capability, and can get none */
	uid_t uid;		/* its user */
	char text[512];		/* what was said meanwhile; "": nothing */
};

/* Start one to see, and end it. */
void sandbox_trial_run(struct sandbox_trial *);

#endif
