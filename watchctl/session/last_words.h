/*
 * last_words: the account of a run that watchctl does not survive.
 *
 * The kernel may have no memory for what watchctl shares with an explainer, or
 * watchctl a defect.  Then the account is printed from what was counted until
 * then, and the exit status is 125.  The watched processes continue, as they do
 * when watchctl is killed.
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
