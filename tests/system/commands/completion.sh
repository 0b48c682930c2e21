#!/usr/bin/env bash
# Completions of trainctl's words in bash and zsh.
. "$(dirname "$0")/../../api/lib.sh"

trainctl=$(realpath "$top_builddir/trainctl")
unset TRAINCTL_SERVER TRAINCTL_TOKEN
export PATH=${trainctl%/*}:$PATH
echo "worker = /bin/false" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
top_srcdir=$(realpath "$top_srcdir")
TRAIND_PRESETS=$(realpath "$TRAIND_PRESETS")
cd "$work" || exit 1
touch job.json joker
cat >job.json <<'END'
{"name": "offered", "data": {"train": "synthetic", "train_images": 64}, "model": {"image_size": 32, "classes": 10},
 "cluster": {"workers_per_node": 1}, "restart": {"max": 0}}
END
export TRAINCTL_SERVER=$url
id=$(trainctl --json submit job.json | jq .id)

# ------------------------------------------------------------------ trainctl itself
first_words() {
    trainctl __complete "$@" | cut -f 1 | tr '\n' ' '
}
for command in $(trainctl --help | awk '/^Options:/ { exit } /^  [a-z]/ { print $1 }'); do
    offered=$(first_words "$command" --)
    for option in $(trainctl "$command" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        [[ " $offered" == *" $option "* ]] || lacking+=" $command:$option"
    done
    [[ " $(first_words '')" == *" $command "* ]] || lacking+=" $command"
done
is "${lacking:-}" "" "all commands with all their options are offered"
is "$(first_words list --state run)" "running " "states"
is "$(first_words list --state=queued,fa)" "--state=queued,failed " "in a list and after = too"
is "$(first_words submit --set lr.scal)" "lr.scaling= " "keys of a job"
is "$(first_words submit --set /lr/scal)" "/lr/scaling= " "and as pointers"
is "$(first_words submit --set lr.decay=c)" "lr.decay=cosine " "values of a key"
like "$(first_words submit --set preset=)" 'preset=[a-z0-9-]+ ' "presets"
is "$(first_words bench --arch resnet1)" "resnet18 resnet101 resnet152 " "networks"
is "$(first_words token create --role a)" "admin " "roles"
is "$(first_words metrics --names loss,lr,ste)" "loss,lr,step_ms " "metrics"
is "$(first_words plan '')" ":file " "files"
is "$(first_words sweep s)" "show :file " "words and files"
is "$(first_words sweep plan '')" ":file " "what a word takes"
is "$(first_words sweep show '')$(first_words sweep list '')$(first_words sweep job.json '')" "" "and nothing else"
is "$(first_words list --state running,s)" "running,starting running,succeeded " "a list goes on"
is "$(first_words list --state running,r)" "" "without what is in it"
is "$(first_words list --columns id,name,s)" "id,name,state id,name,submitted " "of columns"
is "$(first_words metrics --x '')" "step images epoch " "axes"
is "$(first_words events --types state,e)" "state,eval_progress state,eval state,energy " "types of events"
is "$(first_words -- --serv)" "" "nothing after --"
is "$(first_words export 1 '')" ":file " "the second operand's files"
is "$(first_words note 1 '')$(first_words rename 1 '')$(first_words export 1 f '')" "" "nothing where text or nothing comes"
is "$(first_words help comp)" "compare completion " "help's commands"
is "$(first_words help h)$(first_words help list '')" "hold " "one command, and not help itself"
is "$(first_words --server http://127.0.0.1:1 show '')" "" "without a server: nothing, and soon"
# The daemon has 700 ms to answer, which may be too short on a busy machine.
offers() { # REGEX COMMAND...
    [[ $("${@:2}") =~ $1 ]]
}
ok "job ids, with state and name" eventually offers "^$id	[a-z]+ offered" trainctl __complete show ''
ok "again where a command takes several" eventually offers "^$id	[a-z]+ offered" trainctl __complete compare 1 2 ''
is "$(first_words rename "$id" '')$(first_words show "$id" '')" "" "and not where it takes one"

ok "names of jobs, once half of one is typed" eventually offers "^offered	$id" trainctl __complete show of
is "$(first_words show lat)" "latest " "and the newest"
is "$(first_words completion '')" "bash zsh fish " "shells"

# ------------------------------------------------------------------ fish
if command -v fish >/dev/null; then
    in_fish() { # TEXT
        fish --no-config -c "source '$top_srcdir/etc/completions/trainctl.fish'; complete -C '$1'" | cut -f 1 | sort | tr '\n' ' '
    }
    is "$(in_fish 'trainctl sub')" "submit " "fish: a command"
    is "$(in_fish 'trainctl list --state run')" "running " "fish: a value"
    is "$(in_fish 'trainctl submit --set lr.decay=co')" "lr.decay=cosine " "fish: a value of a key"
    is "$(in_fish 'trainctl submit jo')" "job.json joker " "fish: files"
    ok "fish: job ids" eventually offers "^$id $" in_fish 'trainctl watch '
else
    skip "fish" "not installed"
fi

# ------------------------------------------------------------------ bash
cat >in_bash.sh <<'END'
. "$1/trainctl.bash"
shift
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
_trainctl
printf '%s\n' "${COMPREPLY[@]}"
END
in_bash() { # WORD...: as bash cuts them
    bash in_bash.sh "$top_srcdir/etc/completions" "$@" | sort | tr '\n' ' '
}
is "$(in_bash trainctl su)" "submit " "bash: a command"
is "$(in_bash trainctl list --stat)" "--state " "bash: an option"
is "$(in_bash trainctl list --state = run)" "running " "bash: a value after =, which bash takes for a word"
is "$(in_bash trainctl submit --set lr.decay = co)" "cosine " "bash: a value of a key"
is "$(in_bash trainctl submit jo)" "job.json joker " "bash: files"
ok "bash: job ids of the server that is named" eventually offers "^$id $" in_bash trainctl --server "${url%%:*}" : "${url#*:}" show ''
ok "bash: job ids" eventually offers "^$id $" in_bash trainctl watch ''

# ------------------------------------------------------------------ zsh, in its own terminal
if ! command -v zsh >/dev/null; then
    skip "zsh" "not installed"
    done_testing
fi
cat >in_zsh <<'END'
# in_zsh COMPLETIONS TEXT REGEX: types TEXT and two tabs into a zsh, until REGEX is seen or ten minutes are over
zmodload zsh/zpty
seen() { # REGEX [KEYS]: typed again every 10 s, as the daemon may have been too slow for the first ones
    local part i
    for i in {1..6000}; do
        while zpty -r -t z part; do text+=$part; done
        text=$(print -rn -- "$text" | tr -d '\r\b' | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g')
        [[ $text =~ $1 ]] && return
        sleep 0.1
        ((i % 100)) || zpty -w -n z "${2-}"
    done
}
zpty -b z zsh -f -i
zpty -w z "PS1=; stty cols 200; fpath=($1 \$fpath); autoload -U compinit; compinit -D -u; setopt nobeep noautomenu; print is\$((40 + 2))set"
seen is42set
text=
zpty -w -n z "$2"$'\t\t'
seen "$3" $'\t\t'
print -r -- "$text"
zpty -d z
END
in_zsh() { # TEXT REGEX NAME
    like "$(timeout 900 zsh -f in_zsh "$top_srcdir/etc/completions" "$1" "$2" 2>&1)" "$2" "zsh: $3"
}
in_zsh 'trainctl submi' 'submit ' "a command"
in_zsh 'trainctl list --stat' 'list --state ' "an option"
in_zsh 'trainctl list --state run' 'running ' "a value"
in_zsh 'trainctl submit --set lr.decay=cos' 'lr.decay=cosine' "a value of a key"
in_zsh 'trainctl submit jok' 'joker' "files"
in_zsh 'trainctl show ' "show $id" "the only job's id"
in_zsh 'trainctl s' 'show +-- show a job' "remarks beside what is offered"

done_testing
