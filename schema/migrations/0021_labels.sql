-- What people write on a job, and its best evaluation. Labels begin as the document says, and may change at any time.

alter table job add column note text;                        -- null: none
alter table job add column starred integer not null default 0;
alter table job add column best_top1 real;                   -- these four: of the evaluation with the highest, the first of them
alter table job add column best_top1_step integer;
alter table job add column best_top1_epoch real;
alter table job add column best_top1_at real;

update job set (best_top1, best_top1_step, best_top1_epoch, best_top1_at) =
    (select top1, step, epoch, t from eval where job_id = job.id and top1 is not null order by top1 desc, step limit 1);

create table job_tag (
    job_id integer not null references job (id) on delete cascade,
    tag text not null,
    primary key (job_id, tag)
) strict, without rowid;

-- What a list is narrowed down by is found without reading the rows of all jobs with their documents.
create index job_by_tag on job_tag (tag, job_id);
create index job_starred on job (id) where starred = 1;
create index job_by_submitter on job (submitted_by, id);
