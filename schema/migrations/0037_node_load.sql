-- Threads of others that computed while a node was measured. What is stored of such a check says nothing of the node's speed.
alter table node add column load integer not null default 0;
alter table node_check add column load integer not null default 0;
update node set load = coalesce(json_extract(report, '$.load'), 0) where gflops is not null;
update node set verdict = 'unknown', reason = 'its speed was not judged, as others computed when it was checked'
    where load > 0 and verdict in ('fine', 'slow');
update node_check set load = (select load from node where name = node_check.node), verdict = 'unknown'
    where gflops is not null and verdict in ('fine', 'slow')
    and id in (select max(id) from node_check where gflops is not null group by node)
    and node in (select name from node where load > 0);
