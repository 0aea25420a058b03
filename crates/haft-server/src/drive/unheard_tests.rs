use super::*;

fn heard(unheard: &Unheard) -> usize {
    std::iter::from_fn(|| unheard.hear()).count()
}

#[tokio::test(start_paused = true)]
async fn who_says_too_much_waits_until_it_is_heard() {
    let unheard = Unheard::default();
    for _ in 0..MAX_UNHEARD {
        unheard.say(Signal::Answering).await.unwrap();
    }
    let one_more = unheard.say(Signal::Answering);
    let mut one_more = std::pin::pin!(one_more);
    assert!(futures_util::poll!(one_more.as_mut()).is_pending());
    assert_eq!(heard(&unheard), MAX_UNHEARD);
    one_more.await.unwrap();
    assert_eq!(heard(&unheard), 1);
}

#[tokio::test(start_paused = true)]
async fn who_is_not_heard_for_too_long_is_told() {
    let unheard = Unheard::default();
    for _ in 0..MAX_UNHEARD {
        unheard.say(Signal::Answering).await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    assert!(unheard.say(Signal::Answering).await.is_err());
    assert!(begun.elapsed() >= MAX_STALL);
}

#[tokio::test]
async fn nobody_is_told_anything_who_has_left() {
    let unheard = Unheard::default();
    unheard.say(Signal::Answering).await.unwrap();
    unheard.leave();
    assert!(unheard.is_empty());
    assert!(unheard.say(Signal::Answering).await.is_err());
}
