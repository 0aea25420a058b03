//! The index over a list of tools: immutable, shared, and cheap to make from the one before.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::parts::{self, Draft, GONE, Part};
use super::searchable::Searchable;
use super::segment::Segment;
use super::text::squeezed;

/// Tools that can be searched.
///
/// An index never changes; [`following`](Self::following) makes the index of a changed list from it,
/// and reads only what is new. Whatever the way to a list, its index finds the same: results follow
/// from the tools and their order alone.
///
/// ```
/// use haft_catalog::search::{SearchIndex, SearchRequest};
/// use haft_core::ToolDefinition;
///
/// # fn tool(name: &str, text: &str) -> std::sync::Arc<ToolDefinition> {
/// #     let object = serde_json::json!({"type": "object"});
/// #     ToolDefinition::builder(name).description(text).parameters(object).build().unwrap()
/// # }
/// let index = SearchIndex::of([
///     tool("send_mail", "Sends a letter to somebody."),
///     tool("get_weather", "The weather in a city."),
/// ]);
/// let answer = index.search(&SearchRequest::new("how is the weather?"))?;
/// assert_eq!(answer.hits[0].name, "get_weather");
/// assert_eq!(answer.hits.len(), 1);
/// # Ok::<(), haft_catalog::search::SearchError>(())
/// ```
#[derive(Clone, Default)]
pub struct SearchIndex {
    pub(super) inner: Arc<Inner>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// In the order of the list.
    pub(super) tools: Vec<Arc<dyn Searchable>>,
    /// Where each tool is.
    places: Vec<Place>,
    pub(super) parts: Vec<Part>,
    pub(super) withheld: Vec<NeverFound>,
    /// All places of all parts, also those of tools that are gone.
    pub(super) slots: usize,
}

/// A tool of a segment.
#[derive(Clone, Copy)]
struct Place {
    part: u32,
    number: u32,
}

/// A tool that only its very name leads to, and that is told about instead of returned.
pub(super) struct NeverFound {
    pub(super) tool: Arc<dyn Searchable>,
    pub(super) squeezed: Vec<String>,
}

impl SearchIndex {
    /// Reads these tools.
    pub fn of<T: Searchable>(tools: impl IntoIterator<Item = Arc<T>>) -> Self {
        let tools = tools.into_iter().map(|tool| tool as Arc<dyn Searchable>);
        Self::default().following(tools)
    }

    /// The index of another list. Tools that are in this one already are not read again.
    #[must_use]
    pub fn following(&self, tools: impl IntoIterator<Item = Arc<dyn Searchable>>) -> Self {
        let (withheld, tools): (Vec<_>, Vec<_>) = tools
            .into_iter()
            .partition(|tool| tool.withheld().is_some());
        let drafts = self.drafts(&tools);
        Self {
            inner: Arc::new(Inner::new(tools, withheld, drafts)),
        }
    }

    /// How many tools can be found.
    pub fn len(&self) -> usize {
        self.inner.tools.len()
    }

    /// Whether nothing can be found.
    pub fn is_empty(&self) -> bool {
        self.inner.tools.is_empty()
    }

    /// About how much memory the index takes, without the tools.
    pub fn bytes(&self) -> usize {
        let parts: usize = self.inner.parts.iter().map(Part::bytes).sum();
        parts + self.len() * (size_of::<Place>() + size_of::<Arc<dyn Searchable>>())
    }

    /// Whether it is the index of exactly these tools, in this order, as they were given.
    pub fn is_of(&self, tools: &[Arc<dyn Searchable>]) -> bool {
        let own = &self.inner.tools;
        self.inner.withheld.is_empty()
            && own.len() == tools.len()
            && own
                .iter()
                .zip(tools)
                .all(|(own, tool)| address(own) == address(tool))
    }

    /// The segments that the list needs, with the places of its tools.
    fn drafts(&self, tools: &[Arc<dyn Searchable>]) -> Vec<Draft> {
        let old = &*self.inner;
        let mut drafts: Vec<Draft> = old.parts.iter().map(Draft::emptied).collect();
        let mut known = Known::of(old);
        let mut fresh: Vec<(usize, u64)> = Vec::new();
        for (position, tool) in tools.iter().enumerate() {
            match known.take(old, tool) {
                Ok(place) => drafts[place.part as usize].put(place.number as usize, position),
                Err(content) => fresh.push((position, content)),
            }
        }
        drafts.extend(parts::read(&fresh, tools));
        parts::tidied(drafts)
    }
}

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchIndex")
            .field("tools", &self.len())
            .field("parts", &self.inner.parts.len())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn new(
        tools: Vec<Arc<dyn Searchable>>,
        withheld: Vec<Arc<dyn Searchable>>,
        drafts: Vec<Draft>,
    ) -> Self {
        let parts = parts::weighed(drafts, tools.len());
        let mut places = vec![Place { part: 0, number: 0 }; tools.len()];
        for (part, of) in (0..).zip(&parts) {
            for (number, &position) in (0..).zip(&of.positions) {
                if position != GONE {
                    places[position as usize] = Place { part, number };
                }
            }
        }
        Self {
            slots: parts.iter().map(|part| part.segment.len()).sum(),
            withheld: withheld.into_iter().map(never_found).collect(),
            tools,
            places,
            parts,
        }
    }

    /// The segment of a tool and its number there.
    pub(super) fn place(&self, position: usize) -> (&Segment, usize) {
        let place = self.places[position];
        let segment = &self.parts[place.part as usize].segment;
        (segment, place.number as usize)
    }
}

fn never_found(tool: Arc<dyn Searchable>) -> NeverFound {
    let names = [Some(tool.name()), tool.raw_name()];
    NeverFound {
        squeezed: names.into_iter().flatten().map(squeezed).collect(),
        tool,
    }
}

/// The tools of an index, each to be taken once.
struct Known {
    by_address: HashMap<*const (), usize>,
    /// Only filled when a tool was not known by its address.
    by_content: Option<HashMap<u64, Vec<usize>>>,
    taken: Vec<bool>,
}

impl Known {
    fn of(old: &Inner) -> Self {
        Self {
            by_address: (old.tools.iter().map(address)).zip(0..).collect(),
            by_content: None,
            taken: vec![false; old.tools.len()],
        }
    }

    /// Where the same tool is, or the content key of a new one.
    fn take(&mut self, old: &Inner, tool: &Arc<dyn Searchable>) -> Result<Place, u64> {
        // The old index holds its tools, so that an address is still the same tool's.
        if let Some(&position) = self.by_address.get(&address(tool))
            && !std::mem::replace(&mut self.taken[position], true)
        {
            return Ok(old.places[position]);
        }
        let content = tool.content_key();
        if old.tools.is_empty() {
            return Err(content);
        }
        let by_content = self.by_content.get_or_insert_with(|| by_content(old));
        while let Some(position) = by_content.get_mut(&content).and_then(Vec::pop) {
            if !std::mem::replace(&mut self.taken[position], true) {
                return Ok(old.places[position]);
            }
        }
        Err(content)
    }
}

fn by_content(old: &Inner) -> HashMap<u64, Vec<usize>> {
    let mut by_content: HashMap<u64, Vec<usize>> = HashMap::new();
    for position in (0..old.tools.len()).rev() {
        let (segment, number) = old.place(position);
        by_content
            .entry(segment.contents[number])
            .or_default()
            .push(position);
    }
    by_content
}

fn address(tool: &Arc<dyn Searchable>) -> *const () {
    Arc::as_ptr(tool).cast()
}
