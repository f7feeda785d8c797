#!/bin/sh
# arrows: which room uses which, held against the table of docs/design.md: every
# include of the sources, and every name that an object takes from another; and
# how many files a room has.
set -eu
cd "$TOP"

built=$(dirname "$WATCHCTL")/..
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# "ROOM USED" for each arrow; a room may use itself
awk '/^```/ { on = $0 == "```arrows"; next }
    on && /^  / { print $1, $1; for (i = 2; i <= NF; i++) print $1, $i }
    ' docs/design.md | sort -u > "$scratch/allowed"
[ "$(wc -l < "$scratch/allowed")" -gt 30 ]

# A room uses those above it only: then no arrows make a circle.
awk '/^```/ { on = $0 == "```arrows"; next }
    on && /^  / { for (i = 2; i <= NF; i++) if (!($i in above)) {
	print "in the table, but not above it: " $1 " -> " $i; bad = 1 }
	above[$1] = 1 }
    END { exit bad }' docs/design.md

# Sources outside of all rooms (main, the public headers) may use all of them.
find lib watchctl -mindepth 2 -name '*.[ch]' | awk -F/ '
    { n = NF - 1 } $1 != "lib" || NF == 4 { print $n, $NF, $0 }' |
    grep -v '^watchctl ' > "$scratch/files"

# A room has at most fourteen, and a processor's variants count as one.  What
# runs in the signal handler is in one room, however much that is.
awk '$2 ~ /[.]c$/ && $1 != "handler" {
	sub(/(_x86_64|_aarch64|_i386)?[.]c$/, "", $2)
	if (!(($1, $2) in seen) && ++n[$1] == 15) {
		print "more than 14 files in one room: " $1; bad = 1 }
	seen[$1, $2] = 1 }
    END { exit bad }' "$scratch/files"

while read -r room name path; do
	sed -n 's,^#include "\([a-z]*\)/.*,\1,p' "$path" | sort -u |
	    while read -r used; do
		echo "$room $used $path includes $used/"
	done
done < "$scratch/files" > "$scratch/uses"

# Objects have their files' names, and no two of a library have the same.  What
# takes the place of libc's open(2) is no name of ours.  A function that the
# explainer has in place of a library's counts as the library's.
for library in lib/watchpoint lib/explain watchctl; do
	echo "library $library"
	(cd "$built/$library" && nm -- *.o)
done | awk '
    NR == FNR { split($3, part, "/")
	room[(part[1] == "lib" ? "lib/" part[2] : part[1]) "/" $2] = $1; next }
    $1 == "library" { library = $2; next }
    /\.o:$/ { object = library "/" $1; sub(/\.o:$/, ".c", object); next }
    !(object in room) { next }
    NF == 3 && $2 ~ /[TDBRVW]/ && $3 !~ /^open(64)?$/ && !($3 in home) {
	home[$3] = object; next }
    NF == 2 && $1 == "U" { uses[object " " $2] = 1 }
    END {
	for (use in uses) {
		split(use, u, " ")
		if (u[2] in home)
			print room[u[1]], room[home[u[2]]], u[1], "uses", u[2],
			    "of", home[u[2]]
	}
    }' "$scratch/files" - >> "$scratch/uses"
[ "$(grep -c ' uses ' "$scratch/uses")" -gt 1000 ]

awk 'NR == FNR { allowed[$1 " " $2] = 1; next }
    { used[$1 " " $2] = 1 }
    !(($1 " " $2) in allowed) { print "not in the table: " $1 " -> " $2 ": " \
	substr($0, length($1 $2) + 3); bad = 1 }
    END {
	for (arrow in allowed) {
		split(arrow, end, " ")
		if (end[1] != end[2] && !(arrow in used)) {
			print "in the table, but not used: " arrow
			bad = 1
		}
	}
	exit bad
    }' "$scratch/allowed" "$scratch/uses"
