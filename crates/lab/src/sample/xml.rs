//! Values of type xml, as binary tokens ([MS-BINXML]).

use super::Sample;

const NAME: u8 = 0xF0;
const QUALIFIED_NAME: u8 = 0xEF;
const ELEMENT: u8 = 0xF8;
const END_OF_ELEMENT: u8 = 0xF7;
const ATTRIBUTE: u8 = 0xF6;
const END_OF_ATTRIBUTES: u8 = 0xF5;
const COMMENT: u8 = 0xF3;
const TEXT: u8 = 0x11;

/// An element.
#[derive(Clone, Default)]
pub(crate) struct Element {
    pub name: &'static str,
    pub attributes: Vec<(&'static str, &'static str)>,
    pub content: Vec<Content>,
}

/// The content of an element.
#[derive(Clone)]
pub(crate) enum Content {
    Element(Element),
    Text(String),
    Comment(&'static str),
}

impl Sample {
    /// An xml value from a document with a single root element.
    pub(crate) fn xml(element: &Element) -> Self {
        // The signature, the version, and code page 1200.
        let mut writer = Writer { tokens: vec![0xDF, 0xFF, 0x01, 0xB0, 0x04], names: Vec::new(), text: String::new() };
        writer.element(element);
        Self::made(writer.tokens, writer.text)
    }
}

struct Writer {
    tokens: Vec<u8>,
    names: Vec<&'static str>,
    text: String,
}

impl Writer {
    // This function calls itself for the elements inside of an element, so the depth of the recursion is the nesting
    // depth of the document.
    fn element(&mut self, element: &Element) {
        let number = self.name(element.name);
        self.tokens.push(ELEMENT);
        self.number(number);
        self.text += &format!("<{}", element.name);
        for (name, value) in &element.attributes {
            let number = self.name(name);
            self.tokens.push(ATTRIBUTE);
            self.number(number);
            self.characters(TEXT, value);
            let escaped = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
            self.text += &format!(" {name}=\"{escaped}\"");
        }
        if !element.attributes.is_empty() {
            self.tokens.push(END_OF_ATTRIBUTES);
        }
        self.text += if element.content.is_empty() { "/>" } else { ">" };
        for content in &element.content {
            match content {
                Content::Element(element) => self.element(element),
                Content::Text(text) => {
                    self.characters(TEXT, text);
                    self.text += &text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                }
                Content::Comment(text) => {
                    self.characters(COMMENT, text);
                    self.text += &format!("<!--{text}-->");
                }
            }
        }
        if !element.content.is_empty() {
            self.text += &format!("</{}>", element.name);
        }
        self.tokens.push(END_OF_ELEMENT);
    }

    /// Returns the number of a name without namespace. If the name is used for the first time, declares it first.
    fn name(&mut self, name: &'static str) -> usize {
        if let Some(at) = self.names.iter().position(|known| *known == name) {
            return at + 1;
        }
        self.characters(NAME, name);
        self.names.push(name);
        // Namespace and prefix are empty. The empty name has number 0.
        self.tokens.extend([QUALIFIED_NAME, 0, 0]);
        self.number(self.names.len());
        self.names.len()
    }

    fn characters(&mut self, token: u8, text: &str) {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.tokens.push(token);
        self.number(units.len());
        self.tokens.extend(units.into_iter().flat_map(u16::to_le_bytes));
    }

    /// Appends a number with seven bits per byte, low bits first.
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.tokens.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.tokens.push(number as u8);
    }
}
