-- The jobs that repeat a job are found by this index, not in the documents of all.

create index job_reproduces on job (json_extract(spec, '$.reproduces')) where json_extract(spec, '$.reproduces') is not null;
