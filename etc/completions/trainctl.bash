# bash completion for trainctl: candidates are provided by trainctl itself

_trainctl() {
    local words=() word cur line i
    # bash also splits words at = and :; join them again
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 0 && ($word == [=:]* || ${words[-1]} == *[=:]) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    cur=${words[-1]}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :file ]]; then
            compopt -o filenames
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
        else
            COMPREPLY+=("${line%%$'\t'*}")
        fi
    done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace
    # of a word split by bash, only the last piece is replaced
    if [[ $cur == *[=:]* && ($COMP_WORDBREAKS == *=* || $COMP_WORDBREAKS == *:*) ]]; then
        word=${cur%"${cur##*[=:]}"}
        for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$word"}; done
    fi
}
complete -F _trainctl trainctl
