-- Each start compares the jobs that were launched with the run directories: read from this index, not from the rows of
-- all jobs with their documents.
create index job_launched on job (id, attempt);
