-- Which database this is, and whose a run directory is. Each has an owner.json that names the database, the job and when
-- it was submitted. Jobs up to "unmarked" are from before: their run directories may be without one.

create table identity (
    uuid text not null,
    unmarked integer not null
) strict;
insert into identity select lower(hex(randomblob(16))), coalesce(max(id), 0) from job;

-- Relative to the state folder, which may be moved.
update job set run_dir = 'jobs/' || id;
