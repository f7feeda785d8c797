#!/bin/sh
# trap_safe: the objects of the signal handler use nothing that is not
# async-signal-safe, nothing where a thread can be cancelled, and no
# thread-local memory that would have to be allocated first.
set -eu

# all of the room, but for other processors
objects=$(cd "$TOP/lib/watchpoint/handler" && ls ./*.c |
    grep -v -e _aarch64 -e _x86_64
    echo "step_$(uname -m).c capture_$(uname -m).c")
objects=$(basename -s .c $objects | sed 's/$/.o/')

# of libc: system calls, what the vDSO does, and pure functions
libc='__errno_location syscall
abort mmap munmap prctl sched_yield __sigaction
clock_gettime getpid getuid gettid sched_getcpu
memcpy memset strcmp strlen strncmp strnlen sigdelset
__libc_current_sigrtmax __libc_single_threaded'

# of os/perf.c, which is system calls; and those that are pure
os='wp_perf_open wp_perf_read wp_perf_id wp_perf_signal wp_perf_disable
wp_perf_once wp_perf_once_again wp_attr_inside wp_cpu_exec_len
wp_cpu_traps_before wp_operand wp_operand_is_exclusive'

linker='_GLOBAL_OFFSET_TABLE_ __start_wp_handler __stop_wp_handler'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
ar x "$(dirname "$WATCHCTL")/../lib/watchpoint/libwatchpoint.a" $objects

{
	nm -g --defined-only $objects | awk 'NF == 3 { print $3 }'
	echo $libc $os $linker | tr ' ' '\n'
} | sort -u > allowed
nm -u $objects | awk 'NF == 2 { print $2 }' | sort -u > used
[ -s used ]
if comm -23 used allowed | grep .; then
	echo 'the signal handler must not use these'
	exit 1
fi
