-- What finished jobs measured, for predictions, and how good a job's own prediction was.

create table speed (
    id integer primary key autoincrement,
    key text not null,              -- as speed_key() of common/speed.h makes it
    cpu text not null,              -- the processor's name
    t real not null,                -- Unix seconds
    workers integer not null,       -- of the node
    batch integer not null,         -- of a worker
    image_seconds real not null,
    update_seconds real not null,
    exchange_seconds real not null
) strict;

create index speed_by_key on speed (key, cpu, id);
drop index job_by_kind;             -- was for this purpose

alter table job add column forecast text check (forecast is null or json_valid(forecast)); -- of an ended job: predicted and actual
