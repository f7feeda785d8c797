# fish completion for watchctl, which finds the candidates itself

function __watchctl_candidates
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    set -l all (commandline -o)
    set -l at (count $before)
    set -l behind $all[(math $at + 1)..-1]
    if test -n "$word"
        set -e behind[1]
    end
    $before[1] __complete $at $before "$word" $behind 2>/dev/null
end

# what follows -- has its own completion
function __watchctl_command
    contains -- -- (commandline -opc)
end

function __watchctl_of_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -e words[1..$at]
    complete -C "$words "(commandline -ct)
end

complete -c watchctl -n __watchctl_command -xa '(__watchctl_of_command)'
complete -c watchctl -n 'not __watchctl_command' -a '(__watchctl_candidates)'
