//! The generated code means the same whatever its surroundings are: strict lints, other things
//! under the names of the prelude, function bodies, modules, every visibility.

#![deny(warnings, missing_docs, unsafe_code, unreachable_pub)]
#![deny(
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used
)]
#![deny(
    missing_debug_implementations,
    missing_copy_implementations,
    unused_qualifications
)]

/// Things under the names that generated code might be tempted to use.
#[allow(dead_code, missing_debug_implementations, missing_copy_implementations)]
mod shadowed {
    pub(crate) struct Result;
    pub(crate) struct Option;
    pub(crate) struct String;
    pub(crate) struct Vec;
    pub(crate) struct Box;
    pub(crate) struct Arc;
    pub(crate) struct Value;
    pub(crate) trait From {}
    pub(crate) trait Into {}
    pub(crate) trait Default {}
    pub(crate) trait Clone {}
    pub(crate) trait Copy {}
    pub(crate) trait Send {}
    pub(crate) trait Serialize {}
    pub(crate) trait Deserialize {}
    pub(crate) trait Tool {}
    pub(crate) trait Run {}
    pub(crate) mod haft {}
    pub(crate) mod std {}
    pub(crate) mod core {}
    pub(crate) mod serde {}
    pub(crate) mod schemars {}

    /// Works here too.
    #[::haft::tool(
        title = "Title",
        tags = ["a"],
        safe = true,
        timeout = "1s",
        example(input = {"count": 1}, output = [1]),
        depends_on = ["b"],
        defer = "always",
        output_schema
    )]
    pub(crate) fn function(
        /// How many
        count: ::std::option::Option<u8>,
        #[tool(default = "x")] text: ::std::string::String,
    ) -> ::std::result::Result<::std::string::String, ::haft::ToolError> {
        match count {
            ::std::option::Option::Some(count) => {
                ::std::result::Result::Ok(text.repeat(count.into()))
            }
            ::std::option::Option::None => {
                ::std::result::Result::Err(::haft::ToolError::new("how many?"))
            }
        }
    }

    /// And on a struct.
    #[::haft::tool(output_schema)]
    #[derive(::serde::Deserialize, ::schemars::JsonSchema)]
    #[schemars(crate = "::schemars")]
    pub(crate) struct Structure {
        /// How many
        count: u8,
    }

    impl ::haft::Run for Structure {
        type Output = u8;
        async fn run(
            self,
            _: &::haft::ToolContext,
        ) -> ::std::result::Result<u8, ::haft::ToolError> {
            ::std::result::Result::Ok(self.count)
        }
    }
}

/// Tools named like the variables that generated code might use.
mod names {
    /// One.
    #[haft::tool]
    pub(crate) fn arguments() {}
    /// Two.
    #[haft::tool]
    pub(crate) fn context() {}
    /// Three.
    #[haft::tool]
    pub(crate) fn value() {}
    /// Four.
    #[haft::tool]
    pub(crate) fn output(call: u8, run: u8) -> u8 {
        call + run
    }
}

/// Every visibility.
pub mod visible {
    /// Public, with the derives that strict crates ask for.
    #[haft::tool]
    pub async fn public(text: String) -> Result<usize, std::num::ParseIntError> {
        std::future::ready(text.parse()).await
    }
    /// For the crate.
    #[haft::tool]
    pub(crate) fn of_the_crate(text: String) -> usize {
        text.len()
    }
    /// For the parent.
    #[haft::tool]
    pub(super) fn of_the_parent(text: String) -> usize {
        text.len()
    }
    /// For nobody else.
    #[haft::tool]
    fn private(text: String) -> usize {
        text.len()
    }
    /// Lists them from inside.
    #[must_use]
    pub fn all() -> Vec<haft::ToolSource> {
        haft::tools![public, of_the_crate, of_the_parent, private]
    }
}

/// A crate that re-exports haft.
mod framework {
    pub(crate) use haft as tools;
}

/// Found through the re-export.
#[framework::tools::tool(crate = crate::framework::tools)]
fn through_a_reexport(n: u8) -> u8 {
    n
}

macro_rules! make {
    ($name:ident, $text:literal, $value:ty, $context:ty) => {
        #[doc = $text]
        #[haft::tool]
        fn $name(value: $value, context: $context) -> $value {
            let _ = context;
            value
        }
    };
}

make!(made, "Made by a macro.", Vec<u8>, &haft::ToolContext);

fn names_of(tools: Vec<haft::ToolSource>) -> Vec<String> {
    tools
        .into_iter()
        .map(|tool| match tool.into_object() {
            Ok(tool) => tool.definition().name().to_string(),
            Err(error) => error.to_string(),
        })
        .collect()
}

#[test]
fn names_of_the_prelude_may_mean_something_else() {
    assert_eq!(
        names_of(haft::tools![shadowed::function, shadowed::Structure]),
        ["function", "structure"]
    );
}

#[test]
fn a_tool_may_be_called_like_a_variable_of_the_generated_code() {
    assert_eq!(
        names_of(haft::tools![
            names::arguments,
            names::context,
            names::value,
            names::output
        ]),
        ["arguments", "context", "value", "output"]
    );
}

#[test]
fn a_tool_has_the_visibility_of_its_function() {
    assert_eq!(
        names_of(visible::all()),
        ["public", "of_the_crate", "of_the_parent", "private"]
    );
    assert_eq!(visible::of_the_crate::call("abc".into()), 3);
    assert_eq!(visible::of_the_parent::call("abc".into()), 3);
}

#[test]
fn a_tool_in_a_function_body_sees_the_types_beside_it() {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    enum Colour {
        Red,
    }
    fn favourite() -> Colour {
        Colour::Red
    }
    /// Paint.
    #[haft::tool]
    fn paint(#[tool(default = favourite())] colour: Colour) -> Colour {
        colour
    }
    assert_eq!(names_of(haft::tools![paint]), ["paint"]);
}

#[test]
fn haft_may_be_found_through_another_crate() {
    assert_eq!(
        names_of(haft::tools![through_a_reexport]),
        ["through_a_reexport"]
    );
}

#[test]
fn a_tool_may_be_written_by_another_macro() {
    use haft::Tool;
    assert_eq!(names_of(haft::tools![made]), ["made"]);
    assert_eq!(made::definition().description(), Some("Made by a macro."));
}
