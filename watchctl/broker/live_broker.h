/*
 * live_broker: watchctl's questions to explainers about running processes.
 *
 * An explainer knows of a process what it was sent (live_broker_learn), and
 * asks for the rest (answers.h).  One that replaces another that died is sent
 * the same, and asked again.  What it answers is checked: an address must be
 * mapped, and names are made visible by whoever shows them.
 */
#ifndef LIVE_BROKER_H
#define LIVE_BROKER_H

#include "broker/broker.h"
#include "spec/spec.h"

/* What a process maps, as records. */
struct live_broker_process {
	pid_t pid;
	uint8_t *records;
	size_t len;
};

/* All zero but for the first. */
struct live_broker {
	struct broker broker;		/* first; see live_broker_make */
	char **argv;		/* the broker's */
	struct live_broker_process *process;
	size_t n, cap;
};

/* Be ready to start one, which may have that many bytes of private memory (0:
   as usual): the first question does.  argv: the command line whose session it
   is to keep, too, which outlives it; NULL: none. */
void live_broker_make(struct live_broker *, uint64_t memory, char **argv);
void live_broker_close(struct live_broker *);

/*
 * From here on one may ask about this process, and knows what it maps by these
 * records, of the format of processes/synthetic_format.h; they are copied, and
 * replace those that were there.  0 or -errno.
 */
int live_broker_learn(struct live_broker *, pid_t, const void *records,
    size_t len);

/* It has ended, and nothing of it is to be explained any more. */
void live_broker_forget(struct live_broker *, pid_t);

/* It has mapped something since, as a record of that layout says; one that
   knows it has opened the file when this returns.  0 or -errno. */
int live_broker_add(struct live_broker *, pid_t, const void *record,
    size_t len);

/* As spec_resolve or, early, spec_resolve_early; -ECHILD as of broker_ask. */
int live_broker_resolve(struct live_broker *, pid_t, const struct spec *,
    bool early, struct spec_place *, struct wp_cause *);

/* Where the dynamic loader of a process calls debuggers; 0: not known. */
uint64_t live_broker_loader_hook(struct live_broker *, pid_t);

/* Call fn for each module of a process with its path, and its build id in hex
   ("" if it has none); modules that are not read any more are left out. */
void live_broker_modules(struct live_broker *, pid_t, void (*fn)(void *arg,
    const char *path, const char *build_id), void *arg);

#endif
