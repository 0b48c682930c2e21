-- How many jobs failed since yesterday is asked for by every page that shows the queue.

create index job_by_finish on job (finished_at, state) where finished_at is not null;
