# bash completion for trainctl: commands, options and job ids, asked from trainctl itself

_trainctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} word command=''
    local commands
    commands=$(trainctl --help 2>/dev/null | awk '/^options:/ { exit } /^  [a-z]/ { print $1 }')
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if grep -qxF -- "$word" <<<"$commands"; then
            command=$word
            break
        fi
    done
    COMPREPLY=()
    case $prev in
    --state)
        mapfile -t COMPREPLY < <(compgen -W 'queued starting running evaluating succeeded failed cancelled' -- "$cur")
        return
        ;;
    --server | --limit | --names) return ;;
    esac
    if [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(trainctl ${command:+"$command"} --help 2>/dev/null | grep -o -- '--[a-z-]*')" -- "$cur")
    elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
    elif [[ $command == plan || $command == submit ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    elif [[ $command != list && $command != bench ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(trainctl list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$cur")
    fi
}
complete -F _trainctl trainctl
