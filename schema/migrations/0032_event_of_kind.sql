-- Events that are no steps, which every page of a job asks for each time it looks: one in thousands of a long run's.

create index job_event_of_kind on job_event (job_id, id) where type <> 'step';
