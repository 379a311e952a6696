//! Index newtypes. A bare integer never names a rule, an expression or a state.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// The id of the `index`-th entry of its table.
            #[inline]
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("tables are bounded far below 2^32 entries"))
            }

            /// The position in its table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A rule of a [`crate::grammar::Grammar`].
    RuleId
);
id!(
    /// A node of the expression arena of a [`crate::grammar::Grammar`].
    ExprId
);
id!(
    /// A state of a network.
    StateId
);
