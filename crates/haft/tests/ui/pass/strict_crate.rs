//! Not a test build, where the compiler would not ask for docs.
#![deny(warnings, missing_docs, unsafe_code, unreachable_pub)]
#![deny(missing_debug_implementations, missing_copy_implementations)]
#![forbid(dead_code, non_snake_case, unused_must_use, unused_variables)]

use haft::{Run, ToolContext, ToolError};

/// A public function.
#[haft::tool(read_only, output_schema)]
pub async fn function(
    /// Documented
    documented: String,
    undocumented: Option<u8>,
    #[tool(default = 1)] defaulted: u8,
    ctx: &ToolContext,
) -> Result<String, ToolError> {
    let _ = ctx;
    Ok(format!("{documented} {undocumented:?} {defaulted}"))
}

/// A public struct.
#[haft::tool]
#[derive(Debug, Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
pub struct Structure {
    /// A field
    pub field: u8,
}

impl Run for Structure {
    type Output = u8;

    async fn run(self, _: &ToolContext) -> Result<u8, ToolError> {
        Ok(self.field)
    }
}

fn main() {
    let _ = haft::tools![function, Structure];
}
