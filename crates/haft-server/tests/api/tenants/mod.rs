//! Tenants see their own and nothing else: every route, every list, every form of an id, by every kind
//! of key. An id of another tenant is an unknown id, in status, words and what the store is asked.

mod bodies;
mod doors;
mod lists;
mod noted;
mod paths;
mod sockets;
mod world;
