//! A conversation to `system` and `messages`.
//!
//! What comes in: items in the order in which they happened. What goes out: turns that alternate
//! between user and assistant, as the API wants them. All results of a turn stand together at the
//! start of the user's turn that follows their calls, in call order, whatever came between.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::{Capabilities, Entry, Item, ModelError, ModelRequest};

use super::super::tools::RenderedTools;
use super::blocks::{Block, Blocks, key, render, text_block};
use super::references::{References, Referring};

/// A conversation in this API's order. It holds the items' rendered blocks, not copies.
#[derive(Default)]
pub(super) struct Turns {
    /// The blocks of `system`.
    pub(super) system: Vec<BlockRef>,
    /// The turns, user and assistant in alternation.
    pub(super) messages: Vec<Turn>,
}

/// What one side says before the other does.
pub(super) struct Turn {
    pub(super) is_user: bool,
    results: Vec<(usize, BlockRef)>,
    others: Vec<BlockRef>,
    calls: usize,
}

/// One block of an item's blocks.
pub(super) struct BlockRef(Arc<Result<Blocks, ModelError>>, Part);

#[derive(Clone, Copy)]
enum Part {
    At(usize),
    Leading,
    Later,
}

impl BlockRef {
    /// A block that no item keeps.
    fn alone(block: Block) -> Self {
        Self(Arc::new(Ok(Blocks::User(vec![block]))), Part::At(0))
    }

    pub(super) fn block(&self) -> Option<&Block> {
        match (self.0.as_ref().as_ref().ok()?, self.1) {
            (Blocks::Assistant(blocks) | Blocks::User(blocks), Part::At(at)) => blocks.get(at),
            (Blocks::Call(block) | Blocks::Output(block), _)
            | (Blocks::Host { leading: block, .. }, Part::Leading)
            | (Blocks::Host { later: block, .. }, Part::Later) => Some(block),
            _ => None,
        }
    }
}

impl Turn {
    fn new(is_user: bool) -> Self {
        Self {
            is_user,
            results: Vec::new(),
            others: Vec::new(),
            calls: 0,
        }
    }

    /// The blocks in the order in which they are sent.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        let results = self.results.iter().map(|(_, block)| block);
        results.chain(&self.others).filter_map(BlockRef::block)
    }
}

impl Turns {
    /// Puts a conversation in order.
    pub(super) fn of(
        request: &ModelRequest,
        capabilities: &Capabilities,
        tools: &RenderedTools,
    ) -> Result<Self, ModelError> {
        let mut turns = Self::default();
        let instructions = request.instructions.as_deref();
        if let Some(instructions) = instructions.filter(|text| !text.is_empty()) {
            turns.tell(instructions);
        }
        // Where each call stands: its turn, and its place among the calls of that turn.
        let mut calls: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut references = References::of(tools);
        for entry in request.conversation.entries() {
            if References::is_search(entry.item()) {
                let block = references.search(entry.item());
                turns.extend_with(false, block);
            } else if let Item::FunctionCallOutput(output) = entry.item()
                && let Some(Referring { result, words }) = references.output(output)
            {
                let result = Arc::new(Ok(Blocks::Output(result)));
                let turn = turns.add_result(&output.call_id, &result, &calls);
                turn.others.extend(words.map(BlockRef::alone));
            } else {
                turns.add(entry, capabilities, &mut calls)?;
            }
        }
        for turn in &mut turns.messages {
            turn.results.sort_by_key(|(place, _)| *place);
        }
        Ok(turns)
    }

    /// Adds words to `system`.
    pub(super) fn tell(&mut self, text: &str) {
        self.system.push(BlockRef::alone(text_block(text)));
    }

    fn add<'a>(
        &mut self,
        entry: &'a Entry,
        capabilities: &Capabilities,
        calls: &mut HashMap<&'a str, (usize, usize)>,
    ) -> Result<(), ModelError> {
        let render = || render(entry.item(), capabilities);
        let rendered = entry.rendered().get(key(capabilities), render);
        let blocks = rendered.as_ref().as_ref().map_err(Clone::clone)?;
        match (blocks, entry.item()) {
            (Blocks::User(blocks), _) => self.extend(true, &rendered, blocks.len()),
            (Blocks::Assistant(blocks), _) => self.extend(false, &rendered, blocks.len()),
            (Blocks::Host { .. }, _) if self.messages.is_empty() => {
                self.system
                    .push(BlockRef(Arc::clone(&rendered), Part::Leading));
            }
            (Blocks::Host { .. }, _) => {
                let block = BlockRef(Arc::clone(&rendered), Part::Later);
                self.turn(true).others.push(block);
            }
            (Blocks::Call(_), Item::FunctionCall(call)) => {
                let turn = self.turn(false);
                let place = turn.calls;
                turn.calls += 1;
                turn.others
                    .push(BlockRef(Arc::clone(&rendered), Part::At(0)));
                calls.insert(&call.call_id, (self.messages.len() - 1, place));
            }
            (Blocks::Output(_), Item::FunctionCallOutput(output)) => {
                self.add_result(&output.call_id, &rendered, calls);
            }
            // Only calls and outputs render to those.
            (Blocks::Nothing | Blocks::Call(_) | Blocks::Output(_), _) => {}
        }
        Ok(())
    }

    /// Puts a result into the turn that follows its call; gives that turn.
    fn add_result(
        &mut self,
        call_id: &str,
        rendered: &Arc<Result<Blocks, ModelError>>,
        calls: &HashMap<&str, (usize, usize)>,
    ) -> &mut Turn {
        // An output without call is sent too: that it is wrong is the provider's to say.
        let known = calls.get(call_id).copied();
        let (turn, place) = known.unwrap_or((usize::MAX - 1, usize::MAX));
        if self.messages.get(turn + 1).is_none() {
            self.turn(true);
        }
        let last = self.messages.len() - 1;
        let turn = &mut self.messages[last.min(turn + 1)];
        let block = BlockRef(Arc::clone(rendered), Part::At(0));
        turn.results.push((place, block));
        turn
    }

    /// Adds blocks that no item keeps.
    fn extend_with(&mut self, is_user: bool, blocks: impl IntoIterator<Item = Block>) {
        for block in blocks {
            self.turn(is_user).others.push(BlockRef::alone(block));
        }
    }

    fn extend(&mut self, is_user: bool, rendered: &Arc<Result<Blocks, ModelError>>, count: usize) {
        if count > 0 {
            let blocks = (0..count).map(|at| BlockRef(Arc::clone(rendered), Part::At(at)));
            self.turn(is_user).others.extend(blocks);
        }
    }

    /// The turn of that side: the last one, or a new one behind it.
    fn turn(&mut self, is_user: bool) -> &mut Turn {
        let is_new = self
            .messages
            .last()
            .is_none_or(|turn| turn.is_user != is_user);
        if is_new {
            self.messages.push(Turn::new(is_user));
        }
        let last = self.messages.len() - 1;
        &mut self.messages[last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::{FunctionCallOutput, Reasoning};

    /// The turns as `user: a, b`.
    fn shape(items: Vec<Item>) -> Vec<String> {
        let request = ModelRequest {
            conversation: items.into(),
            ..ModelRequest::default()
        };
        let tools = RenderedTools::default();
        let turns = Turns::of(&request, &Capabilities::default(), &tools).unwrap();
        let system = turns.system.iter().filter_map(BlockRef::block).map(name);
        let system: Vec<String> = system.collect();
        let mut shape = vec![format!("system: {}", system.join(", "))];
        for turn in &turns.messages {
            let side = if turn.is_user { "user" } else { "assistant" };
            let blocks: Vec<String> = turn.blocks().map(name).collect();
            shape.push(format!("{side}: {}", blocks.join(", ")));
        }
        shape
    }

    fn name(block: &Block) -> String {
        let json: serde_json::Value = serde_json::from_str(&block.json).unwrap();
        let keys = ["text", "id", "tool_use_id", "thinking"];
        let known = keys.iter().find_map(|key| json[*key].as_str());
        known.unwrap().to_owned()
    }

    fn call(id: &str) -> Item {
        Item::function_call(id, "n", "{}")
    }

    fn output(id: &str) -> Item {
        Item::FunctionCallOutput(FunctionCallOutput::new(id, "o"))
    }

    #[test]
    fn sides_alternate_and_neighbours_are_one_turn() {
        let items = vec![
            Item::developer("d"),
            Item::user("a"),
            Item::user("b"),
            Item::assistant("c"),
            Item::assistant("e"),
            Item::user("f"),
        ];
        assert_eq!(
            shape(items),
            ["system: d", "user: a, b", "assistant: c, e", "user: f"]
        );
    }

    #[test]
    fn results_stand_first_and_in_call_order() {
        let items = vec![
            Item::user("go"),
            Item::assistant("ok"),
            call("1"),
            call("2"),
            Item::user("hurry"),
            output("2"),
            output("1"),
            Item::assistant("done"),
        ];
        assert_eq!(
            shape(items),
            [
                "system: ",
                "user: go",
                "assistant: ok, 1, 2",
                "user: 1, 2, hurry",
                "assistant: done"
            ]
        );
    }

    #[test]
    fn a_late_result_goes_to_the_turn_after_its_call() {
        let items = vec![
            Item::user("go"),
            call("1"),
            Item::user("and"),
            call("2"),
            output("2"),
            output("1"),
        ];
        assert_eq!(
            shape(items),
            [
                "system: ",
                "user: go",
                "assistant: 1",
                "user: 1, and",
                "assistant: 2",
                "user: 2"
            ]
        );
    }

    #[test]
    fn later_words_of_the_host_stay_in_their_place() {
        let items = vec![Item::user("a"), Item::developer("b"), Item::assistant("c")];
        assert_eq!(
            shape(items),
            [
                "system: ",
                "user: a, <system>\nb\n</system>",
                "assistant: c"
            ]
        );
    }

    #[test]
    fn thoughts_of_others_leave_no_empty_turn() {
        let thought = Item::Reasoning(Reasoning {
            encrypted_content: Some("gAAA".into()),
            ..Reasoning::default()
        });
        let items = vec![Item::user("a"), thought, Item::user(""), Item::user("b")];
        assert_eq!(shape(items), ["system: ", "user: a, b"]);
    }

    #[test]
    fn an_output_without_call_is_still_sent() {
        assert_eq!(shape(vec![output("x")]), ["system: ", "user: x"]);
        assert_eq!(
            shape(vec![Item::user("a"), output("x")]),
            ["system: ", "user: x, a"]
        );
    }
}
