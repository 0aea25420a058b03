//! A model without a network and without weights: rules that pick tools and fill their arguments.
//!
//! What comes in: a request. What goes out: calls of the tools whose words occur in the user's
//! message, or, once outputs have come back, an answer that quotes them. It is for demonstrations,
//! first steps and tests of everything around a model, and says in every answer that it is no
//! language model.
//!
//! The rules, in short:
//!
//! - The message is read in parts: sentences, and what `and` or `then` join. Each part makes at most
//!   one call, of the tool that the catalogue's keyword scorer ranks first.
//! - Only required arguments are filled, and only with what the message holds: numbers in order,
//!   quoted strings, members of an enumeration, words after `in`, `for`, `to` and the like.
//! - What cannot be found is named, and the call is not made. Nothing is ever made up.
//! - Where no tool fits and tools can be searched for, it searches once, in the words of the message,
//!   and goes on with what it is offered then.
//! - Beside that there is one round of calls per message of the user, then an answer.
//! - A token is four bytes; an answer that is longer than allowed breaks off there.
//!
//! It must never answer by chance, reach out, or pass itself off as a language model.

mod answer;
mod arguments;
mod model;
mod parts;
mod plan;
mod prompt;
mod schema;
mod searching;
mod strings;

pub use answer::NOTICE;
pub use model::OfflineModel;
