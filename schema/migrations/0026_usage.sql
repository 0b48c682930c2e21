-- Slots of this machine times seconds, by who had them: in bins of six hours, of attempts that have ended.

create table usage (
    user text not null,        -- as job.submitted_by, of the sweep for its jobs; '': somebody who was not named
    bin integer not null,      -- Unix time / 21600
    slot_seconds real not null,
    primary key (user, bin)
) strict, without rowid;
