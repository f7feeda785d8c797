/* option_values: the values that options set. */
#ifndef OPTION_VALUES_H
#define OPTION_VALUES_H

#include "option/options.h"

struct wp_cause;

/* Set what an option, by what it is to getopt_long(3), and its argument say
   (NULL: it takes none; else it outlives the options).  0; -EINVAL after one
   line on stderr. */
int option_set(struct options *, int option, const char *argument);

/* Add what is to be watched.  0 or -errno, with the cause. */
int option_add_spec(struct options *, enum wp_access, const char *text,
    struct wp_cause *);

#endif
