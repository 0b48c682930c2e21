-- A sweep is submitted once, as a job is.

alter table sweep add column idempotency_key text;
alter table sweep add column request_digest text; -- of the body that came with the key
create unique index sweep_key on sweep (idempotency_key) where idempotency_key is not null;

-- Why a trial was stopped before its end; its state is then "stopped".
alter table sweep_trial add column reason text;
