/*
 * cpus: the machine's processors, by number.
 *
 * Numbers may have gaps, and processors come and go while the machine runs.
 */
#ifndef WP_CPUS_H
#define WP_CPUS_H

#include <stdbool.h>

/* As many as any kernel has. */
#define WP_CPUS_MAX 8192

struct wp_cpus {
	bool has[WP_CPUS_MAX];
	unsigned end;		/* the highest number that it has, plus 1 */
};

/* A list as the kernel writes it, such as "0-3,8".  Result: how many
   processors; -EINVAL: none, or no list. */
int wp_cpus_parse(const char *list, struct wp_cpus *);

/* All that may ever be there, and those that run now.  Result: how many, or
   -errno where that cannot be read. */
int wp_cpus_possible(struct wp_cpus *);
int wp_cpus_online(struct wp_cpus *);

#endif
