BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE api_keys (
	namespace VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	scopes JSON NOT NULL, 
	projects JSON, 
	"plan" VARCHAR, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	revoked_at BIGINT, 
	last_used_at BIGINT, 
	PRIMARY KEY (namespace, id)
);
INSERT INTO "api_keys" VALUES('crews','5pavce8d9N','0892cabe18926beeea38708885e576977bb62004db60640d5afa782384ebde8c','a team''s','["run"]','["research"]',NULL,1795298181189623,NULL,NULL,NULL);
CREATE TABLE artifacts (
	namespace VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	version INTEGER NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR NOT NULL, 
	content_type VARCHAR NOT NULL, 
	partial BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	blob VARCHAR NOT NULL, 
	PRIMARY KEY (namespace, run, name)
);
INSERT INTO "artifacts" VALUES('crews','run-01m801qwy8btnxdqsc1nhzecav','report.md',1,8,'442eaeed159db3ae42206be24d64d1745494fc82c74ac7cfe88a9208df5d7517','text/markdown',0,1795298162051921,'crews/runs/run-01m801qwy8btnxdqsc1nhzecav/442eaeed159db3ae42206be24d64d1745494fc82c74ac7cfe88a9208df5d7517');
INSERT INTO "artifacts" VALUES('crews','run-01m801qx098q38zc31ds1j3aws','draft.md',1,8,'c47fffce7ab6215da4633829b59605e9bdf14fb3d49b6ac0fe8105e639b9c4f9','text/markdown',0,1795298163844855,'crews/runs/run-01m801qx098q38zc31ds1j3aws/c47fffce7ab6215da4633829b59605e9bdf14fb3d49b6ac0fe8105e639b9c4f9');
CREATE TABLE claims (
	namespace VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	run_uid VARCHAR NOT NULL, 
	pod_uid VARCHAR NOT NULL, 
	nonce VARCHAR NOT NULL, 
	granted_at BIGINT NOT NULL, 
	answer JSON NOT NULL, 
	written BOOLEAN NOT NULL, 
	result JSON, 
	result_written BOOLEAN NOT NULL, 
	PRIMARY KEY (namespace, run)
);
INSERT INTO "claims" VALUES('crews','run-01m801qwy8btnxdqsc1nhzecav','d0e15971-1b19-4188-ba28-603c511cdf52','pod of run-01m801qwy8btnxdqsc1nhzecav','a nonce of the runner',1795298161973589,'{"entrypoint": "main:kickoff", "framework": "python", "timeout_seconds": 3600, "deployment_id": "dep_01m801qt83fb10t5mg84s8f2qd"}',1,'{"outcome": "succeeded", "durationMs": 1500, "artifacts": {"count": 1, "bytes": 8}, "output": "{\"answer\":42}"}',1);
INSERT INTO "claims" VALUES('crews','run-01m801qwz49brhqzewhd80191w','688b506f-e960-46ef-9b60-8c2c66b14391','pod of run-01m801qwz49brhqzewhd80191w','a nonce of the runner',1795298163326217,'{"entrypoint": "main:kickoff", "framework": "python", "timeout_seconds": 3600, "deployment_id": "dep_01m801qt83fb10t5mg84s8f2qd"}',1,'{"outcome": "failed", "durationMs": 1500, "artifacts": {"count": 0, "bytes": 0}, "reason": "CrewError", "message": "ValueError: no tides today"}',1);
INSERT INTO "claims" VALUES('crews','run-01m801qx098q38zc31ds1j3aws','e9dd9306-048e-4976-83b3-da7c7b3b447e','pod of run-01m801qx098q38zc31ds1j3aws','a nonce of the runner',1795298163792916,'{"entrypoint": "main:kickoff", "framework": "python", "timeout_seconds": 3600, "deployment_id": "dep_01m801qt83fb10t5mg84s8f2qd"}',1,NULL,0);
CREATE TABLE deployments (
	namespace VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	project VARCHAR NOT NULL, 
	project_uid VARCHAR, 
	ord BIGINT NOT NULL, 
	version BIGINT NOT NULL, 
	phase VARCHAR NOT NULL, 
	built BOOLEAN NOT NULL, 
	preview BOOLEAN NOT NULL, 
	activation INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	activated_at BIGINT, 
	error JSON, 
	spec JSON NOT NULL, 
	"plan" JSON NOT NULL, 
	conditions JSON NOT NULL, building_at BIGINT, accounted BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (namespace, name)
);
INSERT INTO "deployments" VALUES('crews','dep-01m801qqk6af5f7tcbejm3rwb2','9ed5dec8-4503-4f76-b133-911c4806bb75','research','a9182af5-ccd9-4cd1-901d-02729fdcb51d',2,233,'superseded',1,0,0,1795298156000000,1795255200000000,NULL,'{"message": "First", "project": "research", "source": {"archive": {"sha256": "b521c608573be035bba0d2107217eea603e2dbad9c7409b7032c7a281cc14e2c", "upload": "upl_01m801qqjb5swwjms6dd1ap1dp"}}}','{"entrypoint": "main:kickoff", "framework": "python", "python": "3.11"}','[{"lastTransitionTime": "2026-11-21T10:00:00Z", "message": "", "reason": "Built", "status": "True", "type": "Built"}]',NULL,1);
INSERT INTO "deployments" VALUES('crews','dep-01m801qt83fb10t5mg84s8f2qd','8aa42e54-dcab-47bc-bb65-92786f9a78b7','research','a9182af5-ccd9-4cd1-901d-02729fdcb51d',3,231,'active',1,0,0,1795298158000000,1795255200000000,NULL,'{"message": "First", "project": "research", "source": {"archive": {"sha256": "b521c608573be035bba0d2107217eea603e2dbad9c7409b7032c7a281cc14e2c", "upload": "upl_01m801qt7h5nna3208k6njvvph"}}}','{"entrypoint": "main:kickoff", "framework": "python", "python": "3.11"}','[{"lastTransitionTime": "2026-11-21T10:00:00Z", "message": "", "reason": "Built", "status": "True", "type": "Built"}]',NULL,1);
CREATE TABLE idempotency (
	namespace VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	body_sha256 VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (namespace, owner, "key")
);
INSERT INTO "idempotency" VALUES('crews','WeHEQRbkN0','/v1/runs key-of-good','0e40d868991549659325ae9d5d9fec1f5abd47a9aa33df7ad8e03ce4a048b3d4','run-01m801qwy8btnxdqsc1nhzecav',1795298161608679);
INSERT INTO "idempotency" VALUES('crews','WeHEQRbkN0','/v1/runs key-of-bad','2c4d2fffc07ed9386ee6a669751a71d6e4fc6b7597bd4edd84c6f28ca0f127a6','run-01m801qwz49brhqzewhd80191w',1795298161635873);
INSERT INTO "idempotency" VALUES('crews','WeHEQRbkN0','/v1/runs key-of-working','278d4d10a7a64d88f950ae37fdf07c2ab7e505526f712206ee126d1d0a8bc5f3','run-01m801qx098q38zc31ds1j3aws',1795298161673011);
INSERT INTO "idempotency" VALUES('crews','WeHEQRbkN0','/v1/runs key-of-queued','26c578c0edb88065ee485e78452b88a1746be9b15e900ff56e788965d0bae8ba','run-01m801qx1ebny23w26356xt6kc',1795298161710461);
INSERT INTO "idempotency" VALUES('crews','WeHEQRbkN0','/v1/runs key-of-canceled','6286c7c6f1dfce329e687998ff1d0ba3ecd07b38a7470cbdab8294aa369cff55','run-01m801qx28crxmgxrvv21zjsqp',1795298161736577);
CREATE TABLE projects (
	namespace VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	ord BIGINT NOT NULL, 
	version BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	active VARCHAR, 
	activated_at BIGINT, 
	spec JSON NOT NULL, 
	status JSON NOT NULL, 
	PRIMARY KEY (namespace, name)
);
INSERT INTO "projects" VALUES('crews','research','a9182af5-ccd9-4cd1-901d-02729fdcb51d',1,232,1795298156000000,'dep-01m801qt83fb10t5mg84s8f2qd',1795255200000000,'{"plan": "pro"}','{"activatedAt": "2026-11-21T10:00:00Z", "activeDeployment": "dep-01m801qt83fb10t5mg84s8f2qd", "conditions": [{"lastTransitionTime": "1970-01-01T00:00:00Z", "message": "Waiting for the controller.", "reason": "Pending", "status": "Unknown", "type": "Ready"}], "lastOrder": 2}');
CREATE TABLE removed_projects (
	namespace VARCHAR NOT NULL, 
	uid VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	removed_at BIGINT NOT NULL, 
	PRIMARY KEY (namespace, uid)
);
INSERT INTO "removed_projects" VALUES('crews','7f060b8e-aa40-407c-a376-19da2d9eac61','gone',1795298166184148);
CREATE TABLE run_counts (
	namespace VARCHAR NOT NULL, 
	project VARCHAR NOT NULL, 
	deployment VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	count BIGINT NOT NULL, 
	PRIMARY KEY (namespace, project, deployment, status)
);
INSERT INTO "run_counts" VALUES('crews','research','dep-01m801qt83fb10t5mg84s8f2qd','pending',1);
INSERT INTO "run_counts" VALUES('crews','research','dep-01m801qt83fb10t5mg84s8f2qd','running',1);
INSERT INTO "run_counts" VALUES('crews','research','dep-01m801qt83fb10t5mg84s8f2qd','succeeded',1);
INSERT INTO "run_counts" VALUES('crews','research','dep-01m801qt83fb10t5mg84s8f2qd','failed',1);
INSERT INTO "run_counts" VALUES('crews','research','dep-01m801qt83fb10t5mg84s8f2qd','canceled',1);
INSERT INTO "run_counts" VALUES('crews','gone','','pending',0);
CREATE TABLE runs (
	namespace VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	uid VARCHAR, 
	ord BIGINT NOT NULL, 
	version BIGINT NOT NULL, 
	project VARCHAR NOT NULL, 
	project_uid VARCHAR, 
	deployment VARCHAR, 
	status VARCHAR NOT NULL, 
	hidden BOOLEAN NOT NULL, 
	withdrawn BOOLEAN NOT NULL, 
	present BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	completed_at BIGINT, 
	duration_ms BIGINT, 
	input JSON NOT NULL, 
	entrypoint VARCHAR, 
	timeout VARCHAR, 
	cancel BOOLEAN NOT NULL, 
	output JSON, 
	error JSON, 
	waiting JSON, 
	terminal JSON, 
	terminal_id BIGINT, accounted BOOLEAN DEFAULT 0 NOT NULL, 
	PRIMARY KEY (namespace, name)
);
INSERT INTO "runs" VALUES('crews','run-01m801qwy8btnxdqsc1nhzecav','d0e15971-1b19-4188-ba28-603c511cdf52',4,241,'research','a9182af5-ccd9-4cd1-901d-02729fdcb51d','dep-01m801qt83fb10t5mg84s8f2qd','succeeded',0,0,1,1795298161608679,1795298161973589,1795255200000000,1500,'{"topic": "good"}',NULL,NULL,0,'{"answer": 42}',NULL,NULL,'{"type": "run.completed", "data": {"run_id": "run_01m801qwy8btnxdqsc1nhzecav", "timestamp": "2026-11-21T10:00:00Z", "duration_ms": 1500, "output": {"answer": 42}}}',5,1);
INSERT INTO "runs" VALUES('crews','run-01m801qwz49brhqzewhd80191w','688b506f-e960-46ef-9b60-8c2c66b14391',5,244,'research','a9182af5-ccd9-4cd1-901d-02729fdcb51d','dep-01m801qt83fb10t5mg84s8f2qd','failed',0,0,1,1795298161635873,1795298163326217,1795255200000000,1500,'{"topic": "bad"}',NULL,NULL,0,NULL,'{"message": "ValueError: no tides today", "reason": "CrewError"}',NULL,'{"type": "run.failed", "data": {"run_id": "run_01m801qwz49brhqzewhd80191w", "timestamp": "2026-11-21T10:00:00Z", "duration_ms": 1500, "error": {"message": "ValueError: no tides today", "reason": "CrewError"}}}',3,1);
INSERT INTO "runs" VALUES('crews','run-01m801qx098q38zc31ds1j3aws','e9dd9306-048e-4976-83b3-da7c7b3b447e',6,246,'research','a9182af5-ccd9-4cd1-901d-02729fdcb51d','dep-01m801qt83fb10t5mg84s8f2qd','running',0,0,1,1795298161673011,1795298163792916,NULL,NULL,'{"topic": "working"}',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,0);
INSERT INTO "runs" VALUES('crews','run-01m801qx1ebny23w26356xt6kc','107a2d87-d43a-4338-ae6a-8affaef8f164',7,247,'research','a9182af5-ccd9-4cd1-901d-02729fdcb51d','dep-01m801qt83fb10t5mg84s8f2qd','pending',0,0,1,1795298161710461,NULL,NULL,NULL,'{"topic": "queued"}',NULL,NULL,0,NULL,NULL,'{"reason": "Pending", "message": "Waiting for the controller."}',NULL,NULL,0);
INSERT INTO "runs" VALUES('crews','run-01m801qx28crxmgxrvv21zjsqp','f1c8391a-6edb-4330-ab02-02b601a0a7c0',8,249,'research','a9182af5-ccd9-4cd1-901d-02729fdcb51d','dep-01m801qt83fb10t5mg84s8f2qd','canceled',0,0,1,1795298161736577,NULL,1795255200000000,1500,'{"topic": "canceled"}',NULL,NULL,1,NULL,NULL,NULL,'{"type": "run.canceled", "data": {"run_id": "run_01m801qx28crxmgxrvv21zjsqp", "timestamp": "2026-11-21T10:00:00Z", "duration_ms": 1500}}',1,1);
INSERT INTO "runs" VALUES('crews','run-of-gone','b2bb7188-388e-4cd9-8216-7ef7cb3a8213',10,257,'gone','7f060b8e-aa40-407c-a376-19da2d9eac61',NULL,'canceled',1,0,0,1795298165000000,NULL,1795298166184148,NULL,'{}',NULL,NULL,0,NULL,NULL,'{"reason": "Pending", "message": "Waiting for the controller."}',NULL,NULL,1);
CREATE TABLE sequences (
	namespace VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY (namespace, name)
);
INSERT INTO "sequences" VALUES('','ready',2);
INSERT INTO "sequences" VALUES('crews','ord',10);
CREATE TABLE uploads (
	namespace VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	project VARCHAR NOT NULL, 
	size BIGINT NOT NULL, 
	sha256 VARCHAR, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	stored_at BIGINT, 
	blob VARCHAR NOT NULL, 
	PRIMARY KEY (namespace, id)
);
INSERT INTO "uploads" VALUES('crews','upl_01m801qqjb5swwjms6dd1ap1dp','research',22,'b521c608573be035bba0d2107217eea603e2dbad9c7409b7032c7a281cc14e2c',1795298156107852,1795301756107852,1795298156111916,'crews/uploads/upl_01m801qqjb5swwjms6dd1ap1dp');
INSERT INTO "uploads" VALUES('crews','upl_01m801qt7h5nna3208k6njvvph','research',22,'b521c608573be035bba0d2107217eea603e2dbad9c7409b7032c7a281cc14e2c',1795298158833261,1795301758833261,1795298158837587,'crews/uploads/upl_01m801qt7h5nna3208k6njvvph');
CREATE TABLE usage_days (
	namespace VARCHAR NOT NULL, 
	project_uid VARCHAR NOT NULL, 
	day VARCHAR NOT NULL, 
	runs BIGINT NOT NULL, 
	run_ms BIGINT NOT NULL, 
	build_ms BIGINT NOT NULL, 
	artifact_bytes BIGINT NOT NULL, 
	prompt_tokens BIGINT NOT NULL, 
	completion_tokens BIGINT NOT NULL, 
	PRIMARY KEY (namespace, project_uid, day)
);
INSERT INTO "usage_days" VALUES('crews','a9182af5-ccd9-4cd1-901d-02729fdcb51d','2026-11-21',3,4500,0,8,0,0);
CREATE INDEX projects_ord ON projects (namespace, ord);
CREATE INDEX deployments_project_ord ON deployments (namespace, project, ord);
CREATE INDEX runs_deployment_ord ON runs (namespace, hidden, deployment, ord);
CREATE INDEX runs_ord ON runs (namespace, hidden, ord);
CREATE INDEX runs_present ON runs (namespace, present, status);
CREATE INDEX runs_project_ord ON runs (namespace, hidden, project, ord);
CREATE INDEX runs_project_status_ord ON runs (namespace, hidden, project, status, ord);
CREATE INDEX runs_status_ord ON runs (namespace, hidden, status, ord);
CREATE INDEX claims_written ON claims (namespace, written);
CREATE INDEX artifacts_version ON artifacts (namespace, run, version);
CREATE INDEX idempotency_created ON idempotency (namespace, created_at);
CREATE INDEX runs_accounted ON runs (namespace, accounted);
CREATE INDEX deployments_accounted ON deployments (namespace, accounted);
COMMIT;
