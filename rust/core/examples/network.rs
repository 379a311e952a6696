//! Prints the network of a grammar file: `cargo run --example network -- FILE [INLINE_BUDGET]`.

use std::error::Error;
use tokfold_core::limits::Limits;
use tokfold_core::network::{Network, NetworkOptions, WIDE};
use tokfold_core::syntax;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: network FILE [INLINE_BUDGET]")?;
    let mut options =
        NetworkOptions { counters: true, share_wide: Some(WIDE), ..NetworkOptions::default() };
    if let Some(budget) = arguments.next() {
        options.inline_budget = budget.parse()?;
    }
    let grammar = syntax::parse(&std::fs::read_to_string(path)?, "root", &Limits::default())?;
    print!("{}", Network::new(&grammar, &options)?);
    Ok(())
}
