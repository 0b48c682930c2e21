-- The energy of jobs, and the time for which they had their nodes.

create table attempt_energy (
    job_id integer not null references job (id) on delete cascade,
    attempt integer not null,
    joules real not null,           -- of its machines, whole, since its start
    hosts integer not null,
    hosts_measured integer not null,
    primary key (job_id, attempt)
) strict, without rowid;

alter table job add column joules real;                             -- of all attempts; null: never measured
alter table job add column joules_whole integer not null default 1; -- all machines of all attempts were measured
alter table job add column nodes integer not null default 1;
alter table job add column node_share real not null default 1;      -- of the cores of each, that it takes
alter table job add column active_since real;                       -- null: it does not run
alter table job add column node_seconds real;                       -- of ended attempts, without the share; null: not known
