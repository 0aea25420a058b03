//! The person and the browser of the suite: whoever comes is logged in and sent back at once.

use haft_mcp::Url;
use reqwest::header::LOCATION;

/// Goes where the page sends, as a browser would.
pub(crate) fn log_in(page: &Url) {
    let page = page.clone();
    tokio::spawn(async move {
        if let Err(error) = visit(page).await {
            eprintln!("conformance_client: the browser stumbled: {error}");
        }
    });
}

async fn visit(page: Url) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let browser = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()?;
    let answer = browser.get(page).send().await?;
    let back = answer.headers().get(LOCATION).ok_or("no redirect")?;
    browser.get(back.to_str()?).send().await?;
    Ok(())
}
