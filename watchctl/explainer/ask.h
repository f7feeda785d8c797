/*
 * ask: asks watchctl for what an explainer cannot do itself.
 *
 * Besides these functions it defines what explaining opens files by
 * (regular_file.h), and open(2), which libdw calls for files that debug
 * information names; ask_process.c defines what it takes from processes.
 */
#ifndef ASK_H
#define ASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "broker/message.h"
#include "debug/index.h"
#include "hit/hit.h"

/* Before all others: the memory that watchctl reads. */
void ask_begin(struct broker_shared *);

/* From here on stay awake for a moment before sleeping: threads wait for what
   is answered, and come soon. */
void ask_quickly(void);

/* Wait for a message of watchctl that is no answer, in their order; *fd: a
   descriptor that came with it, -1: none.  It ends this process when there will
   be none. */
void ask_receive(struct broker_message *, int *fd);

/* Ask a question.  The answer's error, and the answer in place of the question;
   a file's descriptor, or -errno. */
int ask_question(struct broker_message *);
int ask_file(struct broker_message *);

/* Say something that is not answered, or answer a question of watchctl's; and
   put len bytes of text, which the answer is to have the length of, where
   watchctl takes it from: 0 or -E2BIG. */
void ask_tell(const struct broker_message *);
int ask_put_text(const char *text, size_t len);

/* A part of the journal has been read: as BROKER_TAKEN says. */
void ask_taken(uint64_t hits, bool enough, uint64_t time, int err);

/* A hit is about to be reported: as BROKER_DETAILS says. */
void ask_details(uint64_t begun, uint64_t addr, const char *environment,
    size_t len);

/* Stacks come often, and their hits may be counted; they are to be
   forgotten. */
extern const struct ex_listener ask_listener, ask_counting_listener;

/* That something has been done. */
void ask_progress(void);

/* Say a line on standard error. */
void ask_say(const char *line);

/* Have len bytes of the report written, with which so many hits are in it.
   Result: as many as are; where these are fewer, errno says why. */
ssize_t ask_report(const char *text, size_t len, uint64_t hits);

/* Have a source file opened, as of struct report: a descriptor, or -errno. */
int ask_source(const char *path);

/* Have len bytes written beside the report, when that has ended.  0 or
   -errno. */
int ask_side(unsigned side, const char *text, size_t len);

/* Ask for debug information, as ex_module_fetcher has it. */
int ask_fetch(const char *build_id);

/* Have indexes kept. */
extern const struct ex_index_store ask_index_store;

/* It is all done, with this exit status. */
_Noreturn void ask_end(int status);

#endif
