using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", http = (), service = "main")],
);

const main :Workerd.Worker = (
  modules = [(name = "workerd.mjs", esModule = embed "workerd.mjs")],
  bindings = [(name = "LOADER", workerLoader = ())],
  compatibilityDate = "2026-01-01",
);
