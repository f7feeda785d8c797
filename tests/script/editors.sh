#!/bin/sh
# editors: what -o gcc writes is a list of places for vim's quickfix and for
# emacs' compilation mode, each of which goes from one to the next.
set -eu

. "$TOP/tests/support/needs.sh"
needs vim emacs
needs_breakpoints
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
HOME=$scratch
export HOME
mkdir "$scratch/some dir"
cd "$scratch/some dir"
cat > writer.c <<'END_OF_C'
char limit[8];
static void fill(void)
{
	limit[1] = 'y';
}
int main(void)
{
	limit[0] = 'x';
	fill();
	return 0;
}
END_OF_C
${CC:-cc} -g -O0 -o writer writer.c
"$WATCHCTL" -w limit -o gcc -O hits -- ./writer
cat hits

# what there is to go to: "writer.c 9 warning by main"
cat > list.vim <<'END_OF_VIM'
cgetfile hits
for entry in getqflist()
	if entry.valid
		call writefile([bufname(entry.bufnr) . ' ' . entry.lnum .
			\ substitute(entry.text, ': .* by', ' by', '')], 'vim.got', 'a')
	endif
endfor
qa!
END_OF_VIM
vim -es -N -u NONE -S list.vim || true
cat > list.el <<'END_OF_LISP'
(require 'compile)
(find-file "hits")
(setq inhibit-read-only t)
(compilation-mode)
(goto-char (point-min))
(insert "-*- mode: compilation -*-\n\n")
(compilation--ensure-parse (point-max))
(goto-char (point-min))
(ignore-errors
  (while t
    (compilation-next-error 1)
    (let* ((message (get-text-property (point) 'compilation-message))
           (place (compilation--message->loc message)))
      (princ (format "%s %d %s %s\n"
                     (caar (compilation--loc->file-struct place))
                     (compilation--loc->line place)
                     (nth (compilation--message->type message)
                          '("info" "warning" "error"))
                     (progn (re-search-forward " \\(by .*\\)")
                            (match-string 1)))))))
END_OF_LISP
emacs -Q --batch -l list.el > emacs.got 2> emacs.said || {
	cat emacs.said
	exit 1
}
printf 'writer.c 8 warning by main\nwriter.c 4 warning by fill\n' > wanted
for editor in vim emacs; do
	diff wanted $editor.got || {
		echo "(>) is what $editor makes of"
		cat hits
		exit 1
	}
done
