/*
 * libc: what C libraries provide under different names, or not at all.  System
 * calls that some of them lack are made by syscall(2).
 *
 * Signal safety: async-signal-safe.
 */
#ifndef WP_LIBC_H
#define WP_LIBC_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers older than Linux 5.9 have no number for it. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Whether this is the library for 32-bit programs. */
#define WP_NARROW (sizeof(void *) < sizeof(uint64_t))

/* The call whose structure is struct stat; 32-bit programs have an older one,
   too. */
#ifdef SYS_fstat64
#define WP_SYS_FSTAT SYS_fstat64
#else
#define WP_SYS_FSTAT SYS_fstat
#endif

/* The text of an errno value; NULL: it is none.  strerror(3) of glibc may
   translate, and allocate for that. */
static inline const char *
wp_libc_why(int err)
{
#if __GLIBC__ * 100 + __GLIBC_MINOR__ >= 232
	return strerrordesc_np(err);
#else
	return strerror(err);
#endif
}

/* glibc's, from 2.32 on. */
extern char __libc_single_threaded __attribute__((weak));

/* Whether this is certainly the only thread.  Where the C library does not say
   so, there may always be others. */
static inline bool
wp_libc_alone(void)
{
	return &__libc_single_threaded != NULL && __libc_single_threaded != 0;
}

/* gettid(2), which some C libraries remember, although a thread that was made
   by clone(2) has another one. */
static inline pid_t
wp_libc_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* clone(2); of glibc by the name that clang's thread sanitizer does not take
   for a fork(2), of which it would say that it is in the middle of another. */
int wp_libc_clone(int (*)(void *), void *, int, void *, ...)
#ifdef __GLIBC__
    __asm__("__clone");
#else
    __asm__("clone");
#endif

/* sigaction(2), which the shared library takes from the C library
   (preload/signals.c), under a name that it does not take. */
int wp_libc_sigaction(int, const struct sigaction *, struct sigaction *)
#ifdef __GLIBC__
    __asm__("__sigaction");
#else
    ;
#endif

#endif
