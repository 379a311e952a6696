//! How long the core goes on between two looks at its interrupt, for each file of a folder.
//!
//! `cargo run --release --example looks -- [--from MILLISECONDS] FILE...`
//!
//! The name's end says how a file is read: `.ebnf`, `.lark`, `.regex`, `.schema`, `.any` (a schema
//! with members in any order), `.qwen` (a schema of tool calls in XML), `.excludes` (a schema whose
//! strings hold none of 3,000 texts). A file is read, converted and made ready for masks several times.
//! The looks of two runs are the same ones, so the least time before each of them is what the work
//! takes, however busy the machine is. The longest are printed with where the looks before and after
//! stand in the code, where the build has line tables. What comes after a cancelled look, until all
//! is returned and freed, is measured at six of them.

use std::backtrace::Backtrace;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokfold_core::budget::{Budget, Interrupt, Observer};
use tokfold_core::compile::{CompileOptions, compile};
use tokfold_core::engine::SharedVocabulary;
use tokfold_core::error::Result;
use tokfold_core::grammar::Grammar;
use tokfold_core::json_schema::{self, KeyOrder, SchemaOptions, Style};
use tokfold_core::lark::{self, LarkOptions, Subgrammars};
use tokfold_core::limits::Limits;
use tokfold_core::regular::Bounds;
use tokfold_core::regular::grammars::{self, Operation};
use tokfold_core::regular::pattern::{PatternDialect, parse};
use tokfold_core::syntax;
use tokfold_core::vocabulary::Vocabulary;

const RUNS: usize = 3;
const CANCELLED: usize = 6;

/// What a run saw.
struct Seen {
    last: Instant,
    delay: f64,
    /// Seconds on a core before each look.
    gaps: Vec<f64>,
    /// The looks whose places are wanted, in order, and the places.
    wanted: Vec<usize>,
    places: Vec<String>,
    /// The look that ends the run.
    ends_at: usize,
}

struct Watch(Mutex<Seen>);

impl Observer for Watch {
    fn go_on(&self) -> bool {
        let Ok(mut seen) = self.0.lock() else { return false };
        let (now, delay) = (Instant::now(), delay());
        let look = seen.gaps.len();
        let gap = (now - seen.last).as_secs_f64() - (delay - seen.delay);
        seen.gaps.push(gap);
        if seen.wanted.contains(&look) {
            let place = place(&Backtrace::force_capture());
            seen.places.push(place);
        }
        (seen.last, seen.delay) = (Instant::now(), self::delay());
        look != seen.ends_at
    }
}

/// The innermost lines of the core, but for those of the budget.
fn place(trace: &Backtrace) -> String {
    let text = trace.to_string();
    let files = text.lines().filter_map(|line| line.split_once("rust/core/src/"));
    let mut out: Vec<&str> = files.map(|(_, at)| at).collect();
    out.retain(|at| !at.starts_with("budget.rs"));
    out.truncate(6);
    out.join(" < ")
}

/// Seconds that this thread was ready and not on a core, where the system tells.
fn delay() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = text.split(' ').nth(1).and_then(|field| field.parse::<f64>().ok());
    waited.unwrap_or(0.0) / 1e9
}

struct Alone<'a>(&'a Limits, &'a Budget);

impl Subgrammars for Alone<'_> {
    fn json_schema(&mut self, text: &str, _: tokfold_core::error::Position) -> Result<Grammar> {
        let options = SchemaOptions::default();
        Ok(json_schema::convert(text, &[], &options, self.0, self.1)?.grammar)
    }
}

fn read(kind: &str, text: &str, interrupt: &Interrupt) -> Result<Grammar> {
    let limits = Limits::default();
    let budget = Budget::new(&limits, interrupt);
    let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
    let schema = |options: SchemaOptions| {
        Ok(json_schema::convert(text, &[], &options, &limits, &budget)?.grammar)
    };
    let usual = SchemaOptions::default();
    match kind {
        "schema" => schema(usual),
        "any" => schema(SchemaOptions { key_order: KeyOrder::Any, ..usual }),
        "qwen" => schema(SchemaOptions { style: Style::Qwen, ..usual }),
        "excludes" => {
            let excludes = (0..3_000).map(|i| format!("</t{}>", i * 7919 % 10_007).into());
            schema(SchemaOptions { excludes: excludes.collect(), ..usual })
        }
        "regex" => {
            budget.spend(1 + text.len())?;
            let pattern =
                parse(text, PatternDialect::Ecma, "").map_err(|error| error.into_error(text))?;
            grammars::grammar(&[Operation::Pattern(pattern, false)], &bounds)
        }
        "lark" => {
            let mut outside = Alone(&limits, &budget);
            lark::read(text, &LarkOptions::default(), &mut outside, &bounds)
        }
        _ => syntax::parse_within(text, "root", &limits, interrupt),
    }
}

/// What a request does before its first mask.
fn prepare(
    kind: &str,
    text: &str,
    vocabulary: &SharedVocabulary,
    interrupt: &Interrupt,
) -> Result<()> {
    let grammar = read(kind, text, interrupt)?;
    compile(&grammar, vocabulary, &CompileOptions::default(), interrupt).map(drop)
}

/// One run: what was seen, seconds after the last look, and what became of it.
fn run(
    (kind, text): (&str, &str),
    vocabulary: &SharedVocabulary,
    wanted: Vec<usize>,
    ends_at: usize,
) -> (Seen, f64, String) {
    let (last, delay) = (Instant::now(), self::delay());
    let seen = Seen { last, delay, gaps: Vec::new(), wanted, places: Vec::new(), ends_at };
    let watch = Arc::new(Watch(Mutex::new(seen)));
    let interrupt = Interrupt::default().with_observer(watch.clone());
    let result = prepare(kind, text, vocabulary, &interrupt);
    let (end, waited) = (Instant::now(), self::delay());
    drop(interrupt);
    let said = match result {
        Ok(()) => "made".to_owned(),
        Err(error) => error.to_string().chars().take(60).collect(),
    };
    let Some(Ok(seen)) = Arc::into_inner(watch).map(|watch| watch.0.into_inner()) else {
        return run((kind, text), vocabulary, Vec::new(), ends_at);
    };
    let after = (end - seen.last).as_secs_f64() - (waited - seen.delay);
    (seen, after, said)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let mut from = 5.0;
    if arguments.next_if(|argument| argument == "--from").is_some() {
        from = arguments.next().ok_or("--from MILLISECONDS")?.parse()?;
    }
    let blob: Vec<u8> = (0..=255).collect();
    let vocabulary = Vocabulary::new(blob, (0..=256).collect(), &[], &[])?.into();
    for path in arguments {
        let (_, kind) = path.rsplit_once('.').ok_or("a name without an end")?;
        let text = std::fs::read_to_string(&path)?;
        let (first, mut after, said) = run((kind, &text), &vocabulary, Vec::new(), usize::MAX);
        let mut gaps = first.gaps;
        for _ in 1..RUNS {
            let (again, end, _) = run((kind, &text), &vocabulary, Vec::new(), usize::MAX);
            after = after.min(end);
            gaps.truncate(again.gaps.len());
            gaps.iter_mut().zip(&again.gaps).for_each(|(gap, &other)| *gap = gap.min(other));
        }
        let mut order: Vec<usize> = (0..gaps.len()).collect();
        order.sort_by(|&a, &b| gaps[b].total_cmp(&gaps[a]));
        let longest = order.first().map_or(0.0, |&look| gaps[look] * 1e3);
        let mut unwinding = (0.0, 0);
        for part in 0..CANCELLED.min(gaps.len()) {
            let at = part * gaps.len() / CANCELLED.min(gaps.len());
            let ended = (0..2).map(|_| run((kind, &text), &vocabulary, Vec::new(), at).1);
            let least = ended.fold(f64::INFINITY, f64::min);
            if least > unwinding.0 {
                unwinding = (least, at);
            }
        }
        let name = path.rsplit('/').next().unwrap_or(&path);
        println!(
            "{longest:7.1} ms  last {:6.1} ms  cancelled {:6.1} ms at {} of {}  {name}: {said}",
            after * 1e3,
            unwinding.0 * 1e3,
            unwinding.1,
            gaps.len()
        );
        order.retain(|&look| gaps[look] * 1e3 > from);
        order.truncate(6);
        let mut wanted: Vec<usize> =
            order.iter().flat_map(|&look| [look.saturating_sub(1), look]).collect();
        if unwinding.0 * 1e3 > from {
            wanted.push(unwinding.1);
        }
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.is_empty() {
            continue;
        }
        let places = run((kind, &text), &vocabulary, wanted.clone(), usize::MAX).0.places;
        let place = |look: usize| {
            let found = wanted.iter().position(|&wanted| wanted == look);
            found.and_then(|found| places.get(found)).map_or("", String::as_str)
        };
        for &look in &order {
            println!("    {:7.1} ms before look {look}", gaps[look] * 1e3);
            println!("        from {}", place(look.saturating_sub(1)));
            println!("        to   {}", place(look));
        }
        if unwinding.0 * 1e3 > from {
            println!("    cancelled at {}", place(unwinding.1));
        }
    }
    Ok(())
}
