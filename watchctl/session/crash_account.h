/*
 * crash_account: the account of a run in which watchctl itself fails.
 *
 * This happens if the kernel has no memory for what watchctl shares with an
 * explainer, or if watchctl has a defect.  The account is then printed from the
 * counts so far, and the exit status is 125.  The watched processes continue,
 * as they do when watchctl is killed.
 */
#ifndef CRASH_ACCOUNT_H
#define CRASH_ACCOUNT_H

struct session;

/* Call this once, at the start of the program. */
void crash_account_install(void);

/* Begin: from here on the account of this session, or of work without a session
   (NULL), has to be given; until the end. */
void crash_account_begin(const struct session *);
void crash_account_end(void);

#endif
