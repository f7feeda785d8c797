#!/bin/sh
# install: what `bmake install` leaves is complete; programs in C and C++ build
# against it and find their helper; the shared library needs libc alone and
# shows nothing but wp_* and what takes the place of functions of the C library.
# watchctl needs libc and ncurses alone: what reads executables and debug
# information is in watchctl-explain, which has no privilege.
set -eu

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset WATCHPOINT_HELPER

# A copy that is built for another prefix: only what knows the prefix is made
# anew.
mkdir "$scratch/src"
cp -a "$TOP/lib" "$TOP/watchctl" "$TOP"/Makefile* "$scratch/src"
install()
{
	for dir in lib watchctl; do
		MAKEFLAGS='' bmake -C "$scratch/src/$dir" "$@" all install
	done > "$scratch/log" 2>&1 || {
		cat "$scratch/log"
		exit 1
	}
}

# under another root; the place of 64-bit libraries is not that of 32-bit ones
install DESTDIR="$scratch/root" prefix=/opt LIBDIR=/opt/lib
cd "$scratch/root/opt"
ls share/bash-completion/completions/watchctl \
    share/zsh/site-functions/_watchctl \
    share/fish/vendor_completions.d/watchctl.fish share/watchctl/who.py
ls bin/watchctl libexec/watchctl-explain lib/libwatchpoint.a share/man/man1/watchctl.1 \
    share/man/man3/libwatchpoint.3
readelf -d lib/watchctl/libwatchpoint-heap.so | grep -c NEEDED | grep -x 1
[ "$(readlink share/man/man3/wp_close.3)" = wp_open.3 ]
[ "$(readlink share/man/man3/WP_FREEZE.3)" = WP_WATCH.3 ]
[ "$(echo include/*.h)" = \
    'include/watchpoint-cmocka.h include/watchpoint.h' ]

# where a 32-bit program looks for its own
if [ -e "$TOP/lib/narrow/libwatchpoint.so.0" ]; then
	ls lib/i386-linux-gnu/libwatchpoint.so \
	    lib/i386-linux-gnu/libwatchpoint.a
	grep -x 'libdir=/opt/lib/i386-linux-gnu' \
	    lib/i386-linux-gnu/pkgconfig/watchpoint.pc
	readelf -h lib/i386-linux-gnu/libwatchpoint.so.0 | grep 'ELF32'
fi

# needs FILE: the libraries that it does
needs()
{
	readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\.so\..*/\1/p' | sort |
	    xargs
}
readelf -d lib/libwatchpoint.so | grep 'SONAME.*\[libwatchpoint\.so\.0\]'
for file in lib/libwatchpoint.so lib/watchctl/libwatchpoint-heap.so \
    bin/watchctl "$WATCHCTL"; do
	case $file in
	*.so) wanted=libc ;;
	*) wanted='libc libncursesw libtinfo' ;;
	esac
	[ "$(needs "$file")" = "$wanted" ] || {
		echo "$file needs $(needs "$file")"
		exit 1
	}
done
needs libexec/watchctl-explain | grep 'libc.*libdw.*libelf.*libseccomp'
# both libraries show what the headers declare, and nothing else
nm -D --defined-only lib/libwatchpoint.so |
    sed -n 's/.* \([a-z]*_[a-z_0-9]*\)@.*/\1/p' | sort > shared
nm -g --defined-only lib/libwatchpoint.a |
    awk 'NF == 3 { print $3 }' | sort > static
grep -x wp_open shared
diff shared static
nm -D --defined-only lib/libwatchpoint.so | grep -v ' [TRDB] wp_[a-z0-9_]*@' |
    grep -v ' A LIBWATCHPOINT_' > others || :
# what takes the place of the C library's, which has no version
awk '{ print $3 }' others | LC_ALL=C sort | xargs > taken
echo __sysv_signal pidfd_spawn pidfd_spawnp popen posix_spawn posix_spawnp \
    sigaction signal system | diff - taken
while read -r name; do
	grep -qw "$name" include/*.h include/watchpoint/*.h || {
		echo "$name is shown, and in no header"
		exit 1
	}
done < shared
# what doctor watches; and what libdw calls to open files: all but the
# libraries' variables that a program has copies of, which have versions
own_symbols()
{
	nm -D --defined-only "$1" | awk '$3 !~ /@/ { print $3 }' | sort | xargs
}
[ "$(own_symbols bin/watchctl)" = doctor_word ]
[ "$(own_symbols libexec/watchctl-explain)" = 'elf_begin open open64' ]

export PKG_CONFIG_PATH="$PWD/lib/pkgconfig"
[ "$(pkg-config --variable=helper watchpoint)" = /opt/bin/watchctl ]
export PKG_CONFIG_SYSROOT_DIR="$scratch/root"
cflags=$(pkg-config --cflags watchpoint)
cmocka='#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>'
for header in include/*.h include/watchpoint/*.h; do
	printf '%s\n#include <%s>\n' "$cmocka" "${header#include/}" |
	    $CC -Wall -Werror $cflags -fsyntax-only -x c -
done
unset PKG_CONFIG_SYSROOT_DIR

# where it will be used: nothing else tells where the helper is
prefix="$scratch/prefix"
install prefix="$prefix"
export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
. "$TOP/tests/support/needs.sh"
WATCHCTL="$prefix/bin/watchctl" needs_breakpoints

# use COMPILER EXAMPLE LINE: build it, run it, and see who was caught
use()
{
	flags=$(pkg-config --cflags --libs $3 watchpoint)
	$1 -g -o "$scratch/$2" "$TOP/examples/$2.c" $3 $flags $4
	"$scratch/$2" 2>&1 | cat > "$scratch/said"
	grep -E "^     0 +$5 .*/$2.c:[0-9]+\$" "$scratch/said" || {
		echo "$1 $2 $3:"
		cat "$scratch/said"
		exit 1
	}
}
for static in '' --static; do
	use "$CC" watch "$static" '' pay
	use "$CC" freeze "$static" '' accepts
	use "$CXX -x c++" freeze "$static" '' accepts
done
use "$CC" cmocka_suite '' -lcmocka accepts

# A program with privileges of its file has the helper that is built in, and
# nothing of what its caller set up.
chmod 755 "$scratch"
mkdir -m 1777 "$scratch/out"
$CC -g -o "$scratch/privileged" "$TOP/examples/watch.c" \
    $(pkg-config --cflags watchpoint) "$prefix/lib/libwatchpoint.a"
cp /usr/bin/id "$scratch/id"
chmod 4755 "$scratch/privileged" "$scratch/id"
as_nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'
if [ "$($as_nobody "$scratch/id" -u)" = 0 ]; then
	# say COMMAND...: what it reports
	say()
	{
		$as_nobody env "WATCHPOINT_OUTPUT=$scratch/out/taken" \
		    DEBUGINFOD_URLS=http://127.0.0.1:1/ \
		    "DEBUGINFOD_CACHE_PATH=$scratch/out/taken" \
		    "HOME=$scratch/out" "$@" 2>&1 | cat > "$scratch/said"
	}
	say "$scratch/privileged"
	grep -E '^     0 +pay .*/watch.c:[0-9]+$' "$scratch/said" ||
	    { cat "$scratch/said"; exit 1; }
	[ -z "$(ls -A "$scratch/out")" ]
	# others may put something there
	chmod o+w "$prefix/bin"
	say "$scratch/privileged"
	grep 'reports are short.*others than root' "$scratch/said" ||
	    { cat "$scratch/said"; exit 1; }
	grep 'frame 0 ' "$scratch/said"
	[ -z "$(ls -A "$scratch/out")" ]
	chmod o-w "$prefix/bin"
else
	echo 'set-user-ID programs cannot be tried here'
fi
