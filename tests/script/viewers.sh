#!/bin/sh
# viewers: what -o html and -o trace write, as a browser shows it: the page at
# two widths, light and dark, and the trace in speedscope.
set -eu

. "$TOP/tests/support/needs.sh"
needs chromium npm jq
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
HOME=$scratch
export HOME
cd "$scratch"
mkdir src

cat > src/bank.c <<'END_OF_C'
#include <pthread.h>
#include <string.h>
#include <unistd.h>

long balance;
double load;
char label[8];

static void deposit(long n)
{
	balance += n;	/* </pre><script>document.title = 'run'</script> */
}
static void settle_with_a_name_that_is_too_long_for_a_narrow_screen_and_has_no_break(void)
{
	balance = 0;
	load = load / 2 + 1;
	memcpy(label, balance > 3 ? "abcdefg" : "1234567", 8);
}
static void *work(void *unused)
{
	for (long i = 0; i < 300; i++) {
		deposit(i % 7);
		if (i % 50 == 49)
			settle_with_a_name_that_is_too_long_for_a_narrow_screen_and_has_no_break();
		usleep(50);
	}
	return unused;
}
int main(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
END_OF_C
${CC:-cc} -g -O0 -pthread -o bank src/bank.c
for form in html trace; do
	"$WATCHCTL" -w balance -w load -w label --allow deposit -o $form -O bank.$form \
	    -- ./bank
done

# browse URL WIDTH [OPTION...]: what the page is when its scripts have run
browse()
{
	url=$1 width=$2
	shift 2
	timeout 120 chromium --headless --no-sandbox --disable-gpu \
	    --hide-scrollbars \
	    --user-data-dir="$scratch/browser" --allow-file-access-from-files \
	    --window-size="$width,900" "$@" "$url" 2> said
}

# All of it is there, and the browser finds nothing to forbid.
browse "file://$scratch/bank.html" 1280 --enable-logging=stderr --dump-dom > dom
if grep -i 'refused\|security policy\|CONSOLE' said; then
	echo "that is what the browser says of the page"
	exit 1
fi
grep -q '<title>balance, load, label - watchctl</title>' dom
test "$(grep -c '<svg' dom)" -eq 3
test "$(grep -c '<script' dom || true)" -eq 0

# As wide as the screen, light and dark, everything unfolded.  In a frame,
# because the browser's own window is never narrower than 500.
cat > measure.html <<'END_OF_SCRIPT'
<script>
for (const one of document.querySelectorAll('details'))
	one.open = true;
parent.postMessage([innerWidth, document.documentElement.scrollWidth,
    getComputedStyle(document.body).backgroundColor].join(' '), '*');
</script>
END_OF_SCRIPT
grep -v Content-Security-Policy bank.html | cat - measure.html > measured.html
for width in 400 1280; do
	cat > frame.html <<END_OF_FRAME
<meta name="color-scheme" content="light dark"><title>?</title>
<script>onmessage = function (e) { document.title = e.data }</script>
<iframe style="border:0;width:${width}px;height:900px" src="measured.html"></iframe>
END_OF_FRAME
	for way in 1 0; do
		browse "file://$scratch/frame.html" 1400 --dump-dom \
		    --blink-settings=preferredColorScheme=$way |
		    sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' > got
		read -r inner scroll colour < got
		echo "$inner wide, page $scroll, background $colour"
		test "$inner" -eq $width
		test "$scroll" -le $width
		echo "$colour" >> colours
	done
done
test "$(sort -u colours | wc -l)" -eq 2

# Something is drawn: of the timelines alone, a picture takes more bytes than of
# their frames.
sed -n '/<style>/,/<\/style>/p; /<svg/p' bank.html > drawn.html
sed 's/<path[^>]*>//g' drawn.html > blank.html
for page in drawn blank; do
	browse "file://$scratch/$page.html" 1280 --screenshot=$page.png
done
test "$(stat -c %s drawn.png)" -gt $(($(stat -c %s blank.png) * 2))

# The trace, in speedscope: its table of functions.
jq -e '(.traceEvents | length > 600) and (.samples | length > 600)' bank.trace \
    > /dev/null
timeout 120 npm install --silent --no-audit --no-fund speedscope \
    > npm.said 2>&1 || {
	cat npm.said
	not_run "speedscope cannot be had from npm"
}
printf 'speedscope.loadFileFromBase64("bank.trace", "%s")' \
    "$(base64 -w 0 bank.trace)" > bank.js
page=$scratch/node_modules/speedscope/dist/release/index.html
browse "file://$page#localProfilePath=$scratch/bank.js&view=sandwich" 1280 \
    --virtual-time-budget=20000 --dump-dom > dom
for name in deposit work start_thread 'bank (pid'; do
	grep -q "$name" dom || {
		echo "speedscope does not show $name"
		cat dom
		exit 1
	}
done
echo "speedscope shows the functions and the threads of the trace"
