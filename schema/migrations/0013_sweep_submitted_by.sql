-- Whose a sweep and its jobs are: "user:NAME" of the unix socket, or "token:NAME", as in job.submitted_by from now on. A name
-- without its kind, of an earlier version, is nobody who can ask, so that only an operator may change such a job.

alter table sweep add column submitted_by text; -- null: nobody was named
