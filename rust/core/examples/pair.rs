use tokfold_core::{limits::Limits,network::*,syntax,classes};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let g = syntax::parse(&std::fs::read_to_string(&a[1]).unwrap(),"root",&Limits::default()).unwrap();
    let net=Network::new(&g,&NetworkOptions{repeat_window:Some(130),inline_budget:60,..Default::default()}).unwrap();
    classes::debug_pair(&net,a[2].as_bytes(),a[3].as_bytes());
}
