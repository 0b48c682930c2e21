-- The attempt that somebody asked to cancel while it was under way. What comes of it is decided when the attempt
-- ends: one that was asked for is not queued again, also if the daemon was killed in between.
alter table job add column cancel_attempt integer;
