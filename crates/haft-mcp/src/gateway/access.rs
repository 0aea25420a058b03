//! What an endpoint offers to whom: a part of all tools, and rules about callers.

use std::collections::BTreeSet;

use super::caller::Caller;
use super::pattern::{covers_below, matches, may_match_below};
use super::subset::Subset;
use super::tool::ListedTool;

/// Which callers something is for: those with one of these keys, tenants or roles; everybody where none is named.
///
/// ```
/// use haft_mcp::gateway::{Caller, CallerFilter};
/// let support = CallerFilter::default().with_role("support").with_tenant("acme");
/// assert!(support.includes(&Caller::new("acme")));
/// assert!(support.includes(&Caller::new("other").with_roles(["support"])));
/// assert!(!support.includes(&Caller::new("other")));
/// assert!(CallerFilter::default().includes(&Caller::new("other")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerFilter {
    keys: BTreeSet<String>,
    tenants: BTreeSet<String>,
    roles: BTreeSet<String>,
}

impl CallerFilter {
    /// With the API key of this id or name.
    #[must_use]
    pub fn with_key(mut self, id_or_name: impl Into<String>) -> Self {
        self.keys.insert(id_or_name.into());
        self
    }

    /// With every caller of this tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenants.insert(tenant.into());
        self
    }

    /// With every caller that has this role.
    #[must_use]
    pub fn with_role(mut self, role: impl Into<String>) -> Self {
        self.roles.insert(role.into());
        self
    }

    /// Whether the caller is one of them.
    pub fn includes(&self, caller: &Caller) -> bool {
        let is_key = |key: Option<&str>| key.is_some_and(|key| self.keys.contains(key));
        let is_everybody = self.keys.is_empty() && self.tenants.is_empty() && self.roles.is_empty();
        is_everybody
            || is_key(caller.key_id())
            || is_key(caller.key_name())
            || self.tenants.contains(caller.id())
            || self.roles.iter().any(|role| caller.has_role(role))
    }

    /// The ids and names of keys that are named.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// The tenants that are named.
    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.iter().map(String::as_str)
    }

    /// The roles that are named.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.roles.iter().map(String::as_str)
    }
}

/// What some callers may use. Patterns are those of exposed names, where `*` stands for any text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRule {
    /// The callers that it is for.
    pub callers: CallerFilter,
    /// The only tools that they may use; all if not set.
    pub allow: Option<BTreeSet<String>>,
    /// Tools that they may not use. It wins over `allow`.
    pub deny: BTreeSet<String>,
}

impl AccessRule {
    /// A rule for these callers that allows everything.
    pub fn new(callers: CallerFilter) -> Self {
        Self {
            callers,
            ..Self::default()
        }
    }

    /// Allows the tools that fit this pattern, and no others but those that are allowed in the same way.
    #[must_use]
    pub fn allowing(mut self, pattern: impl Into<String>) -> Self {
        self.allow.get_or_insert_default().insert(pattern.into());
        self
    }

    /// Denies the tools that fit this pattern, whatever is allowed.
    #[must_use]
    pub fn denying(mut self, pattern: impl Into<String>) -> Self {
        self.deny.insert(pattern.into());
        self
    }

    fn admits(&self, names: &Names<'_>) -> bool {
        let is_allowed = self.allow.as_ref().is_none_or(|allow| names.fit(allow));
        is_allowed && !names.fit(&self.deny)
    }

    fn admits_server(&self, prefix: &str) -> bool {
        let fits_some =
            |patterns: &BTreeSet<String>| patterns.iter().any(|it| may_match_below(it, prefix));
        let is_allowed = self.allow.as_ref().is_none_or(fits_some);
        is_allowed && !self.deny.iter().any(|it| covers_below(it, prefix))
    }
}

/// The names that a pattern may fit: the exposed one, and label and raw name, which the exposed one may have
/// shortened.
pub(super) struct Names<'n> {
    exposed: &'n str,
    full: Option<String>,
}

impl<'n> Names<'n> {
    pub(super) fn of_tool(tool: &'n ListedTool) -> Self {
        let origin = tool.server.as_deref().zip(tool.raw_name.as_deref());
        let full = origin.map(|(label, raw)| format!("{label}__{raw}"));
        Self {
            exposed: &tool.name,
            full: full.filter(|full| *full != tool.name),
        }
    }

    pub(super) fn fit(&self, patterns: &BTreeSet<String>) -> bool {
        patterns.iter().any(|pattern| {
            let full = self.full.as_deref();
            matches(pattern, self.exposed) || full.is_some_and(|full| matches(pattern, full))
        })
    }
}

/// A part of all tools, narrowed for each caller by the first rule that is for it. A caller without a rule may use
/// the whole part.
///
/// Prompts and resources of servers count like tools, as `LABEL__NAME` and `LABEL__URI`.
///
/// ```
/// use haft_mcp::gateway::{Access, AccessRule, Caller, CallerFilter, ListedTool, Subset};
///
/// let support = AccessRule::new(CallerFilter::default().with_role("support"))
///     .allowing("tracker__read*")
///     .denying("*secret*");
/// let access = Access::new(Some(Subset::default().with_server("tracker")), vec![support]);
/// let caller = Caller::new("acme").with_roles(["support"]);
/// let tool = |raw: &str| {
///     ListedTool::new(format!("tracker__{raw}"), serde_json::Map::new()).of_server("tracker", raw)
/// };
/// assert!(access.admits(&caller, &tool("read_issue")));
/// assert!(!access.admits(&caller, &tool("read_secret")));
/// assert!(!access.admits(&caller, &tool("delete")));
/// assert!(access.admits(&Caller::new("acme"), &tool("delete")));
/// assert!(!access.admits_server(&caller, "mail"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Access {
    subset: Option<Subset>,
    rules: Vec<AccessRule>,
}

impl Access {
    /// This part of all tools, or everything, under these rules.
    pub fn new(subset: Option<Subset>, rules: Vec<AccessRule>) -> Self {
        Self { subset, rules }
    }

    /// Whether the caller may see and call the tool.
    pub fn admits(&self, caller: &Caller, tool: &ListedTool) -> bool {
        if self.subset.is_none() && self.rules.is_empty() {
            return true;
        }
        self.admits_names(caller, tool.server.as_deref(), &Names::of_tool(tool))
    }

    /// Whether the caller may use something else of a server: a prompt by its name, a resource by its URI.
    pub fn admits_item(&self, caller: &Caller, label: &str, name: &str) -> bool {
        let name = format!("{label}__{name}");
        let names = Names {
            exposed: &name,
            full: None,
        };
        self.admits_names(caller, Some(label), &names)
    }

    /// Whether the caller may use anything of the server with this label. One that it may not use is not started
    /// for it.
    pub fn admits_server(&self, caller: &Caller, label: &str) -> bool {
        let prefix = format!("{label}__");
        let rule = self.rule(caller);
        self.offers_server(label) && rule.is_none_or(|rule| rule.admits_server(&prefix))
    }

    /// Whether anything of the server with this label is offered, rules about callers aside.
    pub fn offers_server(&self, label: &str) -> bool {
        let subset = self.subset.as_ref();
        subset.is_none_or(|subset| subset.may_contain_server(label))
    }

    /// The callers that its rules name.
    pub fn rule_callers(&self) -> impl Iterator<Item = &CallerFilter> {
        self.rules.iter().map(|rule| &rule.callers)
    }

    fn admits_names(&self, caller: &Caller, server: Option<&str>, names: &Names<'_>) -> bool {
        let subset = self.subset.as_ref();
        subset.is_none_or(|subset| subset.contains_names(server, names))
            && self.rule(caller).is_none_or(|rule| rule.admits(names))
    }

    fn rule(&self, caller: &Caller) -> Option<&AccessRule> {
        self.rules.iter().find(|rule| rule.callers.includes(caller))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    fn tool(exposed: &str, raw: &str) -> ListedTool {
        ListedTool::new(exposed, Map::new()).of_server("files", raw)
    }

    fn access(rules: Vec<AccessRule>) -> Access {
        Access::new(None, rules)
    }

    #[test]
    fn the_first_rule_that_is_for_the_caller_decides() {
        let admin = AccessRule::new(CallerFilter::default().with_role("admin"));
        let others = AccessRule::default().denying("*");
        let access = access(vec![admin, others]);
        let read = tool("files__read", "read");
        let admin = Caller::new("a").with_roles(["admin", "support"]);
        assert!(access.admits(&admin, &read));
        assert!(access.admits_server(&admin, "files"));
        assert!(!access.admits(&Caller::new("a"), &read));
        assert!(!access.admits_server(&Caller::new("a"), "files"));
        assert!(!access.admits_item(&Caller::new("a"), "files", "file:///x"));
    }

    #[test]
    fn a_shortened_name_is_denied_by_its_full_one() {
        let access = access(vec![AccessRule::default().denying("*__*delete*")]);
        let short = tool("files__then_archi_0123456789ab", "then_archive_and_delete");
        assert!(!access.admits(&Caller::new("a"), &short));
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        let rule = AccessRule {
            allow: Some(BTreeSet::new()),
            ..AccessRule::default()
        };
        let access = access(vec![rule]);
        assert!(!access.admits(&Caller::new("a"), &tool("files__read", "read")));
        assert!(!access.admits_server(&Caller::new("a"), "files"));
    }

    #[test]
    fn keys_are_named_by_id_or_name() {
        let filter = CallerFilter::default().with_key("ci").with_key("key_2");
        assert!(filter.includes(&Caller::new("a").with_key("key_1", "ci")));
        assert!(filter.includes(&Caller::new("a").with_key("key_2", "x")));
        assert!(!filter.includes(&Caller::new("ci").with_key("key_3", "x")));
        assert!(!filter.includes(&Caller::new("ci")));
    }

    #[test]
    fn only_servers_with_something_to_offer_are_used() {
        let subset = Subset::default().with_server("mail").with_tool("files__r*");
        let access = Access::new(Some(subset), Vec::new());
        assert!(access.offers_server("mail") && access.offers_server("files"));
        assert!(!access.offers_server("other"));
        let without = Subset::default().without("files__*");
        assert!(!Access::new(Some(without), Vec::new()).offers_server("files"));
    }
}
