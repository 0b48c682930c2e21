-- Who starts a job's workers, and what Slurm says of it: {"job_id", "name", "state", "reason", "nodes"}, where an attempt
-- has been handed to it.

alter table job add column launcher text not null default 'local';
alter table job add column slurm text check (slurm is null or json_valid(slurm));

-- The queue of this machine, and the few jobs that go to Slurm, each by an index alone.
drop index job_by_queue;
create index job_by_queue on job (state, queued_at, priority, launcher) where state = 'queued';
create index job_of_slurm on job (state, queued_at, priority) where launcher = 'slurm';
