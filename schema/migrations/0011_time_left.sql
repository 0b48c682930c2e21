-- What a job's time left is made of besides its steps. Of earlier jobs nothing is known: 0 and null.

alter table job add column eval_images integer not null default 0; -- of one evaluation
alter table job add column evaluations integer not null default 0; -- of the plan
alter table job add column attempt_started_at real;
