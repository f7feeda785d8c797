#!/bin/sh
# tutorial: each command of docs/tutorial.md does what is shown there.  Numbers
# may be others; "..." stands for anything, also for lines.  And what a newcomer
# meets first, if it does not work, says what helps.
set -eu

. "$TOP/tests/support/needs.sh"
needs gdb
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cp -r "$TOP/examples" .
PATH=$(dirname "$WATCHCTL"):$PATH
unset DEBUGINFOD_URLS
python3 - "$TOP/docs/tutorial.md" <<'END_OF_PYTHON'
import re, subprocess, sys

steps = []			# [command, lines that are shown]
shown = False
for line in open(sys.argv[1]):
    line = line.rstrip('\n')
    if line.startswith('```'):
        shown = not shown
    elif shown and line.startswith('$ '):
        steps.append((line[2:], []))
    elif shown:
        steps[-1][1].append(line)

# One shell for all.  A program that it starts is waited for: it is a copy of
# the shell at first.
script = ''
for i, (command, _) in enumerate(steps):
    script += 's=$?; echo "@@%d"; (exit $s)\n%s\n' % (i, command)
    if command.endswith('&'):
        script += 'until [ "$(cat /proc/$!/comm)" = victim ]; do sleep 0.01; done\n'
script += 'kill $! 2> /dev/null\n'
run = subprocess.run(['bash', '-c', script], stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
said = re.split(r'^@@\d+\n', run.stdout, flags=re.M)[1:]

def pattern(line):
    if line == '...':
        return r'(?:.*\n)*?'
    text = re.sub(r'\s+', ' ', line)
    parts = re.split(r'(0x[0-9a-f]+|\d+(?:\.\d+)?| ?\.\.\. ?)', text)
    # what is in the source has its number
    fixed = re.search(r'victim\.c:\d+|^(?:\d+)$', line) is not None
    out = ''
    for n, part in enumerate(parts):
        if n % 2 == 0:
            out += re.escape(part)
        elif '...' in part:
            out += '.*'
        elif part.startswith('0x'):
            out += '0x[0-9a-f]+'
        elif parts[n - 1].endswith('victim.c:') or text == part or \
            re.search(r' (-> |\$|new == )$', parts[n - 1]):
            out += re.escape(part)
        else:
            out += r'\d+(?:\.\d+)?'
    return out + r' ?\n'

wrong = len(said) != len(steps)
for (command, lines), text in zip(steps, said):
    text = re.sub(r'[ \t]+', ' ', text)
    wanted = ''.join(pattern(line) for line in lines)
    if not re.fullmatch(wanted, text):
        print('$ %s\nsays:\n%sand not:\n%s' % (command, text, '\n'.join(lines)))
        wrong = True
sys.exit(wrong)
END_OF_PYTHON

# says TEXT COMMAND...: the command fails, and names what helps
says()
{
	text=$1
	shift
	if "$@" > said 2>&1 || ! grep -qF "$text" said; then
		echo "$* does not say '$text':"
		cat said
		exit 1
	fi
}
strip -o bare victim
says 'bare is stripped: install its debug symbols (see find-dbgsym-packages)' \
    watchctl -w counter -- ./bare
says 'add -f --if-missing skip' watchctl -w counter -- sh -c ./victim
[ "$(id -u)" -eq 0 ] || exit 0
mkdir bin
cp "$WATCHCTL" "$WATCHCTL-explain" bin
chmod 755 . bin
says 'run as root (sudo)' setpriv --reuid=65534 --regid=65534 --clear-groups \
    bin/watchctl -w counter -p $$
if unshare -p -f true; then
	says 'mount -t proc proc /proc' \
	    unshare -p -f bin/watchctl -w counter -- ./victim
fi
