//! Which name says what: imports, `%override` and `%extend`, templates.
//!
//! What is imported comes with what it names, as terminals called `common.NAME`, which no text can
//! define. Templates become rules, one for each list of arguments; a text that makes ever longer ones
//! reaches a limit.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Position, Result};
use crate::regular::Bounds;

use super::LarkOptions;
use super::common;
use super::messages::{limit, shown, syntax, unsupported};
use super::parser;
use super::tree::{Attributes, Change, Definition, Import, LarkDocument, LarkNodeId, LarkNodeKind};

/// Rules that templates may become.
const MOST_INSTANCES: usize = 1 << 14;

/// The definitions of a document by name.
pub(super) type Index = FxHashMap<Box<str>, usize>;

/// Brings all definitions together, and makes rules of templates.
///
/// # Errors
/// A name defined twice or not at all where one must be; templates with wrong arguments; `Limit`.
pub(super) fn resolve(
    document: &mut LarkDocument,
    options: &LarkOptions,
    bounds: &Bounds<'_>,
) -> Result<Index> {
    let mut index = Index::default();
    let definitions = std::mem::take(&mut document.definitions);
    let mut library = Library::default();
    // Definitions stand before imports in messages: what is imported is the second of the name.
    for definition in definitions {
        define(document, &mut index, definition)?;
    }
    for import in std::mem::take(&mut document.imports) {
        library.import(document, &mut index, &import, options, bounds)?;
    }
    for (change, definition) in std::mem::take(&mut document.changes) {
        apply(document, &mut index, change, definition)?;
    }
    expand(document, &mut index, options, bounds)?;
    check_declared(document, &index, bounds)?;
    Ok(index)
}

/// Refuses the use of a terminal that is declared and not defined.
fn check_declared(document: &LarkDocument, index: &Index, bounds: &Bounds<'_>) -> Result<()> {
    if document.declared.is_empty() {
        return Ok(());
    }
    bounds.budget.spend(document.nodes.len() + document.declared.len())?;
    let used = document.nodes.iter().filter_map(|node| match &node.kind {
        LarkNodeKind::Name(name) => Some(&**name),
        _ => None,
    });
    let used: FxHashSet<&str> = used.collect();
    for (name, position) in &document.declared {
        if used.contains(&**name) && !index.contains_key(name) {
            let message = format!(
                "the terminal `{}` that other code finds has no text; define it here",
                shown(name)
            );
            return Err(unsupported("%declare", *position, message));
        }
    }
    Ok(())
}

/// The error of a document without the rule to start with.
pub(super) fn without_start(document: &LarkDocument, start: &str) -> Error {
    let mut message = format!("there is no rule `{}` to start with; define it", shown(start));
    let first = document.definitions.iter().find(|definition| !definition.is_terminal());
    match first {
        Some(first) => {
            let name = shown(&first.name);
            message += &format!(", or name another rule: start=\"{name}\" takes the first");
        }
        None if document.definitions.is_empty() => {}
        None => message += ", or name another rule: start=\"...\"",
    }
    syntax(document.position, message)
}

fn define(document: &mut LarkDocument, index: &mut Index, definition: Definition) -> Result<()> {
    let (name, position) = (definition.name.clone(), definition.position);
    match index.insert(name, document.definitions.len()) {
        None => {
            document.definitions.push(definition);
            Ok(())
        }
        Some(before) => {
            let before = &document.definitions[before];
            let message = format!(
                "`{}` is defined at line {} already; give it another name, or write `%override` or \
                 `%extend`",
                shown(&before.name),
                before.position.line
            );
            Err(syntax(position, message))
        }
    }
}

fn apply(
    document: &mut LarkDocument,
    index: &mut Index,
    change: Change,
    new: Definition,
) -> Result<()> {
    let word = if change == Change::Override { "%override" } else { "%extend" };
    let Some(&old) = index.get(&new.name) else {
        let message = format!("`{word}` changes what is there: no `{}` is", shown(&new.name));
        return Err(syntax(new.position, message));
    };
    if change == Change::Override {
        document.definitions[old] = new;
        return Ok(());
    }
    let old = &document.definitions[old];
    let attributes = &new.attributes;
    let is_plain = attributes.marker.is_none()
        && attributes.lazy.is_none()
        && attributes.capture.is_none()
        && attributes.max_tokens.is_none()
        && attributes.max_chars.is_none()
        && attributes.temperature.is_none();
    if old.parameters != new.parameters || !is_plain {
        let message = "`%extend` adds alternatives: its parameters are those of the definition, and \
                       attributes stand there";
        return Err(syntax(new.position, message));
    }
    let (name, old) = (new.name.clone(), old.body);
    let old = document.copy(None, old, |_| Ok(None))?;
    let more = document.copy(None, new.body, |_| Ok(None))?;
    let body = document.add(LarkNodeKind::Choice([old, more].into()), new.position);
    document.definitions[index[&name]].body = body;
    Ok(())
}

/// The library `common`, read when something is imported.
#[derive(Default)]
struct Library {
    read: Option<(LarkDocument, Index)>,
}

impl Library {
    fn import(
        &mut self,
        document: &mut LarkDocument,
        index: &mut Index,
        import: &Import,
        options: &LarkOptions,
        bounds: &Bounds<'_>,
    ) -> Result<()> {
        if import.library != "common" {
            let message = format!(
                "only the library `common` is known, not `{}`: write what you import into the text",
                shown(&import.library)
            );
            return Err(unsupported("%import", import.position, message));
        }
        if self.read.is_none() {
            let mut documents = parser::parse(common::TEXT, &options.limits, bounds.budget)?;
            let read = documents.pop().unwrap_or_default();
            let names = read.definitions.iter().enumerate();
            let names = names.map(|(at, definition)| (definition.name.clone(), at)).collect();
            self.read = Some((read, names));
        }
        let Some((library, names)) = &self.read else { return Ok(()) };
        let found = names.get(&import.name).filter(|_| !common::INNER.contains(&&*import.name));
        let Some(&found) = found else {
            let mut known: Vec<&str> = names.keys().map(|name| &**name).collect();
            known.retain(|name| !common::INNER.contains(name));
            known.sort_unstable();
            let message = format!(
                "the library `common` has no `{}`; it has {}",
                shown(&import.name),
                known.join(", ")
            );
            return Err(syntax(import.position, message));
        };
        let mut todo = vec![(found, import.alias.clone())];
        while let Some((found, name)) = todo.pop() {
            bounds.budget.spend(1)?;
            if name != import.alias && index.contains_key(&name) {
                continue;
            }
            let mut named = Vec::new();
            let body = document.copy(Some(library), library.definitions[found].body, |kind| {
                let LarkNodeKind::Name(callee) = kind else { return Ok(None) };
                let inner: Box<str> = format!("common.{callee}").into();
                named.extend(names.get(callee).map(|&at| (at, inner.clone())));
                Ok(Some(LarkNodeKind::Name(inner)))
            })?;
            let first = document.subtree(body).start;
            for node in &mut document.nodes[first..] {
                node.position = import.position;
            }
            let (attributes, position) = (Attributes::default(), import.position);
            define(
                document,
                index,
                Definition { name, position, parameters: Vec::new(), attributes, body },
            )?;
            todo.extend(named);
        }
        Ok(())
    }
}

/// Makes rules of the templates that are used; templates themselves go.
fn expand(
    document: &mut LarkDocument,
    index: &mut Index,
    options: &LarkOptions,
    bounds: &Bounds<'_>,
) -> Result<()> {
    let has_templates = document.definitions.iter().any(|d| !d.parameters.is_empty());
    let is_used = |document: &LarkDocument| {
        document.nodes.iter().any(|node| matches!(node.kind, LarkNodeKind::Template { .. }))
    };
    if !has_templates && !is_used(document) {
        return Ok(());
    }
    let templates = take_templates(document, index)?;
    let mut roots: Vec<LarkNodeId> = document.ignores.clone();
    roots.extend(document.definitions.iter().map(|definition| definition.body));
    let mut made: FxHashMap<(Box<str>, Vec<Argument>), Box<str>> = FxHashMap::default();
    while let Some(root) = roots.pop() {
        for at in document.subtree(root) {
            bounds.budget.spend(1)?;
            let node = &document.nodes[at];
            let (name, arguments) = match &node.kind {
                LarkNodeKind::Template { name, arguments } => (name.clone(), arguments.clone()),
                LarkNodeKind::Name(name) if templates.contains_key(name) => {
                    let message =
                        format!("the template `{}` is used without arguments", shown(name));
                    return Err(syntax(node.position, message));
                }
                _ => continue,
            };
            let position = node.position;
            let template = template(&templates, &name, arguments.len(), position)?;
            let arguments: Vec<&LarkNodeKind> =
                arguments.iter().map(|&id| document.kind(id)).collect();
            let key = (name.clone(), arguments.iter().map(|kind| Argument::of(kind)).collect());
            let instance = match made.get(&key) {
                Some(instance) => instance.clone(),
                None => {
                    check_made(made.len(), options, &name, position)?;
                    let given: FxHashMap<&str, LarkNodeKind> = (template.parameters.iter())
                        .zip(&arguments)
                        .map(|(name, &kind)| (&**name, kind.clone()))
                        .collect();
                    bounds.budget.spend(document.subtree(template.body).len())?;
                    let body = document.copy(None, template.body, |kind| match kind {
                        LarkNodeKind::Name(name) => Ok(given.get(&**name).cloned()),
                        LarkNodeKind::Template { name, .. } if given.contains_key(&**name) => {
                            let message = "a parameter of a template is no template itself";
                            Err(syntax(template.position, message))
                        }
                        _ => Ok(None),
                    })?;
                    let instance: Box<str> = format!("{name}.{}", made.len() + 1).into();
                    made.insert(key, instance.clone());
                    roots.push(body);
                    let rule = Definition {
                        name: instance.clone(),
                        position: template.position,
                        parameters: Vec::new(),
                        attributes: template.attributes.clone(),
                        body,
                    };
                    define(document, index, rule)?;
                    instance
                }
            };
            document.nodes[at].kind = LarkNodeKind::Name(instance);
        }
    }
    Ok(())
}

/// Takes the templates out of a document, by name, and defines the others anew.
fn take_templates(
    document: &mut LarkDocument,
    index: &mut Index,
) -> Result<FxHashMap<Box<str>, Definition>> {
    let mut templates = FxHashMap::default();
    let mut rules = Vec::new();
    for definition in std::mem::take(&mut document.definitions) {
        match definition.parameters.is_empty() {
            true => rules.push(definition),
            false => drop(templates.insert(definition.name.clone(), definition)),
        }
    }
    index.clear();
    for definition in rules {
        define(document, index, definition)?;
    }
    Ok(templates)
}

/// Refuses one more rule where templates have become so many.
fn check_made(made: usize, options: &LarkOptions, name: &str, position: Position) -> Result<()> {
    let most = MOST_INSTANCES.min(options.limits.max_rules);
    if made < most {
        return Ok(());
    }
    let message = format!(
        "line {}, column {}: the template `{}` becomes more rules than that; a template that names \
         itself with ever longer arguments never ends",
        position.line,
        position.column,
        shown(name)
    );
    Err(limit("max_template_rules", most, message))
}

/// An argument as a key: what it says, without its place.
#[derive(PartialEq, Eq, Hash)]
enum Argument {
    Name(Box<str>),
    Text(Box<str>, bool),
    Pattern(Box<str>, Box<str>),
    Range(char, char),
}

impl Argument {
    fn of(kind: &LarkNodeKind) -> Argument {
        match kind {
            LarkNodeKind::Text { text, of_any_case } => Argument::Text(text.clone(), *of_any_case),
            LarkNodeKind::Pattern { text, flags } => Argument::Pattern(text.clone(), flags.clone()),
            LarkNodeKind::Range(a, b) => Argument::Range(*a, *b),
            // A template as an argument stands before the one that has it: it is a name by now.
            LarkNodeKind::Name(name) => Argument::Name(name.clone()),
            _ => unreachable!("the parser lets nothing else be an argument"),
        }
    }
}

fn template<'t>(
    templates: &'t FxHashMap<Box<str>, Definition>,
    name: &str,
    arguments: usize,
    position: Position,
) -> Result<&'t Definition> {
    let Some(template) = templates.get(name) else {
        let message = format!(
            "there is no template `{}`; define it as `{}{{x}}: ...`",
            shown(name),
            shown(name)
        );
        return Err(syntax(position, message));
    };
    let expected = template.parameters.len();
    if expected != arguments {
        let message =
            format!("the template `{}` has {expected} parameters, not {arguments}", shown(name));
        return Err(syntax(position, message));
    }
    Ok(template)
}
