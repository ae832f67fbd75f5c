# zsh -f zsh_candidates.zsh COMPLETIONS FOLDER OUTPUT LINE...: types each LINE and a tab in an interactive zsh in FOLDER; its candidates are then in OUTPUT,
# one a line, and "end" follows those of a line. compadd, through which all candidates go, is wrapped.
zmodload zsh/zpty zsh/zselect || exit 1
setup=$3.setup
cat >$setup <<END
cd ${(q)2}
fpath=(${(q)1} \$fpath)
autoload -Uz compinit
compinit -u -d ${(q)1}/.zcompdump
compadd() {
    if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "\$@"
        return
    fi
    local -a _hits
    builtin compadd -A _hits "\$@"
    (( \$#_hits )) && print -rl -- \$_hits >>${(q)3}
    builtin compadd "\$@"
}
# Nothing is put into the line and nothing is listed: before a long list zsh would ask, and take the next key for the answer.
quiet() { compstate[insert]= compstate[list]= }
complete-and-tell() {
    comppostfuncs=(quiet)
    zle complete-word
    print end >>${(q)3}
}
zle -N complete-and-tell
bindkey '^I' complete-and-tell
PROMPT=
unsetopt beep auto_list auto_menu
END
zpty shell zsh -f -i
zpty -w shell "source ${(q)setup}; echo rea''dy"
zpty -r -m shell line '*ready*' || exit 1
: >$3
integer n=0
for text in "${@[4,-1]}"; do
    n+=1
    zpty -n -w shell $'\C-u'"$text"$'\t'
    # What the shell shows has to be read, or it would wait for the terminal.
    while (( $(grep -cx end $3) < n )); do
        zpty -r -t shell line || zselect -t 5
    done
done
zpty -d shell
rm -f $setup
