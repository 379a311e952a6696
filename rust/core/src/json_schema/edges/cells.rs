//! Cells: sets of values in which every condition that is decided by type or finite value is the same.

use super::Restricted;
use crate::error::Result;
use crate::json_schema::atoms::{Atom, SchemaId, Type};
use crate::json_schema::converter::Converter;
use crate::json_schema::decimal::Decimal;
use crate::json_schema::formula::{Formula, FormulaId};
use rustc_hash::FxHashMap;

/// Finite values that cells tell apart.
const MOST_CELLS: usize = 400;

/// A set of values in which every condition that is decided by type or finite value is the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Text(Box<str>),
    OtherText,
    Decimal(Decimal),
    OtherNumber,
    Array,
    Object,
}

/// Cells in which the same is left of a formula.
struct CellGroup {
    rest: FormulaId,
    cells: Vec<usize>,
    /// Schemas that hold in the first of them.
    held: Vec<SchemaId>,
    /// Whether the numbers are integers as schemas mean them.
    are_integers: bool,
}

impl Cell {
    fn kind(&self) -> Type {
        match self {
            Cell::Null => Type::Null,
            Cell::Boolean(_) => Type::Boolean,
            Cell::Text(_) | Cell::OtherText => Type::String,
            Cell::Decimal(_) | Cell::OtherNumber => Type::Number,
            Cell::Array => Type::Array,
            Cell::Object => Type::Object,
        }
    }
}

impl Converter<'_> {
    /// The cells of the values that some schemas tell apart; `None` where these are too many.
    pub(super) fn cells(&mut self, schemas: &[SchemaId]) -> Result<Option<Vec<Cell>>> {
        let mut texts: Vec<Box<str>> = Vec::new();
        let mut decimals: Vec<Decimal> = Vec::new();
        for &schema in schemas {
            for kind in [Type::String, Type::Number] {
                let formula = self.type_formula(schema, kind)?;
                for (atom, _) in self.formulas.atoms_of(formula) {
                    match self.atom(atom) {
                        Atom::Texts(set) => texts.extend(self.texts.get(*set).iter().cloned()),
                        Atom::Decimals(set) => {
                            decimals.extend(self.decimal_sets.get(*set).iter().cloned());
                        }
                        _ => {}
                    }
                }
                if texts.len() + decimals.len() > 16 * MOST_CELLS {
                    return Ok(None);
                }
            }
        }
        texts.sort_unstable();
        texts.dedup();
        decimals.sort_unstable();
        decimals.dedup();
        if texts.len() + decimals.len() > MOST_CELLS {
            return Ok(None);
        }
        let mut cells = vec![Cell::Null, Cell::Boolean(true), Cell::Boolean(false)];
        cells.extend(texts.into_iter().map(Cell::Text));
        cells.push(Cell::OtherText);
        cells.extend(decimals.into_iter().map(Cell::Decimal));
        cells.extend([Cell::OtherNumber, Cell::Array, Cell::Object]);
        Ok(Some(cells))
    }

    /// What is left of a formula in each cell, cells with the same rest together: the rest, the
    /// restriction to the cells, which is missing where it is none, and schemas that hold there.
    pub(super) fn by_cell(
        &mut self,
        formula: FormulaId,
        schemas: &[SchemaId],
        cells: &[Cell],
    ) -> Result<Vec<Restricted>> {
        let mut groups: Vec<CellGroup> = Vec::new();
        let mut place: FxHashMap<FormulaId, usize> = FxHashMap::default();
        for (number, cell) in cells.iter().enumerate() {
            let mut known = FxHashMap::default();
            for &schema in schemas {
                if let Some(holds) = self.in_cell(schema, cell)? {
                    known.insert(schema, FormulaId::of(holds));
                }
            }
            let rest = self.substitute(formula, &known)?;
            if rest == FormulaId::FALSE {
                continue;
            }
            let held: Vec<SchemaId> = (schemas.iter().copied())
                .filter(|schema| known.get(schema) == Some(&FormulaId::TRUE))
                .collect();
            let are_integers = match cell {
                Cell::Decimal(_) => self.all_ask_for_integers(&held)?,
                Cell::OtherNumber => false,
                _ => true,
            };
            let at = *place.entry(rest).or_insert_with(|| {
                groups.push(CellGroup { rest, cells: Vec::new(), held, are_integers: true });
                groups.len() - 1
            });
            groups[at].cells.push(number);
            groups[at].are_integers &= are_integers;
        }
        let mut out = Vec::with_capacity(groups.len());
        for group in groups {
            let restriction =
                (group.cells.len() < cells.len()).then(|| self.restriction(&group, cells));
            out.push((group.rest, restriction, group.held));
        }
        Ok(out)
    }

    /// Whether numbers are meant as integers wherever some schemas hold, and so are written as such.
    fn all_ask_for_integers(&mut self, schemas: &[SchemaId]) -> Result<bool> {
        let integer = self.formulas.literal(Atom::Integer);
        for &schema in schemas {
            let formula = self.type_formula(schema, Type::Number)?;
            if !self.formulas.conjuncts(formula).contains(&integer) {
                return Ok(false);
            }
        }
        Ok(!schemas.is_empty())
    }

    /// Whether all values of a cell satisfy a schema, or none; `None` where it depends.
    fn in_cell(&mut self, schema: SchemaId, cell: &Cell) -> Result<Option<bool>> {
        let formula = self.type_formula(schema, cell.kind())?;
        let formula = match cell {
            Cell::Boolean(truth) => {
                let truth = *truth;
                FormulaId::of(self.formulas.evaluate(formula, &mut |_, _| truth))
            }
            Cell::Text(text) => FormulaId::of(self.string_satisfies(formula, text)?),
            Cell::Decimal(decimal) => FormulaId::of(self.number_satisfies(formula, decimal)?),
            Cell::OtherText | Cell::OtherNumber => self.derive(formula, &mut |this, number| {
                Ok(match this.atom(number).clone() {
                    Atom::Texts(_) | Atom::Decimals(_) => FormulaId::FALSE,
                    _ => this.formulas.of_atom(number),
                })
            })?,
            Cell::Null | Cell::Array | Cell::Object => formula,
        };
        Ok(match self.formulas.get(formula) {
            Formula::Constant(value) => Some(*value),
            _ => None,
        })
    }

    /// The condition that a value is in one of some cells.
    fn restriction(&mut self, group: &CellGroup, cells: &[Cell]) -> [FormulaId; 6] {
        let mut formulas = [FormulaId::FALSE; 6];
        let (mut texts, mut decimals) = (Vec::new(), Vec::new());
        let (mut booleans, mut other_text, mut other_number) = (Vec::new(), false, false);
        for &member in &group.cells {
            match &cells[member] {
                Cell::Null | Cell::Array | Cell::Object => {
                    formulas[cells[member].kind().index()] = FormulaId::TRUE;
                }
                Cell::Boolean(truth) => booleans.push(*truth),
                Cell::Text(text) => texts.push(text.clone()),
                Cell::Decimal(decimal) => decimals.push(decimal.clone()),
                Cell::OtherText => other_text = true,
                Cell::OtherNumber => other_number = true,
            }
        }
        let truth = self.formulas.literal(Atom::True);
        let literals: Vec<FormulaId> = booleans
            .into_iter()
            .map(|value| if value { truth } else { self.formulas.not(truth) })
            .collect();
        formulas[Type::Boolean.index()] = self.formulas.or(literals);
        // With what is not named, the condition is that the value is none of the others that are named.
        formulas[Type::String.index()] = if other_text {
            let others = cells.iter().filter_map(|cell| match cell {
                Cell::Text(text) if !texts.contains(text) => Some(text.clone()),
                _ => None,
            });
            let others: Vec<Box<str>> = others.collect();
            let others = self.one_of_texts(others);
            self.formulas.not(others)
        } else {
            self.one_of_texts(texts)
        };
        formulas[Type::Number.index()] = if other_number {
            let others = cells.iter().filter_map(|cell| match cell {
                Cell::Decimal(decimal) if !decimals.contains(decimal) => Some(decimal.clone()),
                _ => None,
            });
            let others: Vec<Decimal> = others.collect();
            let others = self.one_of_decimals(others);
            self.formulas.not(others)
        } else {
            let named = self.one_of_decimals(decimals);
            match group.are_integers {
                true => {
                    let integer = self.formulas.literal(Atom::Integer);
                    self.formulas.and([named, integer])
                }
                false => named,
            }
        };
        formulas
    }
}
