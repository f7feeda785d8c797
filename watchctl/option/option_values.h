/* option_values: sets what options say. */
#ifndef OPTION_VALUES_H
#define OPTION_VALUES_H

#include "option/options.h"

struct wp_cause;

/* Set the value of an option, by its getopt_long(3) value and its argument
   (NULL: it takes none; else it must outlive the options).  0; -EINVAL after
   one line on stderr. */
int option_set(struct options *, int option, const char *argument);

/* Add a SPEC.  0, or -errno with the cause. */
int option_add_spec(struct options *, enum wp_access, const char *text,
    struct wp_cause *);

#endif
