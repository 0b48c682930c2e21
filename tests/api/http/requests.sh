#!/usr/bin/env bash
# Every way in which a request can be wrong, and what a good one gives, by curl against the real daemon.
. "$(dirname "$0")/../lib.sh"
start_daemon

# ------------------------------------------------------------------ about

call /healthz
want 200 "healthz"
json .status ok "healthz says ok"
call /readyz
want 200 "readyz"
call -I /healthz
want 200 "HEAD works like GET"
like "$headers" '^Content-Length: [1-9]' "HEAD tells the length of what GET would give"
call /v1/schema/job
want 200 "the job schema"
json '.properties.data.properties.train | type' object "it knows data.train"
call /v1/presets
want 200 "presets"
json '.presets | map(.name) | index("surfsara-24k") != null' true "surfsara-24k is among them"
call /openapi.json
want 200 "openapi.json"
json .openapi 3.1.0 "it is OpenAPI 3.1"
json '.paths["/v1/jobs/{id}/metrics"].get.parameters | map(.name // empty) | join(" ")' "id names from to points format" \
    "it tells a route's parameters"
call --unix-socket "$socket" /healthz
want 200 "the unix socket answers too"
is "$(stat -c %a "$socket")" 600 "only its owner may use the unix socket"

# Every route of the contract is in the table.
"$traind" --openapi >"$work/openapi.json"
for route in 'post /v1/plan' 'post /v1/jobs' 'get /v1/jobs' 'get /v1/jobs/{id}' 'patch /v1/jobs/{id}' 'post /v1/jobs/{id}/cancel' 'get /v1/audit' 'get /v1/notices' 'post /v1/notices/test' 'get /v1/backup/tokens' 'post /v1/jobs/{id}/hold' 'post /v1/jobs/{id}/release' 'post /v1/jobs/{id}/priority' \
    'post /v1/jobs/{id}/resume' 'delete /v1/jobs/{id}' 'get /v1/jobs/{id}/metrics' 'get /v1/jobs/{id}/evals' 'get /v1/jobs/{id}/ranks' 'get /v1/throughput' 'get /v1/jobs/{id}/log' \
    'get /v1/jobs/{id}/checkpoints' 'get /v1/jobs/{id}/checkpoints/{step}' 'get /v1/jobs/{id}/events' 'get /v1/events' 'get /v1/jobs/{id}/mllog' 'get /v1/jobs/{id}/tensorboard' \
    'get /v1/jobs/{id}/archive' 'get /v1/jobs/{id}/provenance' 'get /v1/jobs/{id}/pinned' 'get /v1/jobs/{id}/reproduction' 'get /v1/jobs/{id}/trace' 'get /v1/jobs/{id}/layers' 'get /v1/jobs/{id}/predictions' 'get /v1/compare' 'get /v1/nodes' 'get /v1/nodes/{name}' 'post /v1/nodes/{name}/report' 'post /v1/sweeps' \
    'get /v1/sweeps' 'get /v1/sweeps/{id}' 'post /v1/sweeps/{id}/cancel' 'get /v1/speeds' 'post /v1/speeds' 'get /v1/schema/job' 'get /v1/presets' 'get /v1/whoami' 'get /v1' 'get /openapi.json' 'get /healthz' 'get /readyz' \
    'get /metrics' 'get /'; do
    is "$(jq --arg m "${route%% *}" --arg p "${route#* }" '.paths[$p][$m] | has("responses")' "$work/openapi.json")" \
        true "openapi has $route"
done

# ------------------------------------------------------------------ routes

call /v1/nothing
refused 404 not-found 'GET /v1/ lists' "an unknown route"
call -X DELETE /v1/jobs
refused 405 method-not-allowed 'GET, HEAD' "a wrong method"
like "$headers" '^Allow: POST, GET, HEAD$' "it names the right methods"
call -X POST /v1/jobs/1
refused 405 method-not-allowed 'GET, HEAD, DELETE' "POST where only GET is"
for body in '{}' ''; do
    call -X POST -d "$body" /v1/jobs/1/resume
    refused 404 not-found 'there is no job 1' "resume of no job ($body)"
done
call -d '[1]' /v1/jobs/1/resume
refused 422 invalid 'object' "resume with a list"
call -d '{"a"' /v1/jobs/1/resume
refused 400 usage 'line 1' "resume with half a document"
call -X DELETE /v1/jobs/1
refused 404 not-found 'there is no job 1' "removal of no job"
for id in abc -1 1.5 '%31%00' 0x1 '1%20'; do
    call "/v1/jobs/$id"
    refused 400 usage 'whole number' "the id $id"
done
for id in 0 99 9223372036854775807 1000000000000000000000000000000; do
    call "/v1/jobs/$id"
    refused 404 not-found '(no job|no such id)' "the id $id"
done
for tail in metrics evals events ranks log; do
    call "/v1/jobs/99/$tail"
    refused 404 not-found 'no job 99' "$tail of a job that is not there"
done
call -X POST /v1/jobs/99/cancel
refused 404 not-found 'no job 99' "cancel of a job that is not there"
call '/v1/jobs?sate=queued'
refused 400 usage 'state tag q' "an unknown query parameter"
call '/healthz?a=1'
refused 400 usage 'takes none' "a query parameter where there is none"
call '/v1/jobs?limit=1&limit=2'
refused 400 usage 'duplicate query parameter' "a query parameter twice"
call '/v1/jobs?limit'
refused 400 usage 'no value' "a query parameter without a value"
call "/v1/jobs?$(seq -s '&' -f 'a%g=1' 100)"
refused 400 usage 'query parameters' "a hundred query parameters"
for limit in 0 -1 1001 abc 1e3 99999999999999999999 '%201' ''; do
    call "/v1/jobs?limit=$limit"
    refused 400 usage 'from 1 to 1000' "limit=$limit"
done
call '/v1/jobs?state=sleeping'
refused 400 usage 'queued, starting' "an unknown state"

# ------------------------------------------------------------------ bodies

for route in /v1/plan /v1/jobs; do
    call -X POST "$route"
    refused 400 usage 'job document' "$route without a body"
    call -d '{"data": ' "$route"
    refused 400 usage 'line 1' "$route with a truncated document"
    call -d '{"data" "x"}' "$route"
    refused 400 usage 'column' "$route with a malformed document"
    call -d '[1]' "$route"
    refused 422 invalid 'object' "$route with an array"
    call -d "$(printf '{"a":%.0s' $(seq 200))" "$route"
    refused 400 usage 'nested' "$route with a deeply nested document"
    call -d "$(printf '[%.0s' $(seq 100000))" "$route"
    refused 400 usage 'nested' "$route with 100,000 brackets"
    call -d '{"data": {"train": "synthetic"}, "data": {}}' "$route"
    refused 400 usage 'duplicate' "$route with a key twice"
    call --data-binary $'{"name": "\xff\xfe"}' "$route"
    refused 400 usage 'decode byte 0xff' "$route with broken UTF-8"
    call -d '{}' "$route"
    refused 422 invalid '/data/train' "$route without data.train"
    call -d '{"data": {"train": "synthetic"}, "epochz": 3, "cluster": {"nodes": 0}}' "$route"
    refused 422 invalid 'epochs' "$route with two problems"
    json '.errors | length' 2 "both problems are told"
    json '[.errors[].pointer] | sort | join(" ")' '/cluster/nodes /epochz' "with their pointers"
    for nodes in 0 -1 1000000000 '"two"' 1.5; do
        call -d "{\"data\": {\"train\": \"synthetic\"}, \"cluster\": {\"nodes\": $nodes}}" "$route"
        refused 422 invalid '/cluster/nodes' "$route with nodes $nodes"
    done
    call -d '{"data": {"train": "synthetic", "train_images": 10}, "batch_per_worker": 48}' "$route"
    refused 422 invalid 'batch' "$route with a batch larger than the data"
    call -d '{"data": {"train": "/no/such/folder"}}' "$route"
    refused 422 invalid '/no/such/folder' "$route with a data folder that is missing"
    mkdir -p "$work/empty"
    call -d "{\"data\": {\"train\": \"$work/empty\"}}" "$route"
    refused 422 invalid "$work/empty" "$route with an empty data folder"
done
mkdir "$work/corrupt"
printf 'not a record' >"$work/corrupt/train-00000-of-00001"
for route in /v1/plan /v1/jobs; do
    call -d "{\"data\": {\"train\": \"$work/corrupt\"}}" "$route"
    refused 422 invalid "train-00000-of-00001" "$route with a corrupt shard names it"
    json '.errors[0].pointer' /data/train "and the key"
done
call -d "{\"data\": {\"train\": \"synthetic\", \"eval\": \"$work/empty\"}}" /v1/plan
refused 422 invalid "$work/empty" "an empty folder of evaluation data"
json '.errors[0].pointer' /data/eval "its key"
call -d '{"data": {"train": "/no/such/folder", "train_images": 100000}}' /v1/jobs
refused 422 invalid '/no/such/folder' "a submission whose images need no counting, but whose folder is missing"
call -d "{\"data\": {\"train\": \"$work/empty\", \"train_images\": 100000}}" /v1/jobs
refused 422 invalid 'empty' "the same with an empty folder"
call -d '{"data": {"train": "/no/such/folder", "train_images": 100000}}' /v1/plan
want 200 "a plan of it needs no folder"

# a body in a coding, whatever the route makes of it
gzip -c <<<'{"data": {"train": "synthetic"}}' >"$work/body.gz"
while read -r method route; do
    for coding in gzip 'GZIP, identity' x; do
        call -X "$method" -H "Content-Encoding: $coding" --data-binary "@$work/body.gz" "$route"
        refused 415 content-encoding "Content-Encoding \\\\*\"$coding\\\\*\"" "$method $route with Content-Encoding $coding"
        like "$headers" '^Accept-Encoding: identity' "and what would be right"
    done
done < <(jq -r '.paths | to_entries[] | .key as $path | .value | to_entries[] | select(.value.requestBody) | "\(.key | ascii_upcase) \($path)"' \
    "$work/openapi.json" | sed 's/{[^}]*}/1/g')
is "$(jq '[.paths[][] | select(type == "object" and .requestBody) | .responses | has("415")] | unique' -c "$work/openapi.json")" '[true]' \
    "openapi has 415 where there is a body"
call -H 'Content-Encoding: gzip' -H 'Content-Encoding: identity' --data-binary "@$work/body.gz" /v1/plan
refused 415 content-encoding gzip "the header twice"
call -H 'Content-Encoding: gzip' -H 'Transfer-Encoding: chunked' --data-binary "@$work/body.gz" /v1/plan
refused 415 content-encoding gzip "in chunks"
call -H $'Content-Encoding: \x1b[31m\xff' --data-binary "@$work/body.gz" /v1/plan
refused 415 content-encoding '.' "a coding of control characters"
call -H 'Content-Encoding: Identity' -d '{"data": {"train": "synthetic"}}' /v1/plan
want 200 "identity is no coding"
call -H 'Content-Encoding: gzip' /v1/jobs
want 200 "nor is one of no body"
for mark in '\xef\xbb\xbf:200' '\xff\xfe:400' '\xfe\xff:400' '\xff\xfe\0\0:400'; do
    { printf '%b' "${mark%:*}" && printf '{"data": {"train": "synthetic"}}'; } >"$work/marked"
    call --data-binary "@$work/marked" /v1/plan
    want "${mark#*:}" "a document with the byte order mark ${mark%:*}"
done
refused 400 usage 'UTF-16 or UTF-32 by its byte order mark' "which is named"

head -c 1048577 /dev/zero | tr '\0' ' ' >"$work/large"
call --data-binary "@$work/large" /v1/plan
refused 413 too-large '1048576' "a body of 1 MiB and a byte"
call -H 'Expect:' --data-binary "@$work/large" /v1/plan
refused 413 too-large '1048576' "the same without Expect"
call -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary "@$work/large" /v1/plan
refused 413 too-large '1048576' "the same in chunks"
head -c 1048576 "$work/large" >"$work/full"
call --data-binary "@$work/full" /v1/plan
refused 400 usage 'JSON' "a body of exactly 1 MiB is read"
head -c 40000000 /dev/zero >"$work/huge"
call --data-binary "@$work/huge" /v1/plan
want 413 "a body of 40 MB is refused before it is sent"
curl -s -m 20 -H 'Transfer-Encoding: chunked' --data-binary "@$work/huge" "$url/v1/plan" >/dev/null 2>&1
call /healthz
want 200 "the daemon lives on after a huge body in chunks"

call -H 'Content-Type: text/plain' -d '{"data": {"train": "synthetic"}, "steps": 4}' /v1/plan
want 200 "a wrong Content-Type is tolerated"
json .train_steps 4 "steps overrides"
call -d '{"preset": "surfsara-24k", "data": {"train": "synthetic", "train_images": 1280000}}' /v1/plan
want 200 "the plan of surfsara-24k"
json '[.global_batch, .steps_per_epoch, .warmup_steps, .train_steps, .start_lr, .peak_lr] | map(tostring) | join(" ")' \
    "24576 52 260 4680 0.1 4.8" "has the published numbers"

# ------------------------------------------------------------------ other sites, headers, files

call -H 'Host: evil.example' /v1/jobs
refused 403 not-allowed 'loopback' "a foreign Host (DNS rebinding)"
call -H 'Host: localhost:9999' /v1/jobs
want 200 "localhost through a tunnel"
call -H 'Origin: http://evil.example' -d '{}' /v1/jobs
refused 403 not-allowed 'other web sites' "a POST from another site's page"
call -H 'Sec-Fetch-Site: cross-site' -d '{}' /v1/jobs
refused 403 not-allowed 'other web sites' "the same, told by Sec-Fetch-Site"
call -H "Origin: $url" -d '{"data": {"train": "synthetic"}, "steps": 4}' /v1/plan
want 200 "a POST from the daemon's own page"
call --unix-socket "$socket" -H 'Host: any' /v1/jobs
want 200 "any Host on the unix socket"
call /v1/jobs
like "$headers" "^Content-Security-Policy: default-src 'self'" "a strict CSP"
like "$headers" '^X-Content-Type-Options: nosniff$' "nosniff"
like "$headers" '^Cache-Control: private, no-cache$' "answers are asked for again"
is "$(grep -ci '^access-control' <<<"$headers")" 0 "no CORS"

mkdir -p "$work/web/sub"
echo '<!doctype html><title>t</title>' >"$work/web/index.html"
echo 'let a' >"$work/web/sub/a.js"
echo secret >"$work/secret.txt"
echo hidden >"$work/web/.hidden.txt"
ln -s ../secret.txt "$work/web/link.txt"
stop_daemon
printf 'web_dir = %s\n' "$work/web" >"$work/traind.conf"
start_daemon --config "$work/traind.conf"
call /
want 200 "the dashboard"
like "$headers" '^Content-Type: text/html; charset=utf-8$' "its type"
tag=$(sed -n 's/^ETag: //p' <<<"$headers")
call -H "If-None-Match: $tag" /
want 304 "its ETag answers 304"
call /sub/a.js
want 200 "a file below"
like "$headers" '^Content-Type: text/javascript' "its type"
printf '%s\n' "// $(seq -s ' ' 1000)" >"$work/web/sub/b.js"
call -H 'Accept-Encoding: gzip' /sub/b.js
like "$headers" '^Content-Encoding: gzip$' "the dashboard's text goes out gzipped"
is "$(gzip -dc <"$work/body")" "$(cat "$work/web/sub/b.js")" "and is what the file holds"
call -I /sub/a.js
like "$headers" '^Content-Length: 6$' "HEAD of a file tells its size"
for path in /../secret.txt /%2e%2e/secret.txt /sub/../../secret.txt /..%2fsecret.txt /sub/%2e%2e%2f%2e%2e%2fsecret.txt \
    /.hidden.txt //etc/passwd /sub /sub/ /link.txt%00.js '/a%0d%0ab.js' "/$(head -c 6000 /dev/zero | tr '\0' a).js"; do
    call "$path"
    refused 404 not-found 'openapi.json|there is no' "no way to ${path:0:40}"
done

# ------------------------------------------------------------------ what is no HTTP, or stops half-way

# Sends bytes to the daemon and hangs up; prints the first line of the answer, if there is one.
raw() {
    local line=
    exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
    printf "$1" >&3 2>/dev/null
    [ "${2-}" = hang-up ] || read -r -t 60 line <&3
    exec 3>&-
    tr -d '\r' <<<"$line"
}
like "$(raw 'nonsense\r\n\r\n')" '^(HTTP/1.[01] 4[0-9][0-9] .*|)$' "a line that is no HTTP"
like "$(raw 'GET /healthz HTTP/1.0\r\n\r\n')" '^HTTP/1.[01] 200' "HTTP/1.0 without a Host"
like "$(raw 'POST /v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n')" '^(HTTP/1.1 4[0-9][0-9] .*|)$' "a negative Content-Length"
# Heads of which a proxy and the daemon could make different requests, and Hosts that only look like the loopback's.
sends() { # HEAD [BODY]: $status, $headers and $body of the first answer; reads until the daemon closes
    exec 3<>"/dev/tcp/127.0.0.1/${url##*:}"
    (printf '%b' "$1\r\n\r\n${2-}" >&3) 2>/dev/null # it may be refused before it is sent
    timeout 120 cat <&3 | tr -d '\0\r' >"$work/answer"
    exec 3>&-
    status=$(sed -n '1s/^HTTP[^ ]* \([0-9]*\).*/\1/p' "$work/answer")
    headers=$(sed '/^$/q' "$work/answer")
    body=$(sed '1,/^$/d' "$work/answer" | head -n 1)
    : >"$work/curl"
}
close='Connection: close'
post='POST /v1/plan HTTP/1.1\r\nHost: localhost'
chunk='2\r\n{}\r\n0\r\n\r\n'
sends "$post\r\nContent-Length: 2\r\nTransfer-Encoding: chunked" "$chunk"
refused 400 usage 'Content-Length and Transfer-Encoding' "both lengths"
sends "$post\r\nTransfer-Encoding: chunked\r\nContent-Length: 2" "$chunk"
refused 400 usage 'Content-Length and Transfer-Encoding' "both lengths, the other way round"
sends "$post\r\nContent-Length: 2\r\nContent-Length: 30" '{}'
refused 400 usage 'duplicate header Content-Length' "two lengths"
# Newer libmicrohttpd refuses some of it by itself, before it asks traind.
refused_by_any() { # WORDS NAME
    if [[ $body == *'<html>'* ]]; then
        is "$status" 400 "$2"
        like "$body" 'whitespace before the first colon|Transfer-Encoding used in request is not supported' "$2: its words"
    else
        refused 400 usage "$@"
    fi
}
sends "$post\r\nContent-Length : 30" 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
refused_by_any 'name' "a space before the colon"
is "$(grep -c '^HTTP/' "$work/answer")" 1 "and what is behind it is no second request"
sends "$post\r\nX(y: 1\r\n$close\r\nContent-Length: 2" '{}'
refused 400 usage 'name' "a bracket in a header's name"
for coding in gzip xchunked 'gzip, chunked'; do
    sends "$post\r\nTransfer-Encoding: $coding" "$chunk"
    refused_by_any 'only Transfer-Encoding' "Transfer-Encoding: $coding"
done
sends "$post\r\n$close\r\nTransfer-Encoding: Chunked" "$chunk"
refused 422 invalid '/data/train' "chunked alone is read"
sends "GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n$close"
refused 400 usage 'duplicate header Host' "two Hosts"
for host in '[::1]evil' '[::1]:evil' '[::1' '[::1]:' localhost:evil localhost: localhost:80x localhost:123456 localhost.evil 127.0.0.1:80@evil '' ' '; do
    sends "GET /v1/jobs HTTP/1.1\r\nHost: $host\r\n$close"
    refused 403 not-allowed 'loopback' "the Host '$host'"
done
for host in '[::1]' '[::1]:7077' LocalHost 127.9.9.9:1; do
    sends "GET /v1/jobs HTTP/1.1\r\nHost: $host\r\n$close"
    want 200 "the Host '$host'"
done
for method in ET 'GE' HEA P get; do
    sends "$method /v1/jobs HTTP/1.1\r\nHost: localhost\r\n$close"
    refused 405 method-not-allowed 'POST, GET, HEAD' "the method $method"
done
for count in 16 17 450 500 20000; do
    for name in '' a a=1; do
        sends "GET /v1/jobs?$(yes "$name" | head -n "$count" | tr '\n' '&') HTTP/1.1\r\nHost: localhost\r\n$close"
        if [ "$count$name" = 20000a=1 ] || [ "$count$name" = 20000a ]; then
            want 414 "$count query parameters '$name'"
        else
            refused 400 usage 'query parameter' "$count query parameters '$name'"
        fi
    done
done
# What never reaches a handler: libmicrohttpd answers with a page of its own, which repeats nothing of the request.
get='GET /healthz HTTP/1.1\r\nHost: localhost'
long=$(head -c 60000 /dev/zero | tr '\0' a)
answers() { # STATUS-REGEX NAME
    like "$status" "^($1)\$" "$2"
    is "$(grep -c 'aaaa\|zz' "$work/answer")" 0 "$2: nothing of it comes back"
}
sends 'GET /healthz HTTP/1.1\r\nHost localhost'
answers 400 "a header without a colon"
sends 'PRI * HTTP/2.0' 'SM\r\n\r\n'
answers 505 "HTTP/2 without asking"
sends 'GET /healthz HTTP/0.9\r\nHost: localhost'
answers 505 "HTTP/0.9"
sends "GET /$long HTTP/1.1\r\nHost: localhost"
answers 414 "an address of 60 kB, alone"
sends "$get\r\nX-Long: $long"
answers 431 "a header of 60 kB"
sends "$post\r\nTransfer-Encoding: chunked" 'zz\r\n{}\r\n0\r\n\r\n'
answers 400 "a chunk's size that is no number"
sends "$post\r\nTransfer-Encoding: chunked" 'fffffffffffffffff\r\n{}\r\n0\r\n\r\n'
answers 413 "a chunk's size above 2^64"
sends "$post\r\nTransfer-Encoding: chunked" "2;x=$long$long\r\n{}\r\n0\r\n\r\n"
if pkg-config --atleast-version=1.0 libmicrohttpd; then
    is "$status" "" "a chunk's extensions of 120 kB: libmicrohttpd 1.0 lets the connection go when its time is over"
else
    answers '413|500' "a chunk's extensions of 120 kB"
fi
for length in 400:-5 413:99999999999999999999999; do
    sends "$post\r\nContent-Length: ${length#*:}"
    answers "${length%:*}" "Content-Length: ${length#*:}"
done
for _ in $(seq 20); do
    raw 'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"data"' hang-up
done >/dev/null
call /v1/jobs
json '.jobs | length' 0 "twenty bodies cut off make no job"
call '/v1/speeds?key=%ff'
refused 400 usage 'key must be that of a speed' "speeds of what is no key"
call -X PATCH /v1/jobs/1
refused 400 usage 'the document is empty' "a change without a body"
call /v1/jobs/77/mllog
want 404 "the log of no job"
is "$(grep -ci '^content-disposition' "$work/headers")" 0 "which has no file's name"
call /v1/sweeps/99999999999999999999
refused 404 not-found 'no such id' "an id above all numbers"
call "/healthz?$(head -c 60000 /dev/zero | tr '\0' a)"
like "$status" '^(4[0-9][0-9]|431)$' "an address of 60 kB"
call /healthz
want 200 "the daemon lives on"

ok "the daemon stops in order" stop_daemon
is "$(grep -c 'runtime error\|AddressSanitizer\|LeakSanitizer' "$work/daemon.log")" 0 "no sanitizer complaint"
done_testing
