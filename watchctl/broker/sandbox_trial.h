/*
 * sandbox_trial: starts an explainer and determines what it could still do.
 */
#ifndef SANDBOX_TRIAL_H
#define SANDBOX_TRIAL_H

#include <stdbool.h>
#include <sys/types.h>

/* Its state when it asked for its first file. */
struct sandbox_trial {
	bool started;		/* it did ask */
	bool filtered;		/* it can make only the system calls that it
				   needs (seccomp) */
	bool powerless;		/* it has no capability, and can get none */
	uid_t uid;		/* its user */
	char text[512];		/* lines that were printed; "": none */
};

/* Start an explainer, fill this in, and end it. */
void sandbox_trial_run(struct sandbox_trial *);

#endif
