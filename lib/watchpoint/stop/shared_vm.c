/* shared_vm: memory that unwatched children share with their parents. */
#include "stop/shared_vm.h"

#include <stddef.h>

#include "proc/sharers.h"

void
wp_shared_vm_add(struct wp_shared_vm *lent, const struct wp_loan *loan)
{
	if (lent->n == WP_LENT_MAX)
		(void)wp_shared_vm_left(lent, 0, wp_sharers_has);
	if (lent->n == WP_LENT_MAX)
		lent->more = true;
	else
		lent->loan[lent->n++] = *loan;
}

bool
wp_shared_vm_left(struct wp_shared_vm *lent, pid_t pid,
    bool (*shares)(pid_t tid, pid_t child))
{
	bool left = lent->more;
	unsigned n = 0;

	for (unsigned i = 0; i < lent->n; i++) {
		const struct wp_loan loan = lent->loan[i];

		if (shares != NULL && !shares(loan.tid, loan.child))
			continue;
		left = left || pid == 0 || loan.pid == pid;
		lent->loan[n++] = loan;
	}
	lent->n = n;
	return left;
}
