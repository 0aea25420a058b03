//! The tool over the search.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::{
    HydratedTool, InstantiateError, Owner, OwnersTool, ToolDefinition, ToolError, ToolObject,
    Validator,
};
use serde_json::{Value, json};

use super::file_search::FileSearch;
use super::results::SearchRequest;
use crate::tool::{HostedTool, hosted_tool};

/// The tool `search_files`: full-text search over the folders of `search`.
///
/// Each tenant has one over the folders that he may see, and none if there is no such folder. Whoever
/// does not ask for whom it is ([`ToolObject::for_owner`]) has the one over everybody's folders.
#[allow(
    clippy::needless_pass_by_value,
    reason = "the tool takes the search over"
)]
pub fn search_files(search: FileSearch) -> HostedTool {
    let common = search.for_everybody();
    let has_common = common.folders().next().is_some();
    let tenants = search.tenants().into_iter();
    let own = tenants.map(|tenant| {
        let tool = over(search.for_tenant(tenant));
        tool.map(|tool| (Owner::new(tenant), tool))
    });
    let own = own.collect::<Result<HashMap<_, _>, _>>()?;
    let common = over(common)?;
    if own.is_empty() {
        return Ok(common);
    }
    Ok(Arc::new(PerTenant {
        common,
        has_common,
        own,
    }))
}

/// The tool over what one may see.
fn over(search: FileSearch) -> HostedTool {
    let folders: Vec<_> = search.folders().map(|name| format!("`{name}`")).collect();
    let folders = match folders.as_slice() {
        [] => String::from("none"),
        folders => folders.join(", "),
    };
    let definition = ToolDefinition::builder("search_files")
        .description(format!(
            "Search the text of files in these folders: {folders}.\n\n\
             Gives the best places with path, line number and the lines around. All words must \
             stand near each other; put \"words that belong together\" in quotation marks, end a \
             word with * to find every word that begins so, put - before a word to leave passages \
             with it out."
        ))
        .brief("Search the text of files in the folders that the operator listed.")
        .tags(["files", "search"])
        .read_only()
        .idempotent()
        .example(
            json!({"query": "\"retry limit\" config*", "path_glob": "*.md", "limit": 5}),
            None,
        );
    hosted_tool(definition, move |request: SearchRequest, context| {
        search
            .search(&request, context.cancel())
            .map_err(ToolError::from)
    })
}

/// One tool for everybody, and one of his own for each tenant that has folders.
struct PerTenant {
    common: Arc<dyn ToolObject>,
    has_common: bool,
    own: HashMap<Owner, Arc<dyn ToolObject>>,
}

impl ToolObject for PerTenant {
    fn definition(&self) -> &Arc<ToolDefinition> {
        self.common.definition()
    }

    fn instantiate(&self, arguments: &Value) -> Result<Box<dyn HydratedTool>, InstantiateError> {
        self.common.instantiate(arguments)
    }

    fn validator(&self) -> Option<Arc<dyn Validator>> {
        self.common.validator()
    }

    fn for_owner(&self, owner: &Owner) -> OwnersTool {
        match self.own.get(owner) {
            Some(own) => OwnersTool::Own(Arc::clone(own)),
            None if self.has_common => OwnersTool::Same,
            None => OwnersTool::Hidden,
        }
    }
}
