//! What all adapters can be told about their connection.

/// The builders of an adapter that has a `connection`, for its `impl`.
macro_rules! connection_builders {
    () => {
        /// Its way to the provider.
        pub(crate) fn connection(&self) -> &$crate::http::Connection {
            &self.connection
        }

        /// Adds a header to every request.
        #[must_use]
        pub fn header(mut self, name: &str, value: impl Into<$crate::http::Secret>) -> Self {
            self.connection = self.connection.header(name, value.into());
            self
        }

        /// Sets how long each wait may take.
        #[must_use]
        pub fn timeouts(mut self, timeouts: $crate::http::Timeouts) -> Self {
            self.connection = self.connection.timeouts(timeouts);
            self
        }

        /// Shares connections with other models.
        #[must_use]
        pub fn http(mut self, http: $crate::http::Http) -> Self {
            self.connection = self.connection.http(http);
            self
        }
    };
}

pub(crate) use connection_builders;
