-- Who asked for what. Append-only: what it is about may be gone.

create table audit (
    id integer primary key autoincrement,
    t real not null,
    by text,              -- as job.submitted_by; null: somebody who was not named
    action text not null, -- as job.cancel
    target integer,       -- id of the job, sweep or token
    detail text           -- a name, the new priority
) strict;
