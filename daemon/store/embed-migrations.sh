#!/bin/sh
# Prints schema/migrations/*.sql, given in order of their number, as the C table of daemon/store/migrate.h.
set -e
echo '#include "daemon/store/migrate.h"'
echo 'const struct store_migration store_migrations[] = {'
expected=1
for file in "$@"; do
    name=$(basename "$file")
    case $name in
    "$(printf '%04d' "$expected")"_*.sql) ;;
    *)
        echo "$0: $name should begin with $(printf '%04d' "$expected")_ : migrations are numbered without a gap" >&2
        exit 1
        ;;
    esac
    echo "    {\"$name\","
    sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/     "/' -e 's/$/\\n"/' "$file"
    echo '    },'
    expected=$((expected + 1))
done
echo '};'
echo 'const int store_migration_count = (int)(sizeof store_migrations / sizeof store_migrations[0]);'
