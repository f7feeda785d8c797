/* complete: candidates for an unfinished word, for shells. */
#ifndef COMPLETE_H
#define COMPLETE_H

/*
 * Write what word[index] may become, one a line; word[0] may be the command's
 * own name, and index may be n.  What stands behind that word counts, too.
 * Nothing is written of what a shell might take for more than text, nor on
 * stderr.  Result: 0, the exit status.
 */
int complete(const char *index, int n, char **word);

#endif
