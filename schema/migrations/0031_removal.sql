-- Jobs that were removed, as long as something of them is left: events and series, which may be millions of rows, are deleted behind
-- the job's row a few at a time, and so is the run directory.

-- These rows outlive the job's: their tables lose the foreign key. Nothing else of them changes, as SQLite's documentation of ALTER TABLE has it.
pragma writable_schema = on;
update sqlite_schema set sql = replace(sql, ' references job (id) on delete cascade', '')
where name in ('job_event', 'step_metric', 'metric_bucket');
pragma writable_schema = reset;

create table removal (
    job_id integer primary key
) strict;
