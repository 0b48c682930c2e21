#!/usr/bin/env bash
# The settings stand in one table: --help, traind.conf(5) and etc/traind.conf name the same keys and defaults.
. "$(dirname "$0")/../lib.sh"

help=$("$traind" --help)
keys=$(sed -n '/^Keys of the settings/,$p' <<<"$help" | sed -nE 's/^  ([a-z_.]+)( = .*)?$/\1/p' | sort)
like "$keys" '^max_body_bytes$' "--help lists the keys"
is "$(sed -n 's/^\.It Cm //p' "$top_srcdir/man/traind.conf.5" | sort)" "$keys" "traind.conf(5) has each of them"
conf=$top_builddir/etc/traind.conf
shipped=$(sed -nE 's/^#([a-z_.]+ = .*)/\1/p' "$conf" | sort)
examples=$(sed -nE 's/^# Example: ([a-z_.]+ = .*)/\1/p' "$conf" | sort)
is "$(sed 's/ = .*//' <<<"$shipped"$'\n'"$examples" | sort)" "$keys" "traind.conf has each of them"
defaults=$(sed -n '/^Keys of the settings/,$p' <<<"$help" | sed -nE 's/^  ([a-z_.]+ = .*)$/\1/p' | sort)
is "$shipped" "$defaults" "with its default, of this prefix; the others are marked as examples"
for option in config state listen socket openapi check-config; do
    like "$help" "--$option" "--help has --$option"
    like "$(cat "$top_srcdir/man/traind.8")" "Fl (c , |s , |l , |u , )?-$option" "traind(8) has --$option"
done

# The file as it is shipped can be used, and so can each of its lines once it is taken out of its comment.
start_daemon --config "$conf"
call /healthz
want 200 "the shipped settings work"
ok "and stop" stop_daemon
mkdir "$work/web"
printf '%s\n' "$shipped" "$examples" | sed "s|^socket = .*|socket = $work/s|; s|^web_dir = .*|web_dir = $work/web|; s|^data_roots = .*|data_roots = $work|; s|^socket_group = .*|socket_group = $(id -gn)|; /^state = /d; /^tls_/d; /^slurm.setup/d; /^failure_rules/d; /^notify_rules/d; /^notify_secret_file/d; /^notify_ca_file/d" >"$work/all.conf"
start_daemon --config "$work/all.conf"
call --unix-socket "$work/s" /healthz
want 200 "all its keys with their defaults work"
ok "and stop again" stop_daemon

for key in slurm.via slurm.restd_socket slurm.restd_url slurm.restd_token; do
    echo "$key = x" >"$work/old.conf"
    like "$("$traind" --config "$work/old.conf" --check-config 2>&1)" "$key is no longer supported: jobs are submitted to Slurm with sbatch, squeue and scancel" "$key of an older traind is named"
done
echo "max_import_bytes = 1" >"$work/old.conf"
like "$("$traind" --config "$work/old.conf" --check-config 2>&1)" "max_import_bytes is no longer supported: archives .* cannot be imported; remove the line" "so is a key of imports"

# TRAIND_STATE stands between the command line and the file.
printf 'state = %s\n' "$work/from-file" >"$work/state.conf"
TRAIND_STATE=$work/from-environment "$traind" --config "$work/state.conf" --listen 127.0.0.1:0 2>/dev/null &
# shellcheck disable=SC2034
daemon=$!
eventually test -s "$work/from-environment/listen"
kill_daemon
ok "TRAIND_STATE wins over the file" test -f "$work/from-environment/traind.db" -a ! -e "$work/from-file"

# Under systemd the state is in the unit's StateDirectory, unless traind.conf names another place.
checked() { # FILE
    env -u TRAIND_STATE STATE_DIRECTORY="$work/unit-state" "$traind" --config "$1" --check-config
}
like "$(checked "$conf")" "with its state in $work/unit-state$" "StateDirectory of the unit is the default"
like "$(checked "$work/state.conf")" "with its state in $work/from-file$" "and state = of traind.conf wins over it"
ok "the unit itself names no folder that would win over the file" test -z "$(grep -- --state "$top_srcdir/etc/traind.service.in")"

printf '%s\n' 'slots = many' 'listn = x' 'log_level = loud' >"$work/bad.conf"
words=$("$traind" --config "$work/bad.conf" --check-config 2>&1)
like "$words" 'line 1 of .*slots must be .*listn.*did you mean "listen".*log_level must be' "--check-config tells all that is wrong"
is "$(grep -o bad.conf <<<"$words" | wc -l)" 1 "and the file's name once"
done_testing
