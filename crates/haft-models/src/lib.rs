//! Language models behind their wire protocols.
