# For tests of train-prep: runs it in a private folder and checks its output.
# shellcheck shell=bash disable=SC2034
# shellcheck source=tests/tap.sh
. "${top_srcdir:?run it by make check}/tests/tap.sh"
prep=$top_builddir/tests/bin/train-prep
top_srcdir=$(cd "$top_srcdir" && pwd)
python=/usr/bin/python3
private_folder
cd "$work" || exit 1

check() { # description, then a command that must succeed
    local result=0
    "${@:2}" >check.log 2>&1 || result=$?
    report $result "$1" "$(cat check.log out err 2>/dev/null)"
}

run() { # runs train-prep; leaves its output in out and err, its exit status in status
    "$prep" "$@" >out 2>err
    status=$?
}

refused() { # expected exit status, words of the message, then the arguments
    local expected=$1 words=$2
    shift 2
    run "$@"
    echo "exit status $status, expected $expected, with the words: $words"
    [ "$status" = "$expected" ] && grep -qF -- "$words" err
}

need_python() { # for what makes pictures and reads shards by itself
    $python -c 'import PIL, google.protobuf' 2>/dev/null || skip_all "needs python3-pil and python3-protobuf"
}
