# needs: what a script cannot be run without.  Where it is missing the script
# ends as skipped, and says what is.

not_run()
{
	echo "not run: $*"
	exit 77
}

# needs TOOL...
needs()
{
	for tool; do
		command -v "$tool" > /dev/null || not_run "$tool is not here"
	done
}

# Breakpoints that fire.
needs_breakpoints()
{
	doctor=$("$WATCHCTL" doctor 2>&1) ||
	    not_run "$(echo "$doctor" | grep '^the main job' ||
	    echo "$doctor" | tail -n 1)"
}
