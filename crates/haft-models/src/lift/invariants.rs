//! What must hold for the events of every answer, however odd the server is. For tests.

use std::collections::{BTreeMap, BTreeSet};

use haft_core::{Item, ItemKind, ModelEvent};

/// Panics unless every item begins once, in order, is written only while it is open and is done
/// once, as what it began as, and nothing comes before the start or after the end.
pub(crate) fn check(events: &[ModelEvent], is_finished: bool) {
    let mut open = BTreeSet::new();
    let mut kinds = BTreeMap::new();
    let mut ids = BTreeMap::new();
    let mut begun = 0;
    for (place, event) in events.iter().enumerate() {
        match event {
            ModelEvent::Started { .. } => assert_eq!(place, 0, "{events:#?}"),
            ModelEvent::ItemStarted { index, id, kind } => {
                assert!(place > 0, "{events:#?}");
                ids.insert(*index, id);
                assert_eq!(*index, begun, "{events:#?}");
                begun += 1;
                open.insert(*index);
                kinds.insert(*index, kind);
            }
            ModelEvent::TextDelta { index, text }
            | ModelEvent::RefusalDelta { index, text }
            | ModelEvent::ReasoningDelta { index, text }
            | ModelEvent::SummaryDelta { index, text, .. }
            | ModelEvent::ArgumentsDelta { index, text } => {
                assert!(!text.is_empty(), "{events:#?}");
                assert!(open.contains(index), "{events:#?}");
            }
            ModelEvent::ItemDone { index, item } => {
                assert!(open.remove(index), "{events:#?}");
                let kind = kinds[index];
                if let Some(id) = ids[index] {
                    assert_eq!(item.id(), Some(id.as_str()), "{events:#?}");
                }
                let fits = matches!(
                    (item, kind),
                    (Item::Message(_), ItemKind::Message)
                        | (Item::Reasoning(_), ItemKind::Reasoning)
                        | (Item::FunctionCall(_), ItemKind::FunctionCall { .. })
                        | (
                            Item::Other(_),
                            ItemKind::Other { .. } | ItemKind::Provider { .. }
                        )
                );
                assert!(fits, "{events:#?}");
            }
            ModelEvent::Finished { .. } => {
                assert_eq!(place + 1, events.len(), "{events:#?}");
                assert!(open.is_empty(), "{events:#?}");
            }
            _ => {}
        }
    }
    let ended = matches!(events.last(), Some(ModelEvent::Finished { .. }));
    assert_eq!(ended, is_finished, "{events:#?}");
}
