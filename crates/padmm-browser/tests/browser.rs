//! The helper itself: what goes wrong in a page is noticed.

use padmm_browser::Browser;

#[test]
fn errors_and_requests_are_noticed() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad page #1.html");
    let page = "<!doctype html><title>t</title><link rel=icon href=data:,><p>text</p>\
                <img src=http://127.0.0.1:9/picture.png>\
                <script>console.error('said', 1); setTimeout(() => { throw new Error('thrown'); }, 0);</script>";
    std::fs::write(&path, page).unwrap();
    let mut tab = browser.open(&path, 600, 400);
    tab.wait_for("document.images[0].complete");
    assert_eq!(tab.evaluate("[innerWidth, document.title]"), serde_json::json!([600, "t"]));
    let problems = tab.problems().join("\n");
    assert!(problems.contains("said") && problems.contains("thrown"), "{problems}");
    let requests = tab.requests();
    assert!(requests[0].ends_with("bad%20page%20%231.html"), "{requests:?}");
    assert_eq!(requests[1..], ["http://127.0.0.1:9/picture.png"]);
    drop(tab);

    std::fs::write(&path, "<!doctype html><title>t</title><link rel=icon href=data:,><p>text</p>").unwrap();
    let mut tab = browser.open(&path, 600, 400);
    assert_eq!(tab.problems(), [""; 0], "what happened in another tab does not count");
    assert_eq!(tab.requests().len(), 1);
    assert_eq!(&tab.screenshot()[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&tab.pdf()[..5], b"%PDF-");
}
