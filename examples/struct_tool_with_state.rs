//! A struct holds the arguments of one call; what all calls share comes through the context, where
//! nothing that the model writes can reach it.
//!
//! `cargo run -p haft-examples --example struct_tool_with_state`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use haft::{CallIds, Catalog, Hydrator, Run, ToolCall, ToolContext, ToolError, ToolOutput, tools};

/// The host's state: who owns what, in cents.
struct Ledger(Mutex<BTreeMap<String, u64>>);

impl Ledger {
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, u64>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Look up the balance of an account.
#[haft::tool(read_only)]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct LookUpBalance {
    /// Name of the owner
    owner: String,
}

impl Run for LookUpBalance {
    type Output = u64;

    async fn run(self, ctx: &ToolContext) -> Result<u64, ToolError> {
        let ledger = ctx.state::<Ledger>()?;
        ledger
            .change(|accounts| accounts.get(&self.owner).copied())
            .ok_or_else(|| ToolError::new(format!("`{}` has no account", self.owner)))
    }
}

/// Move money from one account to another.
#[haft::tool(destructive, sequential)]
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct TransferMoney {
    /// Owner of the account that pays
    from: String,
    /// Owner of the account that is paid
    to: String,
    /// Amount in cents
    cents: u64,
    /// Open an account for the receiver if there is none
    #[serde(default)]
    open_account: bool,
}

impl Run for TransferMoney {
    type Output = ToolOutput;

    async fn run(self, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let ledger = ctx.state::<Ledger>()?;
        ledger.change(|accounts| {
            let left = accounts
                .get(&self.from)
                .and_then(|balance| balance.checked_sub(self.cents))
                .ok_or_else(|| ToolError::new(format!("`{}` has too little", self.from)))?;
            if !self.open_account && !accounts.contains_key(&self.to) {
                return Err(ToolError::new(format!(
                    "`{}` has no account: set `open_account` to open one",
                    self.to
                )));
            }
            accounts.insert(self.from, left);
            *accounts.entry(self.to).or_default() += self.cents;
            Ok(ToolOutput::text("transferred"))
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ToolError> {
    let ledger = Ledger(Mutex::new([("Ada".to_owned(), 1_000)].into()));
    let context = ToolContext::builder().state(ledger).build();

    let catalog = Catalog::new();
    catalog
        .register_all(tools![LookUpBalance, TransferMoney])
        .into_result()?;
    let bank = catalog.snapshot().bind().build()?;
    for definition in bank.tools_for_llm() {
        println!("{:<16} {}", definition.name().as_str(), definition.brief());
    }
    println!();

    let mut ids = CallIds::default();
    for (name, written) in [
        ("look_up_balance", r#"{"owner": "Ada"}"#),
        (
            "transfer_money",
            r#"{"from": "Ada", "to": "Bob", "cents": 300}"#,
        ),
        (
            "transfer_money",
            r#"{"from": "Ada", "to": "Bob", "cents": -300}"#,
        ),
        (
            "transfer_money",
            r#"{"from": "Ada", "to": "Bob", "cents": 300, "open_account": true}"#,
        ),
        ("look_up_balance", r#"{"owner": "Bob"}"#),
        ("look_up_balance", r#"{"owner": "Ada"}"#),
    ] {
        println!("{name} {written}");
        let call = ToolCall::new(name, written);
        let mut result = Hydrator::new().hydrate(&call, &bank, &mut ids);
        let Some(hydrated) = result.tool.take() else {
            println!("  ✗ {}", result.text_for_model().unwrap_or_default());
            continue;
        };
        match hydrated.run(&context).await {
            Ok(output) => println!("  → {}", output.text_for_model()),
            Err(error) => println!("  ✗ {error}"),
        }
    }
    Ok(())
}
