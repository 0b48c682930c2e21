-- The queue's order is read from its index alone, however many jobs wait.

drop index job_by_queue;
create index job_by_queue on job (state, queued_at, priority) where state = 'queued';
