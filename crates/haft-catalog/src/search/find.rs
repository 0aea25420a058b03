//! One search, from the request to the answer.

use std::collections::HashSet;

use super::answer::{Reason, SearchAnswer, SearchHit, Shown, Withheld};
use super::closure::{Needed, closure};
use super::exact::ByName;
use super::fusion::{Voter, fused};
use super::index::{Inner, SearchIndex};
use super::query::Query;
use super::rankers::{Allowed, Ranked, by_runs, by_stems, matched};
use super::request::{Detail, SearchError, SearchRequest};
use super::searchable::Searchable;

/// Counts the tokens of a text.
pub type TokenCounter = fn(&str) -> usize;

/// A quarter of the bytes: what is counted by if nobody knows better.
pub fn estimated_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// What a name that begins with the query is worth, and where everything else begins if there are
/// names: below.
const PREFIX_SCORE: f64 = 0.99;
const BELOW_NAMES: f64 = 0.98;

/// A tool that fits a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) position: u32,
    pub(super) score: f64,
    pub(super) reason: Reason,
}

/// What an embedder says about one query.
pub(super) struct Dense {
    pub(super) ranking: Vec<Ranked>,
    /// How much it counts beside the two others, which count 1 each.
    pub(super) weight: f64,
}

/// Everything that fits one query, the best first.
pub(super) struct FoundList<'q> {
    pub(super) query: &'q Query,
    pub(super) found: Vec<Found>,
    pub(super) by_name: ByName,
}

impl<'q> FoundList<'q> {
    pub(super) fn of(
        index: &Inner,
        query: &'q Query,
        allowed: Allowed<'_>,
        dense: impl FnOnce(&[Ranked]) -> Option<Dense>,
    ) -> Self {
        let by_name = ByName::find(index, query, allowed);
        let mut found: Vec<Found> = Vec::new();
        let by_reason = |score, reason| {
            move |&position: &u32| Found {
                position,
                score,
                reason,
            }
        };
        found.extend(by_name.exact.iter().map(by_reason(1.0, Reason::Exact)));
        found.extend(
            by_name
                .prefix
                .iter()
                .map(by_reason(PREFIX_SCORE, Reason::Prefix)),
        );
        if !by_name.only {
            let names: HashSet<u32> = found.iter().map(|it| it.position).collect();
            let most = if names.is_empty() { 1.0 } else { BELOW_NAMES };
            let ranked = ranked(index, query, allowed, dense).into_iter();
            found.extend(
                ranked
                    .filter(|it| !names.contains(&it.position))
                    .map(|it| Found {
                        score: it.score * most,
                        ..it
                    }),
            );
        }
        Self {
            query,
            found,
            by_name,
        }
    }

    /// Those for which something speaks, in order, with the words that do.
    pub(super) fn good(&self, index: &Inner) -> impl Iterator<Item = (Found, Vec<&'q str>)> {
        self.found.iter().filter_map(|&found| {
            let words = matched(index, self.query, found.position as usize);
            let is_evident = found.reason != Reason::Lexical || !words.is_empty();
            is_evident.then_some((found, words))
        })
    }
}

fn ranked(
    index: &Inner,
    query: &Query,
    allowed: Allowed<'_>,
    dense: impl FnOnce(&[Ranked]) -> Option<Dense>,
) -> Vec<Found> {
    let stems = by_stems(index, query, allowed);
    let runs = by_runs(index, query, allowed);
    let voter = |ranking| Voter {
        ranking,
        weight: 1.0,
    };
    let lexical = [voter(&*stems), voter(&*runs)];
    let found = |reason| {
        move |it: super::fusion::Fused| Found {
            position: it.position,
            score: it.score,
            reason,
        }
    };
    let lexical_alone = fused(&lexical).into_iter().map(found(Reason::Lexical));
    let as_ranked = |it: &Found| Ranked {
        position: it.position,
        score: 0.0,
    };
    let lexical_alone: Vec<Found> = lexical_alone.collect();
    let order: Vec<Ranked> = lexical_alone.iter().map(as_ranked).collect();
    let Some(dense) = dense(&order) else {
        return lexical_alone;
    };
    let known: HashSet<u32> = order.iter().map(|it| it.position).collect();
    let [stems, runs] = lexical;
    let third = Voter {
        ranking: &dense.ranking,
        weight: dense.weight,
    };
    let all = fused(&[stems, runs, third]).into_iter();
    all.map(|it| {
        let is_known = known.contains(&it.position);
        found(if is_known {
            Reason::Lexical
        } else {
            Reason::Dense
        })(it)
    })
    .collect()
}

impl SearchIndex {
    /// The tools that fit best. The same tools and the same request give the same answer.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, SearchError> {
        self.search_counting(request, estimated_tokens)
    }

    /// As [`search`](Self::search), with tokens counted by somebody who knows.
    pub fn search_counting(
        &self,
        request: &SearchRequest,
        count: TokenCounter,
    ) -> Result<SearchAnswer, SearchError> {
        self.search_with(request, count, |_, _, _, _| None)
    }

    pub(super) fn search_with(
        &self,
        request: &SearchRequest,
        count: TokenCounter,
        dense: impl Fn(usize, &Query, &[Ranked], Allowed<'_>) -> Option<Dense>,
    ) -> Result<SearchAnswer, SearchError> {
        request.check()?;
        let index = &*self.inner;
        let allowed = allowed(index, request);
        let allowed = allowed.as_deref();
        let queries: Vec<Query> = request.queries.iter().map(|it| Query::read(it)).collect();
        let lists: Vec<FoundList<'_>> = queries
            .iter()
            .enumerate()
            .map(|(at, query)| {
                FoundList::of(index, query, allowed, |order| {
                    dense(at, query, order, allowed)
                })
            })
            .collect();
        let search = Search {
            index,
            request,
            allowed,
            count,
        };
        Ok(search.answer(&lists))
    }
}

/// Which tools may be returned; none says all.
fn allowed(index: &Inner, request: &SearchRequest) -> Option<Vec<bool>> {
    if request.servers.is_none() && request.sections.is_none() && request.exclude.is_empty() {
        return None;
    }
    let has = |names: &Option<Vec<String>>, name: Option<&str>| {
        let names = names.as_ref();
        names.is_none_or(|names| name.is_some_and(|name| names.iter().any(|it| it == name)))
    };
    let is_allowed = |tool: &std::sync::Arc<dyn Searchable>| {
        has(&request.servers, tool.server())
            && has(&request.sections, tool.section().map(|it| &*it.key))
            && !request.exclude.iter().any(|name| name == tool.name())
    };
    Some(index.tools.iter().map(is_allowed).collect())
}

/// A tool of the answer.
struct Chosen<'q> {
    found: Found,
    words: Vec<&'q str>,
}

struct Search<'a> {
    index: &'a Inner,
    request: &'a SearchRequest,
    allowed: Allowed<'a>,
    count: TokenCounter,
}

impl Search<'_> {
    fn answer(&self, lists: &[FoundList<'_>]) -> SearchAnswer {
        let (chosen, exhausted) = self.chosen(lists);
        let pinned: Vec<u32> = self.pinned(&chosen);
        let mut kept = chosen.len();
        let (hits, shown_tokens) = loop {
            let hits = self.hits(&pinned, &chosen[..kept]);
            let tokens = hits.iter().map(|hit| self.tokens(hit)).sum();
            let fits = self
                .request
                .budget_tokens
                .is_none_or(|budget| tokens <= budget);
            if fits || kept <= 1 {
                break (hits, tokens);
            }
            kept -= 1;
        };
        let total_tools = self.allowed.map_or(self.index.tools.len(), |allowed| {
            allowed.iter().filter(|&&allowed| allowed).count()
        });
        SearchAnswer {
            hits,
            total_tools,
            shown_tokens,
            exhausted: exhausted && kept == chosen.len(),
            withheld: self.withheld(lists),
        }
    }

    /// The first `k` of all lists, one of each in turn; and whether that was all.
    fn chosen<'q>(&self, lists: &[FoundList<'q>]) -> (Vec<Chosen<'q>>, bool) {
        let only = lists.iter().all(|list| list.by_name.only);
        let named = lists.iter().map(|list| list.by_name.exact.len()).sum();
        // Who selects tools by name gets all of them.
        let k = if only {
            self.request.k.max(named)
        } else {
            self.request.k
        };
        let mut lists: Vec<_> = lists.iter().map(|list| list.good(self.index)).collect();
        let mut taken = HashSet::new();
        let mut chosen = Vec::new();
        while !lists.is_empty() {
            lists.retain_mut(|list| {
                let next = list.find(|(found, _)| !taken.contains(&found.position));
                if let Some((found, words)) = next
                    && chosen.len() < k
                {
                    taken.insert(found.position);
                    chosen.push(Chosen { found, words });
                    return true;
                }
                false
            });
            if chosen.len() >= k {
                break;
            }
        }
        let exhausted = chosen.len() < k || only;
        (chosen, exhausted)
    }

    fn pinned(&self, chosen: &[Chosen<'_>]) -> Vec<u32> {
        let wanted = &self.request.always;
        let tools = (0..).zip(&self.index.tools);
        tools
            .filter(|(_, tool)| wanted.iter().any(|name| name == tool.name()))
            .map(|(position, _)| position)
            .filter(|&position: &u32| {
                !self
                    .request
                    .exclude
                    .iter()
                    .any(|name| name == self.index.tools[position as usize].name())
            })
            .filter(|position| chosen.iter().all(|it| it.found.position != *position))
            .collect()
    }

    fn hits(&self, pinned: &[u32], chosen: &[Chosen<'_>]) -> Vec<SearchHit> {
        let mut hits: Vec<SearchHit> = Vec::with_capacity(pinned.len() + chosen.len());
        for &position in pinned {
            hits.push(self.hit(position, 0.0, Reason::Pinned, &[], None));
        }
        for Chosen { found, words } in chosen {
            hits.push(self.hit(found.position, found.score, found.reason, words, None));
        }
        // What is always there does not bring what it needs: whoever names it names that too.
        let roots: Vec<u32> = chosen.iter().map(|it| it.found.position).collect();
        let excluded = |tool: &dyn Searchable| {
            let position = pinned
                .iter()
                .any(|&it| self.index.tools[it as usize].name() == tool.name());
            position || self.request.exclude.iter().any(|name| name == tool.name())
        };
        let needed = closure(self.index, &roots, self.request.max_dependencies, excluded);
        for Needed { position, via } in needed {
            let via = self.index.tools[via as usize].name();
            hits.push(self.hit(position, 0.0, Reason::Dependency, &[], Some(via)));
        }
        hits
    }

    fn hit(
        &self,
        position: u32,
        score: f64,
        reason: Reason,
        words: &[&str],
        via: Option<&str>,
    ) -> SearchHit {
        let tool = &self.index.tools[position as usize];
        SearchHit {
            name: tool.name().to_owned(),
            server: tool.server().map(str::to_owned),
            section: tool.section().map(|section| section.key.clone()),
            score: (score * 10_000.0).round() / 10_000.0,
            reason,
            matched: words.iter().map(|&word| word.to_owned()).collect(),
            via: via.map(str::to_owned),
            shown: match self.request.detail {
                Detail::Names => Shown::Name,
                Detail::Brief => Shown::Brief {
                    brief: tool.brief(),
                },
                Detail::Full => Shown::Definition {
                    definition: tool.definition(),
                },
            },
            position: position as usize,
        }
    }

    fn tokens(&self, hit: &SearchHit) -> usize {
        match &hit.shown {
            Shown::Name => (self.count)(&hit.name),
            Shown::Brief { brief } => (self.count)(&format!("{}: {brief}", hit.name)),
            Shown::Definition { definition } => (self.count)(&definition.to_string()),
        }
    }

    fn withheld(&self, lists: &[FoundList<'_>]) -> Vec<Withheld> {
        let mut named: Vec<usize> = lists
            .iter()
            .flat_map(|it| it.by_name.withheld.clone())
            .collect();
        named.sort_unstable();
        named.dedup();
        let tools = named.into_iter().map(|at| &self.index.withheld[at].tool);
        tools
            .map(|tool| Withheld {
                name: tool.name().to_owned(),
                why: tool.withheld().unwrap_or_default().to_owned(),
            })
            .collect()
    }
}
