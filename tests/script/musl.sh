#!/bin/sh
# musl: libwatchpoint with a C library that is not glibc.  It is built with
# musl-gcc, without a warning, and passes its own tests.
#
# cmocka and jansson are those of this system: musl takes their libc for itself.
# What they use of glibc alone is in a library that has the name of glibc's
# dynamic linker.
#
# And a program with musl that runs already waits for a module.
set -eu

. "$TOP/tests/support/needs.sh"
needs musl-gcc
multiarch=$(cc -print-multiarch)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir src kernel include lib
(cd "$TOP" && tar -cf - --exclude='*.[oad]' --exclude='*.so*' lib Makefile*) |
    tar -xf - -C src
# musl's headers come without the kernel's
ln -s /usr/include/linux /usr/include/asm-generic \
    "/usr/include/$multiarch/asm" kernel
musl="musl-gcc -idirafter $scratch/kernel"
env -i "PATH=$PATH" "HOME=$HOME" bmake -C src/lib/watchpoint CC="$musl" \
    WERROR=yes > log 2>&1 || {
	cat log
	exit 1
}

ln -s /usr/include/cmocka.h /usr/include/jansson.h include
find /usr/include -name jansson_config.h -exec ln -sf {} include \;
for name in libcmocka.so.0 libjansson.so.4; do
	ln -s "/usr/lib/$multiarch/$name" lib
done
cat > linker.c <<'END'
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int
__vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format,
    va_list args)
{
	return vsnprintf(to, n, format, args);
}

#define PRINTED(name, call, ...)					\
	int								\
	name(__VA_ARGS__, const char *format, ...)			\
	{								\
		va_list args;						\
		int length;						\
									\
		va_start(args, format);					\
		length = call;						\
		va_end(args);						\
		return length;						\
	}
PRINTED(__printf_chk, vprintf(format, args), int flag)
PRINTED(__fprintf_chk, vfprintf(to, format, args), FILE *to, int flag)
PRINTED(__snprintf_chk, vsnprintf(to, n, format, args), char *to, size_t n,
    int flag, size_t room)

char *
__strncpy_chk(char *to, const char *from, size_t n, size_t room)
{
	return strncpy(to, from, n);
}

void
__longjmp_chk(jmp_buf at, int value)
{
	longjmp(at, value);
}
END
$musl -w -shared -fPIC -o lib/ld-linux-x86-64.so.2 linker.c

flags="-g -O1 -std=c11 -w -pthread -D_GNU_SOURCE -Iinclude -Isrc/lib/watchpoint
    -Isrc/lib/explain -I$TOP/tests/support"
$musl $flags -c "$TOP"/tests/support/*.c src/lib/explain/base/*.c \
    src/lib/explain/record/record.c
ar cq support.a ./*.o
libs="support.a src/lib/watchpoint/libwatchpoint.a lib/libcmocka.so.0
    lib/libjansson.so.4"

# what has stacks of 8 MB elsewhere has them here
linked="-rdynamic -Wl,-rpath,$scratch/lib -Wl,--allow-shlib-undefined
    -Wl,-z,stack-size=8388608"

# about the kernel, not the library
left_out=' hotplug_test kernel_live_test signal_kernel_live_test '
# of what only glibc has: ptrace(2) taken from it, mallinfo2(3), makecontext(3),
# leaving a hit by longjmp(3), mallopt(3)
left_out="$left_out ptrace_test helper_test account_test
scope_test cmocka_live_test target_live_test "
# with more than the library
left_out="$left_out samplers_live_test "
# not shown with musl, on a busy machine: that a storm of threads is covered
# exactly
left_out="$left_out open_live_test "

unset THOROUGH
failed=
for source in "$TOP"/tests/unit/*/*_test.c "$TOP"/tests/live/*/*_test.c; do
	name=$(basename "$source" .c)
	room=$(basename "$(dirname "$source")")
	[ -d "src/lib/watchpoint/$room" ] || continue
	case $left_out in
	*[[:space:]]"$name"[[:space:]]*) continue ;;
	esac
	# shellcheck disable=SC2086
	$musl $flags $linked -o "$name" "$source" $libs
	status=0
	timeout -k 5 300 "./$name" > "$name.log" 2>&1 < /dev/null || status=$?
	[ $status -eq 0 ] || {
		sed 's/^/    /' "$name.log"
		echo "$name: exit status $status"
		failed="$failed $name"
	}
done
[ -z "$failed" ] || {
	echo "failed:$failed"
	exit 1
}

needs_breakpoints
$musl -g -w -pthread -o opener "$TOP/tests/victim/opener.c"
$musl -g -w -shared -fPIC -o plug "$TOP/tests/victim/plug.c"
mkfifo go ready
./opener 2 ./plug wait < go > ready &
opener=$!
exec 3> go
read -r line < ready
[ "$line" = ready ]
"$WATCHCTL" -w 'plug!plug_state' -o json -O report -p $opener 2> said &
until grep -q '"type":"start"' report 2> /dev/null; do
	kill -0 $! || break
	sleep 0.1
done
echo >&3
status=0
wait $opener || status=$?
wait $!
# musl never unmaps it, so that its constructor runs once
hits=$(grep -c '"type":"hit"' report) || true
if [ $status -ne 7 ] || [ "$hits" -ne 5 ] ||
    ! grep -q '"function":"plug_prepare"' report; then
	cat said report
	echo "a program with musl: status $status, $hits hits"
	exit 1
fi
