//! References to URIs: RFC 3986, section 5, and percent-encoding of fragments.
//!
//! URIs are compared as texts once they are resolved, as the RFC allows: only dot segments are
//! removed. A base may be relative or empty, as the base of a document is that nobody named.

/// A URI or a relative reference in its five parts.
struct UriParts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> UriParts<'a> {
    /// The parts of a reference without a fragment.
    fn of(text: &'a str) -> Self {
        let (text, query) = match text.split_once('?') {
            Some((text, query)) => (text, Some(query)),
            None => (text, None),
        };
        let (scheme, text) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let Some(rest) = text.strip_prefix("//") else {
            return Self { scheme, authority: None, path: text, query };
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self { scheme, authority: Some(authority), path, query }
    }
}

fn is_scheme(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_part)
}

/// A URI without its fragment, and the fragment without its `#`, as it is written.
pub(super) fn split_fragment(uri: &str) -> (&str, Option<&str>) {
    match uri.split_once('#') {
        Some((uri, fragment)) => (uri, Some(fragment)),
        None => (uri, None),
    }
}

/// What a reference means where `base` is the base URI. Fragments of both are dropped.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let (base, reference) = (split_fragment(base).0, split_fragment(reference).0);
    if reference.is_empty() {
        return base.to_owned();
    }
    let base = UriParts::of(base);
    let parts = UriParts::of(reference);
    let keeps_scheme = parts.scheme.is_none();
    let keeps_authority = keeps_scheme && parts.authority.is_none();
    let scheme = if keeps_scheme { base.scheme } else { parts.scheme };
    let authority = if keeps_authority { base.authority } else { parts.authority };
    let keeps_path = keeps_authority && parts.path.is_empty();
    let path = match keeps_path {
        true => base.path.to_owned(),
        false if !keeps_authority || parts.path.starts_with('/') => without_dots(parts.path),
        false => without_dots(&merged(&base, parts.path)),
    };
    let query = if keeps_path { parts.query.or(base.query) } else { parts.query };
    let mut uri = String::with_capacity(path.len() + 32);
    if let Some(scheme) = scheme {
        uri.push_str(scheme);
        uri.push(':');
    }
    if let Some(authority) = authority {
        uri.push_str("//");
        uri.push_str(authority);
    }
    uri.push_str(&path);
    if let Some(query) = query {
        uri.push('?');
        uri.push_str(query);
    }
    uri
}

/// A relative path behind the folder of the base's path.
fn merged(base: &UriParts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    let folder = base.path.rfind('/').map_or(0, |slash| slash + 1);
    format!("{}{path}", &base.path[..folder])
}

/// A path without the segments `.` and `..`.
fn without_dots(path: &str) -> String {
    if !path.contains('.') {
        return path.to_owned();
    }
    let is_absolute = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    let path = kept.join("/");
    if is_absolute { format!("/{path}") } else { path }
}

/// A text with `%XX` undone, or nothing where that gives no UTF-8 or two digits are missing.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || (bytes.next()? as char).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        out.push((high << 4 | low) as u8);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_the_examples_of_the_rfc() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
    }

    #[test]
    fn bases_may_be_empty_relative_or_without_an_authority() {
        assert_eq!(resolve("", "a/b.json#x"), "a/b.json");
        assert_eq!(resolve("a/b.json", "c.json"), "a/c.json");
        assert_eq!(resolve("http://a", "c.json"), "http://a/c.json");
        assert_eq!(resolve("urn:uuid:1-2", "#/a"), "urn:uuid:1-2");
        assert_eq!(resolve("urn:uuid:1-2", "other"), "urn:other");
        assert_eq!(resolve("http://a/b", "urn:uuid:3"), "urn:uuid:3");
        assert_eq!(resolve("file:///c:/d/e.json", "f.json"), "file:///c:/d/f.json");
        assert_eq!(resolve("http://a/b", "1:c"), "http://a/1:c");
    }

    #[test]
    fn percent_encoding_is_undone_once() {
        assert_eq!(percent_decoded("a%25b%22").as_deref(), Some("a%b\""));
        assert_eq!(percent_decoded("%2525").as_deref(), Some("%25"));
        assert_eq!(percent_decoded("%C3%A9").as_deref(), Some("\u{e9}"));
        assert_eq!(percent_decoded("%FF"), None);
        assert_eq!(percent_decoded("%2"), None);
        assert_eq!(percent_decoded("%zz"), None);
    }
}
