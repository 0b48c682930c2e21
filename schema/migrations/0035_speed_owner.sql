-- A speed that a submitter sends is for that user's plans. Those from before this version were for everybody's, and stay so.

alter table speed add column owner text; -- as job.submitted_by, '' where nobody was named; null: for everybody
drop index speed_by_key;
create index speed_by_key on speed (key, cpu, owner, id);
create index speed_by_owner on speed (owner, id);
