//! The list of edits: ordered, not overlapping, each judged by the policy when it is made.

use std::borrow::Cow;
use std::ops::Range;

use haft_core::RepairKind;

use super::{MAX_EVENTS, MAX_PATH_BYTES, TextPolicy, TextRefusal};

/// One replacement in the text that is being read.
#[derive(Debug, Clone)]
pub(super) struct Edit {
    pub(super) kind: RepairKind,
    pub(super) range: Range<usize>,
    pub(super) after: Cow<'static, str>,
    pub(super) path: String,
}

/// The edits made so far.
#[derive(Debug)]
pub(super) struct Edits {
    policy: TextPolicy,
    list: Vec<Edit>,
    path_bytes: usize,
}

impl Edits {
    pub(super) fn new(policy: TextPolicy) -> Self {
        Self {
            policy,
            list: Vec::new(),
            path_bytes: 0,
        }
    }

    /// Whether the policy would take an edit of this kind.
    pub(super) fn admit(&self, kind: RepairKind, offset: usize) -> Result<(), TextRefusal> {
        match self.policy {
            TextPolicy::Preview => Ok(()),
            TextPolicy::Arguments if kind.class().admissible_in_arguments() => Ok(()),
            TextPolicy::Arguments => Err(TextRefusal::Inadmissible { kind, offset }),
        }
    }

    /// Takes the bytes of one more path from the budget.
    pub(super) fn reserve_path(&mut self, bytes: usize) -> Result<(), TextRefusal> {
        self.path_bytes += bytes;
        if self.path_bytes > MAX_PATH_BYTES {
            return Err(TextRefusal::TooManyEdits { limit: MAX_EVENTS });
        }
        Ok(())
    }

    /// Records an edit. It may lie before the last ones (a comma that proves superfluous only once
    /// the comments behind it are read), so it is filed where its offset wants it.
    pub(super) fn push(&mut self, edit: Edit) -> Result<(), TextRefusal> {
        self.admit(edit.kind, edit.range.start)?;
        if self.list.len() >= MAX_EVENTS {
            return Err(TextRefusal::TooManyEdits { limit: MAX_EVENTS });
        }
        let behind = self.list.iter().rev();
        let later = behind.take_while(|other| other.range.start > edit.range.start);
        let place = self.list.len() - later.count();
        self.list.insert(place, edit);
        Ok(())
    }

    /// As [`push`](Self::push), but before the edits that were made at the same offset.
    pub(super) fn push_before(&mut self, edit: Edit) -> Result<(), TextRefusal> {
        self.admit(edit.kind, edit.range.start)?;
        if self.list.len() >= MAX_EVENTS {
            return Err(TextRefusal::TooManyEdits { limit: MAX_EVENTS });
        }
        let behind = self.list.iter().rev();
        let later = behind.take_while(|other| other.range.start >= edit.range.start);
        let place = self.list.len() - later.count();
        self.list.insert(place, edit);
        Ok(())
    }

    /// Neighbouring characters with the same fault make one event (`\r\n` in a string).
    pub(super) fn merge(&mut self, kind: RepairKind, range: &Range<usize>, after: &str) -> bool {
        let mergeable = matches!(
            kind,
            RepairKind::RawControl | RepairKind::SpecialBlank | RepairKind::SurplusClose
        );
        let Some(last) = self.list.last_mut().filter(|_| mergeable) else {
            return false;
        };
        if last.kind != kind || last.range.end != range.start {
            return false;
        }
        last.range.end = range.end;
        last.after.to_mut().push_str(after);
        true
    }

    /// How many edits there are: a mark for [`rewind`](Self::rewind) and [`retag`](Self::retag).
    pub(super) fn mark(&self) -> usize {
        self.list.len()
    }

    /// Forgets the edits made since the mark.
    pub(super) fn rewind(&mut self, mark: usize) {
        self.list.truncate(mark);
    }

    /// Forgets the edits that start at or behind an offset.
    pub(super) fn rewind_to(&mut self, offset: usize) {
        let behind = self.list.iter().rev();
        let later = behind.take_while(|edit| edit.range.start >= offset);
        self.list.truncate(self.list.len() - later.count());
    }

    /// Gives the edits of one kind made since the mark another kind.
    pub(super) fn retag(&mut self, mark: usize, from: RepairKind, to: RepairKind) {
        let recent = self.list.iter_mut().skip(mark);
        for edit in recent.filter(|edit| edit.kind == from) {
            edit.kind = to;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Edit> {
        std::mem::take(&mut self.list)
    }
}
