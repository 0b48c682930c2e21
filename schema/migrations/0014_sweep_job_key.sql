-- The keys of the jobs that sweeps submit move out of the name space of Idempotency-Keys, which clients choose: behind a control
-- character, which no header can hold. The digest of a client's request is never the word "sweep".

update job set idempotency_key = char(1) || idempotency_key
where request_digest = 'sweep' and idempotency_key glob 'sweep-[0-9]*';
