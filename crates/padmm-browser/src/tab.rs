//! One open page.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Browser, DEADLINE, base64};

/// How a page is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// On a screen, dark on light.
    Light,
    /// On a screen, light on dark.
    Dark,
    /// As it would be printed.
    Print,
}

/// An open page; it is closed with this value.
pub struct Tab<'a> {
    browser: &'a mut Browser,
    target: String,
    session: String,
    width: u32,
}

impl<'a> Tab<'a> {
    pub(crate) fn open(browser: &'a mut Browser, path: &Path, size: (u32, u32), has_scripts: bool) -> Self {
        let file = path.canonicalize().unwrap_or_else(|e| panic!("{} cannot be opened: {e}", path.display()));
        let made = browser.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let target = made["targetId"].as_str().expect("a target has a name").to_owned();
        let attached =
            browser.call(None, "Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        let session = attached["sessionId"].as_str().expect("a session has a name").to_owned();
        let mut tab = Tab { browser, target, session, width: size.0 };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        tab.resize(size.0, size.1);
        tab.call("Emulation.setScriptExecutionDisabled", json!({ "value": !has_scripts }));
        let answer = tab.call("Page.navigate", json!({ "url": file_address(&file) }));
        assert!(answer.get("errorText").is_none(), "{} was not opened: {answer}", file.display());
        tab.browser.wait_for_event(&tab.session, "Page.loadEventFired");
        tab
    }

    /// Gives the window another size.
    pub fn resize(&mut self, width: u32, height: u32) {
        self.width = width;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Shows the page in another way.
    pub fn show_as(&mut self, media: Media) {
        let scheme = if media == Media::Dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let medium = if media == Media::Print { "print" } else { "screen" };
        self.call("Emulation.setEmulatedMedia", json!({ "media": medium, "features": features }));
    }

    /// The value of a JavaScript expression; a promise is waited for.
    ///
    /// # Panics
    /// If the expression throws.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", params);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression} failed: {}", thrown["exception"]["description"]);
        answer["result"]["value"].take()
    }

    /// Waits until a JavaScript expression is true.
    ///
    /// # Panics
    /// If it does not become true.
    pub fn wait_for(&mut self, condition: &str) {
        let limit = DEADLINE.as_millis() / 3;
        let is_met = self.evaluate(&format!(
            "new Promise((done) => {{ const end = performance.now() + {limit};
             (function look() {{ if ({condition}) done(true); else if (performance.now() > end) done(false);
             else setTimeout(look, 10); }})(); }})"
        ));
        assert_eq!(is_met, true, "this did not become true: {condition}");
    }

    /// The middle of the first element that a CSS selector finds, scrolled into view.
    pub fn middle_of(&mut self, selector: &str) -> (f64, f64) {
        let found = self.evaluate(&format!(
            "(() => {{ const found = document.querySelector({}); if (!found) return null;
             found.scrollIntoView({{ block: 'center', behavior: 'instant' }});
             const box = found.getBoundingClientRect();
             return [box.left + box.width / 2, box.top + box.height / 2]; }})()",
            Value::from(selector)
        ));
        match (found[0].as_f64(), found[1].as_f64()) {
            (Some(x), Some(y)) => (x, y),
            _ => panic!("the page has no {selector}"),
        }
    }

    /// Moves the pointer to a place in the window.
    pub fn move_to(&mut self, (x, y): (f64, f64)) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Clicks on the first element that a CSS selector finds, once or several times in a row.
    pub fn click(&mut self, selector: &str, times: u32) {
        let (x, y) = self.middle_of(selector);
        self.move_to((x, y));
        for count in 1..=times {
            for kind in ["mousePressed", "mouseReleased"] {
                self.call(
                    "Input.dispatchMouseEvent",
                    json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": count }),
                );
            }
        }
    }

    /// Presses a key such as `Enter`, `Tab` or `ArrowLeft` where the focus is.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            other => panic!("the key {other} is not known here"),
        };
        let mut event = json!({ "type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code });
        if key == "Enter" {
            event["text"] = "\r".into();
        }
        self.call("Input.dispatchKeyEvent", event.clone());
        event["type"] = "keyUp".into();
        self.call("Input.dispatchKeyEvent", event);
    }

    /// What went wrong in the page: exceptions, and errors and warnings on its console.
    pub fn problems(&mut self) -> Vec<String> {
        self.settle();
        let mut found = Vec::new();
        for event in self.browser.events_of(&self.session) {
            let params = &event["params"];
            let is_bad = |level: &Value| ["error", "warning", "assert"].iter().any(|bad| level == bad);
            match event["method"].as_str() {
                Some("Runtime.exceptionThrown") => {
                    let details = &params["exceptionDetails"];
                    found.push(format!(
                        "exception: {} {}",
                        details["text"], details["exception"]["description"]
                    ));
                }
                Some("Log.entryAdded") if is_bad(&params["entry"]["level"]) => {
                    found.push(format!("log: {}", params["entry"]["text"]));
                }
                Some("Runtime.consoleAPICalled") if is_bad(&params["type"]) => {
                    found.push(format!("console: {}", params["args"]));
                }
                _ => {}
            }
        }
        found
    }

    /// The address of every request of the page, itself first; data in the page itself are not requests.
    pub fn requests(&mut self) -> Vec<String> {
        self.settle();
        let sent =
            self.browser.events_of(&self.session).filter(|e| e["method"] == "Network.requestWillBeSent");
        let addresses = sent.filter_map(|e| e["params"]["request"]["url"].as_str());
        addresses.filter(|a| !a.starts_with("data:")).map(str::to_owned).collect()
    }

    /// The whole page as a PNG file.
    pub fn screenshot(&mut self) -> Vec<u8> {
        self.settle();
        let height = self.evaluate("document.documentElement.scrollHeight");
        let clip = json!({ "x": 0, "y": 0, "width": self.width, "height": height, "scale": 1 });
        let answer =
            self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true, "clip": clip }));
        base64::decode(answer["data"].as_str().expect("a picture"))
    }

    /// The page on paper (A4) as a PDF file.
    pub fn pdf(&mut self) -> Vec<u8> {
        let paper = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "printBackground": false, "preferCSSPageSize": true });
        let answer = self.call("Page.printToPDF", paper);
        base64::decode(answer["data"].as_str().expect("a document"))
    }

    /// Lets the page draw twice, so that what it started has been reported.
    fn settle(&mut self) {
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))",
        );
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }
}

impl Drop for Tab<'_> {
    fn drop(&mut self) {
        // A test that fails must not fail a second time here: the browser ends anyway.
        if !std::thread::panicking() {
            self.browser.call(None, "Target.closeTarget", json!({ "targetId": self.target }));
        }
    }
}

/// The address of a file.
fn file_address(path: &Path) -> String {
    let mut address = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
    address
}
