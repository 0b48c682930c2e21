#!/usr/bin/env bash
# Tokens and trainctl, streams and downloads whose token ends, backups, TLS, and where the daemon will not listen.
# tests/api/cases/access.cases has what a request shows.
. "$(dirname "$0")/../lib.sh"

trainctl=$top_builddir/trainctl
unset TRAINCTL_SERVER TRAINCTL_TOKEN TRAINCTL_CA
export HOME=$work XDG_CONFIG_HOME=$work/config
mkdir -p "$work/config/traind"
cat >"$work/traind.conf" <<END
require_token = yes
mpirun = /bin/true
requests_per_second = 0
streams_per_client = 2
END
start_daemon --config "$work/traind.conf"
local_server=unix:$socket

# ------------------------------------------------------------------ without any settings

printf '%s\n' 'mpirun = /bin/true' >"$work/plain.conf"
timeout 1200 "$traind" --config "$work/plain.conf" --state "$work/plain" --listen 127.0.0.1:0 >"$work/plain.log" 2>&1 &
plain=$!
plain_answers() { [ -s "$work/plain/listen" ] && curl -sf -o /dev/null "$(cat "$work/plain/listen")/readyz"; }
ok "a daemon without settings about access" eventually plain_answers
plain_url=$(cat "$work/plain/listen")
is "$(curl -s -o /dev/null -w '%{http_code}' "$plain_url/v1/jobs") $(curl -s -o /dev/null -w '%{http_code}' -d '{}' "$plain_url/v1/jobs")" "401 401" \
    "neither reads nor submits for those on the loopback who have no token"
like "$(HOME=/nowhere XDG_CONFIG_HOME='' "$trainctl" --server "$plain_url" list 2>&1 | tr -s ' \n' ' ')" \
    'needs a token .* To store a token .*: trainctl login http://' "trainctl says how to store one"
is "$(for path in /healthz /readyz /openapi.json /v1/schema/job /v1/presets; do curl -s -o /dev/null -w '%{http_code} ' "$plain_url$path"; done)" \
    "200 200 200 200 200 " "what holds no jobs is open"
is "$(curl -s "$plain_url/readyz" | jq .require_token)" true "it says so"
is "$(curl -s -o /dev/null -w '%{http_code}' --unix-socket "$work/plain/traind.sock" http://localhost/v1/jobs)" 200 "its unix socket knows its user"
is "$(TRAIND_STATE=$work/plain "$trainctl" list --json | jq -c .jobs)" '[]' "and trainctl finds that by itself"
ok "no warning about it" test -z "$(grep require_token "$work/plain.log")"
kill "$plain"
wait "$plain"
echo 'require_token = no' >>"$work/plain.conf"
rm -f "$work/plain/listen"
timeout 1200 "$traind" --config "$work/plain.conf" --state "$work/plain" --listen 127.0.0.1:0 >"$work/plain.log" 2>&1 &
plain=$!
ok "with require_token = no" eventually plain_answers
plain_url=$(cat "$work/plain/listen")
is "$(curl -s -o /dev/null -w '%{http_code}' "$plain_url/v1/jobs")" 200 "they may read"
ok "the log warns of it" eventually grep -q 'warning: require_token = no: every user of this machine' "$work/plain.log"
like "$("$trainctl" --server "$plain_url" doctor --json | jq -r '.[] | select(.check == "access") | "\(.ok) \(.found)"')" '^false every user' "so does trainctl doctor"
kill "$plain"
wait "$plain"

# ------------------------------------------------------------------ tokens

declare -A token
for role in read submit operator node admin; do
    token[$role]=$("$trainctl" --server "$local_server" token create --role "$role" "the $role" 2>"$work/err")
    like "${token[$role]}" '^traind-[0-9]+-[A-Za-z0-9_-]{43}$' "a token for $role is made over the unix socket"
done
like "$(cat "$work/err")" 'not shown again' "it says that it is told once"
is "$(stat -c %a "$state/tokens.json")" 600 "only the daemon's user may read the tokens' file"
is "$(for t in "${token[@]}"; do grep -cF -- "${t#traind-*-}" "$state/tokens.json" "$work/daemon.log"; done | grep -c ':0$')" 10 \
    "neither that file nor the log has a token in it"
is "$("$trainctl" --server "$local_server" token list --json | jq -c '[.tokens[] | [.name, .role, .expires_at, has("token"), has("hash")]]')" \
    '[["the read","read",null,false,false],["the submit","submit",null,false,false],["the operator","operator",null,false,false],["the node","node",null,false,false],["the admin","admin",null,false,false]]' "token list tells all but the secrets"
for wrong in 'token' 'token make' 'token create' 'token revoke' 'token revoke x' 'token create --role root x' 'token create --expires soon x' 'token create --expires 5 x'; do
    # shellcheck disable=SC2086
    "$trainctl" --server "$local_server" $wrong >"$work/out" 2>&1
    is "$?" 2 "trainctl $wrong is refused"
done

with() { # ROLE [CURL ARGUMENT...] PATH
    call -H "Authorization: Bearer ${token[$1]}" "${@:2}"
}

# ------------------------------------------------------------------ trainctl

export TRAINCTL_SERVER=$url
"$trainctl" list >"$work/out" 2>"$work/err"
is "$?" 4 "trainctl without a token: 4"
TRAINCTL_TOKEN=${token[submit]} "$trainctl" list >"$work/out" 2>"$work/err"
is "$?" 0 "with TRAINCTL_TOKEN"
echo "${token[submit]}" >"$work/config/traind/token"
chmod 644 "$work/config/traind/token"
"$trainctl" list >"$work/out" 2>"$work/err"
is "$?" 4 "a token's file that others can read is not used"
like "$(cat "$work/err")" 'chmod 600' "it says what to do"
chmod 600 "$work/config/traind/token"
ok "with the token in ~/.config" "$trainctl" list
for server in http://192.0.2.1:1 http://localhost:x@192.0.2.1:1 http://127.0.0.1@192.0.2.1:1 http://127.evil.example:1 http://localhost.evil.example:1; do
    TRAINCTL_TOKEN=${token[submit]} "$trainctl" --server "$server" list >"$work/out" 2>"$work/err"
    like "$(cat "$work/err")" 'unencrypted' "a token does not go over the network without TLS ($server)"
done
unset TRAINCTL_SERVER

# ------------------------------------------------------------------ streams of a token, wherever it is used

streams=()
for place in "" "--unix-socket $socket"; do
    # shellcheck disable=SC2086
    curl -sN $place -H "Authorization: Bearer ${token[submit]}" -H 'Accept: text/event-stream' "$url/v1/events" >>"$work/streams" &
    streams+=($!)
done
two_run() { [ "$(grep -c '^retry' "$work/streams")" = 2 ]; }
ok "a token has as many streams as it may, over TCP and the socket" eventually two_run
for place in -s "--unix-socket $socket"; do
    # shellcheck disable=SC2086
    with submit $place -m 60 -H 'Accept: text/event-stream' /v1/events
    refused 429 too-many 'streams_per_client' "it gets no third ($place)"
done
own_stream() { with admin -m 5 -H 'Accept: text/event-stream' /v1/events && [ "$status" = 200 ]; }
eventually own_stream
want 200 "another token from the same address has its own"
kill "${streams[@]}"

# ------------------------------------------------------------------ what goes on for long ends with its token

long=$("$trainctl" --server "$local_server" token create --role read long 2>/dev/null)
steady=$("$trainctl" --server "$local_server" token create --role read steady 2>/dev/null)
stream_with() { # TOKEN FILE: in the background, and its outcome in FILE.rc
    (
        curl -sN -m 1200 -H "Authorization: Bearer $1" -H 'Accept: text/event-stream' "$url/v1/events" >"$2"
        echo $? >"$2.rc"
    ) &
}
rm -f "$work"/live-*
stream_with "$long" "$work/live-long"
stream_with "$steady" "$work/live-other"
tells() { grep -qs '^retry' "$work/live-brief" || [ -s "$work/live-brief.rc" ]; }
for seconds in 8 16 32 64; do # the token may have expired before its stream begins
    brief=$("$trainctl" --server "$local_server" token create --role read --expires ${seconds}s brief 2>/dev/null)
    stream_with "$brief" "$work/live-brief"
    eventually tells
    ! grep -qs '^retry' "$work/live-brief" || break
    rm -f "$work"/live-brief*
done
opened() { [ "$(cat "$work"/live-brief "$work"/live-long "$work"/live-other 2>/dev/null | grep -c '^retry')" = 3 ]; }
ok "three streams" eventually opened
ok "one ends when its token has expired" eventually test -s "$work/live-brief.rc"
is "$(cat "$work/live-brief.rc")" 0 "in order"
ok "the others go on" test ! -e "$work/live-long.rc" -a ! -e "$work/live-other.rc"
revoked=$(sed 's/^traind-\([0-9]*\)-.*/\1/' <<<"$long")
with admin -X DELETE "/v1/tokens/$revoked"
want 200 "the token of another is revoked"
began=$EPOCHSECONDS
ok "its stream ends" eventually test -s "$work/live-long.rc"
ok "soon" test $((EPOCHSECONDS - began)) -le 60
call -H "Authorization: Bearer $long" -H 'Accept: text/event-stream' /v1/events
refused 401 no-token 'revoked' "who comes again"
ok "that of a third token goes on" test ! -e "$work/live-other.rc"
with submit -d '{"data": {"train": "synthetic", "train_images": 64}, "steps": 2, "batch_per_worker": 4}' /v1/jobs
told() { grep -q '^event: state' "$work/live-other"; }
ok "and is told what happens" eventually told
ok "while the ended ones are told nothing more" test -z "$(grep '^event: state' "$work/live-brief" "$work/live-long")"

# A backup that somebody takes slowly. The store is made large first.
sqlite3 -cmd ".timeout 20000" "$state/traind.db" "insert into job_event (job_id, attempt, t, type, body) select 1, 0, 0, 'note',
    json_object('text', hex(randomblob(4000))) from generate_series(1, 4000)"
slow=$("$trainctl" --server "$local_server" token create --role admin slow 2>/dev/null)
slow_id=$(sed 's/^traind-\([0-9]*\)-.*/\1/' <<<"$slow")
curl -s --limit-rate 1M -m 600 -H "Authorization: Bearer $slow" -o "$work/part.db" "$url/v1/backup" &
taker=$!
comes() { [ "$(stat -c %s "$work/part.db" 2>/dev/null || echo 0)" -gt 100000 ]; }
ok "a backup is being taken" eventually comes
with admin -X DELETE "/v1/tokens/$slow_id"
wait "$taker"
is "$?" 18 "it is broken off when its token is revoked, and curl knows that it is not whole"
sqlite3 "$state/traind.db" "delete from job_event where type = 'note'"

# ------------------------------------------------------------------ backup

ok "a backup" "$trainctl" --server "$local_server" backup "$work/copy.db"
is "$(sqlite3 "$work/copy.db" 'pragma integrity_check; select count(*) from job')" "ok
1" "it is a whole database"
is "$(stat -c %a "$work/copy.db")" 600 "that only its owner can read"
ok "with the tokens" cmp "$work/copy.db.tokens.json" "$state/tokens.json"
is "$(stat -c %a "$work/copy.db.tokens.json")" 600 "which only its owner can read either"
copied=$(stat -c %Y%i "$work/copy.db")
"$trainctl" --server "$local_server" backup "$work/copy.db" >"$work/out" 2>&1
is "$?" 1 "a backup over another file: 1"
like "$(cat "$work/out")" 'already exists; --force replaces it' "says how"
is "$(stat -c %Y%i "$work/copy.db")" "$copied" "and leaves it as it was"
mv "$work/copy.db" "$work/other.db"
"$trainctl" --server "$local_server" backup "$work/copy.db" >"$work/out" 2>&1
is "$? $([ -e "$work/copy.db" ] && echo there)" "1 " "nor over other tokens, and no half of a backup is made"
ok "--force replaces it" "$trainctl" --server "$local_server" backup --force "$work/copy.db"
"$trainctl" --server "$local_server" backup "$work/none/copy.db" >"$work/out" 2>&1
is "$?" 3 "a backup into a folder that is not there: 3"
ok "stop" stop_daemon

# ------------------------------------------------------------------ TLS, and where it will not listen

refuses() { # WORDS NAME ARGUMENT...
    local result=0
    timeout 60 "$traind" --state "$work/other" "${@:3}" >"$work/out" 2>&1 || result=$?
    is "$result" 2 "$2: its exit code"
    like "$(cat "$work/out")" "$1" "$2: its words"
}
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
settings() { printf '%s\n' "$@" >"$work/tls.conf"; }
for check in '' --check-config; do
    settings 'require_token = yes'
    refuses 'needs tokens and TLS' "beyond the loopback without TLS $check" --config "$work/tls.conf" --listen 0.0.0.0:0 $check
    settings 'require_token = no' "tls_certificate = $work/cert.pem" "tls_key = $work/key.pem"
    refuses 'needs tokens and TLS' "beyond the loopback without tokens $check" --config "$work/tls.conf" --listen 0.0.0.0:0 $check
    settings "tls_certificate = $work/cert.pem"
    refuses 'tls_key is not set' "a certificate without its key $check" --config "$work/tls.conf" $check
    settings "tls_certificate = $work/cert.pem" "tls_key = $work/none.pem"
    refuses 'cannot read .*none.pem' "a key that is missing $check" --config "$work/tls.conf" $check
    settings "data_roots = data"
    refuses 'absolute folders' "data_roots that is relative $check" --config "$work/tls.conf" $check
    settings "socket_group = no-such-group"
    refuses 'no group "no-such-group"' "a group that is not there $check" --config "$work/tls.conf" $check
    settings "reqire_token = yes"
    refuses 'did you mean "require_token"' "a misspelt key $check" --config "$work/tls.conf" $check
done
settings "tls_certificate = $work/key.pem" "tls_key = $work/cert.pem"
refuses 'PEM files that belong together' "certificate and key mixed up" --config "$work/tls.conf" --listen 127.0.0.1:0
settings 'require_token = yes' "tls_certificate = $work/cert.pem" "tls_key = $work/key.pem" 'log_format = json' "socket_group = $(id -gn)"
like "$("$traind" --config "$work/tls.conf" --state "$work/third" --check-config)" 'settings are valid' "--check-config of right settings"
ok "--check-config makes nothing" test ! -e "$work/third"
export CURL_CA_BUNDLE=$work/cert.pem
start_daemon --config "$work/tls.conf"
like "$url" '^https://' "with a certificate it speaks HTTPS"
is "$(stat -c %a "$socket")" 660 "socket_group may use the socket"
with submit /v1/jobs
want 200 "tokens outlive a restart, and TLS works"
call -H 'Host: train.example' /healthz
want 200 "with tokens the server may have any name"
call -H "Origin: https://evil.example" -H "Authorization: Bearer ${token[submit]}" -d '{}' /v1/jobs
refused 403 not-allowed 'other web sites' "a POST from another site's page"
TRAINCTL_CA=$work/cert.pem ok "trainctl over TLS" "$trainctl" --server "$url" list
"$trainctl" --server "$url" list >"$work/out" 2>&1
is "$?" 4 "a certificate nobody vouches for is not trusted"
is "$(grep '^{' "$work/daemon.log" | jq -r 'select(.message | startswith("listening")) | .level' | head -1)" info "log_format = json: an object a line"
# Old versions of TLS, and ciphers without forward secrecy or authenticated encryption.
handshake() { # OPENSSL ARGUMENT...: the protocol and cipher agreed upon, or "refused" by the server
    openssl s_client -connect "${url#https://}" "$@" </dev/null >"$work/handshake" 2>&1
    sed -n 's/^New, \(TLS[^,]*\), Cipher is \(.*\)/\1 \2/p; s/^New, (NONE).*/refused/p' "$work/handshake"
    grep -E 'no (protocols|ciphers) available|no cipher match' "$work/handshake" # it was not asked at all
}
for version in tls1 tls1_1; do
    is "$(handshake "-$version" -cipher 'ALL:@SECLEVEL=0')" refused "$version is refused"
done
for cipher in AES128-SHA AES256-GCM-SHA384 ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA384 DHE-RSA-AES128-SHA; do
    is "$(handshake -tls1_2 -cipher "$cipher:@SECLEVEL=0")" refused "TLS 1.2 with $cipher is refused"
done
for cipher in ECDHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-RSA-CHACHA20-POLY1305; do
    is "$(handshake -tls1_2 -cipher "$cipher")" "TLSv1.2 $cipher" "TLS 1.2 with $cipher is taken"
done
is "$(handshake -tls1_3)" "TLSv1.3 TLS_AES_256_GCM_SHA384" "TLS 1.3 is taken"
plain=$(curl -s -m 3 -o /dev/null -w '%{http_code}' "http://${url#https://}/healthz")
is "$plain" 000 "no plain HTTP where TLS is"
ok "stop" stop_daemon
: >"$state/tokens.json"
timeout 60 "$traind" --state "$state" --listen 127.0.0.1:0 >"$work/out" 2>&1
is "$?" 1 "a damaged tokens' file is not started with"
like "$(cat "$work/out")" 'tokens.json.*new tokens' "it says what to do"
rm "$state/tokens.json"
mkdir "$state/tokens.json"
timeout 60 "$traind" --state "$state" --listen 127.0.0.1:0 >"$work/out" 2>&1
is "$? $(grep -c 'tokens.json is a folder' "$work/out") $(grep -c 'remove it' "$work/out")" "2 1 0" "one that cannot be read is not called damaged"

done_testing
