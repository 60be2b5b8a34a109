// Somebody who works with Unleash: feature flags, their strategies, segments, tags, people and tokens, through its HTTP API.
//
// Every round leaves everything but the log of events as it was, so that each statement touches the same number of rows in each.

const N_KEPT = 20;
const N_TAGS = 6;
const N_APPS = 30;

const flexible = (rollout, segments = []) => ({
  name: "flexibleRollout",
  parameters: { rollout: String(rollout), stickiness: "default", groupId: "group" },
  constraints: [{ contextName: "userId", operator: "IN", values: ["1", "2"] }],
  variants: ["a", "b"].map((name) => ({ name, weight: 500, weightType: "variable", stickiness: "default" })),
  segments,
});

export class Client {
  // Steps whose requests run beside each other: what one of them finds depends on how far the others are.
  static concurrent = ["tags"];

  constructor(watch, unleash) {
    this.watch = watch;
    this.url = `http://127.0.0.1:${unleash.server.address().port}/api/admin`;
    this.stores = unleash.stores;
    this.knex = unleash.stores.userStore.db;
    this.name = `writer-${process.pid}-${Math.floor(Date.now() / 1000)}`;
    this.flag = `${this.name}-flag`;
    this.copy = `${this.name}-clone`;
    this.of = `/projects/default/features/${this.flag}`;
    this.n = 0;
  }

  async prepare() {
    for (let i = 0; i < N_KEPT; i += 1) {
      const flag = { name: `${this.name}-kept-${i}`, type: "release", description: "kept" };
      await this.call("POST", "/projects/default/features", flag);
    }
  }

  // After an error: what a round makes is taken away as far as it is there.
  async repair() {
    const own = (table, column) => this.knex(table).where(column, "like", `${this.name}%`);
    await own("client_metrics_env_variants", "app_name").delete();
    await own("client_metrics_env", "app_name").delete();
    await own("client_instances", "app_name").delete();
    await own("features", "name").whereNot("name", "like", "%-kept-%").delete();
    await own("segments", "name").delete();
    await own("tags", "value").delete();
    await own("context_fields", "name").delete();
    await own("strategies", "name").delete();
    await own("users", "username").delete();
    await own("api_tokens", "token_name").delete();
  }

  steps() {
    this.n += 1;
    return ["createFlag", "strategies", "toggle", "segments", "tags", "contextFields", "customStrategy", "people",
      "tokens", "metrics", "cloneAndDelete", "transactions", "readBack"].map((name) => [name, () => this[name]()]);
  }

  async call(method, path, body, status) {
    const step = this.watch.step.getStore() ?? "";
        const answer = await fetch(this.url + path, {
      method,
      headers: { "content-type": "application/json", "x-step": step },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok || (status && answer.status !== status)) {
      throw new Error(`${method} ${path} answers ${answer.status}: ${text.slice(0, 700)}`);
    }
    const value = text === "" ? null : JSON.parse(text);
    const request = `${method} ${path.replaceAll(this.name, "*").replace(/[0-9a-f-]{36,}|\b\d+\b/g, "*")}`;
    if (step) this.watch.answer(step, request, value);
    return value;
  }

  async count(table, column, pattern = `${this.name}%`) {
    return Number((await this.knex(table).where(column, "like", pattern).count("* as n"))[0].n);
  }

  // ---- the steps ----

  async createFlag() {
    await this.call("POST", "/projects/default/features", { name: this.flag, type: "experiment", description: "0" }, 201);
    await this.call("PUT", this.of, { name: this.flag, type: "release", description: `round ${this.n}` });
    await this.call("PATCH", this.of, [{ op: "replace", path: "/impressionData", value: true }]);
    const { description, impressionData, type } = await this.call("GET", this.of);
    this.watch.expect("flag read back", [description, impressionData, type], [`round ${this.n}`, true, "release"]);
  }

  async strategies() {
    const path = `${this.of}/environments/development/strategies`;
    const made = [];
    for (const rollout of [10, 20, 30]) made.push(await this.call("POST", path, flexible(rollout)));
    await this.call("PUT", `${path}/${made[0].id}`, flexible(100));
    await this.call("PATCH", `${path}/${made[1].id}`, [{ op: "replace", path: "/title", value: `round ${this.n}` }]);
    await this.call("POST", `${path}/set-sort-order`, made.map(({ id }, i) => ({ id, sortOrder: 3 - i })));
    await this.call("DELETE", `${path}/${made[2].id}`);
    const found = await this.call("GET", path);
    const told = found.map(({ id, title, parameters }) => [id, title, parameters.rollout]);
    this.watch.expect("strategies read back", told, [[made[1].id, `round ${this.n}`, "20"], [made[0].id, null, "100"]]);
  }

  async toggle() {
    for (const [state, enabled] of [["on", true], ["off", false], ["on", true]]) {
      await this.call("POST", `${this.of}/environments/development/${state}`);
      const found = await this.call("GET", `${this.of}/environments/development`);
      this.watch.expect(`enabled after ${state}`, found.enabled, enabled);
    }
  }

  async segments() {
    const name = `${this.name}-segment`;
    const constraints = [{ contextName: "appName", operator: "IN", values: ["one"] }];
    const { id } = await this.call("POST", "/segments", { name, constraints }, 201);
    const path = `${this.of}/environments/production/strategies`;
    const strategy = await this.call("POST", path, flexible(50, [id]));
    await this.call("PUT", `/segments/${id}`, { name, description: `round ${this.n}`, constraints: [] });
    const used = await this.call("GET", `/segments/${id}/strategies`);
    this.watch.expect("strategies with the segment", used.strategies.map((one) => one.id), [strategy.id]);
    await this.call("DELETE", `${path}/${strategy.id}`);
    await this.call("DELETE", `/segments/${id}`, undefined, 204);
    this.watch.expect("segments left", await this.count("segments", "name"), 0);
  }

  // Requests beside each other, each with sessions of its own.
  async tags() {
    const values = Array.from({ length: N_TAGS }, (_, i) => `${this.name}-${i}`);
    await Promise.all(values.map((value) => this.call("POST", "/tags", { type: "simple", value }, 201)));
    await Promise.all(values.map((value) => this.call("POST", `/features/${this.flag}/tags`, { type: "simple", value }, 201)));
    const { tags } = await this.call("GET", `/features/${this.flag}/tags`);
    this.watch.expect("tags read back", tags.map(({ value }) => value).sort(), values);
    await Promise.all(values.map((value) => this.call("DELETE", `/features/${this.flag}/tags/simple/${value}`)));
    await Promise.all(values.map((value) => this.call("DELETE", `/tags/simple/${value}`)));
    this.watch.expect("tags left", await this.count("tags", "value"), 0);
  }

  async contextFields() {
    const path = `/context/${this.name}`;
    await this.call("POST", "/context", { name: this.name, legalValues: [{ value: "a" }, { value: "b" }] }, 201);
    await this.call("PUT", path, { name: this.name, description: `round ${this.n}`, stickiness: true });
    const { description, stickiness } = await this.call("GET", path);
    this.watch.expect("context field read back", [description, stickiness], [`round ${this.n}`, true]);
    await this.call("DELETE", path);
    this.watch.expect("context fields left", await this.count("context_fields", "name"), 0);
  }

  async customStrategy() {
    const path = `/strategies/${this.name}`;
    await this.call("POST", "/strategies", { name: this.name, parameters: [{ name: "one", type: "string" }] }, 201);
    await this.call("PUT", path, { name: this.name, description: `round ${this.n}`, parameters: [] });
    await this.call("POST", `${path}/deprecate`);
    await this.call("POST", `${path}/reactivate`);
    const { deprecated, description } = await this.call("GET", path);
    this.watch.expect("strategy read back", [deprecated, description], [false, `round ${this.n}`]);
    await this.call("DELETE", path);
  }

  async people() {
    const guest = { username: `${this.name}-guest`, email: `${this.name}@example.com`, rootRole: 2, sendEmail: false };
    const { id } = await this.call("POST", "/user-admin", guest, 201);
    await this.call("PUT", `/user-admin/${id}`, { name: "Guest", email: guest.email, rootRole: 3 });
    const { name, rootRole } = await this.call("GET", `/user-admin/${id}`);
    this.watch.expect("user read back", [name, rootRole], ["Guest", 3]);
    await this.call("DELETE", `/user-admin/${id}`);
    await this.knex.transaction(async (trx) => {
      this.watch.expect("users deleted for good", await trx("users").where({ id }).delete(), 1);
    });
  }

  async tokens() {
    const token = { tokenName: `${this.name}-token`, type: "client", environment: "development", projects: ["default"] };
    const { secret } = await this.call("POST", "/api-tokens", token, 201);
    await this.call("PUT", `/api-tokens/${encodeURIComponent(secret)}`, { expiresAt: "2099-01-01T00:00:00.000Z" });
    const { tokens } = await this.call("GET", `/api-tokens/${token.tokenName}`);
    this.watch.expect("token read back", tokens.map((one) => one.expiresAt), ["2099-01-01T00:00:00.000Z"]);
    await this.call("DELETE", `/api-tokens/${encodeURIComponent(secret)}`);
    this.watch.expect("tokens left", await this.count("api_tokens", "token_name"), 0);
  }

  // What applications report: INSERT ... ON CONFLICT DO UPDATE of many rows at once, through the stores of Unleash.
  async metrics() {
    const apps = Array.from({ length: N_APPS }, (_, i) => `${this.name}-app-${i}`);
    const at = new Date();
    const reported = apps.map((appName) => ({
      featureName: this.flag, appName, environment: "development", timestamp: at, yes: 3, no: 1, variants: { a: 2, b: 1 },
    }));
    await this.stores.clientMetricsStoreV2.batchInsertMetrics(reported);
    await this.stores.clientMetricsStoreV2.batchInsertMetrics(reported);
    const instances = apps.map((appName) => ({ appName, instanceId: "one", environment: "development", sdkVersion: "test:1" }));
    await this.stores.clientInstanceStore.bulkUpsert(instances);
    await this.stores.clientInstanceStore.bulkUpsert(instances);
    const found = await this.stores.clientMetricsStoreV2.getMetricsForFeatureToggle(this.flag);
    const counts = found.map(({ yes, no, variants: { a, b } }) => [yes, no, a, b].map(Number));
    this.watch.expect("metrics read back", counts, apps.map(() => [6, 2, 4, 2]));
    const own = (table) => this.knex(table).where("app_name", "like", `${this.name}%`).delete();
    const deleted = [await own("client_metrics_env_variants"), await own("client_metrics_env"), await own("client_instances")];
    this.watch.expect("metrics deleted", deleted, [2 * N_APPS, N_APPS, N_APPS]);
  }

  async cloneAndDelete() {
    await this.call("POST", `${this.of}/clone`, { name: this.copy, replaceGroupId: true }, 201);
    const strategies = await this.call("GET", `/projects/default/features/${this.copy}/environments/development/strategies`);
    this.watch.expect("strategies of the clone", strategies.length, 2);
    await this.call("POST", "/projects/default/archive", { features: [this.flag, this.copy] }, 202);
    await this.call("POST", "/projects/default/delete", { features: [this.flag, this.copy] });
    this.watch.expect("flags left", await this.count("features", "name"), N_KEPT);
    this.watch.expect("strategies left", await this.count("feature_strategies", "feature_name"), 0);
  }

  // Several statements in a transaction, and one that is rolled back to a savepoint and then as a whole.
  async transactions() {
    const kept = (trx) => trx("features").where("name", "like", `${this.name}-kept-%`);
    await this.knex.transaction(async (trx) => {
      this.watch.expect("locked", (await kept(trx).select("name").forUpdate()).length, N_KEPT);
      this.watch.expect("updated", await kept(trx).update({ description: `round ${this.n}` }), N_KEPT);
      this.watch.expect("updated again", await kept(trx).update({ description: "kept" }), N_KEPT);
    });
    const lost = new Error("rolled back");
    const undone = async (trx, work) => trx.transaction(async (inner) => { await work(inner); throw lost; })
      .catch((error) => { if (error !== lost) throw error; });
    await undone(this.knex, async (trx) => {
      this.watch.expect("updated for nothing", await kept(trx).update({ description: "lost" }), N_KEPT);
      await undone(trx, async (inner) => this.watch.expect("deleted for nothing", await kept(inner).delete(), N_KEPT));
      this.watch.expect("rows after the savepoint", (await kept(trx).select("name")).length, N_KEPT);
    });
    const found = await kept(this.knex).where({ description: "kept" }).select("name");
    this.watch.expect("rows after the rollback", found.length, N_KEPT);
  }

  async readBack() {
    const { total, features } = await this.call("GET", `/search/features?query=${this.name}&project=IS:default&limit=100`);
    this.watch.expect("flags found", [total, features.length], [N_KEPT, N_KEPT]);
    const { events } = await this.call("GET", `/search/events?feature=IS:${this.flag}&limit=10`);
    this.watch.expect("newest events", [events.length, events[0].type], [10, "feature-deleted"]);
    this.watch.expect("environments", await this.count("feature_environments", "feature_name"), 2 * N_KEPT);
  }
}
