//! The `waggle` binary: every role and every command. Arguments and output only; the work is done by the crates below.

mod bridge;
mod client;
mod commands;
mod connect;
mod context;
mod failure;
mod output;
mod roles;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

// A server's resident bytes are what its users see: freed pages go back to the system within a second, by a thread of
// the allocator, and few arenas keep few half-used pages.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[expect(
    unsafe_code,
    reason = "jemalloc reads its settings from a symbol of this name before main runs"
)]
#[unsafe(export_name = "_rjem_malloc_conf")]
static ALLOCATOR_SETTINGS: &[u8] = b"background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0,narenas:4\0";

/// Shared long-term memory for AI agents.
///
/// `waggle dev` starts everything in one process on this machine. A value is taken from its flag, else from
/// WAGGLE__SECTION__KEY in the environment, else from the configuration file, else from its default.
#[derive(Parser)]
#[command(name = "waggle", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start everything in one process, for this machine.
    Dev(roles::dev::Args),
    /// Start a node: it stores memories and answers gateways.
    Node(roles::node::Args),
    /// Start a gateway: agents reach it by MCP, administrators by REST.
    Gateway(roles::gateway::Args),
    /// Make a cluster and let nodes into it.
    #[command(subcommand)]
    Cluster(commands::cluster::Verb),
    /// List nodes; drain, resume and decommission them.
    #[command(subcommand)]
    Nodes(commands::nodes::Verb),
    /// List shards, move their leaders, compare their replicas.
    #[command(subcommand)]
    Shard(commands::shard::Verb),
    /// Show the gateway and the nodes that it knows, on one screen.
    Status(commands::status::Args),
    /// Make and list tenants.
    #[command(subcommand)]
    Tenant(commands::tenant::Verb),
    /// Make, list and revoke API keys.
    #[command(subcommand)]
    Key(commands::key::Verb),
    /// Add, search and show memories.
    #[command(subcommand)]
    Memory(commands::memory::Verb),
    /// Show the turns that a memory rests on, verbatim.
    Replay(commands::replay::Args),
    /// Write the graph of a scope to a file.
    Export(commands::transfer::Export),
    /// Take a file in that `waggle export` wrote.
    Import(commands::transfer::Import),
    /// Hand a whole transcript over to memory.
    #[command(name = "ingest-transcript-handoff")]
    IngestTranscriptHandoff(Box<commands::handoff::Args>),
    /// Connect the programs that agents run in to a gateway: writes their configuration, keeps a backup.
    Connect(commands::connect::Connect),
    /// Take our entry out of their configuration again.
    Disconnect(commands::connect::Disconnect),
    /// Forward between a client that starts programs (JSON-RPC on stdin and stdout) and a gateway.
    Mcp(commands::mcp::Args),
    /// Find out what does not work, from this machine to the gateway. Ends with 9 if something does not.
    Doctor(commands::doctor::Args),
    /// List what this build can do.
    Features(commands::features::Args),
    /// Load a small example into a running server and show recall, a conflict and history.
    Demo(commands::demo::Args),
    /// Check, show, compare and merge .abhi files, without a server.
    #[command(subcommand)]
    Abhi(commands::abhi::Verb),
    /// Check and explain configuration.
    #[command(subcommand)]
    Config(commands::config::Verb),
    /// Make and list the certificates between processes.
    #[command(subcommand)]
    Cert(commands::cert::Verb),
    /// Print the version.
    Version(commands::version::Args),

    // The names of Waggle's own command line.
    #[command(name = "create-tenant", hide = true)]
    CreateTenant(commands::tenant::Create),
    #[command(name = "create-api-key", hide = true)]
    CreateApiKey(commands::key::Create),
    #[command(name = "list-api-keys", hide = true)]
    ListApiKeys(commands::key::List),
    #[command(name = "revoke-api-key", hide = true)]
    RevokeApiKey(commands::key::Revoke),
}

fn main() -> ExitCode {
    // First of all: TLS without a provider would panic later.
    waggle_config::certificates::install_provider();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return commands::handoff::wrong_arguments(&error),
    };
    let outcome = match cli.command {
        Command::Dev(args) => roles::dev::run(args),
        Command::Node(args) => roles::node::run(args),
        Command::Gateway(args) => roles::gateway::run(args),
        Command::Cluster(verb) => commands::cluster::run(verb),
        Command::Nodes(verb) => commands::nodes::run(verb),
        Command::Shard(verb) => commands::shard::run(verb),
        Command::Status(args) => commands::status::run(args),
        Command::Tenant(verb) => commands::tenant::run(verb),
        Command::Key(verb) => commands::key::run(verb),
        Command::Memory(verb) => commands::memory::run(verb),
        Command::Replay(args) => commands::replay::run(args),
        Command::Export(args) => commands::transfer::export(args),
        Command::Import(args) => commands::transfer::import(args),
        Command::IngestTranscriptHandoff(args) => return commands::handoff::run(&args),
        Command::Connect(args) => commands::connect::connect(args),
        Command::Disconnect(args) => commands::connect::disconnect(args),
        Command::Mcp(args) => commands::mcp::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Features(args) => commands::features::run(args, &Cli::command()),
        Command::Demo(args) => commands::demo::run(args),
        Command::Abhi(verb) => commands::abhi::run(verb),
        Command::Config(verb) => commands::config::run(verb),
        Command::Cert(verb) => commands::cert::run(verb),
        Command::Version(args) => commands::version::run(args),
        Command::CreateTenant(args) => with_plain_exit(commands::tenant::run(commands::tenant::Verb::Create(args))),
        Command::CreateApiKey(args) => with_plain_exit(commands::key::run(commands::key::Verb::Create(args))),
        Command::ListApiKeys(args) => with_plain_exit(commands::key::run(commands::key::Verb::List(args))),
        Command::RevokeApiKey(args) => with_plain_exit(commands::key::run(commands::key::Verb::Revoke(args))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Scripts written for the old names know 0 and 1.
fn with_plain_exit(outcome: anyhow::Result<()>) -> anyhow::Result<()> {
    outcome.map_err(|error| failure::Failure::from_error(&error).with_exit(failure::GENERAL).into())
}
