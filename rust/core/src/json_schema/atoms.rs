//! What formulas speak of: types of values, schemas as conditions, and the atoms of each type.

use super::decimal::Decimal;
use super::formula::FormulaId;
use super::value::JsonNodeId;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::rc::Rc;

/// The types of JSON values. A number is of one type, integer or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Type {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    pub(super) const ALL: [Type; 6] =
        [Type::Null, Type::Boolean, Type::Number, Type::String, Type::Array, Type::Object];

    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// What `type` calls it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "boolean",
            Type::Number => "number",
            Type::String => "string",
            Type::Array => "array",
            Type::Object => "object",
        }
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) struct $name(pub(super) u32);

        impl From<usize> for $name {
            fn from(number: usize) -> Self {
                Self(number as u32)
            }
        }

        impl From<$name> for usize {
            fn from(id: $name) -> usize {
                id.0 as usize
            }
        })*
    };
}

numbers! {
    /// A schema as a condition on a value.
    SchemaId,
    /// The name of a property.
    NameId,
    /// A regular language of strings: a pattern, or a format.
    LanguageId,
    /// A finite set of strings.
    TextsId,
    /// A finite set of numbers.
    DecimalsId,
    /// A decimal number.
    DecimalId,
    /// A set of the values that items may have, by their places.
    UsedId,
    /// A dynamic scope: which anchors `$dynamicRef` finds.
    ScopeId,
    /// An order of property names.
    OrderId,
    /// The alternatives of an object.
    AlternativesId,
    /// A condition on a value, as one formula for each type.
    ValueId,
    /// An object automaton.
    ObjectId,
    /// An array automaton.
    ArrayId,
}

/// What is known of schemas, for each type of value; in rows by the number of the schema.
pub(super) struct ByType<T>(Vec<[Option<T>; 6]>);

impl<T> Default for ByType<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByType<T> {
    /// What is known of a schema for a type.
    pub(super) fn get(&self, schema: SchemaId, kind: Type) -> Option<&T> {
        self.0.get(usize::from(schema)).and_then(|row| row[kind.index()].as_ref())
    }

    /// Whether something is known of a schema for some type.
    pub(super) fn has_any(&self, schema: SchemaId) -> bool {
        self.0.get(usize::from(schema)).is_some_and(|row| row.iter().any(Option::is_some))
    }

    pub(super) fn set(&mut self, schema: SchemaId, kind: Type, known: T) {
        let place = usize::from(schema);
        if self.0.len() <= place {
            self.0.resize_with(place + 1, Default::default);
        }
        self.0[place][kind.index()] = Some(known);
    }
}

/// Values that are kept once, by number.
pub(super) struct Interner<I, T: ?Sized> {
    values: Vec<Rc<T>>,
    numbers: FxHashMap<Rc<T>, I>,
}

impl<I: Copy + From<usize> + Into<usize>, T: Eq + Hash + ?Sized> Interner<I, T> {
    pub(super) fn new() -> Self {
        Self { values: Vec::new(), numbers: FxHashMap::default() }
    }

    pub(super) fn intern(&mut self, value: T) -> I
    where
        T: Sized,
    {
        match self.numbers.get(&value) {
            Some(&known) => known,
            None => self.add(Rc::new(value)),
        }
    }

    /// [`Self::intern`] of a value that is copied where it is new.
    pub(super) fn intern_copy<'v>(&mut self, value: &'v T) -> I
    where
        Rc<T>: From<&'v T>,
    {
        match self.numbers.get(value) {
            Some(&known) => known,
            None => self.add(value.into()),
        }
    }

    fn add(&mut self, value: Rc<T>) -> I {
        let id = I::from(self.values.len());
        self.values.push(value.clone());
        self.numbers.insert(value, id);
        id
    }

    pub(super) fn get(&self, id: I) -> &Rc<T> {
        &self.values[id.into()]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.values.iter()
    }
}

/// A schema as a condition on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SchemaKey {
    /// What a place in a document says, in a dynamic scope.
    Schema(JsonNodeId, ScopeId),
    /// That the value equals the one at a place in a document.
    Constant(JsonNodeId),
    /// That the value is `true`, or that it is `false`.
    Truth(bool),
    /// No value: what stands for members of an object that is closed.
    Closed,
}

/// A branch of a schema: what it is valid under, and the schema whose keywords evaluate members.
pub(super) type Branch = (FormulaId, SchemaId);

/// What formulas are made of. `AtLeast...` has its negation as "fewer than", so that bounds on either
/// side are one kind of atom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    /// The value that is read next satisfies a schema.
    Value(SchemaId),

    /// Of a boolean: it is `true`.
    True,

    /// Of an object: `properties`, `patternProperties` and `additionalProperties` of a schema hold for
    /// the members that are still to come.
    Properties(SchemaId),
    /// A member of this name is still to come.
    Required(NameId),
    /// None of the many names that a schema requires is absent.
    RequiredAll(SchemaId),
    /// `propertyNames`: all names to come satisfy a schema.
    Names(SchemaId),
    /// So many members, or more, are still to come.
    AtLeastProperties(u32),
    /// `unevaluatedProperties`: members that none of the branches evaluates satisfy a schema.
    UnevaluatedProperties(SchemaId, Box<[Branch]>),

    /// Of an array: `prefixItems`, `items` and `additionalItems` of a schema hold.
    Items(SchemaId),
    /// So many items, or more, are still to come.
    AtLeastItems(u32),
    /// So many items that satisfy a schema, or more, are still to come.
    AtLeastContains(SchemaId, u32),
    /// `unevaluatedItems`, likewise.
    UnevaluatedItems(SchemaId, Box<[Branch]>),
    /// `uniqueItems` over a schema whose items have few values: those in the set are used.
    Distinct(SchemaId, UsedId),
    /// `uniqueItems` of a schema whose items no list bounds.
    Unique(SchemaId),

    /// Of a string: it has so many characters, or more.
    AtLeastCharacters(u32),
    /// It is of a language.
    Language(LanguageId),
    /// It is one of these.
    Texts(TextsId),
    /// It is a regular expression.
    RegularExpression,

    /// Of a number: it is an integer.
    Integer,
    /// It is this or more.
    AtLeast(DecimalId),
    /// It is more than this.
    Greater(DecimalId),
    /// It is a multiple.
    MultipleOf(DecimalId),
    /// It is one of these.
    Decimals(DecimalsId),
}

/// The alternatives of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Alternatives {
    /// Each in the order of its own names.
    pub(super) own: Box<[Alternative]>,
    /// All of them, in the order of all names together, where they are several.
    pub(super) all: Option<Alternative>,
    /// The last of these orders, with what conditions bring right behind what they ask for, where that is another one.
    pub(super) chained: Option<OrderId>,
}

/// One formula for each type, and for objects its alternatives: a condition on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ValueKey {
    pub(super) formulas: [FormulaId; 6],
    pub(super) objects: AlternativesId,
}

/// An alternative of an object: what its members satisfy, and the names that it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Alternative {
    pub(super) formula: FormulaId,
    pub(super) order: OrderId,
    /// How many of the names keep to their order. The others come behind these, in any order.
    pub(super) in_order: u32,
}

impl ValueKey {
    pub(super) fn of(&self, kind: Type) -> FormulaId {
        self.formulas[kind.index()]
    }

    pub(super) fn is_impossible(&self) -> bool {
        self.formulas.iter().all(|&formula| formula == FormulaId::FALSE)
    }
}

/// The decimals of a set.
pub(super) type Decimals = Box<[Decimal]>;
