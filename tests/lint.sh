#!/bin/sh
# lint: one static checker over every source file of the project.
#
#   lint.sh arrows | names | documents | clang-tidy | cppcheck | mandoc | arm64
set -eu
cd "$TOP"

flags='-D_GNU_SOURCE -Ilib/watchpoint -Ilib/explain -Ilib/heapguard'
flags="$flags -Iwatchctl -Itests/support"

sources()
{
	# what is for Arm is checked there; headers of Python and MPI may be
	# missing
	find "$@" -name '*.c' ! -path 'tests/victim/*' ! -name '*_aarch64.c' \
	    ! -name '*_arm.c' \
	    ! -path 'examples/pytest/*' ! -path 'examples/fleet/*'
}

case $1 in
arrows)
	sh tests/arrows.sh
	;;
names)
	sh tests/names.sh
	;;
documents)
	sh tests/documents.sh
	;;
clang-tidy)
	# One file at a time: with several, clang 14 loses track of va_lists.
	# Its stderr only counts the warnings of system headers.  With half of
	# the analyzer's usual nodes a file takes half as long.
	sources lib watchctl examples tests | xargs -I FILE -P "$(nproc)" sh -c "
	    clang-tidy --quiet FILE -- -std=c11 $flags \
	    -DVERSION='\"0\"' -Xclang -analyzer-config \
	    -Xclang max-nodes=100000 2> /dev/null"
	;;
cppcheck)
	sources lib watchctl examples | xargs cppcheck -q -j "$(nproc)" \
	    --std=c11 $flags --enable=warning,performance,portability \
	    --error-exitcode=1 --suppressions-list=tests/cppcheck.suppress
	;;
arm64)
	# The library, as it is there; it is not built.
	find lib/watchpoint -name '*.c' ! -name '*_x86_64.c' |
	    xargs -I FILE clang --target=aarch64-linux-gnu -fsyntax-only \
	    -isystem /usr/aarch64-linux-gnu/include -std=c11 -Wall -Wextra \
	    -Wshadow -Wno-missing-field-initializers -Werror $flags FILE
	;;
mandoc)
	mandoc -T lint -W warning watchctl/*.1 lib/watchpoint/*.3
	;;
esac
