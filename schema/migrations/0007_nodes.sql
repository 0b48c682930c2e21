-- Machines that train, and what they were found to be. All times are Unix seconds.

create table node (
    name text primary key,
    kind text not null,             -- the processor's name
    cores integer not null,         -- hardware threads
    partition text,                 -- of Slurm, that its last job came through
    gflops real,                    -- these three: of the newest check that measured them
    memory_gb_per_sec real,
    clock_ghz real,
    verdict text not null,          -- fine, slow, drain
    reason text,                    -- in words for a person
    checked_at real not null,
    report text not null check (json_valid(report)) -- the newest, as it came
) strict, without rowid;

create table node_check (
    id integer primary key autoincrement,
    node text not null references node (name) on delete cascade,
    t real not null,
    phase text not null,            -- prolog, epilog, self
    job_id integer,                 -- of the job the check was made for; it need not be there any more
    gflops real,
    memory_gb_per_sec real,
    clock_ghz real,
    verdict text not null,
    reason text
) strict;

create index node_check_by_node on node_check (node, id);
