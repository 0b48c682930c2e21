#!/usr/bin/env bash
# Prolog, epilog and task-prolog of Slurm's nodes (etc/slurm) against the job's user, without Slurm: whatever that user's processes say
# or leave in folders where they may write, root runs nothing of theirs, and opens, makes and removes nothing but its own.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"

user=nobody
[ "$(id -u)" = 0 ] || skip_all "needs root: two users take part"
uid=$(id -u $user 2>/dev/null) && gid=$(id -g $user) || skip_all "there is no user $user"
needs setpriv curl flock iconv
work=$(mktemp -d) core=$(taskset -cp $$ | sed "s/.*: //; s/[,-].*//")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# ------------------------------------------------------------------ a node

slurm=$work/slurm runs=$work/open/jobs run=$work/open/jobs/7 scratch=$work/open/scratch
mkdir -p "$slurm" "$work/bin" "$work/victim/train" "$work/shared" "$run" "$scratch" "$work/prefix"
echo '{}' >"$work/victim/manifest.json"
echo precious >"$work/victim/file"
echo precious >"$work/victim/train/file"
chown -R $uid:$gid "$work/open"
for script in prolog epilog task-prolog node.sh; do
    sed -e "s|@pkgdatadir@/slurm|$slurm|; s|@bindir@|$work/bin|; s|@sysconfdir@|$work|" "$top_srcdir/etc/slurm/$script.in" >"$slurm/$script"
    chmod +x "$slurm/$script"
done
printf '%s\n' "runs=$runs" url=http://127.0.0.1:1 token_file= ca= "scratch=$scratch" "stage=\"$work/shared=$scratch/set\"" stage_bandwidth= \
    stage_seconds=300 keep_days=0 check_seconds=300 "spool=$work/spool" "state=$work/state" >"$work/traind-node.conf"

# The user can trace train-worker and train-prep, and so make them do anything: the files say-* and do-* in its folder. As root they are
# the real ones, which measure one core; $work/measured replaces the measurement of a job that has no data to check.
cat >"$work/bin/train-worker" <<END
#!/bin/sh
if [ \$(id -u) = 0 ]; then
    [ \$# != 4 ] || [ ! -e "$work/measured" ] || exec cat "$work/measured"
    exec taskset -c "$core" "$top_builddir/tests/bin/train-worker" "\$@"
fi
case \$1 in
--job-settings) cat "$work/open/say-settings"; . "$work/open/do-settings" ;;
*) cat "$work/open/say-check"; . "$work/open/do-check" ;;
esac
END
cat >"$work/bin/train-prep" <<END
#!/bin/sh
[ \$(id -u) != 0 ] || exec touch "$work/victim/staged-by-root"
. "$work/open/do-stage"
END
chmod 755 "$work"/bin/*

# Everything that is root's and not where its own things are, as it was.
picture() {
    (cd "$work" && find . \( -path ./spool -o -path ./state -o -path ./out \) -prune -o -user root ! -path . -printf '%p %y %m %s %T@ %C@\n' | sort)
}

# hostile NAME: prolog, task-prolog and epilog run; then all is as it was. Sets $code of the prolog, $said, $env of the task-prolog
hostile() {
    local before after
    before=$(picture)
    on_node prolog
    code=$?
    env=$(cd "$run" && PATH=$PATH setpriv --reuid=$uid --regid=$gid --clear-groups env SLURM_JOB_ID=12 SLURM_CPUS_PER_TASK=3 "$slurm/task-prolog" 2>&1)
    on_node epilog
    after=$(picture)
    is "$after" "$before" "$1: root has touched nothing but its own"
    is "$(find "$work/open" -user root)" "" "$1: and left nothing of root's with the user"
}
on_node() { # SCRIPT: what it leaves behind may hold on to its output
    local status=0
    env -i SLURM_JOB_ID=12 SLURM_JOB_UID="$uid" SLURM_JOB_GID="$gid" SLURM_JOB_WORK_DIR="$run/attempt-1" SLURM_JOB_PARTITION=p \
        SLURM_NODELIST=n1 SLURMD_NODENAME=n1 SLURM_CLUSTER_NAME=c timeout 900 "$slurm/$1" >"$work/out" 2>&1 || status=$?
    said=$(cat "$work/out")
    return $status
}
last_report() { # JQ
    local all=("$work"/spool/*.json)
    jq -r "$1" "${all[-1]}"
}
as_it() {
    setpriv --reuid=$uid --regid=$gid --clear-groups "$@"
}
quiet() { # nothing but a sane job
    rm -rf "$work/spool"/*.json "${scratch:?}"/* "$scratch"/.[!.]* "${run:?}"/*
    as_it sh -c "cd '$work/open' && printf '%s\n' data_train= data_eval= locality=global threads=5 interface=eth0 >say-settings && : >say-check &&
        : >do-settings && : >do-check && : >do-stage"
}

quiet
hostile "a sane job"
is "$code" 0 "it passes"
is "$(last_report .outcome)" fine "and is reported"
like "$env" '^export OMP_NUM_THREADS=5$' "its tasks get its threads"
"$work/bin/train-worker" --self-check --json --scratch "$scratch" >"$work/measured"

# ------------------------------------------------------------------ settings

n=0
while IFS= read -r line; do
    n=$((n + 1))
    quiet
    as_it tee "$work/open/say-settings" >/dev/null <<<"${line//PWNED/touch $work/victim/pwned}"
    hostile "settings: $line"
    is "$code" 0 "no node is drained for them"
done <<'END'
data_train=$(PWNED)
data_train='x'; PWNED; y='
data_train=`PWNED`
PWNED
locality=node; PWNED
locality=$(PWNED)
threads=$(PWNED)
threads=1; PWNED
threads=99999999999999999999
interface=eth0; PWNED
interface=$(PWNED)
runs=/; PWNED
spool=/tmp
PATH=/tmp
outcome=node
END
quiet
as_it sh -c "head -c 3M /dev/zero | tr '\0' x >'$work/open/say-settings'; printf '\377\376\001=\n' >'$work/open/say-check'"
hostile "three megabytes without a newline"
ok "root keeps no more than a little of them" test "$(du -sk "$work/spool" | cut -f1)" -lt 200

quiet
# A process that writes on after the program's end. The task-prolog runs as the user and waits for it: a short one there.
as_it tee "$work/open/do-settings" >/dev/null <<END
times=1200
[ -z "\${SLURM_CPUS_PER_TASK-}" ] || times=8
(exec setsid sh -c 'for i in \$(seq \$1); do echo runs=/; echo bad words; sleep 0.5; done; : >"$work/open/ended-\$1"' sh \$times) &
END
hostile "a process that holds on to its output"
ok "no process waits for it" test ! -e "$work/open/ended-1200"

# ------------------------------------------------------------------ the look at the data

while IFS= read -r line; do
    quiet
    as_it sh -c "echo 'data_train=$work/none' >'$work/open/say-settings'"
    as_it tee "$work/open/say-check" >/dev/null <<<"${line//PWNED/touch $work/victim/pwned}"
    hostile "a look at the data that says: $line"
    is "$code" 0 "no node is drained for it"
    is "$(last_report '"\(.job) \(.slurm_job) \(.phase) \(.gflops)"')" "7 12 epilog null" "the reports are well-formed"
    first=$(find "$work/spool" -name '*.json' | sort | head -1)
    is "$(jq -r '"\(.job) \(.slurm_job) \(.phase) \(.outcome) \(.gflops > 0) \(.memory_bytes > 0) \(.data[0].path == "'"$work/none"'")"' "$first" 2>&1)" \
        "7 12 prolog data true true true" "root has measured the node by itself"
done <<'END'
bad $(PWNED)
{"outcome":"fine","gflops":1,"job":1}
ok 1 2 3
ok 1 2 3 $(PWNED)
ok 99999999999999999999999 1 1 -
bad "}], "gflops": 0.001, "job": 99, "x": [{"y": "
END
quiet
as_it sh -c "echo 'data_train=$work/none' >'$work/open/say-settings'; printf 'bad \351\033[31m\377 of it\n' >'$work/open/say-check'"
hostile "a look at the data that prints no text"
is "$code" 0 "no node is drained for it"
ok "the reports are valid JSON" jq -e . "$work"/spool/*.json

# ------------------------------------------------------------------ links, where it may write

lay() { # COMMANDS: as the user; data that are to be staged
    quiet
    as_it sh -c "printf '%s\n' 'data_train=$scratch/set/train' locality=global >'$work/open/say-settings'; echo 'ok 1 0 0 -' >'$work/open/say-check'
        echo 'mkdir -p $scratch/set/train && : >$scratch/set/.stage.lock' >'$work/open/do-stage'; cd '$scratch' && $1"
}
lay true
hostile "data that are staged"
is "$code" 0 "the job passes"
ok "the epilog removes them" test ! -e "$scratch/set/.stage.lock"
like "$(last_report .reason)" "removed $scratch/set, which no job used for 0 days" "with a message"
lay "ln -s '$work/victim' set"
hostile "the folder of staged data is a link"
lay "mkdir set && ln -s '$work/victim/file' set/.stage.lock; echo true >'$work/open/do-stage'"
hostile "its lock is a link"
lay "mkdir set && ln -s '$work/victim/new' set/.stage.lock; echo true >'$work/open/do-stage'"
hostile "its lock is a link to nothing"
lay "ln -s '$work/victim/log' '$run/stage-n1.jsonl'"
hostile "the log of the staging is a link"
lay "echo 'mkdir -p set/train && : >set/.stage.lock' >/dev/null"
on_node prolog
as_it sh -c "cd '$scratch' && mv set away && ln -s '$work/victim' set"
hostile "the folder is swapped for a link after the prolog"
is "$(cat "$work/victim/train/file")" precious "what it points to is still there"
lay "mkdir set && ln -s '$work/victim' set/train && ln -s '$work/victim/manifest.json' set/manifest.json"
hostile "the entries of the folder are links"
is "$(cat "$work/victim/manifest.json" "$work/victim/train/file")" $'{}\nprecious' "what they point to is still there"

# ------------------------------------------------------------------ what is root's must be root's alone

quiet
as_it sh -c "echo 'touch $work/victim/pwned' >'$work/open/node.conf'"
said=$(TRAIND_NODE_CONF=$work/open/node.conf SLURM_JOB_WORK_DIR=$run SLURM_JOB_ID=12 "$slurm/prolog" 2>&1)
is "$?" 0 "settings that are another's"
like "$said" "$work/open/node.conf must belong to root" "are named, and not read"
ok "nothing of them has run" test ! -e "$work/victim/pwned"
for folder in spool state; do
    mv "$work/$folder" "$work/$folder.good"
    mkdir "$work/$folder" && chown $uid "$work/$folder"
    on_node prolog
    like "$said" "$work/$folder must belong to root" "a $folder that is another's is named"
    is "$(ls -A "$work/$folder")" "" "and nothing is written there"
    rmdir "$work/$folder" && mv "$work/$folder.good" "$work/$folder"
done
quiet
as_it sh -c "echo 'data_train=/none' >'$work/open/say-settings'; echo 'bad no data' >'$work/open/say-check'"
on_node prolog
is "$(stat -c '%u %a' "$work/state/rejected.12")" "$uid 600" "why a job is rejected is for its user alone"
for number in 007 1e3 -1 99999999999999999999; do
    is "$(SLURM_JOB_WORK_DIR=$runs/$number/x SLURM_JOB_ID=12 "$slurm/prolog" 2>&1; ls "$work/spool" | wc -l)" "$(ls "$work/spool" | wc -l)" \
        "a folder named $number is no job's"
done

done_testing
