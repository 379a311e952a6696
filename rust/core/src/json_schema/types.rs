//! The types that a schema may name.

/// What `type` names, in the order of [`Types::NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedType {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean,
    /// Numbers without a fraction.
    Integer,
    /// All numbers.
    Number,
    /// Strings.
    String,
    /// Arrays.
    Array,
    /// Objects.
    Object,
}

/// A set of the names that `type` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Types(pub(super) u8);

impl Types {
    /// The names, each with its own bit.
    pub const NAMES: [&str; 7] =
        ["null", "boolean", "integer", "number", "string", "array", "object"];

    /// Whether `type` lists a name.
    pub fn has(self, name: &str) -> bool {
        Self::bit(name).is_some_and(|bit| self.0 & bit != 0)
    }

    /// Whether a type is listed.
    pub fn names(self, named: NamedType) -> bool {
        self.0 >> named as u8 & 1 == 1
    }

    /// Whether nothing is listed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn bit(name: &str) -> Option<u8> {
        Self::NAMES.iter().position(|known| *known == name).map(|position| 1 << position)
    }
}
