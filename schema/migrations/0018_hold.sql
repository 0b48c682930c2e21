-- A job that waits may be held: it keeps its row in the queue and is passed over until it is released.

alter table job add column held_at real; -- of a queued job; null: it is not held

-- The queue of this machine by its index alone, with those that are held.
drop index job_by_queue;
create index job_by_queue on job (state, queued_at, priority, launcher, held_at) where state = 'queued';
