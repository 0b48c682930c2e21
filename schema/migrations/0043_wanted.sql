-- What the document of a job with restart.grow said before the job was planned for fewer nodes, as JSON: cluster.nodes, cluster.hosts and
-- the keys of the batch. Null: it has its nodes.

alter table job add column wanted text;
