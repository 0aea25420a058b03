//! Text and arrays that are put together piece by piece: memory is asked for before it is taken, and
//! the work is charged as it is done.

use super::Value;
use crate::vm::{Meter, Outcome};

/// How many bytes or values are put down between two looks.
const PIECE: usize = 64 << 10;

/// Where text goes.
pub(crate) trait Sink {
    /// How it ends before it is complete.
    type Stop;

    /// Appends.
    fn put(&mut self, text: &str) -> Result<(), Self::Stop>;

    /// A value is about to be written.
    fn step(&mut self) -> Result<(), Self::Stop>;
}

/// Text that grows.
pub(crate) struct Writer<'m> {
    text: String,
    meter: &'m mut Meter,
    /// At which length to look.
    due: usize,
    /// Up to where it was charged.
    charged: usize,
}

impl<'m> Writer<'m> {
    pub(crate) fn new(meter: &'m mut Meter) -> Self {
        Self::with(String::new(), meter)
    }

    /// In a buffer that was used before; it is empty.
    pub(crate) fn with(text: String, meter: &'m mut Meter) -> Self {
        let due = text.capacity().min(PIECE);
        Self {
            text,
            meter,
            due,
            charged: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, more: &str) -> Outcome<()> {
        if self.text.len() + more.len() > self.due {
            self.look(more.len())?;
        }
        self.text.push_str(more);
        Ok(())
    }

    /// Character by character.
    pub(crate) fn each(&mut self, characters: impl Iterator<Item = char>) -> Outcome<()> {
        for character in characters {
            self.push(character.encode_utf8(&mut [0; 4]))?;
        }
        Ok(())
    }

    /// The display form of a value.
    #[inline]
    pub(crate) fn show(&mut self, value: &Value) -> Outcome<()> {
        match value {
            Value::Text(text) => self.push(text),
            Value::Int(value) => self.push(super::display::digits(*value, &mut [0; 20])),
            other => super::display::write(other, self),
        }
    }

    #[cold]
    fn look(&mut self, more: usize) -> Outcome<()> {
        let (length, capacity) = (self.text.len(), self.text.capacity());
        let needed = length.saturating_add(more);
        self.meter.read(needed - self.charged)?;
        self.charged = needed;
        if needed > capacity {
            let double = needed.max(2 * capacity).max(64);
            let room = if self.meter.fits(double) {
                double
            } else {
                needed.saturating_add(PIECE)
            };
            self.meter.ask(room - capacity)?;
            self.text.reserve_exact(room - length);
        }
        self.due = self.text.capacity().min(needed + PIECE);
        Ok(())
    }

    /// The text.
    pub(crate) fn finish(self) -> Outcome<String> {
        let rest = self.text.len().saturating_sub(self.charged);
        self.meter.read(rest)?;
        Ok(self.text)
    }
}

impl Sink for Writer<'_> {
    type Stop = Box<crate::vm::Failure>;

    #[inline]
    fn put(&mut self, text: &str) -> Outcome<()> {
        self.push(text)
    }

    #[inline]
    fn step(&mut self) -> Outcome<()> {
        self.meter.work(2)
    }
}

/// Looks how long a text would be, and writes none.
pub(crate) struct Extent<'m> {
    pub(crate) meter: &'m mut Meter,
    pub(crate) length: usize,
}

impl Sink for Extent<'_> {
    type Stop = Box<crate::vm::Failure>;

    fn put(&mut self, text: &str) -> Outcome<()> {
        self.length = self.length.saturating_add(text.len());
        self.meter.room(self.length)
    }

    fn step(&mut self) -> Outcome<()> {
        self.meter.work(2)
    }
}

/// An array that grows.
pub(crate) struct Items<'m> {
    list: Vec<Value>,
    meter: &'m mut Meter,
    due: usize,
    /// What new values hold beside the array, as far as it was not asked for.
    bytes: usize,
    work: usize,
}

impl<'m> Items<'m> {
    pub(crate) fn new(meter: &'m mut Meter) -> Self {
        Self {
            list: Vec::new(),
            meter,
            due: 0,
            bytes: 40,
            work: 0,
        }
    }

    /// With room for so many.
    pub(crate) fn with_room(meter: &'m mut Meter, count: usize) -> Outcome<Self> {
        let mut items = Self::new(meter);
        items.meter.ask(count.saturating_mul(16))?;
        items.list.reserve_exact(count);
        items.due = items.list.capacity().min(1024);
        Ok(items)
    }

    /// Adds a value that holds so many bytes which nobody held before.
    #[inline]
    pub(crate) fn push(&mut self, value: Value, bytes: usize) -> Outcome<()> {
        if self.list.len() >= self.due || self.bytes > PIECE {
            self.look()?;
        }
        self.bytes += bytes;
        self.list.push(value);
        Ok(())
    }

    /// Adds text that is made for it.
    pub(crate) fn push_text(&mut self, text: &str) -> Outcome<()> {
        // Short ones lie in the value.
        let bytes = if text.len() > 14 { text.len() + 40 } else { 0 };
        self.push(Value::from(text), bytes)
    }

    /// Adds all of them; each holds so many bytes.
    pub(crate) fn extend(
        &mut self,
        values: impl IntoIterator<Item = Value>,
        bytes: usize,
    ) -> Outcome<()> {
        for value in values {
            self.push(value, bytes)?;
        }
        Ok(())
    }

    #[cold]
    fn look(&mut self) -> Outcome<()> {
        let (length, capacity) = (self.list.len(), self.list.capacity());
        self.settle()?;
        if length == capacity {
            let more = if self.meter.fits(16 * capacity) {
                capacity.max(8)
            } else {
                1024
            };
            self.meter.ask(16 * more)?;
            self.list.reserve_exact(more);
        }
        self.due = self.list.capacity().min(length + 1024);
        Ok(())
    }

    fn settle(&mut self) -> Outcome<()> {
        self.meter.ask(self.bytes)?;
        self.meter
            .work(self.list.len() - self.work + self.bytes / 16)?;
        (self.bytes, self.work) = (0, self.list.len());
        Ok(())
    }

    /// The values.
    pub(crate) fn finish(mut self) -> Outcome<Vec<Value>> {
        self.settle()?;
        Ok(self.list)
    }

    /// The array.
    pub(crate) fn array(self) -> Outcome<Value> {
        self.finish().map(Value::array)
    }
}

impl Meter {
    /// Text that is put together.
    pub(crate) fn text(
        &mut self,
        build: impl FnOnce(&mut Writer<'_>) -> Outcome<()>,
    ) -> Outcome<String> {
        let mut writer = Writer::new(self);
        build(&mut writer)?;
        writer.finish()
    }

    /// The display form of a value, whole.
    pub(crate) fn shown(&mut self, value: &Value) -> Outcome<super::Text> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            other => self.text(|out| out.show(other)).map(super::Text::from),
        }
    }

    /// Looks whether a value can be walked over by those who have no meter.
    pub(crate) fn extent(&mut self, value: &Value) -> Outcome<()> {
        if value.is_container() {
            let mut extent = Extent {
                meter: self,
                length: 0,
            };
            super::display::write(value, &mut extent)?;
        }
        Ok(())
    }
}
