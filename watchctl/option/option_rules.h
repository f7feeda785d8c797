/* option_rules: which options may be combined, and what else a command line
   must have. */
#ifndef OPTION_RULES_H
#define OPTION_RULES_H

#include "option/option_table.h"
#include "option/options.h"

/* Whether a command line breaks no rule; given: which options are in it, by
   what they are to getopt_long(3).  0; -EINVAL after one line on stderr. */
int option_rules_check(const struct options *, const bool given[OPT_END]);

#endif
