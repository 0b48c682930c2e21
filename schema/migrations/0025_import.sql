-- Jobs that came from another daemon, as an archive.

alter table job add column imported_from text check (imported_from is null or json_valid(imported_from)); -- which job of which database
alter table job add column imported_attempts integer; -- those that came with it; a later one ran here
alter table job add column import_digest text;        -- of all that the archive held
create unique index job_imported on job (import_digest) where import_digest is not null;
