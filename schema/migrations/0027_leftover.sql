-- Ended jobs whose run directory has an unfinished checkpoint that could not be removed yet: a daemon that is started again goes on trying.

create table leftover (
    job_id integer primary key references job (id) on delete cascade
) strict;
