-- An Idempotency-Key is its user's: before the key stands who submitted, between control characters that neither a key nor a name can
-- contain. The keys of trials (character 1) and of what nobody is named for stay as they are.

update job set idempotency_key = char(2) || submitted_by || char(2) || idempotency_key
where submitted_by is not null and unicode(idempotency_key) <> 1;
update sweep set idempotency_key = char(2) || submitted_by || char(2) || idempotency_key
where submitted_by is not null and idempotency_key is not null;
