//! Where a program was when it failed.

use std::fmt;

use crate::ir::Module;

/// Where a program was. Its display form names file, line, column and function, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named when the program was compiled.
    pub file: String,
    /// The function, `Tool::method`, `Pipeline::stage` or test.
    pub function: String,
    /// Line and column, both from 1; programs of others may not know them.
    pub span: Option<[u32; 2]>,
}

impl Place {
    #[cfg_attr(not(feature = "host"), allow(dead_code, reason = "for the host"))]
    pub(super) fn of(ir: &Module, (function, span): (String, Option<[u32; 2]>)) -> Self {
        Self {
            file: ir.source_of(&function).to_owned(),
            function,
            span,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some([line, column]) = self.span {
            write!(f, "{}:{line}:{column} ", self.file)?;
        }
        write!(f, "in `{}`", self.function)
    }
}
