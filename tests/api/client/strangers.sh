#!/usr/bin/env bash
# trainctl where something else than the daemon answers: other programs, gateways, certificates that are not to be
# believed; and downloads that a signal ends. Prints TAP.
. "$(dirname "$0")/../lib.sh"

trainctl=$top_builddir/trainctl
unset TRAINCTL_SERVER TRAINCTL_TOKEN TRAINCTL_CA NO_COLOR
export HOME=$work
stranger=

leave() {
    [ -z "$stranger" ] || kill "$stranger"
    clean_up
}
trap 'leave 2>/dev/null' EXIT

# run ARGUMENTS...: trainctl's exit code in $code, its output in $out, its errors in $err
run() {
    timeout 20 "$trainctl" --server "$url" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}
# refuses CODE REGEX NAME ARGUMENTS...
refuses() {
    local want=$1 regex=$2 name=$3
    shift 3
    run "$@"
    is "$code $out" "$want " "$name"
    like "$err" "$regex" "$name: says why"
}
meet() { # MODE
    [ -z "$stranger" ] || { kill "$stranger"; wait "$stranger" 2>/dev/null; }
    rm -f "$work/stranger"
    /usr/bin/python3 "$top_srcdir/tests/api/client/strangers.py" "$1" >"$work/stranger" &
    stranger=$!
    eventually test -s "$work/stranger"
    url=http://127.0.0.1:$(head -n 1 "$work/stranger")
}
nothing_left() {
    is "$(cd "$work" && echo archive*)" "archive*" "$1: no file is left"
}

# ---------------------------------------------------------------- other programs

meet page
for words in list 'show 1' 'logs 1' 'wait 1' watch "export 1 $work/archive"; do
    # shellcheck disable=SC2086 # several words
    refuses 1 'answered /v1/.* with text/html instead of (application|text)/.*: is this traind\?' "$words of a page" $words
done
nothing_left "export of a page"
meet json
for words in 'logs 1' watch "export 1 $work/archive"; do
    # shellcheck disable=SC2086
    refuses 1 'with application/json instead of' "$words of another program's JSON" $words
done
nothing_left "export of another program's JSON"
meet gateway
for words in list watch 'wait 1'; do
    # shellcheck disable=SC2086
    refuses 1 'answered with HTTP status 502' "$words at a gateway without a daemon" $words
done
meet ssh
refuses 5 'is not traind' "list at an ssh server" list

meet brief
timeout 3 "$trainctl" --server "$url" watch >"$work/out" 2>&1
is $? 124 "watch goes on over streams that end at once"
is "$(($(grep -c events "$work/stranger") < 8))" 1 "and asks for the next one after a pause"

# ---------------------------------------------------------------- silence

silence='giving up: no data was exchanged with http://[^ ]* for 2 seconds'
export TRAINCTL_SILENCE_SECONDS=2
for mode in silent mute; do
    meet $mode
    for words in "export 1 $work/archive" "backup $work/archive"; do
        [ "$mode ${words%% *}" = "silent backup" ] && continue # it wants another type
        # shellcheck disable=SC2086 # several words
        refuses 5 "$silence" "${words%% *} of one that is $mode" $words
    done
    nothing_left "one that is $mode"
done
meet trickle
run export 1 "$work/archive"
is "$code $(stat -c %s "$work/archive")" "0 50" "what moves is not cut, however long it takes"
rm -f "$work/archive"
for wrong in 0 -1 1e3 ' 5' 10000000; do
    TRAINCTL_SILENCE_SECONDS=$wrong refuses 2 'TRAINCTL_SILENCE_SECONDS must be a number from 1 to 1000000' "a silence of \"$wrong\"" export 1 -
done
unset TRAINCTL_SILENCE_SECONDS

# ---------------------------------------------------------------- a download that a signal ends

meet slow
for ending in INT:130 TERM:143 HUP:129; do
    env --default-signal "$trainctl" --server "$url" export 1 "$work/archive" >"$work/out" 2>&1 &
    client=$!
    ok "a download begins" eventually test -e "$work/archive.part"
    kill -"${ending%:*}" $client
    wait $client 2>/dev/null
    is $? "${ending#*:}" "SIG${ending%:*} ends it as it ends others"
    nothing_left "a download that SIG${ending%:*} ends"
done
kill "$stranger"
wait "$stranger" 2>/dev/null
stranger=

# ---------------------------------------------------------------- TLS

cd "$work" || exit 1
{
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
    certify() { # NAME HOST [COMMAND...]: what runs openssl
        openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$2"
        "${@:3}" openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -out "$1.pem" -extfile <(echo "subjectAltName=$2") -days 2
    }
    certify good IP:127.0.0.1
    certify named DNS:train.example
    certify expired IP:127.0.0.1 faketime -f -9d
} >"$work/openssl" 2>&1
cd "$OLDPWD" || exit 1
export TRAINCTL_CA=$work/ca.pem
for kind in named expired good; do
    printf '%s\n' "tls_certificate = $work/$kind.pem" "tls_key = $work/$kind.key" >"$work/tls.conf"
    export CURL_CA_BUNDLE=$work/ca.pem
    "$traind" --config "$work/tls.conf" --state "$work/state-$kind" --listen 127.0.0.1:0 >>"$work/daemon.log" 2>&1 &
    # shellcheck disable=SC2034 # of lib.sh
    daemon=$!
    eventually test -s "$work/state-$kind/listen"
    url=$(cat "$work/state-$kind/listen")
    case $kind in
    named) refuses 4 'Use the server name in its certificate' "a certificate for another name" list ;;
    expired) refuses 4 'expired.*|The daemon needs a new certificate' "an expired certificate" list ;;
    esac
    is "$(grep -c TRAINCTL_CA "$work/err")" "0" "$kind: another CA would not help"
    [ "$kind" = good ] || stop_daemon
done
TRAINCTL_TOKEN=$("$trainctl" --server "unix:$work/state-good/traind.sock" token create --role read reader 2>/dev/null)
export TRAINCTL_TOKEN
run list
is "$code $err" "0 " "a good one"
http_proxy=http://127.0.0.1:1 https_proxy=http://127.0.0.1:1 ALL_PROXY=socks5://127.0.0.1:1 run list
is "$code $err" "0 " "proxies are not asked"
TRAINCTL_CA='' refuses 4 'TRAINCTL_CA names a PEM file with its certificate' "one that nobody vouches for, and an empty TRAINCTL_CA" list
TRAINCTL_CA=$work/none.pem refuses 4 'none.pem' "a TRAINCTL_CA that is not there" list
like "$err" 'TRAINCTL_CA should name a PEM file' "says what it should be"
url=http://${url#https://}
refuses 5 "For a daemon with TLS, use https://${url#http://}" "HTTP where TLS is" list
for wrong in 'http://127.0.0.1:99999' 'http://127.0.0.1:7077?x=' 'http://127.0.0.1:7077#x' 'http://a b'; do
    url=$wrong
    refuses 2 "is not a server's address" "$wrong" list
done
ok "the daemon stops in order" stop_daemon

done_testing
