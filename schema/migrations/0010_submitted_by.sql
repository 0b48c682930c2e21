-- Who submitted a job: the name of a token, a user of the unix socket, or a sweep.

alter table job add column submitted_by text; -- null: over an open loopback nobody is named
