-- Jobs, their event log and their series. All times are Unix seconds.

create table job (
    id integer primary key autoincrement,
    name text,
    state text not null,            -- derived: the newest event of type 'state' says the same
    reason text,                    -- in words for a person
    spec text not null check (json_valid(spec)),  -- the job document, every default written out
    plan text not null check (json_valid(plan)),
    attempt integer not null default 0,           -- 0: never launched
    priority integer not null default 0,
    idempotency_key text unique,
    request_digest text,            -- of the body that came with the key
    created_at real not null,
    started_at real,
    finished_at real,
    slots integer not null check (slots >= 0),
    run_dir text not null,
    launcher_pid integer,
    launcher_start integer,         -- field 22 of /proc/PID/stat
    exit_code integer,
    exit_signal integer,
    train_steps integer not null,
    step integer not null default 0,              -- progress, from the newest step event
    epoch real,
    loss real,
    lr real,
    images_per_sec real,            -- of the newest step; once an attempt has ended, of all steps of the run, each counted once
    ttt_seconds real,               -- results, from eval and run_stop
    top1 real,
    top5 real
) strict;

create index job_by_state on job (state, id);
create index job_by_kind on job (json_extract(spec, '$.model.arch'), json_extract(spec, '$.model.image_size'))
    where state = 'succeeded';

-- Append-only; id is the order in which the daemon learned of things, over all jobs.
create table job_event (
    id integer primary key autoincrement,
    job_id integer not null references job (id) on delete cascade,
    attempt integer not null,
    seq integer,                    -- the worker's own number; null: the daemon's event
    t real not null,
    type text not null,
    body text not null check (json_valid(body)),  -- the type's own fields
    unique (job_id, attempt, seq)   -- a line of events.jsonl counts once, however often it is read
) strict;

create index job_event_by_job on job_event (job_id, id);

-- One column per metric of common/event.c.
create table step_metric (
    job_id integer not null references job (id) on delete cascade,
    step integer not null,
    epoch real,
    t real not null,
    loss real,
    lr real,
    images_per_sec real,
    step_ms real,
    data_ms real,
    forward_ms real,
    backward_ms real,
    comm_ms real,
    optim_ms real,
    grad_norm real,
    slowest_rank real,
    primary key (job_id, step)
) strict, without rowid;

create table eval (
    job_id integer not null references job (id) on delete cascade,
    step integer not null,
    epoch real,
    top1 real,
    top5 real,
    loss real,
    images integer,
    t real not null,
    primary key (job_id, step)
) strict, without rowid;

-- How far events.jsonl of an attempt was read: moves in the transaction that stores what was read.
create table ingest_position (
    job_id integer not null references job (id) on delete cascade,
    attempt integer not null,
    bytes integer not null,
    primary key (job_id, attempt)
) strict, without rowid;
