-- A star has become the tag "starred". Nothing is written any more to the columns starred and import_digest: to drop a column writes every
-- job's document and plan anew.

insert or ignore into job_tag (job_id, tag) select id, 'starred' from job where starred = 1;
update job set spec = json_set(spec, '$.tags', json((select json_group_array(its.tag) from job_tag as its where its.job_id = job.id)))
where starred = 1;
drop index job_starred;
drop index job_imported;
