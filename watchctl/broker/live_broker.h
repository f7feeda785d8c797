/*
 * live_broker: watchctl's questions to explainers about running processes.
 *
 * An explainer knows about a process what it was sent (live_broker_learn), and
 * asks for the rest (answers.h).  When one dies, its successor is sent the same
 * and asked again.  Answers are checked: an address must be mapped, and the
 * code that prints a name makes it visible.
 */
#ifndef LIVE_BROKER_H
#define LIVE_BROKER_H

#include "broker/broker.h"
#include "spec/spec.h"

/* The mappings of a process, as records. */
struct live_broker_process {
	pid_t pid;
	uint64_t time;		/* as of ex_space_mapped */
	uint8_t *records;
	size_t len;
};

/* All zero but for the first. */
struct live_broker {
	struct broker broker;		/* first; see live_broker_make */
	char **argv;
	struct live_broker_process *process;
	size_t n, cap;
};

/* Prepare; the first question starts an explainer with this limit of private
   memory in bytes (0: the default). argv: the command line, which outlives
   this, if the explainer also keeps the session's journal; NULL: it does
   not. */
void live_broker_make(struct live_broker *, uint64_t memory, char **argv);
void live_broker_close(struct live_broker *);

/*
 * Let explainers ask about this process, and tell them its mappings by these
 * records (processes/synthetic_format.h), which are copied and replace earlier
 * ones.  They were read at this time or later (ns, CLOCK_MONOTONIC), and
 * changes are told by records; 0: changes are not told.  0 or -errno.
 */
int live_broker_learn(struct live_broker *, pid_t, const void *records,
    size_t len, uint64_t time);

/* Forget a process that has ended, once nothing of it remains to be
   explained. */
void live_broker_forget(struct live_broker *, pid_t);

/* Add a mapping, as a record of that format.  A running explainer has opened
   the file when this returns.  0 or -errno. */
int live_broker_add(struct live_broker *, pid_t, const void *record,
    size_t len);

/* As spec_resolve or, early, spec_resolve_early; -ECHILD as of broker_ask. */
int live_broker_resolve(struct live_broker *, pid_t, const struct spec *,
    bool early, struct spec_place *, struct wp_cause *);

/* The address of the function that a process's dynamic loader calls for
   debuggers; 0: unknown. */
uint64_t live_broker_loader_hook(struct live_broker *, pid_t);

/* Call fn for each module of a process with its path, and its build id in hex
   ("" if it has none); modules that are not read again are left out. */
void live_broker_modules(struct live_broker *, pid_t, void (*fn)(void *arg,
    const char *path, const char *build_id), void *arg);

#endif
