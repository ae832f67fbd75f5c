#!/usr/bin/env python3
"""Writes the completions of a shell from the tables of the program: completions.py TABLES.json bash|zsh > motel

Which flags a command has comes from the table of flags; what a flag takes from the word behind it in the help of the command (FILE and SOURCE are
files, DIR is a directory, yaml|json is one of these), from its choices in the table, or from the word in another help text.
"""
import re
import sys

import helptext
import tables

FILES = {"explain": "config", "replay": "files", "report": "files"}


def kind_of(value):
    """What a word of the help stands for: ("files", ""), ("directories", ""), ("words", "a b") or ("text", "")."""
    if re.match(r"^[a-z0-9/.-]+(\|[a-z0-9/.-]+)+$", value):
        return "words", value.replace("|", " ")
    if re.search(r"\bDIR(ECTORY)?\b", value):
        return "directories", ""
    if re.search(r"\b(FILE|SOURCE|PATH|TARGET)\b", value):
        return "files", ""
    return "text", ""


class Flag:
    def __init__(self, name, letter, bare, kind, words, meaning):
        self.name, self.letter, self.bare, self.kind, self.words, self.meaning = name, letter, bare, kind, words, meaning


def first_sentence(text):
    return re.split(r"(?<=[^.])[.;:](?: |$)", text)[0]


def flags_of(t, command):
    """The flags of a command, with what their values are."""
    texts = {"": t["help"], **{c["name"]: c["help"] for c in t["commands"]}}
    order = [texts[command]] + list(texts.values())
    own = helptext.flag_values(texts[command])
    values, meanings = {}, {}
    for text in order:
        for flag, value in helptext.flag_values(text).items():
            if not values.get(flag):
                values[flag] = value
        for term, meaning in helptext.all_items(text):
            m = helptext.FLAG.match(term)
            if m:
                meanings.setdefault(m.group(2), first_sentence(meaning))
    gates = " ".join(row.split()[0] for row in t["gates"].splitlines()[1:] if row.strip())
    ret = []
    for f in t["flags"]:
        if command not in f["commands"]:
            continue
        kind, words = kind_of(own.get(f["name"], ""))
        if kind == "text" and f.get("choices"):     # "--format json" in a help text: only this one is worth saying
            choices, value = f["choices"].split("|"), own.get(f["name"], "")
            kind, words = "words", value if value in choices else " ".join(choices)
        elif kind == "text":
            kind, words = kind_of(values.get(f["name"], ""))
        if f["name"] == "to":
            kind = "files"
        if f["name"] == "feature-gates":
            kind, words = "words", gates
        ret.append(Flag("--" + f["name"], f["letter"], f["bare"], kind, words, meanings.get(f["name"], "")))
    loads = command in next(f["commands"] for f in t["flags"] if f["name"] == "set")
    by_key = {k[0]: k for k in tables.keys(t["settings_keys"])}
    for s in t["settings"] if loads else []:
        kind, words = ("words", "true false") if s["bool"] else ("directories", "") if s["key"].endswith("directory") else \
            ("files", "") if s["key"] == "summary" else ("text", "")
        ret.append(Flag(s["flag"], "", False, kind, words, first_sentence(by_key[s["key"]][3])))
    return ret


def known(t):
    """What both shells need: [(command, what it does, its flags)]; the command "" is none."""
    what = {"": ""}
    for usage, meaning in helptext.usage_items(dict(helptext.sections(t["help"]))["Usage"]):
        for word in usage.replace("|", " ").split()[1:]:
            if not re.match(r"^[a-z]", word):
                break
            what.setdefault(word, first_sentence(meaning))
    names = [""] + [c["name"] for c in t["commands"]]
    return [(name, what.get(name, ""), flags_of(t, name)) for name in names]


def words_of(t):
    """What may stand behind a command: {command: words}."""
    return {"components": sorted({c["name"] for c in t["components"]}), "help": [c["name"] for c in t["commands"]],
            "featuregate": [row.split()[0] for row in t["gates"].splitlines()[1:] if row.strip()]}


BASH = r"""# bash completion of motel %(version)s; made when it was built
_motel_values() { # flag: completes $cur as its value, for $command; false when the flag takes none
    case $command\ $1 in
%(values)s
    *) return 1 ;;
    esac
}

_motel_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

_motel_directories() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
}

_motel_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }

# The command line of "motel run": its first word is at $1.
_motel_job() {
    if declare -F _command_offset >/dev/null; then
        _command_offset "$1"
    elif [ "$1" = "$COMP_CWORD" ]; then
        COMPREPLY=($(compgen -c -- "$cur"))
    else
        _motel_files
    fi
}

_motel() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= flags= words= word i over= joined=
    COMPREPLY=()
    # "--flag=value" is three words where = breaks words, and one where it does not.
    if [ "$cur" = = ]; then
        cur=
    elif [ "$prev" = = ]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $cur == --*=* ]]; then
        prev=${cur%%%%=*} cur=${cur#*=} joined=$prev=
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        --) over=1 ;;
        %(with_value)s)
            if [ "${COMP_WORDS[i + 1]-}" = = ]; then i=$((i + 2)); else i=$((i + 1)); fi
            ;;
        -*) ;;
        *)
            if [ -z "$command" ]; then
                command=$word
            elif [ "$command" = run ]; then
                _motel_job "$i"
                return
            fi
            ;;
        esac
    done
    if [ -z "$over" ] && _motel_values "$prev"; then
        COMPREPLY=("${COMPREPLY[@]/#/$joined}")
        return
    fi
    case $command in
%(commands)s
    esac
    if [[ -z $over && $cur == -* ]]; then
        _motel_words "$flags"
    elif [ -n "$words" ]; then
        _motel_words "$words"
    else
        case $command in
        run) _motel_job "$COMP_CWORD" ;;
        replay | report) _motel_files ;;
        esac
    fi
}
complete -F _motel motel
"""


def bash(t):
    values, with_value, commands = [], [], []
    everything = known(t)
    flags = {f.name: f for _, _, fs in reversed(everything) for f in fs}

    def value(pattern, f):
        action = {"files": "_motel_files", "directories": "_motel_directories", "words": f'_motel_words "{f.words}"', "text": ":"}[f.kind]
        values.append(f"    {pattern}) {action} ;;")
    for name, _, fs in everything:
        for f in fs:
            if (f.kind, f.words) != (flags[f.name].kind, flags[f.name].words):
                value(f"{name}\\ {f.name}", f)
    for f in flags.values():
        if not f.bare:
            with_value.append(f.name)
        if not f.bare or f.words:
            value(f"*\\ {f.name}", f)
    extra = words_of(t)
    for name, _, fs in everything:
        names = " ".join([f.name for f in fs] + ["-" + f.letter for f in fs if f.letter])
        words = " ".join(extra.get(name, [n for n, _, _ in everything if n] if name == "" else []))
        commands.append(f'    {name or chr(34) * 2}) flags="{names}" words="{words}" ;;')
    return BASH % {"version": t["version"], "values": "\n".join(values), "with_value": " | ".join(with_value), "commands": "\n".join(commands)}


ZSH = r"""#compdef motel
# zsh completion of motel %(version)s; made when it was built
_motel() {
    local curcontext=$curcontext state line command i
    local -a flags names
    typeset -A opt_args
    names=(
%(commands)s
    )
    for ((i = 2; i < CURRENT; i++)); do
        case ${words[i]} in
        --) break ;;
        %(with_value)s) ((i++)) ;;
        -*) ;;
        *)
            command=${words[i]}
            break
            ;;
        esac
    done
    case $command in
%(flags)s
    esac
    case $command in
    "") _arguments -C -S $flags '1:command:->command' && return ;;
    run) # what stands behind its flags is a command line of its own
        for ((i++; i < CURRENT; i++)); do
            case ${words[i]} in
            --) ;;
            %(with_value)s) ((i++)) ;;
            -*) ;;
            *) break ;;
            esac
        done
        if ((i < CURRENT)) || [[ ${words[CURRENT]} != -* && ${words[CURRENT - 1]} != (%(with_value_glob)s) ]]; then
            shift $((i - 1)) words
            ((CURRENT -= i - 1))
            _normal
        else
            _arguments $flags '*:command:'
        fi
        return
        ;;
%(words)s
    replay | report) _arguments -S $flags '1:command:' '*:file:_files' && return ;;
    *) _arguments -S $flags '1:command:' && return ;;
    esac
    [[ $state == command ]] && _describe -t commands 'motel command' names
}
_motel "$@"
"""


def quoted(text):
    return text.replace("'", "'\\''").replace("[", "(").replace("]", ")").replace(":", "\\:")


def zsh(t):
    flags, commands, words = [], [], []
    everything = known(t)
    for name, what, fs in everything:
        specs = []
        for f in fs:
            action = {"files": "_files", "directories": "_files -/", "words": f"({f.words})", "text": ""}[f.kind]
            value = "" if f.bare and not f.words else f"{'::' if f.bare else ':'}value:{action}"
            repeat = "*" if f.name in ("--config", "--gym-config", "--set", "--header", "--set-resource") else ""
            specs.append(f"'{repeat}{f.name}{'=-' if f.bare and value else '=' if value else ''}[{quoted(f.meaning)}]{value}'")
            if f.letter:
                specs.append(f"'-{f.letter}[{quoted(f.meaning)}]'")
        flags.append(f"    {name or chr(34) * 2}) flags=({' '.join(specs)}) ;;")
        if name:
            commands.append(f"        '{name}:{quoted(what)}'")
    for name, choices in words_of(t).items():
        words.append(f"    {name}) _arguments -S $flags '1:command:' '*:word:({' '.join(choices)})' && return ;;")
    with_value = sorted({f.name for _, _, fs in everything for f in fs if not f.bare})
    return ZSH % {"version": t["version"], "commands": "\n".join(commands), "flags": "\n".join(flags), "words": "\n".join(words),
                  "with_value": " | ".join(with_value), "with_value_glob": "|".join(with_value)}


if __name__ == "__main__":
    sys.stdout.write({"bash": bash, "zsh": zsh}[sys.argv[2]](tables.read(sys.argv[1])))
