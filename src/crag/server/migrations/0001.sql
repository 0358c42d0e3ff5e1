CREATE TABLE crag_threads (
    thread_id uuid PRIMARY KEY, owner text NOT NULL, graph_id text,
    metadata jsonb NOT NULL DEFAULT '{}', temporary boolean NOT NULL DEFAULT false,
    status text NOT NULL DEFAULT 'idle'
        CHECK (status IN ('idle', 'busy', 'interrupted', 'error')),
    error text,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX crag_threads_of_owner ON crag_threads (owner, updated_at DESC);
CREATE TABLE crag_runs (
    run_id uuid PRIMARY KEY, place bigserial,
    thread_id uuid NOT NULL REFERENCES crag_threads ON DELETE CASCADE,
    owner text NOT NULL, assistant_id text NOT NULL, graph_id text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK
        (status IN ('pending', 'running', 'success', 'error', 'interrupted', 'timeout')),
    request text NOT NULL, metadata jsonb NOT NULL DEFAULT '{}', multitask_strategy text,
    attempt integer NOT NULL DEFAULT 0, worker uuid, lease timestamptz,
    cancel text CHECK (cancel IN ('interrupt', 'rollback')), error text,
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX crag_runs_one_at_a_time ON crag_runs (thread_id) WHERE status = 'running';
CREATE INDEX crag_runs_of_thread ON crag_runs (thread_id, place);
CREATE INDEX crag_runs_unfinished ON crag_runs (place) WHERE status IN ('pending', 'running');
CREATE TABLE crag_run_events (
    run_id uuid NOT NULL REFERENCES crag_runs ON DELETE CASCADE, place integer NOT NULL,
    event text NOT NULL, data text NOT NULL, PRIMARY KEY (run_id, place)
);
