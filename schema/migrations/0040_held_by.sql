-- Who holds a job (job.held_at); null where nobody was named.

alter table job add column held_by text;
