//! Wire names: legal, distinct, and a function of what is there.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use haft_catalog::Catalog;
use haft_core::{Namespace, ToolName};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::common::*;

#[test]
fn a_tool_in_no_namespace_keeps_its_name_and_the_namespaced_one_makes_way() {
    let files = namespace("files");
    let hashed = ToolName::in_namespace_hashed(&files, "read");
    for plain_first in [true, false] {
        let catalog = Catalog::new();
        if plain_first {
            catalog.register(definition("files__read")).unwrap();
        }
        let wire = catalog.register_in(&files, definition("read")).unwrap();
        assert_eq!(wire == hashed, plain_first, "the name at that moment");
        if !plain_first {
            catalog.register(definition("files__read")).unwrap();
        }
        assert_eq!(names(&catalog.snapshot()), ["files__read", hashed.as_str()]);
        catalog.remove("files__read");
        assert_eq!(names(&catalog.snapshot()), ["files__read"]);
        assert_eq!(
            catalog.snapshot().identity("files__read").unwrap().1,
            "read",
            "the namespaced tool has its plain name back"
        );
    }
}

#[test]
fn what_still_ends_on_one_name_is_a_duplicate_in_every_order() {
    let files = namespace("files");
    let hashed = ToolName::in_namespace_hashed(&files, "read");
    let register: [&dyn Fn(&Catalog) -> bool; 3] = [
        &|c| c.register_in(&files, definition("read")).is_ok(),
        &|c| c.register(definition("files__read")).is_ok(),
        &|c| c.register(definition(hashed.as_str())).is_ok(),
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let catalog = Catalog::new();
        let outcomes = order.map(|step| register[step](&catalog));
        assert_eq!(outcomes, [true, true, false], "{order:?}");
        assert_eq!(catalog.len(), 2);
    }
}

#[test]
fn a_displaced_tool_keeps_its_validator_without_compiling_again() {
    let factory = std::sync::Arc::new(Counting::default());
    let catalog = Catalog::builder()
        .validator_factory(factory.clone())
        .build();
    catalog
        .register_in(&namespace("files"), definition("read"))
        .unwrap();
    catalog.register(definition("files__read")).unwrap();
    for tool in catalog.snapshot().iter() {
        tool.validator().unwrap().unwrap();
    }
    assert_eq!(factory.compiled(), 2);
}

/// A tool to register, by identity. One alphabet for names, so that they collide.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Identity {
    Native(Option<String>, String),
    Grouped(String, String),
}

pub(crate) fn identity() -> impl Strategy<Value = Identity> {
    let space = prop::sample::select(vec!["a", "b", "a_b", "files", "abcdefghijklmnopqrstuvwx"]);
    let legal = prop_oneof![
        prop::sample::select(vec![
            "x", "y", "b__x", "a__x", "files__x", "a_b__x", "_x", "x_"
        ]),
        prop::sample::select(vec![
            "a_very_long_name_that_does_not_fit_behind_a_long_namespace_0123",
            "a_very_long_name_that_does_not_fit_behind_a_long_namespace_0124",
        ]),
    ];
    let raw = prop_oneof![
        legal.clone().prop_map(str::to_owned),
        prop::sample::select(vec!["x.y", "x/y", "x y", "", "日本"]).prop_map(str::to_owned),
        "[a-z._ ]{0,90}",
    ];
    prop_oneof![
        (prop::option::of(space.clone()), legal)
            .prop_map(|(space, name)| Identity::Native(space.map(str::to_owned), name.to_owned())),
        (space, raw).prop_map(|(label, raw)| Identity::Grouped(label.to_owned(), raw)),
    ]
}

/// Distinct tools. Those of one group stand in the order of their identities.
pub(crate) fn identities() -> impl Strategy<Value = Vec<Identity>> {
    prop::collection::btree_set(identity(), 0..24).prop_map(|set| set.into_iter().collect())
}

/// Registers in the given order; a server's list keeps its own.
pub(crate) fn catalog_of(order: &[Identity]) -> Catalog {
    let catalog = Catalog::builder()
        .groups(["files", "b"].map(namespace))
        .build();
    let mut groups: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for identity in order {
        if let Identity::Grouped(label, raw) = identity {
            groups.entry(label).or_default().insert(raw);
        }
    }
    let mut connected = HashSet::new();
    for identity in order {
        match identity {
            Identity::Native(None, name) => drop(catalog.register(definition(name))),
            Identity::Native(Some(space), name) => {
                drop(catalog.register_in(&namespace(space), definition(name)));
            }
            Identity::Grouped(label, _) if connected.insert(label) => {
                let tools = groups[label].iter().map(|raw| foreign(raw));
                catalog.set_group(&namespace(label), tools);
            }
            Identity::Grouped(..) => {}
        }
    }
    catalog
}

type Names = BTreeMap<(Option<Namespace>, String), ToolName>;

/// The names by namespace and description, which tells native and served tools apart.
fn names_of(catalog: &Catalog) -> Names {
    let snapshot = catalog.snapshot();
    let definitions = snapshot.definitions().map(|definition| {
        let (space, _) = snapshot.identity(definition.name().as_str()).unwrap();
        let description = definition.description().unwrap().to_owned();
        ((space.cloned(), description), definition.name().clone())
    });
    definitions.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn names_are_legal_and_distinct(order in identities()) {
        let catalog = catalog_of(&order);
        let snapshot = catalog.snapshot();
        let distinct: HashSet<_> = snapshot.names().collect();
        prop_assert_eq!(distinct.len(), snapshot.len());
        for name in snapshot.names() {
            prop_assert!(ToolName::new(name.as_str()).is_ok());
        }
        for (key, name) in names_of(&catalog) {
            if key.0.is_some() {
                let first = name.as_str().as_bytes()[0];
                prop_assert!(first.is_ascii_alphabetic(), "{}", name);
            }
        }
        let left_out = catalog.diagnostics();
        prop_assert_eq!(snapshot.len() + left_out.len(), order.len(), "{:?}", left_out);
    }

    #[test]
    fn the_order_of_registration_and_connection_shows_nowhere(
        (order, shuffled) in identities().prop_flat_map(|order| {
            (Just(order.clone()), Just(order).prop_shuffle())
        })
    ) {
        let (one, other) = (catalog_of(&order).snapshot(), catalog_of(&shuffled).snapshot());
        prop_assert_eq!(names(&one), names(&other));
    }

    #[test]
    fn what_was_there_and_is_gone_shows_nowhere(
        (all, kept) in identities().prop_flat_map(|all| {
            let count = 0..=all.len();
            (Just(all.clone()).prop_shuffle(), subsequence(all, count))
        })
    ) {
        let native = |tool: &Identity| matches!(tool, Identity::Native(..));
        let all: Vec<_> = all.into_iter().filter(native).collect();
        let kept: Vec<_> = kept.into_iter().filter(native).collect();
        let catalog = catalog_of(&all);
        for gone in all.iter().filter(|tool| !kept.contains(tool)) {
            let snapshot = catalog.snapshot();
            let wire = match gone {
                Identity::Native(None, name) => snapshot.get(name),
                Identity::Native(Some(space), name) => snapshot.find(&namespace(space), name),
                Identity::Grouped(..) => None,
            };
            let wire = wire.unwrap().definition().name().clone();
            prop_assert!(catalog.remove(wire.as_str()).is_some());
        }
        let (left, fresh) = (catalog.snapshot(), catalog_of(&kept).snapshot());
        prop_assert_eq!(names(&left), names(&fresh));
    }

    /// `mcp.md` §7.2 rule 5 asks for the one exception: a native tool takes its name, and whoever
    /// bore it as a plain form moves to its hashed form.
    #[test]
    fn adding_tools_changes_no_name_but_one_that_a_native_tool_takes(
        (all, some) in identities().prop_flat_map(|all| {
            let count = 0..=all.len();
            (Just(all.clone()), subsequence(all, count))
        })
    ) {
        let (before, after) = (names_of(&catalog_of(&some)), names_of(&catalog_of(&all)));
        for ((space, description), name) in before {
            let Some(now) = after.get(&(space.clone(), description.clone())) else {
                prop_assert!(description.starts_with("Serves"), "{name} is lost");
                continue;
            };
            if *now != name {
                let (taker, _) = after.iter().find(|(_, n)| **n == name).unwrap();
                prop_assert!(taker.1.starts_with("Does"), "a native tool took {name}");
                let raw = description.split_once(' ').unwrap().1.strip_suffix('.').unwrap();
                prop_assert_eq!(now, &ToolName::in_namespace_hashed(&space.unwrap(), raw));
            }
        }
    }
}
