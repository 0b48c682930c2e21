// A client made from schema/openapi.json by openapi-typescript: it must compile, strictly, and talk to a real daemon.
import createClient from "openapi-fetch";
import type { components, paths } from "./traind.js";

const client = createClient<paths>({ baseUrl: process.argv[2]! });
const tell = (line: string) => console.log(line);

// Only what is required has to be stated.
const smallest: components["schemas"]["JobDocument"] = { data: { train: "synthetic" } };
const plan = await client.POST("/v1/plan", { body: { ...smallest, cluster: { workers_per_node: 1 } } });
tell(`plan ${plan.response.status} ${plan.data?.global_batch}`);

const submitted = await client.POST("/v1/jobs", { body: { ...smallest, name: "by a client", steps: 2, cluster: { workers_per_node: 1, threads_per_worker: 1 } } });
tell(`submitJob ${submitted.response.status} ${submitted.data?.state}`);
const id = submitted.data!.id;

const job = await client.GET("/v1/jobs/{id}", { params: { path: { id } } });
tell(`getJob ${job.response.status} ${job.data?.name} ${job.data?.spec.epochs}`);
const list = await client.GET("/v1/jobs", { params: { query: { q: "client", sort: "name" } } });
tell(`listJobs ${list.response.status} ${list.data?.total} ${list.data?.jobs[0]?.id === id}`);
const cancelled = await client.POST("/v1/jobs/{id}/cancel", { params: { path: { id } } });
tell(`cancelJob ${cancelled.response.ok}`);

const wrong = await client.POST("/v1/plan", { body: { data: { train: "/nope" } } });
const problem = wrong.error as components["schemas"]["Problem"] | undefined;
tell(`problem ${wrong.response.status} ${problem?.errors?.[0]?.pointer}`);
