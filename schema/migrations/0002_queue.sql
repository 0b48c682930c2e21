-- The queue's order and estimates, restarts and their cause. All times are Unix seconds.

alter table job add column queued_at real;                      -- its place: the last time it joined the queue's end
alter table job add column estimated_start real;                -- of a queued job; null: not known
alter table job add column not_before real;                     -- of a queued job: the back-off of a restart
alter table job add column restarts integer not null default 0; -- automatic ones, since it was submitted or resumed
alter table job add column resumes integer not null default 0;  -- 1: its next attempt goes on from the newest checkpoint
alter table job add column failure text check (failure is null or json_valid(failure)); -- of the first attempt that failed
alter table job add column global_batch integer;                -- these five: of the plan and the document
alter table job add column predicted_seconds real;
alter table job add column predicted_low_seconds real;
alter table job add column predicted_high_seconds real;
alter table job add column time_limit_seconds real;

update job set queued_at = created_at,
    global_batch = json_extract(plan, '$.global_batch'),
    predicted_seconds = json_extract(plan, '$.predicted.ttt_seconds.value'),
    predicted_low_seconds = json_extract(plan, '$.predicted.ttt_seconds.low'),
    predicted_high_seconds = json_extract(plan, '$.predicted.ttt_seconds.high');

create index job_by_queue on job (queued_at) where state = 'queued';
