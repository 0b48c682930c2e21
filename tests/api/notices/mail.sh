#!/usr/bin/env bash
# Notices by mail, through a real program with the interface of sendmail (msmtp) to a real mail server on the loopback.
# shellcheck source=tests/api/notices/notices.sh.inc
. "$(dirname "$0")/notices.sh.inc"
command -v msmtp >/dev/null || skip_all "needs msmtp (apt-get install msmtp)"
/usr/bin/python3 "$top_srcdir/tests/api/notices/mail_server.py" "$work/mails" 2>"$work/mail_server.err" &
receivers[mails]=$!
eventually test -s "$work/mails.port" || { echo "Bail out! no mail server"; cat "$work/mail_server.err"; exit 1; }
printf '%s\n' "account default" "host 127.0.0.1" "port $(cat "$work/mails.port")" "tls off" "auth off" >"$work/msmtprc"
chmod 600 "$work/msmtprc"
printf '%s\n' '#!/bin/sh' "exec msmtp -C $work/msmtprc \"\$@\"" >"$work/sendmail"
chmod +x "$work/sendmail"
start_runs "notify_sendmail = $work/sendmail" "notify_from = traind@example.org" "public_url = https://t.example/"
mails() { # COUNT
    [ "$(find "$work/mails/new" -type f | wc -l)" -ge "$1" ]
}
part() { # of the only mail: HEADER, or nothing for the text as people read it
    /usr/bin/python3 - "$work"/mails/new/* "$@" <<'END'
import email, email.policy, sys
mail = email.message_from_binary_file(open(sys.argv[1], "rb"), policy=email.policy.default)
sys.stdout.buffer.write((mail[sys.argv[2]] if len(sys.argv) > 2 else mail.get_content()).encode())
END
}

submit_noted "fixture steps=4 Größe" '[{"to": "mailto:eve@example.org", "format": "text"}]'
ok "a job succeeds" wait_state "$id" succeeded
ok "the server has its mail" eventually mails 1
ok "and traind knows" eventually settled
is "$(part X-MailFrom) $(part X-RcptTo)" "traind@example.org eve@example.org" "from and to whom the envelope says"
is "$(part From) $(part To)" "traind@example.org eve@example.org" "and so do the headers"
is "$(part Subject)" "Job $id (fixture steps=4 Größe) has succeeded" "with its subject"
like "$(part)" "^Job $id \(fixture steps=4 Größe\) has succeeded" "in words"
like "$(part)" "^https://t.example/#/jobs/$id" "with the link to its page"

call -d '{"to": "mailto:nobody@example.org"}' /v1/notices/test
want 202 "a notice to somebody who has no mailbox"
refused_by_server() { sql "select error from notice where target = 'mailto:nobody@example.org'" | grep -q 'no such user here'; }
ok "the words of the mail server are told" eventually refused_by_server
printf '%s\n' "account default" "host 127.0.0.1" "port 1" "tls off" "auth off" >"$work/msmtprc"
call -d '{"to": "mailto:eve@example.org"}' /v1/notices/test
not_connected() { sql "select error from notice where id = $(jq .id <<<"$body")" | grep -q 'cannot connect to 127.0.0.1, port 1'; }
ok "and those of the program, when there is no server" eventually not_connected
end_runs
done_testing
