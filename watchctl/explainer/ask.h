/*
 * ask: asks watchctl for what an explainer cannot do itself.
 *
 * It also defines how explaining opens files (regular_file.h), and open(2),
 * which libdw calls for files that debug information names; ask_process.c
 * defines the functions that read processes.
 */
#ifndef ASK_H
#define ASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "broker/message.h"
#include "debug/index.h"
#include "hit/hit.h"

/* Call this first.  The memory is the one that watchctl reads. */
void ask_begin(struct broker_shared *);

/* From here on, poll for a moment before sleeping: threads wait for the
   answers, and messages follow quickly. */
void ask_quickly(void);

/* Wait for a message from watchctl that is no answer; such messages keep their
   order. *fd: a descriptor that came with it, -1: none.  Ends this process when
   no more can come. */
void ask_receive(struct broker_message *, int *fd);

/* Ask a question.  The answer replaces the question.  Result: the answer's
   error; of ask_file, the descriptor of the file or -errno. */
int ask_question(struct broker_message *);
int ask_file(struct broker_message *);

/* Send a message that is not answered, or the answer to a question of
   watchctl's; and put len bytes of text where watchctl takes them from (the
   answer carries their length): 0 or -E2BIG. */
void ask_send(const struct broker_message *);
int ask_put_text(const char *text, size_t len);

/* A part of the journal has been read: send BROKER_TAKEN. */
void ask_taken(uint64_t hits, bool enough, uint64_t time, int err);

/* A hit is about to be reported: send BROKER_DETAILS. */
void ask_details(uint64_t begun, uint64_t addr, const char *environment,
    size_t len);

/* The listeners: ask_counting_listener also lets BPF programs count hits of
   stacks that come often. */
extern const struct ex_listener ask_listener, ask_counting_listener;

/* Show watchctl that there is progress. */
void ask_progress(void);

/* Print a line on standard error. */
void ask_say(const char *line);

/* Have len bytes of the report written, which complete this many hits.  Result:
   how many bytes are written; if fewer than len, errno says why. */
ssize_t ask_report(const char *text, size_t len, uint64_t hits);

/* Have a source file opened, as open_source in struct report: a descriptor, or
   -errno. */
int ask_source(const char *path);

/* Have len bytes written to a side file when the report has ended.  0 or
   -errno. */
int ask_side(unsigned side, const char *text, size_t len);

/* Ask for debug information; an ex_module_fetcher. */
int ask_fetch(const char *build_id);

/* Have indexes kept. */
extern const struct ex_index_store ask_index_store;

/* Report to watchctl that the work is done, with this exit status, and exit. */
_Noreturn void ask_end(int status);

#endif
