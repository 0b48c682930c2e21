-- What the failure rules call the failure of a job: traind.conf(5), FAILURE RULES.

alter table job add column failure_label text generated always as (json_extract(failure, '$.label')) virtual;
create index job_by_failure_label on job (failure_label) where failure_label is not null;
