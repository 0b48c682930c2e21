-- Searches over job keys. A trial is a job to be; it gets its job_id when it is submitted.

create table sweep (
    id integer primary key autoincrement,
    name text,
    state text not null,            -- running, succeeded, cancelled
    document text not null check (json_valid(document)), -- with every default written out
    train_images integer not null,  -- counted once, for the plans
    eval_images integer not null,
    created_at real not null,
    finished_at real
) strict;

create table sweep_trial (
    sweep_id integer not null references sweep (id) on delete cascade,
    rung integer not null,          -- of successive halving; else 0
    number integer not null,        -- the point's, the same in each rung
    point text not null check (json_valid(point)),
    spec text not null check (json_valid(spec)),
    state text not null,            -- waiting, submitted, succeeded, failed, cancelled
    job_id integer,
    metric real,
    primary key (sweep_id, rung, number)
) strict;
