//! The seam to the server: the one place that knows how it is made.

use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use haft::models::http::Http;
use haft::models::{pools, process_environment};
use haft_mcp::{Pool, Questions};
#[cfg(feature = "otlp")]
use haft_server::OtlpOptions;
use haft_server::{
    ApiKey, GatewayOptions, ModelEntry, Server, ServerOptions, StartError, WatchOptions,
};
use haft_store::{OpenError, SqliteStore};
use tokio::net::TcpListener;

use super::choice::Choice;
use crate::catalogue;
use crate::concerto::{Scripts, Wanted, Words};
#[cfg(feature = "otlp")]
use crate::config::Collector;
use crate::config::{Resolved, Watching};
use crate::failure::Failure;
use crate::mcp::{pool_of, unusable_status};

/// The file in the data folder that keeps responses and conversations.
pub(crate) const STORE: &str = "haft.db";

/// A server that is ready to listen.
pub(super) struct Ready {
    server: Server,
    tools: Vec<String>,
    mcp: Pool,
    scripts: Scripts,
}

/// What the operator accepts about data that does not fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepted {
    /// Sealing keys are missing.
    pub(super) lost_keys: bool,
    /// The file of API keys is missing.
    pub(super) lost_api_keys: bool,
    /// The clock is behind the data.
    pub(super) clock: bool,
}

/// Makes the server: its store in the data folder, its models, its tools.
pub(super) async fn build(
    config: &Resolved,
    choice: &Choice,
    data_dir: &Path,
    scripts: &Wanted<'_>,
    accepted: Accepted,
) -> Result<Ready, Box<dyn Error>> {
    let store = SqliteStore::open(data_dir.join(STORE)).map_err(|error| match error {
        OpenError::InUse { path } => {
            let path = path.display();
            Failure::new(format!("`{path}` is in use by another haft"))
                .remedy("stop that one, or give this one a folder of its own with `--data-dir`")
        }
        // It is no other the next time.
        error @ (OpenError::Newer { .. }
        | OpenError::Emptied { .. }
        | OpenError::Missing { .. }) => Failure::mistake(error.to_string()),
        error => told(error),
    })?;
    let (catalog, names) = catalogue::hosted(config.search_files.clone(), data_dir)?;
    let scripts = Scripts::open(scripts, &catalog, Words::Log).await?;
    let tools = names.iter().chain(&scripts.names);
    let tools = tools.map(|name| format!("{}{name}", catalogue::PREFIX));
    let tools = tools.collect();
    // Servers list other tools for other capabilities of their client, so haft declares the same everywhere.
    let (mcp, unusable) = pool_of(&config.mcp, Some(data_dir), Questions::PerCall)?;
    for (label, error) in &unusable {
        tracing::warn!("server `{label}` cannot be used: {error}");
    }
    let unusable = unusable_status(&unusable);
    let mut builder = Server::builder(Arc::new(store))
        .data_dir(data_dir)
        .catalog(catalog)
        .mcp(mcp.clone())
        .mcp_unusable(unusable.clone())
        .options(ServerOptions {
            forget_sealing_keys: accepted.lost_keys,
            forget_api_keys: accepted.lost_api_keys,
            accept_clock: accepted.clock,
            ..options(config, choice)?
        });
    let pools = pools(&choice.models, &process_environment, &Http::default()).map_err(told)?;
    for (model, pool) in choice.models.iter().zip(pools) {
        let aliases = model.aliases.clone();
        builder = builder.model(ModelEntry::from_pool(&model.name, aliases, pool));
    }
    if let Some(gateway) = &config.gateway {
        builder = builder.gateway(GatewayOptions {
            unusable: unusable.clone(),
            ..gateway.options()
        });
    }
    for (name, endpoint) in &config.endpoints {
        builder = builder.gateway_endpoint(
            name,
            GatewayOptions {
                unusable: unusable.clone(),
                ..endpoint.options()
            },
        );
    }
    let server = builder.build().map_err(told)?;
    server.verify_start().await.map_err(|error| match error {
        // It is no other the next time.
        error @ (StartError::MissingKeys { .. } | StartError::MissingApiKeys { .. }) => {
            Failure::mistake(error.to_string())
        }
        error => told(error),
    })?;
    Ok(Ready {
        server,
        tools,
        mcp,
        scripts,
    })
}

impl Ready {
    /// The types of the tools that requests can name.
    pub(super) fn tools(&self) -> &[String] {
        &self.tools
    }

    /// Those of them that programs bring.
    pub(super) fn own_tools(&self) -> &[String] {
        // They stand behind haft's.
        &self.tools[self.tools.len() - self.scripts.names.len()..]
    }

    /// Whether clients must send a key.
    pub(super) fn needs_key(&self) -> bool {
        self.server.needs_key()
    }

    /// Answers until `stop` is done, then ends what runs.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Failure> {
        self.mcp.warm();
        let served = self.server.serve(listener, stop).await.map_err(told);
        self.scripts.close().await;
        self.mcp.close().await;
        served
    }
}

/// Errors of the parts say what to do by themselves.
#[allow(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` asks for"
)]
fn told(error: impl std::error::Error) -> Failure {
    Failure::new(error.to_string())
}

fn options(config: &Resolved, choice: &Choice) -> Result<ServerOptions, Failure> {
    let api_key = config.api_key.as_ref();
    let origins = config.allowed_origins.iter();
    let mut options = ServerOptions {
        dialect: config.dialect,
        unsupported_tools: config.unsupported_tools,
        max_body_bytes: config.max_body_bytes,
        max_runs: config.max_runs,
        limits: config.limits,
        allow_anonymous: config.allow_anonymous,
        drain_wait: config.drain_wait,
        stop_wait: config.stop_wait,
        api_key: api_key.map(|key| ApiKey::new(key.secret.expose())),
        mcp_hosts: config.mcp_hosts.clone(),
        content_hosts: config.content_hosts.clone(),
        allowed_origins: origins.map(|it| it.as_str().to_owned()).collect(),
        default_model: Some(choice.default_model.clone()),
        loop_options: config.loop_options.clone(),
        ..ServerOptions::default()
    };
    options.watch = watched(&config.watching)?;
    options.retention.max_age = config.retention.max_age;
    options.retention.max_bytes = config.retention.max_bytes;
    Ok(options)
}

/// What operators see.
fn watched(config: &Watching) -> Result<WatchOptions, Failure> {
    #[cfg(not(feature = "otlp"))]
    if config.otlp.is_some() {
        return Err(Failure::new("this haft was built without OTLP")
            .remedy("remove `endpoint` of `[otlp]`, or build it with the feature `otlp`"));
    }
    Ok(WatchOptions {
        access_log: config.access_log,
        metrics: config.metrics,
        call_record: config.calls.into(),
        public_metrics: config.public_metrics,
        #[cfg(feature = "otlp")]
        otlp: config.otlp.as_ref().map(exported_to).transpose()?,
    })
}

#[cfg(feature = "otlp")]
fn exported_to(collector: &Collector) -> Result<OtlpOptions, Failure> {
    let mut otlp = OtlpOptions::new(&collector.endpoint).map_err(told)?;
    for (name, value) in &collector.headers {
        otlp = otlp.header(name, value.clone()).map_err(told)?;
    }
    if let Some(name) = &collector.service_name {
        otlp.service_name.clone_from(name);
    }
    otlp.sample_ratio = collector.sample_ratio;
    otlp.captures_content = collector.captures_content;
    Ok(otlp)
}
