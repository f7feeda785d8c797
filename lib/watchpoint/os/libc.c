/* libc: sigaction(2) for C libraries that have one name for it only. */
#include "os/libc.h"

#ifndef __GLIBC__

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct sigaction. */
struct kernel_action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#ifdef __x86_64__
/* Where a handler returns to.  Debuggers know it by these bytes. */
void wp_libc_restore(void);
__asm__(".text\n"
    ".hidden wp_libc_restore\n"
    ".globl wp_libc_restore\n"
    ".type wp_libc_restore, @function\n"
    "	nop\n"
    "wp_libc_restore:\n"
    "	movq $15, %rax\n"
    "	syscall\n"
    ".size wp_libc_restore, . - wp_libc_restore\n");
#define RESTORER wp_libc_restore
#define WITH_RESTORER 0x04000000ul
#else
/* the vDSO has one */
#define RESTORER NULL
#define WITH_RESTORER 0ul
#endif

int
wp_libc_sigaction(int sig, const struct sigaction *action,
    struct sigaction *old)
{
	struct kernel_action new = {0}, was = {0};

	if (action != NULL) {
		new.handler = action->sa_handler;
		new.flags = (unsigned)action->sa_flags | WITH_RESTORER;
		new.restorer = RESTORER;
		memcpy(&new.mask, &action->sa_mask, sizeof(new.mask));
	}
	if (syscall(SYS_rt_sigaction, sig, action == NULL ? NULL : &new,
	    &was, sizeof(new.mask)) != 0)
		return -1;
	if (old != NULL) {
		memset(old, 0, sizeof(*old));
		old->sa_handler = was.handler;
		old->sa_flags = (int)(was.flags & ~WITH_RESTORER);
		memcpy(&old->sa_mask, &was.mask, sizeof(was.mask));
	}
	return 0;
}

#endif
