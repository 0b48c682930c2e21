-- Jobs that a queued job waits for (the key after of its document). A row is deleted when that job has succeeded; if it ends otherwise,
-- the waiting job is cancelled.

create table job_after (
    job_id integer not null references job (id) on delete cascade,
    after_id integer not null,
    primary key (job_id, after_id)
) strict, without rowid;
create index job_after_by_id on job_after (after_id, job_id);
