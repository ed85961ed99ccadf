//! A report as one HTML file that needs nothing else: no network, no font, no script to be read.
//!
//! Charts are drawn panel by panel, so that they stand beside each other on a wide screen and below each other on a
//! narrow one. A short script adds what paper cannot do: values under the pointer, and lines to be hidden and shown.
//! A content security policy forbids every request, so a page that was passed on tells nobody that it was opened.
//!
//! All text is escaped here; callers pass it as it is meant to be read.

mod chart;
mod data;

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::chart::Figure;
use crate::chart::text::escape;

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
const LIVE: &str = include_str!("page/live.js");

/// What a page may do: show itself. Both kinds of inline code are those of this crate.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// What a page may do that a site serves: the same, and ask that site again.
pub const LIVE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                               connect-src 'self'; base-uri 'none'; form-action 'none'";

/// A report, from its heading to its small print.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The heading, and the name of the browser's window.
    pub title: String,
    /// What was done, in a sentence or two below the title; may be empty.
    pub subtitle: String,
    /// The parts, in order; a table of contents lists them.
    pub sections: Vec<Section>,
    /// Small print at the end, such as version and seed; may be empty.
    pub footer: String,
}

/// A part of a page with a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The heading, also an entry of the table of contents.
    pub title: String,
    /// What stands below the heading, in order.
    pub blocks: Vec<Block>,
}

/// One element of a section, from top to bottom.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Running text, a single paragraph.
    Text(String),
    /// Points, one below the other.
    List(Vec<String>),
    /// A box that must not be overlooked.
    Callout {
        /// Chooses the box's colour and the word in front of its title.
        kind: CalloutKind,
        /// What it says, in a few words.
        title: String,
        /// The same in full.
        text: String,
    },
    /// A table, with its caption above the cells.
    Table(Table),
    /// A figure, and the name that serves as its anchor in the page and as the stem of its files.
    Figure(Box<Figure>, String),
    /// A command to run, with a button that copies it.
    Command(String),
    /// Names and what they stand for.
    Facts(Vec<(String, String)>),
}

/// Whether a callout reassures, warns or informs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalloutKind {
    /// Something that holds, such as a privacy guarantee.
    Guarantee,
    /// Something that does not hold, or not as one might think.
    Warning,
    /// Something good to know.
    Note,
}

/// A table of text cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table shows, in a sentence.
    pub caption: String,
    /// Head and alignment of each column.
    pub columns: Vec<Column>,
    /// The cells, row by row. A short row is filled with empty cells; what is too long is left out.
    pub rows: Vec<Vec<String>>,
    /// Rows to emphasise, counted from 0.
    pub highlight: Vec<usize>,
}

/// How a column is headed and aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The head: what its cells are, with the unit.
    pub title: String,
    /// Numbers stand to the right, so that their digits are below each other.
    pub is_number: bool,
}

impl Column {
    /// A column of words, aligned to the left.
    pub fn text(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_number: false }
    }

    /// A column of numbers, aligned to the right.
    pub fn number(title: impl Into<String>) -> Self {
        Self { title: title.into(), is_number: true }
    }
}

impl CalloutKind {
    fn class(self) -> &'static str {
        match self {
            Self::Guarantee => "guarantee",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Guarantee => "Guarantee",
            Self::Warning => "Warning",
            Self::Note => "Note",
        }
    }
}

impl Page {
    /// The page as the text of an HTML file; the same page gives the same bytes.
    pub fn to_html(&self) -> String {
        self.html(POLICY, "", SCRIPT)
    }

    /// The page as a program serves it that changes what is on it: it asks for itself again every so many seconds, and says so if nobody
    /// answers any more. Without scripts the browser loads it again.
    pub fn to_live_html(&self, seconds: u32) -> String {
        // Times stand in the first column, and are read at a glance only if they stay on one line.
        let head = format!(
            "<noscript><meta http-equiv=\"refresh\" content=\"{seconds}\"></noscript>\n\
             <style>th[scope=row] {{ white-space: nowrap; }}</style>\n"
        );
        let script = LIVE.replace("SECONDS", &seconds.to_string());
        self.html(LIVE_POLICY, &head, &script)
    }

    fn html(&self, policy: &str, head: &str, script: &str) -> String {
        let mut out = String::new();
        let title = escape(&self.title);
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n{head}\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#content\">Skip to the content</a>\n\
             <header class=\"top\">\n<h1>{title}</h1>\n"
        );
        paragraph(&mut out, "lead", &self.subtitle);
        out.push_str("</header>\n<div class=\"columns\">\n");
        self.write_contents(&mut out);
        out.push_str("<main id=\"content\">\n");
        let mut anchors = Anchors::default();
        for number in 1..=self.sections.len() {
            anchors.unique(&section_anchor(number));
        }
        for (index, section) in self.sections.iter().enumerate() {
            let anchor = section_anchor(index + 1);
            let heading = escape(&section.title);
            let _ =
                writeln!(out, "<section aria-labelledby=\"{anchor}\">\n<h2 id=\"{anchor}\">{heading}</h2>");
            for block in &section.blocks {
                write_block(&mut out, block, &mut anchors);
            }
            out.push_str("</section>\n");
        }
        out.push_str("</main>\n</div>\n");
        if !self.footer.is_empty() {
            let _ = writeln!(out, "<footer><p>{}</p></footer>", escape(&self.footer));
        }
        let _ = write!(out, "<script>\n{script}</script>\n</body>\n</html>\n");
        out
    }

    /// The table of contents; a page of one part needs none.
    fn write_contents(&self, out: &mut String) {
        if self.sections.len() < 2 {
            return;
        }
        out.push_str("<nav class=\"contents\" aria-label=\"Contents\">\n<p>Contents</p>\n<ol>\n");
        for (index, section) in self.sections.iter().enumerate() {
            let anchor = section_anchor(index + 1);
            let _ = writeln!(out, "<li><a href=\"#{anchor}\">{}</a></li>", escape(&section.title));
        }
        out.push_str("</ol>\n</nav>\n");
    }
}

fn section_anchor(number: usize) -> String {
    format!("section-{number}")
}

/// The anchors given out so far, so that none is given twice.
#[derive(Default)]
struct Anchors(BTreeSet<String>);

impl Anchors {
    /// `wanted`, reduced to what every file system and address takes, with a number if it is taken.
    fn unique(&mut self, wanted: &str) -> String {
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let mut stem: String = wanted.chars().map(|c| if is_safe(c) { c } else { '-' }).collect();
        // The page itself has this one.
        if stem.is_empty() || stem == "content" {
            stem = "figure".to_owned();
        }
        let names = std::iter::once(stem.clone()).chain((2..).map(|k| format!("{stem}-{k}")));
        let name = names.into_iter().find(|name| !self.0.contains(name)).expect("numbers do not end");
        self.0.insert(name.clone());
        name
    }
}

/// A paragraph, if there is something to say.
fn paragraph(out: &mut String, class: &str, text: &str) {
    if !text.is_empty() {
        let _ = writeln!(out, "<p class=\"{class}\">{}</p>", escape(text));
    }
}

fn write_block(out: &mut String, block: &Block, anchors: &mut Anchors) {
    match block {
        Block::Text(text) => {
            let _ = writeln!(out, "<p>{}</p>", escape(text));
        }
        Block::List(items) => {
            out.push_str("<ul>\n");
            for item in items {
                let _ = writeln!(out, "<li>{}</li>", escape(item));
            }
            out.push_str("</ul>\n");
        }
        Block::Callout { kind, title, text } => {
            let _ = writeln!(
                out,
                "<aside class=\"callout {}\" role=\"note\">\n<p class=\"callout-title\"><span class=\"kind\">{}</span> {}</p>",
                kind.class(),
                kind.word(),
                escape(title)
            );
            paragraph(out, "callout-text", text);
            out.push_str("</aside>\n");
        }
        Block::Table(table) => write_table(out, table),
        Block::Figure(figure, id) => chart::write(out, figure, &anchors.unique(id)),
        Block::Command(command) => {
            let lines: Vec<String> = command.lines().map(escape).collect();
            let _ = writeln!(
                out,
                "<div class=\"command\"><pre tabindex=\"0\"><code>{}</code></pre></div>",
                lines.join("\n")
            );
        }
        Block::Facts(facts) => {
            out.push_str("<dl class=\"facts\">\n");
            for (name, value) in facts {
                let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
            }
            out.push_str("</dl>\n");
        }
    }
}

fn write_table(out: &mut String, table: &Table) {
    // Outside the box that scrolls, so that it can be read to its end.
    paragraph(out, "table-caption", &table.caption);
    let label = if table.caption.is_empty() { "Table" } else { &table.caption };
    let _ = writeln!(
        out,
        "<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\n<table aria-label=\"{label}\">",
        label = escape(label)
    );
    let class = |column: &Column| if column.is_number { " class=\"number\"" } else { "" };
    out.push_str("<thead><tr>");
    for column in &table.columns {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column), escape(&column.title));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (index, row) in table.rows.iter().enumerate() {
        out.push_str(if table.highlight.contains(&index) { "<tr class=\"highlight\">" } else { "<tr>" });
        for (k, column) in table.columns.iter().enumerate() {
            let cell = escape(row.get(k).map_or("", String::as_str));
            let class = class(column);
            let _ = if k == 0 && !column.is_number {
                write!(out, "<th scope=\"row\">{cell}</th>")
            } else {
                write!(out, "<td{class}>{cell}</td>")
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}
