#!/bin/sh
# documents: what the documents name is there: source files, functions, tests.
# What building needs is named wherever it has to be.
set -eu
cd "$TOP"

documents=$(ls README.md HACKING.md docs/*.md tests/README.md)
kernels='/usr/include/linux/perf_event.h /usr/include/asm-generic/siginfo.h'
missing=0

complain()
{
	echo "$(grep -lF "$1" $documents | head -n 1): \`$1\`: $2"
	missing=1
}

# `FILE.c` or `room/FILE.c`; in capitals are places to be filled in
for file in $(grep -ohE '`[a-z0-9_./-]+\.(c|cc|h|sh)`' $documents |
    tr -d '\`' | sort -u); do
	[ -n "$(find lib watchctl tests examples -path "*/$file" -print \
	    -quit)" ] ||
	    [ -f "$file" ] || complain "$file" 'there is no such file'
done

# a file for each processor, and all of these in the steps that add one
for file in $(grep -ohE '`[a-z0-9_/-]+_CPU\.c`' $documents | tr -d '\`' |
    sed 's/CPU/x86_64/' | sort -u); do
	[ -n "$(find lib -path "*$file" -print -quit)" ] ||
	    complain "${file%x86_64.c}CPU.c" 'there is no such file'
done
for file in $(find lib watchctl -name '*_x86_64.c'); do
	file=${file##*/}
	grep -qF "${file%x86_64.c}CPU.c" HACKING.md || {
		echo "HACKING.md: ${file%x86_64.c}CPU.c is missing"
		missing=1
	}
done

# `words_like_this`, of the sources or of the kernel
for word in $(grep -ohE '`[a-z][a-z0-9]*_[a-z0-9_]+`' $documents |
    tr -d '\`' | sort -u); do
	grep -rqwI --include='*.[ch]' --include='*.cc' --include='*.in' \
	    -e "$word" lib watchctl tests examples ||
	    [ -n "$(find tests -name "$word.c*" -print -quit)" ] ||
	    cat $kernels | grep -qw -e "$word" ||
	    complain "$word" 'the sources have no such name'
done
# what building needs, but for what compiles
for package in $(sed -n "/^to_build=/,/'\$/p" bootstrap |
    sed "s/.*='//; s/'//"); do
	case $package in gcc | libc6-dev) continue ;; esac
	for list in README.md debian/control; do
		grep -qw -e "$package" $list || {
			echo "$list: $package is missing, which bootstrap has"
			missing=1
		}
	done
done
exit $missing
