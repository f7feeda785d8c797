/*
 * last_words: the account of a run whose end watchctl does not live to see.
 *
 * Libraries that it is built on end the process where memory is short: by
 * exit(3), abort(3) or an access to what they did not get; and what they read
 * may be damaged.  Then the account is given here, from what had been counted
 * until then, with exit status 125.  Processes go on as they do when watchctl
 * is killed.
 */
#ifndef LAST_WORDS_H
#define LAST_WORDS_H

struct session;

/* Once, at the start of the program. */
void last_words_install(void);

/* From here on there is an account to give, of this session, or of something
   without one (NULL); until it has been given. */
void last_words_begin(const struct session *);
void last_words_end(void);

#endif
