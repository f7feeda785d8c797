#!/bin/sh
# names: in one library, no two types and no two files have the same name, and
# no function has that of an enum.
set -eu
cd "$TOP"

for library in lib/watchpoint lib/explain lib/heapguard watchctl; do
	find "$library" -name '*.[ch]' | awk -v library="$library" '
	    function twice(what, name, where) {
		if ((what, name) in first) {
			print library ": two " what " " name ": " \
			    first[what, name] ", " where
			return 1
		}
		first[what, name] = where
		return 0
	    }
	    {
		path = $0
		name = path
		sub(/.*\//, "", name)
		bad += twice("files", name, path)
		files++
		for (line = 1; (getline text < path) > 0; line++) {
			where = path ":" line
			if (match(text, /^[a-z][a-z0-9_]*\(/)) {
				name = substr(text, 1, RLENGTH - 1)
				function_at[name] = where
			}
			if (!match(text, \
			    /(struct|union|enum) [a-z][a-z0-9_]* \{/))
				continue
			split(substr(text, RSTART, RLENGTH), word, " ")
			bad += twice("types", word[2], where)
			types++
			if (word[1] == "enum")
				enum_at[word[2]] = where
		}
		close(path)
	    }
	    END {
		for (name in enum_at)
			if (name in function_at) {
				print library ": an enum and a function " name \
				    ": " enum_at[name] ", " function_at[name]
				bad++
			}
		# a search that finds nothing proves nothing
		if (files < 5 || types < 5) {
			print library ": no sources found"
			bad++
		}
		exit bad > 0
	    }' || failed=yes
done
[ -z "${failed-}" ]
