#!/bin/bash
# No circle of includes, within a part or over several: a file and its header are one room, and what a room needs must not
# need it again, over however many others.
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
cd "$top_srcdir" || exit 1

# arrows FOLDER...: "room needs-room" for every include of one of the project's own headers
arrows() {
    find "$@" -name '*.[ch]' -print0 | xargs -0 grep -H '^#include "' |
        sed -E 's/^([^:]*)\.[ch]:#include "(.*)\.h".*$/\1 \2/' | awk '$1 != $2' | sort -u
}

# in_circles: the rooms that are left when those that need nothing more are taken away, again and again
in_circles() {
    tsort 2>&1 >/dev/null | sed -n 's/^tsort: //p' | grep -v 'input contains a loop' | sort -u
}

parts='common launch daemon client prep worker'
for part in $parts; do
    is "$(arrows "$part" | in_circles)" "" "$part has no circle of includes"
done
is "$(arrows $parts | in_circles)" "" "nor have all parts together"

below() { # below FOLDER FORBIDDEN NAME
    is "$(arrows "$1" | awk -v forbidden="$2" '$2 ~ forbidden')" "" "$3"
}
below common '^(daemon|client|launch|worker|prep)/' "common needs nothing above it"
below common/net '^common/(plan|dataset|image)/' "networks know neither plans nor data"
below common/image '^common/(plan|dataset|net|job_[a-z]*)' "pictures know nothing of jobs"
below launch '^(daemon|client|worker|prep)/' "launching knows neither who asks for it nor what is launched"
below client '^daemon/' "the client needs nothing of the daemon"
below client/views '^client/(cmd|measure)/' "views know no command"
is "$(arrows client | awk '$1 !~ "^client/cmd/" && $2 ~ "^client/cmd/"')" "" "commands are known by their table alone"
below prep '^(daemon|client|worker)/' "train-prep needs nothing of the worker"
below daemon/store '^daemon/(job|sweep|node|http|launch|ingest|export)/' "the store knows neither jobs nor launchers"
below daemon/launch '^daemon/(job|sweep|node|http|store|ingest|export)/' "launchers know neither jobs nor the store"
below daemon/job '^daemon/http/' "jobs know nothing of HTTP"
below daemon/sweep '^daemon/(http|launch|ingest|export)/' "sweeps know jobs and the store alone"
below daemon/node '^daemon/(sweep|http|launch|ingest|export)/' "nodes know jobs and the store alone"
below daemon/ingest '^daemon/(job|sweep|node|http|launch|export)/' "what reads events knows the store alone"
below daemon/export '^daemon/(job|sweep|node|http|launch|ingest)/' "what writes exports knows the store alone"
below worker '^(daemon|client|prep|launch)/' "the worker needs nothing of those who start it"
for part in comm data team kernels layers model optim; do
    below "worker/$part" '^worker/((watch|check|save)/|[a-z_]+$)' "worker/$part knows nothing of a run"
done
below worker/check '^worker/((watch|data|save|layers|model|optim)/|[a-z_]+$)' "a machine is checked without a run"
is "$(arrows daemon | awk '$1 !~ "/handlers/" && $2 ~ "/handlers/"')" "" "the server knows its handlers by the table of routes alone"
done_testing
