-- What the run directory of each job takes on the disk, null until it has been measured, and of all together, which every list of jobs shows.

alter table job add column disk_bytes integer;

create table disk (bytes integer not null) strict;
insert into disk values (0);
create trigger disk_of_job after update of disk_bytes on job begin
    update disk set bytes = bytes + coalesce(new.disk_bytes, 0) - coalesce(old.disk_bytes, 0);
end;
create trigger disk_of_removed after delete on job when old.disk_bytes > 0 begin
    update disk set bytes = bytes - old.disk_bytes;
end;
