use proptest::prelude::*;

use super::*;

#[test]
fn an_empty_query_means_the_defaults() {
    for query in [None, Some("")] {
        let items = ItemsQuery::read(query).unwrap();
        assert_eq!(items.page.after, None);
        assert_eq!((items.page.limit, items.page.is_descending), (20, true));
        assert_eq!(items.include, Include::default());
        assert_eq!(
            RetrieveQuery::read(query).unwrap(),
            RetrieveQuery {
                include: Include::default(),
                stream: false,
                starting_after: None,
            }
        );
    }
}

#[test]
fn every_parameter_is_read() {
    let items = ItemsQuery::read(Some("after=msg%5F1&limit=100&order=asc&x=y")).unwrap();
    assert_eq!(items.page.after.as_deref(), Some("msg_1"));
    assert_eq!((items.page.limit, items.page.is_descending), (100, false));
    let retrieve = RetrieveQuery::read(Some("stream=true&starting_after=7")).unwrap();
    assert!(retrieve.stream);
    assert_eq!(retrieve.starting_after, Some(7));
}

#[test]
fn a_list_is_read_in_every_spelling() {
    let both = Include {
        provider: 0,
        encrypted_reasoning: true,
        logprobs: true,
    };
    let (a, b) = (
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    );
    for query in [
        format!("include={a}&include={b}"),
        format!("include[]={a}&include[]={b}"),
        format!("include%5B%5D={a}&include%5B%5D={b}"),
        format!("include[0]={a}&include[1]={b}"),
    ] {
        assert_eq!(
            RetrieveQuery::read(Some(&query)).unwrap().include,
            both,
            "{query}"
        );
        assert_eq!(
            ItemsQuery::read(Some(&query)).unwrap().include,
            both,
            "{query}"
        );
    }
}

#[test]
fn bad_parameters_are_refused_by_name() {
    let code = |result: Read<()>| {
        let error = result.unwrap_err();
        (error.code, error.param.unwrap_or_default())
    };
    for (query, expected, param) in [
        ("limit=0", ErrorCode::IntegerBelowMinValue, "limit"),
        ("limit=-3", ErrorCode::IntegerBelowMinValue, "limit"),
        ("limit=101", ErrorCode::DecimalAboveMaxValue, "limit"),
        (
            "limit=99999999999999999999",
            ErrorCode::DecimalAboveMaxValue,
            "limit",
        ),
        ("limit=ten", ErrorCode::InvalidType, "limit"),
        ("limit=1.5", ErrorCode::InvalidType, "limit"),
        ("limit=%2B5", ErrorCode::InvalidType, "limit"),
        ("order=up", ErrorCode::InvalidValue, "order"),
        ("include=everything", ErrorCode::InvalidValue, "include[0]"),
        (
            "include[]=reasoning.encrypted_content&include[]=x",
            ErrorCode::InvalidValue,
            "include[1]",
        ),
    ] {
        let read = code(ItemsQuery::read(Some(query)).map(|_| ()));
        assert_eq!(read, (expected, param.to_owned()), "{query}");
    }
    for (query, expected, param) in [
        ("stream=yes", ErrorCode::InvalidType, "stream"),
        (
            "starting_after=-1",
            ErrorCode::IntegerBelowMinValue,
            "starting_after",
        ),
        ("starting_after=x", ErrorCode::InvalidType, "starting_after"),
    ] {
        let read = code(RetrieveQuery::read(Some(query)).map(|_| ()));
        assert_eq!(read, (expected, param.to_owned()), "{query}");
    }
}

proptest! {
    #[test]
    fn any_query_is_read_or_refused(query in ".*") {
        let _ = ItemsQuery::read(Some(&query));
        let _ = RetrieveQuery::read(Some(&query));
    }

    #[test]
    fn any_number_is_read_or_refused(name in "limit|starting_after|stream|order|include\\[\\]",
        value in "[-0-9a-z%+.]{0,30}") {
        let query = format!("{name}={value}");
        let _ = ItemsQuery::read(Some(&query));
        let _ = RetrieveQuery::read(Some(&query));
    }
}
