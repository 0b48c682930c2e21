#!/usr/bin/env bash
# Where trainctl finds the daemon: addresses, contexts, login and logout, and what it says where there is none. Prints TAP.
. "$(dirname "$0")/../lib.sh"

trainctl=$(realpath "$top_builddir/trainctl") traind=$(realpath "$traind") terminal=$(realpath "$top_srcdir/tests/api/client/terminal.py")
dir=$work/context
export XDG_CONFIG_HOME=$dir/config
contexts=$XDG_CONFIG_HOME/traind/contexts.json
unset TRAINCTL_SERVER TRAINCTL_CONTEXT TRAINCTL_TOKEN TRAINCTL_CA
mkdir "$dir"
cd "$dir" || exit 1

run() { # ARGUMENT...: what trainctl prints in $out, its errors in $err, its exit code in $code
    "$trainctl" "$@" >"$dir/out" 2>"$dir/err"
    code=$?
    out=$(<"$dir/out") err=$(<"$dir/err")
}
exits() { # CODE NAME ARGUMENT...
    local want=$1 name=$2
    shift 2
    run "$@"
    is "$code" "$want" "$name"
    [ "$code" = "$want" ] || sed 's/^/# /' "$dir/out" "$dir/err"
}
says() { # TEXT PART NAME
    [[ $1 == *"$2"* ]]
    report $? "$3" "it does not say \"$2\":" "$1"
}

echo 'require_token = yes' >"$dir/traind.conf"
start_daemon --config "$dir/traind.conf"
address=${url#http://}
token=$("$trainctl" --server "unix:$socket" token create --role operator eve 2>/dev/null)

# ---------------------------------------------------------------- addresses

export TRAINCTL_TOKEN=$token
for server in "$address" "localhost:${address#*:}" ":${address#*:}" "$url/"; do
    exits 0 "--server $server" --server "$server" list
done
TRAINCTL_SERVER=$address run list
is "$code" 0 "TRAINCTL_SERVER takes the same"
exits 5 "another host is asked by https" --server train.invalid:7077 list
says "$err" "no answer from https://train.invalid:7077" "it says so"
cd "$state" || exit 1
exits 0 "the relative path of a socket" --server unix:traind.sock list
cd "$dir" || exit 1
for server in localhost ftp://x 127.0.0.1:70x unix: ''; do
    exits 2 "--server \"$server\"" --server "$server" list
    says "$err" "HOST:PORT or unix:/path/to/traind.sock" "it says what an address is"
done
unset TRAINCTL_TOKEN

# ---------------------------------------------------------------- without a token

exits 4 "no token" --server "$url" list
says "$err" "trainctl login $url" "it says how to store one"
says "$err" "quickstart is in _state/token" "and where quickstart's is"
like "$err" 'by the daemon.s unix socket, which needs none' "the daemon says where one is made"
TRAIND_STATE=$state run --server "$url" list
says "$err" "trainctl login unix:$socket" "a socket that this user may open is named"
ln -s "$state" _state
run --server "$url" list
says "$err" "trainctl login unix:$dir/_state/traind.sock" "also that of quickstart in this folder"
rm _state
TRAINCTL_TOKEN=traind-1-wrong run --server "$url" list
says "$err" "The token sent came from TRAINCTL_TOKEN" "of a wrong token it says where it is from"

# ---------------------------------------------------------------- login

exits 0 "no contexts" context
says "$out" "No contexts yet. Create one with: trainctl login" "it says so"
is "$(run context --json; jq -c . <<<"$out")" '{"contexts":{}}' "also as JSON"
exits 2 "login without a token" login "$url" </dev/null
says "$err" "standard input contains no token" "it says so"
exits 4 "login with a wrong one" login "$url" <<<traind-1-wrong
is "$(ls "$XDG_CONFIG_HOME" 2>&1 | wc -l) $(find "$dir" -name contexts.json)" "1 " "nothing is stored"
run login "$address" <<<"$token"
is "$code $out" "0 $url: you are token:eve, with the role operator; context \"$address\" is selected" "login by a token says who one is"
is "$(stat -c %a "$contexts" "$XDG_CONFIG_HOME/traind/tokens/$address" | xargs)" "600 600" "only the user may read what is stored"
is "$(jq -c . "$contexts")" \
    "{\"contexts\":{\"$address\":{\"server\":\"$url\",\"token_file\":\"$XDG_CONFIG_HOME/traind/tokens/$address\"}},\"current\":\"$address\"}" "it is stored"
exits 0 "now commands need no option" list
ANSWER=$token python3 "$terminal" 80 "$trainctl" login "$url" --name asked >"$dir/out"
is "$? $(grep -c 'you are token:eve' "$dir/out")" "0 1" "on a terminal the token is asked for"
is "$(grep -c "$token" "$dir/out")" 0 "and not shown"
run login --json "unix:$socket" --name local
is "$(jq -c '[.who, .role, .context]' <<<"$out")" "[\"user:$(id -un)\",\"admin\",\"local\"]" "login by a socket needs no token"
(umask 077 && echo "$token" >"$dir/file")
exits 0 "login with a token of a file" login "$url" --name file --token-file file
is "$(jq -r .contexts.file.token_file "$contexts")" "$dir/file" "the file is used from then on"
run context
is "$(awk '{ print $1, $2, $3 }' <<<"$out" | tail -n 1)" "* file $url" "context lists them, and marks the current one"
exits 0 "context NAME" context local
is "$(jq -r .current "$contexts")" local "selects one"
exits 0 "commands go there" list
exits 3 "an unknown context" context locla
says "$err" 'did you mean "local"' "the nearest is named"
exits 3 "--context of none" --context locla list
exits 0 "--context" --context file list
TRAINCTL_CONTEXT=locla run list
is "$code" 3 "TRAINCTL_CONTEXT"
TRAINCTL_SERVER=http://127.0.0.1:1 run --context file list
is "$code" 0 "an option goes before the environment"
exits 2 "--server and --context" --server "$url" --context file list
exits 2 "a context's name with a slash" login "unix:$socket" --name ../x
is "$("$trainctl" __complete context l)" $'local\tunix:'"$socket" "names are completed"
exits 0 "login again under the same name" login "unix:$socket" --name "$address"
ok "removes the token that was stored" test ! -e "$XDG_CONFIG_HOME/traind/tokens/$address"
run context --remove asked
exits 0 "context --remove" context --remove "$address"
run context local
exits 0 "also the selected one" context --remove local
is "$(jq -c '[.current, (.contexts | keys)]' "$contexts")" '[null,["file"]]' "then none is selected"
exits 3 "context --remove of none" context --remove local
rm "$dir/file"
exits 3 "a token file that is gone" --context file list
says "$err" "trainctl login $url asks for the token again" "says what to do"

# ---------------------------------------------------------------- a broken file

printf '{"contexts": {\n "x": {"server": 1}\n}}\n' >"$contexts"
exits 3 "a context without a server" --context x list
says "$err" "there is no context \"x\" with a server" "is named"
printf '{"contexts": {\n "x": {,}\n}}\n' >"$contexts"
before=$(<"$contexts")
exits 2 "a file that is no JSON" list
like "$err" "$contexts: .*line 2" "file and line are named"
exits 2 "login then" login "unix:$socket"
is "$(<"$contexts")" "$before" "loses nothing of it"
exits 0 "--server does not need the file" --server "unix:$socket" list
exits 0 "nor do commands without a daemon" presets
rm "$contexts"

# ---------------------------------------------------------------- nobody there

run login "unix:$socket" --name gone
run login "$url" --name there <<<"$token"
stop_daemon
exits 5 "a context whose socket is gone" --context gone list
says "$err" 'the server of the context "gone"' "is named"
says "$err" "trainctl context --remove gone" "and how to forget it"
exits 5 "a context whose daemon is gone" list
says "$err" 'the server of the context "there"' "is named"
start_daemon --config "$dir/traind.conf"
TRAIND_STATE=$state run --server "unix:$dir/none.sock" list
says "$err" "another daemon's socket: --server unix:$socket" "that of another daemon is named"
"$traind" --state "$dir/other" --listen "${url#http://}" >"$dir/log" 2>&1
is $? 1 "a second daemon on the port does not start"
like "$(<"$dir/log")" "${url#http://} is in use by another traind" "and says that a traind has it"

# ---------------------------------------------------------------- a daemon that wants no token

stop_daemon
echo 'require_token = no' >"$dir/traind.conf"
start_daemon --config "$dir/traind.conf"
run login "$url" --name open </dev/null
is "$code $out" "0 $url: you are not known by name, with the role submit; context \"open\" is selected" "login asks for none"
exits 0 "commands work" list
stop_daemon
done_testing
