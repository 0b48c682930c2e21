-- Notices on their way to somebody: written in the transaction that stores what they tell of, so that none is lost.

create table notice (
    id integer primary key autoincrement,
    uid text not null unique,       -- the same for what is told again, as after a power cut
    t real not null,                -- Unix seconds: when it happened
    kind text not null,             -- as common/notify/kind.h names them
    target text not null,
    format text not null,           -- json, text
    by_rule integer not null,       -- 1: of the administrator's rules, which others do not see
    owner text,                     -- whose job or sweep it tells of, or who asked for it; null: nobody is known
    job_id integer,                 -- it need not be there any more
    sweep_id integer,
    node text,
    body text not null check (json_valid(body)), -- what is known without the configuration
    state text not null,            -- waiting, delivered, failed
    attempts integer not null default 0,
    next_at real not null,          -- of one that waits
    done_at real,
    error text                      -- of the last attempt
) strict;

create index notice_waiting on notice (target, id) where state = 'waiting';
create index notice_of_job on notice (job_id, id) where job_id is not null;
create index notice_done on notice (done_at) where done_at is not null;
