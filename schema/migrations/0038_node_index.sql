-- What a report needs to know of other nodes, found without a look at each: how fast those of its kind are, and who sees which data.
-- Pages of nodes take their checks and jobs from indexes likewise.
create index node_by_kind on node (kind, cores, checked_at, verdict, gflops, memory_gb_per_sec);
create index node_check_by_time on node_check (node, t);
create index node_check_by_job on node_check (job_id, node);

create table node_data (            -- that a node's report has as seen
    path text not null,
    seen_at real not null,
    node text not null references node (name) on delete cascade,
    primary key (path, seen_at, node)
) strict, without rowid;
create index node_data_by_node on node_data (node);

create trigger node_data_of_new after insert on node begin
    insert into node_data select distinct json_extract(new.report, item.fullkey || '.path'), new.checked_at, new.name
        from json_each(new.report, '$.data') item where json_type(new.report, item.fullkey || '.path') = 'text'
        and json_extract(new.report, item.fullkey || '.ok') is true limit 64;
end;
create trigger node_data_of_report after update of report on node when new.report <> old.report begin
    delete from node_data where node = new.name;
    insert into node_data select distinct json_extract(new.report, item.fullkey || '.path'), new.checked_at, new.name
        from json_each(new.report, '$.data') item where json_type(new.report, item.fullkey || '.path') = 'text'
        and json_extract(new.report, item.fullkey || '.ok') is true limit 64;
end;

insert into node_data select distinct json_extract(report, item.fullkey || '.path'), checked_at, name from node, json_each(report, '$.data') item
    where json_type(report, item.fullkey || '.path') = 'text' and json_extract(report, item.fullkey || '.ok') is true;
