#!/usr/bin/env bash
# trainctl finds, groups and labels jobs, in the daemon's words and in columns that are asked for.
# shellcheck source=tests/api/runs.sh.inc
. "$(dirname "$0")/../runs.sh.inc"
trainctl=$top_builddir/trainctl
unset TRAINCTL_TOKEN
export NO_COLOR=1

start_runs
export TRAINCTL_SERVER=$url
one='{"workers_per_node": 1, "threads_per_worker": 1}'
submit 'first eval=1' "$one" '{"tags": ["paper"], "note": "one\ntwo", "optimizer": {"name": "lars"}}'
submit second "$one"
submit third "$one"
for id in 1 2 3; do ok "job $id ends" wait_state "$id" succeeded; done
sql 'update job set top1 = 0.5 where id = 1' # as an evaluation behind the best one leaves it
run() { # ARGUMENT...: sets $out, $err, $code
    out=$("$trainctl" "$@" 2>"$work/err") && code=0 || code=$?
    err=$(<"$work/err")
}
rows() { tail -n +2 <<<"$out" | sed -E 's/ +/ /g; s/^ //; s/ $//'; }

run tag --add baseline,x:1 --remove paper 1 2
is "$code $out" "0 Tags of job 1: baseline, x:1
Tags of job 2: baseline, x:1" "tag: of several jobs"
run tag --remove x:1 2
is "$out" "Tags of job 2: baseline" "tag --remove"
run tag --clear --add only 2
is "$out" "Tags of job 2: only" "tag --clear first"
run tag --clear 2
is "$out" "Tags of job 2: none" "tag --clear"
run tag --add 'a b' 1
is "$code" 2 "a wrong tag"
like "$err" 'add_tags\[0\].*letters, digits' "names what is wrong"
run tag 1
is "$code" 2 "tag of nothing"
run tag --add x 1 99
is "$code" 3 "one job that there is not: the others are done, and it fails"
run tag --remove x 1

run rename 3 "a new name"
is "$code $(job 3 name)" "0 a new name" "rename"
run note 1
is "$out" "one
two" "note: printed"
printf 'from\nstdin\n\n' | "$trainctl" note 2 - >/dev/null
is "$(job 2 note)" "from
stdin" "note -: from standard input"
run note 2 ""
is "$code $(job 2 note)" "0 null" "an empty note removes it"
run note 2 "$(printf 'x%.0s' {1..5000})"
is "$code" 2 "a note too long"
run --json tag --add x 1
is "$(jq -c '[.id, .tags]' <<<"$out")" '[1,["baseline","x","x:1"]]' "--json gives the job"
run tag --remove x 1

run list --tag baseline --columns id,name,tags,best_top1,top1,best_at,note
is "$(head -n 1 <<<"$out" | sed -E 's/ +/ /g; s/^ //; s/ $//')" "ID NAME TAGS BEST TOP-1 BEST AT NOTE" "list --columns: in this order"
is "$(rows)" "1 first eval=1 baseline, x:1 75.00 % 50.00 % step 4 one two" "with what they hold"
run list -q TWO --columns id
is "$(rows)" 1 "list -q: words of a note"
run list --where optimizer.name=lars --columns id
is "$(rows)" 1 "list --where"
run list --sort best_top1 --columns id
is "$(rows | head -n 1)" 1 "list --sort best_top1"
run list
like "$(head -n 1 <<<"$out")" 'ID +NAME .*TOP-1 +BEST' "list: the best evaluation, where jobs have some"
run list --state succeeded --name second
like "$(head -n 1 <<<"$out")" 'TOP-1 +IMAGES/S' "and not where they have none"
run list --columns id,nmae
is "$code" 2 "a column that there is not"
like "$err" 'name' "names the right one"
run list --tag nobody
is "$code $out" "0 No jobs match." "what matches nothing"

run list --group tag
is "$(rows | cut -d' ' -f1-6)" "- 2 - 2 - -
baseline 1 - 1 - -
x:1 1 - 1 - -" "list --group tag"
run list --group optimizer.name --sort best_top1
is "$(rows | head -n 1 | cut -d' ' -f1,2,7-11)" "lars 1 75.00 % 1 step 4" "list --group KEY: best evaluation, its job and step"
run list --group optimizer.nam
is "$code" 2 "a key that there is not"
like "$err" 'did you mean optimizer.name' "names the right one"
run list --group tag --columns id
is "$code" 2 "columns of groups"

run show 1
like "$(tr -s ' \n' '  ' <<<"$out")" 'tags baseline, x:1.*note one.*two.*best top-1 75.00 % at step 4' "show has all of it"
run compare 1 2
like "$(tr -s ' \n' '  ' <<<"$out")" 'tags baseline, x:1.*note one two.*best top-1 75.00 %' "so has compare"
unlike() { ! grep -q "$1" <<<"$2"; }
ok "but not as keys of the documents" unlike '^note.*stdin' "$out"
is "$("$trainctl" __complete list --tag ba)" "$(printf 'baseline\t')" "tags are completed"
is "$("$trainctl" __complete list --columns id,no)" "$(printf 'id,note\t')" "so are columns"

done_testing
