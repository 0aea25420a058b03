//! Which tools a model sees, and which it may call, decided for one run and no longer.
//!
//! `cargo run -p haft-examples --example dynamic_binding`

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use haft::{
    Binding, Catalog, Namespace, Progress, ToolChoice, ToolError, ToolRef, ViewFormat, tools,
};

/// Search the web.
#[haft::tool(read_only, open_world)]
fn web_search(query: String) -> String {
    format!("nothing new about {query}")
}

/// Read a file of the project.
#[haft::tool(read_only)]
fn read_file(path: String) -> String {
    format!("({path} is empty)")
}

/// Add two numbers.
#[haft::tool(read_only, name = "add")]
fn calculator_add(a: i64, b: i64) -> i64 {
    a + b
}

/// Divide a number by another.
#[haft::tool(read_only, name = "divide")]
fn calculator_divide(a: f64, b: f64) -> Result<f64, &'static str> {
    if b == 0.0 {
        Err("division by zero")
    } else {
        Ok(a / b)
    }
}

/// Summarise a text.
#[haft::tool(read_only)]
fn summarise(text: String) -> String {
    text.chars().take(40).collect()
}

fn main() -> Result<(), ToolError> {
    let catalog = Catalog::new();
    catalog
        .register_all(tools![web_search, read_file])
        .into_result()?;
    let calculator = Namespace::new("Calculator")?;
    catalog.register_in(&calculator, calculator_add)?;
    catalog.register_in(&calculator, calculator_divide)?;
    let snapshot = catalog.snapshot();

    let own = ["web_search"];
    show(
        "the model's own tools",
        &snapshot.bind().tools(own).build()?,
    );
    show(
        "with_tools: the whole Calculator, and one that no catalogue knows",
        &snapshot
            .bind()
            .tools(own)
            .with_tools([ToolRef::from("Calculator"), ToolRef::from(summarise)])
            .build()?,
    );
    show(
        "without_tools: only what this run brings",
        &snapshot
            .bind()
            .tools(own)
            .with_tools(["read_file"])
            .without_tools()
            .build()?,
    );
    show(
        "without_tools alone: nothing",
        &snapshot.bind().tools(own).without_tools().build()?,
    );

    let allowed = snapshot
        .bind()
        .tool_choice(ToolChoice::allowed(["read_file"]))
        .build()?;
    show(
        "allowed_tools: all stay visible, one may be called",
        &allowed,
    );
    match allowed.admit("web_search") {
        Ok(_) => println!("  web_search may be called"),
        Err(refused) => println!("  the model reads: {refused}"),
    }

    let forced = snapshot
        .bind()
        .tool_choice(ToolChoice::Function("read_file".into()))
        .build()?;
    println!("\na forced function relaxes once a tool ran");
    for progress in [Progress::NothingRan, Progress::ToolRan] {
        println!("  {progress:?}: {:?}", forced.tool_choice(progress));
    }

    let bytes = snapshot.bind().build()?.render(ViewFormat::Chat);
    println!(
        "\nthe same binding renders to the same {} bytes, whatever the order",
        bytes.len()
    );
    println!("in which its tools were registered");
    Ok(())
}

fn show(title: &str, binding: &Binding) {
    println!("{title}");
    let names: Vec<_> = binding
        .tools_for_llm()
        .map(|tool| tool.name().as_str())
        .collect();
    println!(
        "  offered: {}\n",
        if names.is_empty() {
            "–".to_owned()
        } else {
            names.join(", ")
        }
    );
}
