#!/usr/bin/env bash
# How notices get to their targets: https, proxy, redirects, private addresses, receivers that are slow, dead or busy, order, back-off, the
# end of patience, mails.
# shellcheck source=tests/api/notices/notices.sh.inc
. "$(dirname "$0")/notices.sh.inc"
receive hook
receive proxy
here=http://127.0.0.1:$hook
settings() { # SETTING...: of a daemon that is told to read them again
    local before
    printf '%s\n' "worker = $top_builddir/tests/api/fixture_worker" "slots = 2" "require_token = no" "node_check_seconds = 0" "$@" >"$work/traind.conf"
    [ -n "$daemon" ] || { start_daemon --config "$work/traind.conf"; return; }
    before=$(grep -c 'settings reloaded' "$work/daemon.log")
    kill -HUP "$daemon"
    read_again() { [ "$(grep -c 'settings reloaded' "$work/daemon.log")" -gt "$before" ]; }
    eventually read_again || { echo "Bail out! the settings were not read"; tail -n 3 "$work/daemon.log"; exit 1; }
}
test_notice() { # TARGET: its end in $state_of and $error_of
    call --unix-socket "$socket" -d "$(jq -n --arg to "$1" '{to: $to}')" /v1/notices/test # as an administrator, who may send any number
    [ "$status" = 202 ] || { state_of=$status error_of=$body; return; }
    local number
    number=$(jq .id <<<"$body")
    done_with() { [ "$(sql "select state from notice where id = $number")" != waiting ]; }
    eventually done_with
    state_of=$(sql "select state from notice where id = $number")
    error_of=$(sql "select error from notice where id = $number")
}
delivered() { # TARGET NAME
    test_notice "$1"
    is "$state_of" delivered "$2"
}
not_delivered() { # TARGET REGEX NAME
    test_notice "$1"
    is "$state_of" failed "$3"
    like "$error_of" "$2" "$3: the reason"
}

# ------------------------------------------------------------------ addresses inside

settings
before=$(count hook)
for host in 127.0.0.1 '[::1]' '[::ffff:127.0.0.1]' '[::ffff:10.0.0.1]' 0.0.0.0 169.254.169.254 10.0.0.1 192.168.1.1 172.16.0.1 100.64.0.1 '[fd00::1]' '[fe80::1]' \
    '[64:ff9b::7f00:1]' '[2002:7f00:1::]' 224.0.0.1 255.255.255.255 '[ff02::1]'; do
    not_delivered "http://$host:$hook/inside" "is not a public address, and notify_allow" "$host is refused"
done
for host in localhost 2130706433 0x7f.1; do
    not_delivered "http://$host:$hook/inside" "^$host has no address that notices may be sent to: it has none, or only private ones that notify_allow" "$host is refused"
done
is "$(count hook)" "$before" "nothing was sent there"
settings "notify_allow = 10.0.0.0/8 localhost"
not_delivered "$here/x" "^127.0.0.1 is not a public address" "an address is not allowed by a name that has it"
delivered "http://localhost:$hook/by-name" "an allowed name"
settings "notify_allow = localhost:1"
not_delivered "http://localhost:$hook/x" "^localhost has no address that" "a name at another port"
settings "notify_allow = localhost:$hook"
delivered "http://localhost:$hook/by-port" "at its port"
settings "notify_allow = ::1/128, 127.0.0.1"
delivered "$here/by-address" "an allowed address"
like "$("$traind" --config <(echo 'notify_allow = 10.0.0.0/33') --check-config 2>&1)" 'notify_allow: "10.0.0.0/33" is neither' "a wrong network is refused"

# ------------------------------------------------------------------ answers

not_delivered "$here/gone" "410" "a receiver that is gone"
delivered "$here/large" "an answer without end is cut, and taken"
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
not_delivered "http://127.0.0.1:$port/" "[Cc]onnect" "a receiver that is not there"
not_delivered "http://no-such-host.invalid/" "^no-such-host.invalid has no address that notices may be sent to: it has none, or only private ones" "a name that is none: in the same words"

# ------------------------------------------------------------------ redirects

not_delivered "$here/to/307/$here/there" "redirect \(307\), which notify_redirects does not allow" "a redirect"
settings "notify_allow = 127.0.0.1" "notify_redirects = 2"
for code in 301 302 307 308; do
    delivered "$here/to/$code/$here/there-$code" "an allowed redirect ($code)"
done
is "$(got hook . | jq -r 'select(.path | startswith("/there-")) | .body | fromjson | .kind' | sort | uniq -c | tr -s ' ')" " 4 test" "arrives with its body"
not_delivered "$here/to/307/$here/to/307/$here/to/307/$here/x" "redirect \(307\) again" "a third one"
settings "notify_allow = localhost:$hook" "notify_redirects = 2"
not_delivered "http://localhost:$hook/to/307/$here/hop" "^127.0.0.1 is not a public address" "a redirect into the network"
not_delivered "http://localhost:$hook/to/307/file:///etc/passwd" "is not https" "a redirect to a file"
is "$(got hook | grep -c '^/hop')" 0 "is not followed"

# ------------------------------------------------------------------ https

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=ca -days 2 -keyout "$work/ca.key" -out "$work/ca.pem" \
    -addext basicConstraints=critical,CA:TRUE 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout "$work/tls.key" -out "$work/tls.csr" 2>/dev/null
openssl x509 -req -in "$work/tls.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 2 -out "$work/tls.pem" \
    -extfile <(echo subjectAltName=DNS:localhost) 2>/dev/null
receive tls "$work/tls.pem" "$work/tls.key"
settings "notify_allow = localhost 127.0.0.1"
not_delivered "https://localhost:$tls/x" "certificate" "https with a certificate of an unknown authority"
settings "notify_allow = localhost 127.0.0.1" "notify_ca_file = $work/ca.pem"
delivered "https://localhost:$tls/secure" "https with that of notify_ca_file"
not_delivered "https://127.0.0.1:$tls/x" "certificate|alternative" "another name than the certificate's"
is "$(got tls | tr '\n' ' ')" "/secure " "nothing was sent to the others"

# ------------------------------------------------------------------ a proxy

settings "notify_proxy = http://127.0.0.1:$proxy" "notify_redirects = 1"
delivered "http://traind-test.invalid:$hook/through" "through a proxy, which alone knows the name"
is "$(got proxy)" "http://traind-test.invalid:$hook/through" "the proxy was asked"
is "$(got hook | tail -n 1)" "/through" "and passed it on"
not_delivered "$here/x" "^127.0.0.1 is not a public address" "a private address is refused with a proxy too"
is "$(count proxy)" 1 "before it is asked"
ok "the daemon stops" stop_daemon
printf '#!/bin/sh\nhttp_proxy=http://127.0.0.1:%s all_proxy=$http_proxy exec "%s" "$@"\n' "$proxy" "$traind" >"$work/traind"
chmod +x "$work/traind"
traind=$work/traind
settings "notify_allow = 127.0.0.1"
delivered "$here/direct" "a proxy of the environment"
is "$(count proxy)" 1 "is not used"

# ------------------------------------------------------------------ order, back-off, others

fails_of() {
    got hook . | jq -r "select(.path == \"$1\") | .t"
}
submit_noted "fixture steps=1" "$(jq -n --arg here "$here" '[{to: ($here + "/flaky/2/x")}, {to: ($here + "/ok")}, {to: ($here + "/silent")}]')"
first=$id
ok "a job ends" wait_state "$first" succeeded
submit_noted "fixture steps=1" "$(jq -n --arg here "$here" '[{to: ($here + "/flaky/2/x")}, {to: ($here + "/ok")}]')"
second=$id
ok "and another" wait_state "$second" succeeded
arrived() { [ "$(got hook | grep -c "^$1")" -ge "$2" ]; }
ok "a receiver that answers is told at once" eventually arrived /ok 2
waits=$(sql "select count(*) from notice where state = 'waiting' and target glob '*/flaky/*' or state = 'waiting' and target glob '*/silent'")
ok "while others still fail or say nothing" test "$waits" -ge 1
ok "the one that fails twice gets both in the end" eventually arrived /flaky/2/x 4
is "$(got hook . | jq -r 'select(.path == "/flaky/2/x") | .body | fromjson | .job.id' | tr '\n' ' ')" "$first $first $first $second " "in their order"
is "$(got hook . | jq -r 'select(.path == "/flaky/2/x") | .headers["Traind-Notice-Id"]' | uniq -c | awk '{print $1}' | tr '\n' ' ')" "3 1 " "each attempt with the same id"
ok "the pauses grow" awk 'NR > 1 { d[NR] = $1 - last } { last = $1 } END { exit !(d[2] > 0.7 && d[3] > 1.5) }' <(fails_of /flaky/2/x)
call "/v1/notices?job=$first"
json '.notices | map(select(.to | endswith("/flaky/2/x"))) | map([.state, .attempts, .error] | tojson) | join(" ")' '["delivered",3,null]' "the API tells the attempts"
submit_noted "fixture steps=1" "$(jq -n --arg here "$here" '[{to: ($here + "/later/4")}]')"
ok "a receiver that asks for time" eventually arrived /later 2
ok "gets it" awk 'NR > 1 { exit !($1 - last > 3.9) } { last = $1 }' <(fails_of /later/4)
silent() { [ "$(sql "select attempts from notice where target glob '*/silent'")" -ge 1 ]; }
ok "one that says nothing is left after ten seconds" eventually silent
like "$(sql "select error from notice where target glob '*/silent'")" "[Tt]imed? ?out|timeout" "with the reason"
sql "delete from notice where target glob '*/silent'"

# ------------------------------------------------------------------ shares

sql "insert into notice (uid, t, kind, target, format, by_rule, owner, body, state, next_at) with recursive n(i) as (select 1 union all select i + 1 from n where i < 60)
    select 'eve ' || i, 1, 'failed', '$here/silent/' || i, 'json', 0, 'token:eve', '{}', 'waiting', 1 from n"
delivered "$here/wake" "while another user's 60 targets say nothing, a notice"
held_up() { [ "$(got hook | grep -c '^/silent/')" -ge 4 ]; }
ok "with four of these under way" eventually held_up
delivered "$here/fair" "and another is delivered"
ok "before most of the 60 were tried" test "$(sql "select count(*) from notice where owner = 'token:eve' and attempts = 0")" -ge 30
sql "delete from notice where owner = 'token:eve'"

for i in {1..10}; do
    call -d "{\"to\": \"$here/limited\"}" /v1/notices/test
    [ "$status" = 202 ] || break
done
is "$i $status" "10 202" "a submitter sends ten tests"
call -d "{\"to\": \"$here/limited\"}" /v1/notices/test
refused 429 too-many 'a user may send only 10: try again in [0-9]+ s' "the next within a minute"
like "$headers" "^Retry-After: [1-9][0-9]?$" "says when"

# ------------------------------------------------------------------ given up

settings "notify_allow = 127.0.0.1" "notify_retry_seconds = 1"
submit_noted "fixture steps=1" "$(jq -n --arg here "$here" '[{to: ($here + "/fail")}]')"
given_up() { [ "$(sql "select state from notice where job_id = $id")" = failed ]; }
ok "one that always fails is given up" eventually given_up
is "$(sql "select attempts || ' ' || error from notice where job_id = $id")" "3 the answer is 500, not 200 to 299" "after three attempts at least"
is "$(grep -c "notice .* (succeeded, job $id): giving up after 3 attempts: the answer is 500" "$work/daemon.log")" 1 "the log says it once"
ok "without the target, which may be a secret" test "$(grep -c "$here/fail" "$work/daemon.log")" = 0
call "/v1/notices?job=$id"
json '.notices[0] | [.state, .attempts, .next_at, (.done_at > 1e9)] | tojson' '["failed",3,null,true]' "the API too"

# ------------------------------------------------------------------ mails

write_script "$work/sendmail" <<'END'
#!/bin/sh
echo "$@" >"${0%/*}/mail.args.$$"
cat >"${0%/*}/mail.$$"
case "$*" in *nobody*) echo "no such user" >&2; exit 67 ;; esac
END
settings "notify_sendmail = $work/sendmail" "notify_from = traind@example.org" "public_url = http://t.example"
submit_noted "fixture steps=1 Größe" '[{"to": "mailto:eve@example.org", "format": "text"}]'
ok "a job with a mail ends" wait_state "$id" succeeded
ok "it is sent" eventually settled
mail=$(cat "$work"/mail.[0-9]*)
is "$(cat "$work"/mail.args.*)" "-i -f traind@example.org eve@example.org" "by the command of notify_sendmail"
like "$mail" "^From: traind@example.org$" "with its sender"
like "$mail" "^To: eve@example.org$" "its receiver"
like "$mail" "^Auto-Submitted: auto-generated$" "the mark of machines"
is "$(sed -n '/^Subject:/,/^[A-RT-Z]/p' <<<"$mail" | grep -o '=?UTF-8?B?[^?]*' | cut -d'?' -f4 | base64 -d)" "Job $id (fixture steps=1 Größe) has succeeded" "a subject"
like "$mail" "^Job $id \(fixture steps=1 Größe\) has succeeded$" "the words"
like "$mail" "^http://t.example/#/jobs/$id$" "and the link"
settings "notify_sendmail = $work/sendmail" "notify_mail_domains = example.org, chat.example"
test_notice "mailto:eve@evil.example"
is "$state_of" 422 "a test by mail to another domain is refused"
like "$error_of" 'is a mail address outside the domains that notify_mail_domains of traind.conf lists: example.org, chat.example' "with those that are not"
call -d '{"data": {"train": "synthetic", "train_images": 64}, "notify": [{"to": "https://example.org/x"}, {"to": "mailto:eve@sub.example.org"}]}' /v1/jobs
refused 422 invalid 'notify_mail_domains' "and a job that names one"
json '.errors[0].pointer' /notify/1/to "which is pointed at"
sql "insert into notice (uid, t, kind, target, format, by_rule, body, state, next_at) select 'rule', t, kind, 'mailto:rule@evil.example', format, 1, body, 'waiting', 0
    from notice limit 1; insert into notice (uid, t, kind, target, format, by_rule, body, state, next_at) select 'old', t, kind, 'mailto:old@evil.example', format, 0, body,
    'waiting', 0 from notice limit 1"
delivered "mailto:Eve@Example.ORG" "a mail to a domain of the list"
ok "an administrator's rule is not limited, what an earlier document asks for is given up" eventually settled
is "$(sql "select group_concat(state || coalesce(' ' || error, ''), ', ') from (select state, error from notice where uid in ('rule', 'old') order by uid)")" \
    "failed notify_mail_domains of traind.conf does not list the domain, delivered" "with the reason"
like "$("$traind" --config <(echo 'notify_mail_domains = example.org:25') --check-config 2>&1)" 'notify_mail_domains: "example.org:25" is not a domain such as example.org' "a wrong domain is refused"
not_delivered "mailto:nobody@example.org" "sendmail ended with status 67: no such user" "a mail that is not taken"
settings "notify_sendmail = $work/no-such-program"
not_delivered "mailto:eve@example.org" "cannot run $work/no-such-program" "a command that is not there"
is "$(sql "pragma integrity_check")" ok "the database is whole"
ok "the daemon stops in order" stop_daemon
done_testing
