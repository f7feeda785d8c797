/*
 * questions: answers watchctl's questions about running processes (message.h).
 */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include "broker/message.h"
#include "module/module.h"

/* Learn records of the state of processes (processes/synthetic_records.h). */
void questions_learn(struct ex_space *, const void *records, size_t len);

/* Take a message of this kind, and answer it if it is a question, by what the
   space knows.  False: it is of another. */
bool questions_take(struct ex_space *, const struct broker_message *);

/* Answer BROKER_SYMBOLS, of what a process has mapped.  0 or -errno. */
int questions_symbols(struct ex_process *,
    const struct broker_message *question, struct broker_message *answer);

#endif
