# table: from what the guests said (work/guest.SUITE.PROCESSOR) to
# docs/support.md.  Its input is the columns: SUITE PROCESSOR.  Exit status: 1 if
# a cell failed, or fewer than six guests booted of those that there were kernels
# for.  With a table of earlier (before), what fails on a kernel that has no column
# there is told only.

function note(text)
{
	if (!(text in number)) {
		number[text] = ++notes
		noted[notes] = text
	}
	return "(" number[text] ")"
}

function failed(column)
{
	if (before == "" || index(columns_known, " " short[column] " "))
		bad = 1
	else if (!(column in news)) {
		news[column] = 1
		print short[column] " is no kernel of " before ": what fails " \
		    "there is told only" > "/dev/stderr"
	}
}

function cell(row, column,    word, reason)
{
	if (!(column in booted))
		return "not run"
	if (!((row, column) in said)) {
		failed(column)
		return "failed " note("the guest ended without an answer")
	}
	word = said[row, column]
	reason = why[row, column]
	if (word == "failed")
		failed(column)
	return word (word == "ok" ? "" : " " note(reason))
}

function heading(first,    c)
{
	printf "| %s |", first
	for (c = 1; c <= columns; c++)
		printf " %s %s |", short[c], processor[c]
	printf "\n|---|"
	for (c = 1; c <= columns; c++)
		printf "---|"
	print ""
}

BEGIN {
	while (before != "" && columns_known == "" &&
	    (getline line < before) > 0)
		if (line ~ /^\|  \|/)
			columns_known = line
}

{
	columns++
	suite[columns] = $1
	processor[columns] = $2
	file = work "/guest." $1 "." $2
	short[columns] = $1
	while ((getline line < file) > 0) {
		if (line !~ /^@/)
			continue
		split(substr(line, 2), part, "|")
		if (part[1] == "=kernel") {
			booted[columns] = part[2]
			short[columns] = part[2]
			sub(/^[^0-9]*/, "", short[columns])
			match(short[columns], /^[0-9]+\.[0-9]+/)
			short[columns] = substr(short[columns], 1, RLENGTH)
			guests++
		} else if (part[1] ~ /^=/) {
			fact = substr(part[1], 2)
			if (!(fact in known)) {
				known[fact] = 1
				order[++facts] = fact
			}
			value[fact, columns] = part[2]
		} else {
			said[part[1], columns] = part[2]
			why[part[1], columns] = part[3]
		}
	}
	close(file)
	if (!(columns in booted)) {
		file = work "/why." $1 "." $2
		reason[columns] = "it did not boot"
		while ((getline line < file) > 0)
			reason[columns] = line
		close(file)
	}
}

END {
	print "# Support\n"
	print "What works on which kernel and processor. `bmake matrix` wrote" \
	    " this: it boots\nDebian's kernels in guests that qemu emulates," \
	    " and tries each row there with\nwhat is known to be true." \
	    " Emulation cannot show everything: what it leaves\nopen is at the" \
	    " end.\n"
	heading("")
	while ((getline line < (work "/../tests/matrix/rows")) > 0) {
		if (line ~ /^#/)
			continue
		split(line, part, "\t")
		printf "| %s |", part[2]
		for (c = 1; c <= columns; c++)
			printf " %s |", cell(part[1], c)
		print ""
	}
	print ""
	for (n = 1; n <= notes; n++)
		print n ". " noted[n]
	print "\nThe libraries' own tests are those without breakpoints, but for" \
	    " some that compile\nor run what a guest has not got, that" \
	    " emulation takes a minute for, or that are\nabout how soon" \
	    " another process does something:"
	n = split(left_out, part, " ")
	for (i = 1; i <= n; i++)
		print "`" part[i] "`" (i < n ? "," : ".")
	print "\n## Kernels\n"
	print "| Debian | processor | kernel |\n|---|---|---|"
	for (c = 1; c <= columns; c++)
		printf "| %s | %s | %s |\n", suite[c], processor[c],
		    c in booted ? booted[c] : "not run: " reason[c]
	print "\nWhat they do differs. The library finds it by trying.\n"
	heading("")
	for (f = 1; f <= facts; f++) {
		printf "| %s |", order[f]
		for (c = 1; c <= columns; c++)
			printf " %s |", value[order[f], c]
		print ""
	}
	while ((getline line < (work "/../tests/matrix/open.md")) > 0)
		print line
	close("/dev/stdout")
	if (guests < kernels)
		print guests + 0 " guests booted, of " kernels > "/dev/stderr"
	exit bad || (guests < kernels && guests < 6)
}
