/* option_rules: checks which options may be combined, and what else a command
   line must have. */
#ifndef OPTION_RULES_H
#define OPTION_RULES_H

#include "option/option_table.h"
#include "option/options.h"

/* Check a command line; given: the options in it, by their getopt_long(3)
   values.  0; -EINVAL after one line on stderr. */
int option_rules_check(const struct options *, const bool given[OPT_END]);

#endif
