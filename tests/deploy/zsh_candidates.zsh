# zsh -f zsh_candidates.zsh COMPLETIONS FOLDER LINE OUTPUT: types LINE and a tab in an interactive zsh in FOLDER; its candidates are then in OUTPUT, one a
# line, and "end" follows them. compadd, through which all candidates go, is wrapped.
zmodload zsh/zpty || exit 1
setup=$4.setup
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
    (( \$#_hits )) && print -rl -- \$_hits >>${(q)4}
    builtin compadd "\$@"
}
complete-and-tell() {
    zle complete-word
    print end >>${(q)4}
}
zle -N complete-and-tell
bindkey '^I' complete-and-tell
PROMPT=
unsetopt beep
END
zpty shell zsh -f -i
zpty -w shell "source ${(q)setup}; echo rea''dy"
zpty -r -m shell line '*ready*' || exit 1
: >$4
zpty -n -w shell "$3"$'\t'
# What the shell shows has to be read, or it would wait for the terminal.
while ! grep -qx end $4; do
    zpty -r -t shell line || zselect -t 5 2>/dev/null || { zmodload zsh/zselect; zselect -t 5 }
done
zpty -d shell
rm -f $setup
