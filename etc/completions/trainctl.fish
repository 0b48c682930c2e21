# fish completion for trainctl: candidates are provided by trainctl itself

function __trainctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = :file
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end
complete -c trainctl -f -a '(__trainctl_complete)'
