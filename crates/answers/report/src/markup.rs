//! Text that is safe in a page.

use std::fmt::Write as _;

/// Tags and escaped text, and nothing else. Names of tags and attributes come from this crate; text
/// from files is escaped when it is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup(String);

pub(crate) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    pub(crate) fn new() -> Markup {
        Markup::default()
    }

    /// Returns the number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Markup {
        for letter in text.chars() {
            match letter {
                // These escapes serve text and quoted attributes alike, so that one function is
                // enough.
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(letter),
                // HTML forbids most control characters.
                letter if letter.is_control() => self.0.push('\u{FFFD}'),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// Opens a tag. The caller must close the tag: see [`within`](Markup::within).
    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }

    /// Writes an element around the output of `inside`.
    pub(crate) fn within(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Markup),
    ) -> &mut Markup {
        self.open(tag, attributes);
        inside(self);
        let _ = write!(self.0, "</{tag}>");
        self
    }

    /// Writes an element around text.
    pub(crate) fn element(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        text: &str,
    ) -> &mut Markup {
        self.within(tag, attributes, |markup| {
            markup.text(text);
        })
    }

    /// Writes an element without an end tag, such as `meta` and `col`.
    pub(crate) fn void(&mut self, tag: &'static str, attributes: Attributes<'_>) -> &mut Markup {
        self.open(tag, attributes);
        self
    }

    /// Writes code of this crate without escaping: styles, the script, the patterns.
    pub(crate) fn code(&mut self, code: &'static str) -> &mut Markup {
        self.0.push_str(code);
        self
    }

    pub(crate) fn add(&mut self, other: &Markup) -> &mut Markup {
        self.0.push_str(&other.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_files_opens_no_tag_and_ends_no_attribute() {
        let mut markup = Markup::new();
        let hostile = "</p><script>x('\"')</script>\u{0}&amp;";
        markup.element("p", &[("title", hostile)], hostile);
        let text = markup.into_text();
        assert_eq!(text.matches('<').count(), 2, "{text}");
        assert_eq!(text.matches('"').count(), 2, "{text}");
        assert!(text.contains("\u{FFFD}&amp;amp;"), "{text}");
    }
}
