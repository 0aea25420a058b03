/// Blank.
#[haft::tool(name = "get weather")]
fn get_weather() {}

/// Umlaut.
#[haft::tool]
fn wärme() {}

/// Too long.
#[haft::tool]
fn a_name_of_more_than_sixty_four_characters_that_no_provider_would_ever_accept() {}

fn main() {}
