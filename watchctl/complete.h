/* complete: writes candidates for an unfinished word, for shells. */
#ifndef COMPLETE_H
#define COMPLETE_H

/*
 * Write the candidates for word[index], one a line; word[0] may be the
 * command's own name, and index may be n.  Words after it are taken into
 * account, too.  Candidates that a shell might interpret are left out, and
 * nothing is written on stderr.  Result: 0, the exit status.
 */
int complete(const char *index, int n, char **word);

#endif
