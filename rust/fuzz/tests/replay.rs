//! Every file of the corpus goes through its target, without libFuzzer.
//!
//! `REPLAY=path` replays one file, or all files of a folder, of the target that the folder names.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tokfold_fuzz::{TARGETS, Target};

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("an entry of the corpus").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The files that a target panics on.
fn failures(target: Target, files: &[PathBuf]) -> Vec<PathBuf> {
    let fails = |path: &&PathBuf| {
        let data = std::fs::read(path).expect("a file of the corpus");
        catch_unwind(AssertUnwindSafe(|| target(&data))).is_err()
    };
    files.iter().filter(fails).cloned().collect()
}

#[test]
fn the_corpus_replays() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in TARGETS {
        let files = files(&corpus.join(name));
        assert!(!files.is_empty(), "{name} has a corpus");
        assert_eq!(failures(target, &files), [] as [PathBuf; 0], "{name}");
        println!("{name}: {} files", files.len());
    }
}

#[test]
fn one_replays() {
    let Some(path) = std::env::var_os("REPLAY") else { return };
    // From the root of the repository, where commands are given, or as it stands.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let files = if path.is_dir() { files(&path) } else { vec![path.clone()] };
    let is_of = |name: &str| path.components().any(|part| part.as_os_str() == name);
    let target = TARGETS.iter().find(|target| is_of(target.0));
    let (name, target) = target.expect("a folder of the path names a target");
    assert_eq!(failures(*target, &files), [] as [PathBuf; 0], "{name}");
}

/// Bytes without a plan: the targets take any.
#[test]
fn any_bytes_are_a_case() {
    for (_, target) in TARGETS {
        let mut state = 7u64;
        for case in 0..97 {
            let data: Vec<u8> = (0..case)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as u8
                })
                .collect();
            target(&data);
        }
    }
}
