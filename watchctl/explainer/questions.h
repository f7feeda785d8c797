/*
 * questions: answers watchctl's questions about running processes (message.h).
 */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include <stdbool.h>

#include "broker/message.h"

struct ex_process;
struct ex_space;

/* Learn the state of processes from records (processes/synthetic_records.h). */
void questions_learn(struct ex_space *, const void *records, size_t len);

/* Take a message about processes, and answer it from the space if it is a
   question.  False: it is another message. */
bool questions_take(struct ex_space *, const struct broker_message *);

/* Answer BROKER_SYMBOLS for the modules that a process has mapped.  0 or
   -errno. */
int questions_symbols(struct ex_process *,
    const struct broker_message *question, struct broker_message *answer);

#endif
