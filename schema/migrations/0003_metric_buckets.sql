-- The series of the steps at coarser scales, so that a long one is drawn from a few thousand rows: daemon/store/metric.c.

create table metric_bucket (
    job_id integer not null references job (id) on delete cascade,
    level integer not null,         -- a bucket holds 8^level steps
    bucket integer not null,        -- step / 8^level
    rows integer not null,          -- steps there really are
    step integer not null,          -- of the last of them, as are epoch and t
    epoch real,
    t real not null,
    metrics blob not null,          -- count, sum, minimum and maximum of each metric of common/event.c: doubles of the machine
    primary key (job_id, level, bucket)
) strict, without rowid;

-- Jobs whose buckets are not made yet; the daemon makes them when it opens the database.
create table metric_unfilled (
    job_id integer primary key references job (id) on delete cascade
) strict;
insert into metric_unfilled
    select id from job where exists (select 1 from step_metric where job_id = job.id);
